//! The rows of a page, from the journal.

use std::collections::BTreeSet;

use super::ProgramBuild;
use super::bench::{Bench, Job};
use crate::error::ReproduceError;
use crate::journal::Journal;
use crate::options::OnProgress;
use crate::published::PublishedKind;
use crate::row::StudyRow;

/// The rows that the journal gives, with their jobs.
pub(super) struct Composed {
    pub(super) jobs: Vec<Job>,
    /// The rows of each job.
    pub(super) rows: Vec<Vec<StudyRow>>,
    pub(super) packet_hops: u64,
    pub(super) missing: Vec<[String; 4]>,
    pub(super) builds: Vec<ProgramBuild>,
}

/// Returns whether two runs of a point measured the same number.
fn is_same_number(a: &StudyRow, b: &StudyRow) -> bool {
    (&a.figure, &a.series, &a.x, &a.metric) == (&b.figure, &b.series, &b.x, &b.metric)
}

impl Bench<'_> {
    /// Makes the rows of every point from its full run if that is there, else from its short one, which is then held
    /// to nothing unless the page is that of a quick look.
    pub(super) fn compose(
        &self,
        short: &[Job],
        full: &[Job],
        is_quick_look: bool,
        journal: &Journal,
    ) -> Composed {
        let mut of = Composed {
            jobs: Vec::new(),
            rows: Vec::new(),
            packet_hops: 0,
            missing: Vec::new(),
            builds: Vec::new(),
        };
        let same =
            |a: &Job, b: &Job| (a.figure, a.case, a.series, a.base) == (b.figure, b.case, b.series, b.base);
        let mut counted = BTreeSet::new();
        for job in full {
            let short = short.iter().find(|short| same(short, job));
            let found = |job| Some((job, self.finished(journal, job)?));
            let full = found(job);
            let stands_in = full.is_none() && !is_quick_look;
            let found = full.or_else(|| short.and_then(found));
            if stands_in || found.is_none() && short.is_some() {
                of.missing.push(self.names(job));
            }
            let Some((job, entry)) = found else { continue };
            if counted.insert(entry.digest.as_str()) {
                of.packet_hops += entry.packet_hops;
            }
            let beside =
                |row: &StudyRow| self.beside_published(job, StudyRow { quick: stands_in, ..row.clone() });
            of.rows.push(entry.rows.iter().map(beside).collect());
            of.jobs.push(job.clone());
            if let Some(commit) = &entry.commit {
                let at = of.builds.iter().position(|build| build.commit == *commit).unwrap_or_else(|| {
                    of.builds.push(ProgramBuild { commit: commit.clone(), digests: BTreeSet::new() });
                    of.builds.len() - 1
                });
                of.builds[at].digests.insert(entry.identity());
            }
        }
        of
    }

    /// Runs every job that has a row outside its tolerance with other seeds, and notes in its rows how
    /// far the numbers move. Measured numbers and verdicts stay as they are.
    pub(super) fn vary_seeds(
        &self,
        jobs: &[Job],
        rows: &mut [Vec<StudyRow>],
        journal: &mut Journal,
        progress: OnProgress<'_>,
    ) -> Result<(), ReproduceError> {
        let mut again = Vec::new();
        for (index, job) in
            jobs.iter().enumerate().filter(|(index, _)| rows[*index].iter().any(StudyRow::is_off))
        {
            for other in 1..=self.study.other_seeds {
                let &Job { figure, case, series, base, quick, .. } = job;
                let job = self.point(figure, case, &[series], base, quick, self.options.seed + other)?;
                again.extend(job.into_iter().map(|job| (index, job)));
            }
        }
        let (of, again): (Vec<usize>, Vec<Job>) = again.into_iter().unzip();
        self.run(&again, journal, progress)?;
        for (index, job) in of.into_iter().zip(&again) {
            let Some(entry) = self.finished(journal, job) else { continue };
            for row in &mut rows[index] {
                let Some(other) = entry.rows.iter().find(|other| is_same_number(row, other)) else {
                    continue;
                };
                let (low, high) = row.seeds.unwrap_or((row.measured, row.measured));
                row.seeds = Some((low.min(other.measured), high.max(other.measured)));
            }
        }
        Ok(())
    }

    fn beside_published(&self, job: &Job, row: StudyRow) -> StudyRow {
        let Some(figure) = self.study.figure(&row.figure) else { return row };
        let [published, original] =
            [PublishedKind::About, PublishedKind::Original].map(|kind| self.study.published.of(kind, &row));
        // Too few flows show the shape, but not the published number.
        let is_judged = job.base == self.study.bases[0] && !row.quick && !(job.quick && row.flows.is_some());
        let tolerance =
            published.filter(|_| is_judged).and_then(|published| figure.tolerance(&row, published));
        row.compare(published, original, tolerance)
    }
}
