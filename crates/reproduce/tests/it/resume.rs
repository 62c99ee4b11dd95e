//! A stopped reproduction resumes.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_reproduce::{Journal, Options, ReproduceError, reproduce, study};

/// The runs of the figure that is asked for.
const RUNS: usize = 24;

fn journal(path: &Path) -> Journal {
    Journal::open(path).expect("the folder can be written to")
}

/// Whatever the journal has of a stopped run, the rest is run, nothing twice, and the result is that of a whole run.
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
    let stopped =
        reproduce(study("hull"), &options, &mut journal(&path), &|done, of, _| (done, of) == (0, RUNS));
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
    let resumed = reproduce(study("hull"), &options, &mut journal(&path), &note).expect("it goes on");
    assert_eq!((runs.into_inner(), lines()), (RUNS - kept, RUNS));

    let again =
        reproduce(study("hull"), &options, &mut journal(&path), &|_, _, _| panic!("nothing is to be run"));
    assert_eq!(again.expect("it is all there"), resumed);
    let whole = reproduce(study("hull"), &options, &mut Journal::in_memory(), &|_, _, _| true);
    assert_eq!(whole.expect("it runs"), resumed);
}

/// A page of full runs is not called a quick look because somebody has had one since.
#[test]
fn a_quick_look_leaves_full_runs_and_what_is_said_of_them() {
    let look = |part: &str, quick, journal: &mut Journal| {
        let only = vec![part.parse().expect("any text is a part")];
        let options = Options { quick, threads: 2, seed: 1, servers: PathBuf::new(), commit: None, only };
        reproduce(study("solstice"), &options, journal, &|_, _, _| true).expect("the schedulers run")
    };
    let mut journal = Journal::in_memory();
    let full = look("fig4@8", false, &mut journal);
    assert!(!full.quick && full.rows.iter().any(|row| row.within.is_some()));
    assert_eq!(look("fig4@8", true, &mut journal), full);
    let beside = look("fig4@64", true, &mut journal);
    assert!(!beside.quick);
    let (short, long): (Vec<_>, Vec<_>) =
        beside.rows.iter().filter(|row| row.figure == "fig4").partition(|row| row.x == "64");
    assert!(!short.is_empty() && short.iter().all(|row| row.quick && row.within.is_none()));
    assert!(!long.is_empty() && long.iter().all(|row| !row.quick));
    assert!(look("fig4@64", true, &mut Journal::in_memory()).quick);
}
