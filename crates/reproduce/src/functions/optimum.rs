//! Solstice beside optimal schedules, which `benches/optimum/optimum.py` computed: `studies/solstice/optimum.csv`.

use std::path::Path;

use plimsoll_circuits::{SchedulerKind, Switching, Workload};
use plimsoll_results::stats::mean;
use plimsoll_text::csv::rows;

use super::reach;
use crate::error::ReproduceError;
use crate::published::PublishedKind;
use crate::row::StudyRow;
use crate::study::Study;

/// Optimal times by a solver: ports, seed of the demand, configurations, time in ms, its proven lower bound, seconds.
const OPTIMA: &str = include_str!("../../../../studies/solstice/optimum.csv");

/// Computes how much longer Solstice takes than the optimum, for each number of ports that was solved, and the rows of
/// [`reach`].
pub(crate) fn solved(study: &Study, run_seed: u64, _: &Path) -> Result<Vec<StudyRow>, ReproduceError> {
    let mut sizes: Vec<(usize, Vec<[f64; 4]>)> = Vec::new();
    for row in rows(OPTIMA, None).skip(1) {
        let cells: Vec<f64> = row.cells().iter().filter_map(|cell| cell.parse().ok()).collect();
        let [ports, seed, configurations, optimum, bound, _] = cells[..] else {
            panic!("studies/solstice/optimum.csv, line {}: six numbers", row.line);
        };
        let ports = ports as usize;
        let demand = Workload::paper(ports).demand(&Switching::PAPER, seed as u64, 0);
        let mut schedule = SchedulerKind::Solstice.make().schedule(&demand, &Switching::PAPER);
        let whole = schedule.total(Switching::PAPER.night).as_ms_f64();
        schedule.cut_last_day(&demand, &Switching::PAPER);
        let cut = schedule.total(Switching::PAPER.night).as_ms_f64();
        // The gap that the solver left counts against Solstice.
        let values = [cut / bound, whole / bound, optimum / bound, configurations];
        match sizes.iter_mut().find(|(known, _)| *known == ports) {
            Some((_, all)) => all.push(values),
            None => sizes.push((ports, vec![values])),
        }
    }
    let mut made = reach::rows(study, run_seed);
    for (ports, all) in sizes {
        let of = |at: usize| mean(&all.iter().map(|values| values[at]).collect::<Vec<_>>());
        let mut add = |base, series, metric, unit, value: Option<f64>| {
            let mut row = StudyRow::new("optimum", base, series, &ports.to_string(), metric, unit);
            row.measured = value.unwrap_or(f64::NAN);
            let most = study.published.of(PublishedKind::AtMost, &row);
            let mut row = row.compare(most, None, None);
            row.within = most.filter(|_| base == "source").map(|most| row.measured <= most);
            made.push(row);
        };
        let percent = |times: Option<f64>| times.map(|times| 100.0 * (times - 1.0));
        add("source", "Solstice", "over_optimum_pct", "%", percent(of(0)));
        add("standard", "Solstice", "over_optimum_pct", "%", percent(of(1)));
        add("source", "solver", "gap_pct", "%", percent(of(2)));
        add("source", "solver", "configurations", "configurations", of(3));
    }
    Ok(made)
}
