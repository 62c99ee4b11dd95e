//! The table of the hosts' processors.

use plimsoll_results::Summary;
use plimsoll_results::stats::Estimate;
use plimsoll_results::summary::ProcessorSummary;

use crate::plots::cell_label;
use crate::table::Grid;
use crate::table::blocks::PERCENT;
use crate::table::numbers::{NumberColumn, assemble};

/// Makes the table of the processors of every variant and sweep point; `None` where hosts have none.
pub(crate) fn summary_grid(summary: &Summary) -> Option<Grid> {
    let known: Vec<_> =
        summary.cells.iter().filter_map(|cell| Some((cell, cell.processors.as_ref()?))).collect();
    if known.is_empty() {
        return None;
    }
    let all = |pick: fn(&ProcessorSummary) -> f64| {
        known.iter().map(|(_, processors)| Some(Estimate::bare(pick(processors), 1))).collect::<Vec<_>>()
    };
    let (busy, frames) = ("busy", "frames of all hosts");
    let columns = [
        NumberColumn::new(busy, "interrupts", Some(PERCENT), all(|p| 100.0 * p.interrupts)),
        NumberColumn::new(busy, "application", Some(PERCENT), all(|p| 100.0 * p.application)),
        NumberColumn::new(busy, "busiest core", Some(PERCENT), all(|p| 100.0 * p.busiest)),
        NumberColumn::new(frames, "received", None, all(|p| p.frames_received as f64)),
        NumberColumn::new(frames, "sent", None, all(|p| p.frames_sent as f64)),
        NumberColumn::new(frames, "lost at a ring", None, all(|p| p.ring_drops as f64)),
    ];
    let labels = known.iter().map(|(cell, _)| cell_label(summary, cell)).collect();
    let mut grid = assemble("Processors of the hosts".to_owned(), "variant", labels, &columns);
    let cores = known.iter().map(|(_, processors)| processors.cores).max().unwrap_or(0);
    grid.notes.push(match cores {
        0 | 1 => "Busy: the share of the time after the warm-up, the mean over hosts.".to_owned(),
        _ => "Busy: the share of the time after the warm-up, the mean over hosts; interrupts are on the first core, \
              applications on the last."
            .to_owned(),
    });
    Some(grid)
}
