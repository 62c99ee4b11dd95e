//! Replays a sample of a journal's runs: do the numbers of a page come from this build?

use super::bench::{Bench, Job};
use crate::error::ReproduceError;
use crate::journal::{Journal, StudyRun};
use crate::options::{OnProgress, Options};
use crate::row::StudyRow;
use crate::study::Study;

/// What replaying a sample of finished runs has shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replay {
    /// The number of runs that were made again.
    pub replayed: usize,
    /// The number of finished runs of which they are a sample.
    pub of: usize,
    /// The replayed runs with other numbers than the journal has: figure, base, x, scheme.
    pub differing: Vec<[String; 4]>,
}

/// Runs one in `one_in` of the journal's simulated runs again, of the parts that the options name. If all have the
/// journal's numbers, the others count as this build's too where the journal does not say whose they are.
///
/// # Errors
/// If a run is cancelled, a shipped scenario does not load, or the journal cannot be written.
pub fn replay(
    study: &'static Study,
    options: &Options,
    journal: &mut Journal,
    one_in: usize,
    progress: OnProgress<'_>,
) -> Result<Replay, ReproduceError> {
    super::check(&options.only, &study.figures)?;
    let bench = Bench { study, folder: study.laid_out()?, options };
    let mut jobs = bench.jobs(options.quick, options.seed)?;
    jobs.retain(|job| !job.base.is_live() && bench.is_wanted(job) && bench.finished(journal, job).is_some());
    let sample: Vec<Job> = jobs.iter().step_by(one_in.max(1)).cloned().collect();
    let mut again = Journal::in_memory();
    bench.run(&sample, &mut again, progress)?;
    let differs = |job: &&Job| {
        let [kept, again] = [&*journal, &again].map(|journal| bench.finished(journal, job));
        !kept.zip(again).is_some_and(|(kept, again)| have_the_same_numbers(kept, again))
    };
    let differing: Vec<[String; 4]> = sample.iter().filter(differs).map(|job| bench.names(job)).collect();
    if differing.is_empty() {
        let confirmed: Vec<StudyRun> = jobs
            .iter()
            .filter_map(|job| {
                let mut entry = bench.finished(journal, job)?.clone();
                entry.commit = entry.commit.or_else(|| options.commit.clone());
                entry.outcomes = job.outcomes.clone();
                Some(entry)
            })
            .collect();
        journal.replace(confirmed).map_err(ReproduceError::Journal)?;
    }
    Ok(Replay { replayed: sample.len(), of: jobs.len(), differing })
}

fn have_the_same_numbers(one: &StudyRun, other: &StudyRun) -> bool {
    let numbers =
        |row: &StudyRow| (row.measured.to_bits(), row.ci.map(|(low, high)| (low.to_bits(), high.to_bits())));
    let name = |row: &StudyRow| [&row.figure, &row.base, &row.series, &row.x, &row.metric].map(String::clone);
    let find = |row: &StudyRow| other.rows.iter().find(|found| name(found) == name(row));
    // Rows that came to a figure later are not in an older line of the journal.
    one.rows.iter().all(|row| find(row).is_some_and(|found| numbers(found) == numbers(row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study;

    #[test]
    fn a_sample_finds_a_changed_number_and_otherwise_confirms_the_rest() {
        let mut options = Options {
            quick: true,
            threads: 1,
            seed: 1,
            only: vec!["fig2b".parse().expect("any text is a part")],
            servers: std::path::PathBuf::new(),
            commit: None,
        };
        let mut journal = Journal::in_memory();
        crate::reproduce(study("hull"), &options, &mut journal, &|_, _, _| true).expect("it runs");
        options.commit = Some("abcd".to_owned());
        let bench = Bench {
            study: study("hull"),
            folder: study("hull").laid_out().expect("a folder"),
            options: &options,
        };
        let jobs = bench.jobs(true, 1).expect("shipped scenarios load");
        let jobs: Vec<Job> = jobs.into_iter().filter(|job| bench.is_wanted(job)).collect();
        let last = jobs.last().expect("a run");

        let mut changed = bench.finished(&journal, last).expect("it was run").clone();
        let right = changed.clone();
        changed.rows[0].measured *= 1.0 + f64::EPSILON;
        journal.replace(vec![changed]).expect("in memory");
        let one_in = jobs.len() - 1;
        let found = replay(study("hull"), &options, &mut journal, one_in, &|_, _, _| true).expect("it runs");
        assert_eq!(found, Replay { replayed: 2, of: jobs.len(), differing: vec![bench.names(last)] });
        assert_eq!(bench.finished(&journal, last).and_then(|entry| entry.commit.as_deref()), None);

        journal.replace(vec![right]).expect("in memory");
        let found = replay(study("hull"), &options, &mut journal, one_in, &|_, _, _| true).expect("it runs");
        assert_eq!(found.differing, Vec::<[String; 4]>::new());
        for job in &jobs {
            let entry = bench.finished(&journal, job).expect("it is still there");
            assert_eq!(entry.commit.as_deref(), Some("abcd"));
        }
    }
}
