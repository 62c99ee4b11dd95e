//! A reproduction that is stopped goes on where it was.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_reproduce::{HULL, Journal, Options, ReproduceError, reproduce};

/// The runs of the figure that is asked for.
const RUNS: usize = 24;

fn journal(path: &Path) -> Journal {
    Journal::open(path).expect("the folder can be written to")
}

/// Whatever stood in the journal when it was stopped: the rest is run, nothing twice, and the result is that of one go.
#[test]
fn what_was_stopped_after_some_runs_goes_on_with_the_next() {
    let options = Options {
        quick: true,
        threads: 1,
        seed: 1,
        servers: PathBuf::new(),
        commit: None,
        only: vec!["fig2b".parse().expect("any text is a part")],
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("journal.jsonl");
    let stopped = reproduce(&HULL, &options, &mut journal(&path), &|done, of, _| (done, of) == (0, RUNS));
    assert!(matches!(stopped, Err(ReproduceError::Batch(_))), "{stopped:?}");
    let lines = || fs::read_to_string(&path).expect("there is a journal").lines().count();
    // Runs are as short as a look at whether to go on.
    let kept = lines();
    assert!((1..RUNS).contains(&kept), "{kept}");

    let runs = AtomicUsize::new(0);
    let note = |_: usize, of: usize, _: u64| {
        runs.store(of, Ordering::Relaxed);
        true
    };
    let resumed = reproduce(&HULL, &options, &mut journal(&path), &note).expect("it goes on");
    assert_eq!((runs.into_inner(), lines()), (RUNS - kept, RUNS));

    let again = reproduce(&HULL, &options, &mut journal(&path), &|_, _, _| panic!("nothing is to be run"));
    assert_eq!(again.expect("it is all there"), resumed);
    let whole = reproduce(&HULL, &options, &mut Journal::in_memory(), &|_, _, _| true);
    assert_eq!(whole.expect("it runs"), resumed);
}
