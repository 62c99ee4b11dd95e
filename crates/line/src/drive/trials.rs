//! Single runs of variants, from the journal of a search or for it.

use std::path::Path;

use plimsoll_results::run_dir::Existing;

use super::{Driver, Room, SearchStop, SearchWatch};
use crate::journal;
use crate::measure::Run;
use crate::question::AskedLine;
use crate::search::{Ask, rounded};

/// A run of a variant at a load.
#[derive(Clone, PartialEq, Debug)]
pub struct LineTrial {
    /// The name of the variant.
    pub variant: String,
    /// The load in the unit of the search.
    pub load: f64,
    /// The replicate, which chooses the seed: variants with the same replicate have the same messages.
    pub replicate: u32,
}

/// Makes the runs that the folder `dir` does not have yet, and returns all of `wanted` in their order; `None` for runs
/// that the watch has stopped, and for unknown variants. A search with the same folder uses the runs again.
///
/// # Errors
/// Returns an error if a run fails, or cannot be kept.
pub fn trials(
    asked: &AskedLine<'_>,
    dir: &Path,
    room: Room,
    watch: &dyn SearchWatch,
    wanted: &[LineTrial],
) -> Result<Vec<Option<Run>>, SearchStop> {
    let mut driver = Driver::new(asked, journal::open(dir, Existing::Resume)?, room, watch);
    let number = |name: &str| driver.variants.iter().position(|variant| variant.name == name);
    let asks: Vec<Option<(usize, Ask)>> = wanted
        .iter()
        .map(|trial| {
            let ask = Ask { load: rounded(trial.load), replicate: trial.replicate };
            Some((number(&trial.variant)?, ask))
        })
        .collect();
    let known: Vec<(usize, Ask)> = asks.iter().flatten().copied().collect();
    match driver.run(&known, known.len(), None) {
        Ok(_) | Err(SearchStop::Cancelled | SearchStop::OutOfTime) => {}
        Err(error) => return Err(error),
    }
    let journal = driver.journal();
    let kept = |ask: &(usize, Ask)| journal.get(&driver.key(ask)).map(|kept| kept.run.clone());
    Ok(asks.iter().map(|ask| ask.as_ref().and_then(kept)).collect())
}
