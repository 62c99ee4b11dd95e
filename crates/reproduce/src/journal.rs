//! [`Journal`]: the rows of finished runs, kept so that a stopped reproduction resumes.
//!
//! One line of JSON a run, keyed by the digest of the settings of the run's scenario, which hold the seed, and by its
//! base, which says what carried the packets. Defaults are not in it, so that a journal outlives a new key of the
//! format; where a default itself changes, the version has to. A line is written in one piece when its run is done,
//! with a checksum; a last line that was cut short is dropped with a warning, and one that has been changed is an
//! error, or dropped by a repair. Published values and tolerances are not taken from here: they are set anew beside the
//! measured numbers.

use plimsoll_experiment::{Finished, Store, StoreError};
use serde::{Deserialize, Serialize};

use crate::options::Part;
use crate::row::StudyRow;

/// A finished run, a line of the journal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StudyRun {
    /// The digest of the settings of the run's scenario, as text: the same digest means the same run.
    pub digest: String,
    /// The version of the program that ran it.
    pub version: String,
    /// The commit that it was built from, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The digest of the outcomes of its scenario at that time, by the committed table: a run from before a change
    /// of results does not count. None where nothing was simulated, or from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<String>,
    /// The seed that the run was made with.
    pub seed: u64,
    /// The figure that the run is of.
    pub figure: String,
    /// As in its rows: `source`, `standard`, `kernel` or `simulated`.
    pub base: String,
    /// The value on the figure's x axis.
    pub x: String,
    /// The scheme that the run is of.
    pub series: String,
    /// The packet-hops of the run: packets that completed a link, counted at each link.
    pub packet_hops: u64,
    /// The rows that the run measured.
    pub rows: Vec<StudyRow>,
}

/// Finished runs by digest, figure and base, in a file if there is one. Two figures may have the same run, and measure
/// different things in it.
pub type Journal = Store<StudyRun>;

/// The digest of a run and what its rows are called: two points of a figure may be the same run.
pub(crate) type Key = (String, [String; 4]);

impl StudyRun {
    /// Returns the digest of the run's settings, with the digest of the outcomes of its scenario.
    pub fn identity(&self) -> String {
        identity(&self.digest, self.outcomes.as_deref())
    }
}

impl Finished for StudyRun {
    type Key = Key;

    fn key(&self) -> Key {
        let StudyRun { figure, base, x, series, .. } = self;
        (self.digest.clone(), [figure, base, x, series].map(Clone::clone))
    }

    /// Lines of another version of the program do not count.
    fn read(json: &str) -> Result<Option<StudyRun>, String> {
        #[derive(Deserialize)]
        struct EntryHead {
            version: String,
        }
        let head: EntryHead = serde_json::from_str(json).map_err(|error| error.to_string())?;
        if head.version != VERSION {
            return Ok(None);
        }
        serde_json::from_str(json).map(Some).map_err(|error| error.to_string())
    }
}

/// Joins the digest of a run's settings with that of the outcomes of its scenario.
pub(crate) fn identity(digest: &str, outcomes: Option<&str>) -> String {
    outcomes.map_or_else(|| digest.to_owned(), |outcomes| format!("{digest}-{outcomes}"))
}

/// Forgets the runs of these parts of a study, whatever their seed.
///
/// # Errors
/// Returns an error if the file cannot be written; it is then as it was.
pub fn forget(journal: &mut Journal, parts: &[Part]) -> Result<(), StoreError> {
    journal.retain(|entry| !parts.iter().any(|part| part.has(&entry.figure, &entry.x)))
}

/// Returns the run of that digest for a figure, a base, a place on the axis and a scheme, if it is done.
pub(crate) fn find<'j>(journal: &'j Journal, digest: u64, names: [&str; 4]) -> Option<&'j StudyRun> {
    journal.get(&(text(digest), names.map(str::to_owned)))
}

/// Formats a digest as the journal writes it: JSON's numbers do not hold 64 bits everywhere.
pub(crate) fn text(digest: u64) -> String {
    format!("{digest:016x}")
}

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(digest: u64) -> StudyRun {
        let mut row = StudyRow::new("fig11", "source", "bucket", "1", "one_way_us_mean", "us");
        row.measured = 1.0 / 3.0;
        StudyRun {
            digest: text(digest),
            version: VERSION.to_owned(),
            commit: Some("aaaa".to_owned()),
            outcomes: None,
            seed: 1,
            figure: "fig11".to_owned(),
            base: "source".to_owned(),
            x: "1".to_owned(),
            series: "bucket".to_owned(),
            packet_hops: 7,
            rows: vec![row],
        }
    }

    const FIG11: [&str; 4] = ["fig11", "source", "1", "bucket"];

    #[test]
    fn two_points_of_one_digest_keep_their_names() {
        let mut journal = Journal::in_memory();
        let other = StudyRun { x: "2".to_owned(), ..entry(1) };
        journal.keep(entry(1)).and_then(|()| journal.keep(other.clone())).expect("they are kept");
        assert_eq!(find(&journal, 1, FIG11), Some(&entry(1)));
        assert_eq!(find(&journal, 1, ["fig11", "source", "2", "bucket"]), Some(&other));
    }

    #[test]
    fn parts_are_forgotten_and_another_versions_runs_do_not_count() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).expect("it is made");
        let other = StudyRun { x: "2".to_owned(), ..entry(2) };
        let old = StudyRun { version: "0.0.0-other".to_owned(), ..entry(3) };
        [entry(1), other.clone(), old]
            .into_iter()
            .try_for_each(|entry| journal.keep(entry))
            .expect("written");
        forget(&mut journal, &["fig11@1".parse().expect("a part")]).expect("it is written");
        journal.keep(StudyRun { version: "0.0.0-other".to_owned(), ..entry(3) }).expect("it is written");
        let journal = Journal::open(&path).expect("it opens");
        assert_eq!((find(&journal, 1, FIG11), find(&journal, 3, FIG11)), (None, None));
        assert_eq!(find(&journal, 2, ["fig11", "source", "2", "bucket"]), Some(&other));
    }
}
