//! The tables of jobs: their iterations with the critical path, and their communication groups.

use plimsoll_results::Summary;
use plimsoll_results::stats::Estimate;
use plimsoll_results::summary::{GroupSummary, JobSummary, PathSummary};

use crate::chart::Color;
use crate::figures::{TIMES, Unit};
use crate::plots::cell_label;
use crate::table::Grid;
use crate::table::numbers::{NumberColumn, assemble};

/// Makes the tables of the jobs of every variant and sweep point; none where there are none.
pub(crate) fn summary_grids(summary: &Summary) -> Vec<Grid> {
    let jobs = || summary.cells.iter().flat_map(|cell| cell.jobs.iter().map(move |job| (cell, job)));
    let several = summary.cells.iter().any(|cell| cell.jobs.len() > 1);
    let labels: Vec<_> = jobs()
        .map(|(cell, job)| labelled(cell_label(summary, cell), if several { &job.workload } else { "" }))
        .collect();
    if labels.is_empty() {
        return Vec::new();
    }
    let all = |pick: fn(&JobSummary) -> f64| {
        jobs().map(|(_, job)| Some(Estimate::bare(pick(job), job.iterations))).collect::<Vec<_>>()
    };
    let (iteration, bandwidth, path) = ("iteration", "bandwidth", "critical path");
    let time = Some(TIMES);
    let mut columns = vec![
        NumberColumn::new(iteration, "mean", time, all(|job| job.took_us)),
        NumberColumn::new(iteration, "ideal", time, all(|job| job.ideal_us)),
        NumberColumn::new(iteration, "skew", time, all(|job| job.skew_us)),
        NumberColumn::new(bandwidth, "algbw", Some(GBYTES), all(|job| job.algbw)),
        NumberColumn::new(bandwidth, "busbw", Some(GBYTES), all(|job| job.busbw)),
    ];
    // An emulated run does not know where the time went.
    let has_paths = jobs().any(|(_, job)| job.path != PathSummary::default());
    if has_paths {
        columns.extend([
            NumberColumn::new(path, "operations", time, all(|job| job.path.operations_us)),
            NumberColumn::new(path, "transport", time, all(|job| job.path.transport_us)),
            NumberColumn::new(path, "recovery", time, all(|job| job.path.recovery_us)),
            NumberColumn::new(path, "NICs", time, all(|job| job.path.nic_us)),
            NumberColumn::new(path, "switches", time, all(|job| job.path.switches_us)),
            NumberColumn::new(path, "wire", time, all(|job| job.path.wire_us)),
        ]);
    }
    let mut grid = assemble("Jobs".to_owned(), "variant", labels, &columns);
    grid.notes.push(
        "Ideal: each message has idle links, but for the others of its ends. Skew: from the end of the first rank to \
         that of the last."
            .to_owned(),
    );
    if has_paths {
        grid.notes.push("The parts of the critical path sum to the mean.".to_owned());
    }
    let mut grids = vec![grid];
    grids.extend(groups(summary));
    grids
}

/// The communication groups of jobs that have some; `all` is every communication.
fn groups(summary: &Summary) -> Option<Grid> {
    let mut labels = Vec::new();
    let mut rows: Vec<&GroupSummary> = Vec::new();
    for cell in &summary.cells {
        for job in cell.jobs.iter().filter(|job| job.groups.len() > 1) {
            for group in &job.groups {
                let name = if group.name.is_empty() { "all" } else { group.name.as_str() };
                labels.push(labelled(cell_label(summary, cell), &format!("{} {name}", job.workload)));
                rows.push(group);
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let all = |pick: fn(&GroupSummary) -> f64| {
        rows.iter().map(|group| Some(Estimate::bare(pick(group), 1))).collect::<Vec<_>>()
    };
    let (waited, exposed) = ("waited", "exposed");
    let columns = [
        NumberColumn::new(waited, "mean", Some(TIMES), all(|group| group.waited_us)),
        NumberColumn::new(exposed, "mean", Some(TIMES), all(|group| group.exposed_us)),
        NumberColumn::new(exposed, "most", Some(TIMES), all(|group| group.exposed_most_us)),
    ];
    let mut grid = assemble("Communication of jobs, by group".to_owned(), "variant", labels, &columns);
    grid.notes.push(
        "An iteration of a rank: while it waited for messages, and of that while it computed nothing."
            .to_owned(),
    );
    Some(grid)
}

fn labelled((name, color): (String, Option<Color>), of: &str) -> (String, Option<Color>) {
    let parts: Vec<&str> = [name.as_str(), of].into_iter().filter(|part| !part.is_empty()).collect();
    (parts.join(", "), color)
}

/// Bandwidths of jobs are in one unit.
const GBYTES: &[Unit] = &[Unit { name: "GB/s", size: 1.0 }, Unit { name: "GB/s", size: 1.0 }];
