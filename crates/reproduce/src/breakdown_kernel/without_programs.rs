//! The tasks of a build without the eBPF programs, which only say how to get them.

use std::sync::Arc;

use crate::study::{MakeTask, Measured, Named, Point, Task};

/// The tasks of the study's figures, by the names in its file.
pub(crate) const TASKS: Named<MakeTask> =
    &[("breakdown-kernel.parts", missing), ("breakdown-kernel.locks", missing)];

fn missing(_: &Point<'_>) -> Option<Arc<dyn Task>> {
    Some(Arc::new(Missing))
}

struct Missing;

impl Task for Missing {
    fn settings(&self) -> String {
        String::new()
    }

    fn check(&self) -> Result<(), String> {
        Err("this plimsoll was built without the eBPF programs; `make kernel` builds one with them, on Linux"
            .to_owned())
    }

    fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        self.check().map(|()| Vec::new())
    }
}
