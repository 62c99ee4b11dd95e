//! Solstice++ of Fig. 4, of which our sources have the numbers only: they are beside the reach of any schedule
//! that is not longer than Solstice's of the same demand, as the paper's of Solstice++ are.

use plimsoll_circuits::{ScheduleReach, Scheduler as _, Solstice, Switching, Workload};
use plimsoll_results::stats::mean;

use crate::models::DEMANDS;
use crate::published::PublishedKind;
use crate::row::StudyRow;
use crate::study::Study;

/// The numbers of ports for which Fig. 4 has Solstice++.
const PORTS: [usize; 2] = [8, 64];

/// Computes the least and the most of each number, and the one of both that is farther from the published one, which is
/// held to it: no schedule that is as short can be farther.
pub(super) fn rows(study: &Study, seed: u64) -> Vec<StudyRow> {
    let mut made = Vec::new();
    for ports in PORTS {
        let reaches: Vec<ScheduleReach> = (0..DEMANDS).map(|number| reach(ports, seed, number)).collect();
        let numbers: [(&str, &str, ReachEnds); 3] = [
            ("schedule_time_ms", "ms", |reach| (reach.time.0.as_ms_f64(), reach.time.1.as_ms_f64())),
            ("configurations", "configurations", |reach| {
                (reach.configurations.0 as f64, reach.configurations.1 as f64)
            }),
            ("circuit_util_pct", "%", |reach| {
                (100.0 * reach.circuit_utilisation.0, 100.0 * reach.circuit_utilisation.1)
            }),
        ];
        for (metric, unit, ends) in numbers {
            let of = |end: fn((f64, f64)) -> f64| {
                mean(&reaches.iter().map(|reach| end(ends(reach))).collect::<Vec<_>>()).unwrap_or(f64::NAN)
            };
            let (least, most) = (of(|ends| ends.0), of(|ends| ends.1));
            let row = |series: &str, measured| {
                let mut row = StudyRow::new(FIGURE, "source", series, &ports.to_string(), metric, unit);
                row.measured = measured;
                row
            };
            let published =
                study.published.value(PublishedKind::About, FIGURE, FARTHER, &ports.to_string(), metric);
            let distance = |end: f64| published.map_or(0.0, |published| (end / published).ln().abs());
            let farther = row(FARTHER, if distance(least) > distance(most) { least } else { most });
            let tolerance = study
                .figure("fig4")
                .zip(published)
                .and_then(|(figure, value)| figure.tolerance(&farther, value));
            made.extend([
                row("least", least),
                row("most", most),
                farther.compare(published, None, tolerance),
            ]);
        }
    }
    made
}

/// The least and the most of a number.
type ReachEnds = fn(&ScheduleReach) -> (f64, f64);

/// The figure that the rows of Solstice++ name.
const FIGURE: &str = "plus-plus";
/// The end that is farther from the published number.
const FARTHER: &str = "farther end";

fn reach(ports: usize, seed: u64, number: u32) -> ScheduleReach {
    let demand = Workload::paper(ports).demand(&Switching::PAPER, seed, number);
    let mut schedule = Solstice::default().schedule(&demand, &Switching::PAPER);
    schedule.cut_last_day(&demand, &Switching::PAPER);
    ScheduleReach::of(&demand, &Switching::PAPER, schedule.total(Switching::PAPER.night))
}
