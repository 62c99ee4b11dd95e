//! The committed pages are of today's points and of today's simulator.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::Reproduction;
use super::bench::{Bench, Job};
use crate::journal::{self, Journal};
use crate::options::Options;
use crate::row::StudyRow;
use crate::studies::every;
use crate::study::{Base, Study, StudyFigure};

/// Flows of the runs that are passed over: each has a list to recompute, which takes seconds.
const LONGEST: u64 = 100_000;

/// A point of each simulated study that takes no time, in full length.
const POINTS: [(&str, &str, &str); 7] = [
    ("bullettrains", "fig3.7", "16384"),
    ("chronos", "fig6.2", "4"),
    ("detail", "motivation", "1"),
    ("hull", "fig2b", "2"),
    ("qjump", "fig11", "0.9"),
    ("reactor", "loss", "1"),
    ("solstice", "fig4", "8"),
];

fn options() -> Options {
    Options { quick: false, threads: 1, seed: 1, only: Vec::new(), servers: PathBuf::new(), commit: None }
}

fn bench<'o>(study: &'static Study, options: &'o Options) -> Bench<'o> {
    Bench { study, folder: study.laid_out().expect("a temporary folder can be written to"), options }
}

/// Returns the runs of a point of a figure with all its schemes.
fn runs(bench: &Bench<'_>, index: usize, case: usize, base: Base) -> Vec<Job> {
    let figure = &bench.study.figures[index];
    let series: Vec<&'static str> = figure.series.iter().map(String::as_str).collect();
    let quick = base == Base::Standard && figure.standard_is_quick;
    if quick && !figure.is_in_quick(case) {
        return Vec::new();
    }
    bench.point(index, case, &series, base, quick, 1).expect("shipped scenarios load")
}

fn committed(study: &Study) -> Reproduction {
    let rows = format!("../../docs/reproductions/{}/rows.json", study.id);
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(rows)).expect("it is committed");
    serde_json::from_str(&text).expect("the rows are a reproduction")
}

/// A change of a scenario or of a result makes pages old: the settings of a run and the outcomes of its
/// scenario are in the page's list of builds.
#[test]
fn every_committed_page_was_made_from_todays_scenarios_and_results() {
    // Without the eBPF programs the breakdown has no settings to compare.
    let is_left_out =
        |id: &str| id == "breakdown-kernel" && !cfg!(all(target_os = "linux", feature = "kernel"));
    for study in every().iter().filter(|study| !is_left_out(&study.id)) {
        let page = committed(study);
        let of_the_page: BTreeSet<&String> = page.builds.iter().flat_map(|build| &build.digests).collect();
        let options = options();
        let bench = bench(study, &options);
        for (index, StudyFigure { id, bases, cases, .. }) in study.figures.iter().enumerate() {
            for (case, base) in (0..cases.len()).flat_map(|case| bases.iter().map(move |base| (case, *base)))
            {
                if cases[case].flows(false) == Some(LONGEST) {
                    continue;
                }
                for job in runs(&bench, index, case, base) {
                    let identity = journal::identity(&journal::text(job.digest), job.outcomes.as_deref());
                    let is_there =
                        of_the_page.contains(&identity) || page.missing.contains(&bench.names(&job));
                    assert!(
                        is_there,
                        "the page of {} is older than its {id} at {}: run the study again",
                        study.id, cases[case].x
                    );
                }
            }
        }
    }
}

/// A simulator that gives other numbers than the pages have is seen, whatever the table of digests says.
#[test]
fn a_point_of_each_simulated_study_has_the_committed_numbers() {
    for (name, figure, x) in POINTS {
        let study = every().iter().find(|study| study.id == name).expect("a study");
        let options = options();
        let bench = bench(study, &options);
        let index = study.figures.iter().position(|known| known.id == figure).expect("a figure");
        let case = study.figures[index].cases.iter().position(|case| case.x == x).expect("a point");
        let jobs = runs(&bench, index, case, study.bases[0]);
        let mut again = Journal::in_memory();
        bench.run(&jobs, &mut again, &|_, _, _| true).expect("it runs");
        let page = committed(study);
        let name_of =
            |row: &StudyRow| [&row.figure, &row.base, &row.series, &row.x, &row.metric].map(String::clone);
        let mut compared = 0;
        for made in jobs.iter().filter_map(|job| bench.finished(&again, job)).flat_map(|entry| &entry.rows) {
            let kept = page.rows.iter().find(|row| name_of(row) == name_of(made) && !row.quick);
            let kept = kept.unwrap_or_else(|| panic!("{name} has no {:?}", name_of(made)));
            assert_eq!((kept.measured, kept.ci), (made.measured, made.ci), "{name}: {:?}", name_of(made));
            compared += 1;
        }
        assert!(compared > 0, "{name}");
    }
}
