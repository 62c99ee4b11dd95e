//! `--memory-max`, the memory limit of a command.

use std::str::FromStr;

use anyhow::Context;
use plimsoll_experiment::memory;
pub use plimsoll_experiment::memory::{Memory, Work, begin, end_where_refused};
use plimsoll_units::Bytes;

/// The memory limit of a command.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Budget {
    /// Most memory that this process may use for all runs together; half of the free memory by default. A scenario that
    /// needs more is rejected before it runs, or stopped, and finished points are kept.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory_max: Option<Bytes>,
}

/// The smallest limit: the program itself needs this much.
const LEAST: Bytes = Bytes::new(64_000_000);

fn size(text: &str) -> Result<Bytes, String> {
    let size = Bytes::from_str(text).map_err(|error| error.to_string())?;
    if size < LEAST { Err(format!("at least {LEAST}")) } else { Ok(size) }
}

impl Budget {
    /// Starts to watch the memory of this process, which does `work`.
    ///
    /// # Errors
    /// Returns an error if the system cannot create a thread.
    pub fn watch(self, work: Work) -> anyhow::Result<Memory> {
        memory::watch(self.memory_max.map(Bytes::get), work).context(NO_WATCH)
    }
}

/// Watches the memory of a command that has no flag for it.
///
/// # Errors
/// Returns an error if the system cannot create a thread.
pub fn watch_by_default() -> anyhow::Result<Memory> {
    memory::watch(None, Work::Convert).context(NO_WATCH)
}

const NO_WATCH: &str = "cannot start a thread that watches this process's memory";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_size_with_room_for_the_program() {
        assert_eq!(size("4GB"), Ok(Bytes::new(4_000_000_000)));
        assert_eq!(size("1MB"), Err("at least 64MB".to_owned()));
        assert!(size("4").is_err() && size("many").is_err());
    }
}
