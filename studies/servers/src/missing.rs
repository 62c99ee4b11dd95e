//! Tasks that this system or this build cannot carry out; their checks say why.

use std::sync::Arc;

use crate::task::{MakeTask, Measured, Task};

/// Returns what makes a task that this system or this build cannot carry out.
pub(crate) fn missing(why: &'static str) -> MakeTask {
    Arc::new(move |_| Some(Arc::new(MissingTask(why)) as Arc<dyn Task>))
}

struct MissingTask(&'static str);

impl Task for MissingTask {
    fn settings(&self) -> String {
        String::new()
    }

    fn check(&self) -> Result<(), String> {
        Err(self.0.to_owned())
    }

    fn measure(&self, _: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        self.check().map(|()| Vec::new())
    }
}
