//! [`JobTimeline`]: the slowest iteration of a job as a figure draws it, one row a rank or a stream, and its critical
//! path.
//!
//! Bars of one kind are joined where the gap between them is too short to be seen, so that there are never many.

use std::collections::BTreeMap;

use plimsoll_units::{Span, Time};
use serde::{Deserialize, Serialize};

use crate::outcome::{IterationRecord, OperationRecord, Outcome};

/// The slowest iteration of a job in the first replicate of a variant at a sweep point. Times are in us since the
/// iteration began.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct JobTimeline {
    /// The name of the variant.
    pub variant: String,
    /// Swept keys and their values.
    pub sweep: Vec<(String, String)>,
    /// The name of the workload.
    pub workload: String,
    /// The number of the iteration.
    pub iteration: u64,
    /// The number of iterations of which it is the slowest.
    pub iterations: usize,
    /// The time that it took.
    pub took_us: f64,
    /// The names of communication groups, the first for operations of none.
    pub groups: Vec<String>,
    /// The rows, by rank and stream.
    pub rows: Vec<TimelineRow>,
    /// The number of further ranks.
    pub other_ranks: usize,
    /// The bars of all rows.
    pub bars: Vec<TimelineBar>,
    /// Gaps shorter than this are closed.
    pub gap_us: f64,
    /// The critical path, from the beginning on.
    pub path: Vec<PathPoint>,
    /// The longest steps of the critical path, in their order.
    pub steps: Vec<PathStep>,
    /// The number of all its steps.
    pub all_steps: usize,
}

/// A row of a timeline, of a rank or of one of its streams.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct TimelineRow {
    /// The number of the rank.
    pub rank: u32,
    /// The stream, where streams have rows of their own.
    pub stream: Option<u8>,
}

/// The work that a bar shows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub enum BarKind {
    /// Waiting for a message of this group.
    Waits(u8),
    /// Sending a message of this group.
    Sends(u8),
    /// Computing on a stream.
    Computes,
}

/// A bar: operations of one kind without a visible gap.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct TimelineBar {
    /// The place of its row, from 0.
    pub row: usize,
    /// The work that it shows.
    pub kind: BarKind,
    /// The time at which it begins.
    pub from_us: f64,
    /// The time at which it ends.
    pub until_us: f64,
}

/// A point of the critical path: it is in this row until then.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct PathPoint {
    /// The place of the row, from 0.
    pub row: usize,
    /// The time at which it leaves that row.
    pub us: f64,
}

/// A step of the critical path: an operation with all time since the step before.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct PathStep {
    /// The rank at which it ended.
    pub rank: u32,
    /// The operation in words: `receives from 3 (dp)`.
    pub what: String,
    /// The time at which it ended.
    pub until_us: f64,
    /// The time since the step before.
    pub took_us: f64,
}

/// The most ranks with rows, and the most rows of streams; with more, a rank has one row.
const RANKS: usize = 64;
const STREAM_ROWS: usize = 32;
/// The most bars and points of a timeline, less in a sweep of many runs.
pub(crate) const BARS: usize = 2_400;
/// The most steps in words.
const STEPS: usize = 12;
/// The share of the time that is too short to be seen.
const GAPS: u64 = 1_500;

/// Makes the timelines of a run with at most so many bars each; none of jobs without recorded operations.
pub(crate) fn timelines(
    variant: &str,
    sweep: &[(String, String)],
    outcome: &Outcome,
    bars: usize,
) -> Vec<JobTimeline> {
    let timeline = |number: u16| {
        let all = || outcome.iterations.iter().filter(|one| one.workload == number);
        // Of equal ones the first.
        let slowest = all().rev().max_by_key(|one| one.took)?;
        let of_iteration = |one: &&OperationRecord| (one.workload, one.index) == (number, slowest.index);
        let operations: Vec<&OperationRecord> = outcome.operations.iter().filter(of_iteration).collect();
        let begun = outcome.queries.iter().find(|one| (one.workload, one.index) == (number, slowest.index));
        let info = &outcome.workloads[usize::from(number)];
        (!operations.is_empty()).then_some(())?;
        let drawing = Drawing { begun: begun?.created, slowest, operations, groups: &info.groups };
        let mut timeline = drawing.timeline(bars);
        timeline.iterations = all().count();
        (timeline.variant, timeline.sweep) = (variant.to_owned(), sweep.to_vec());
        timeline.workload.clone_from(&info.name);
        Some(timeline)
    };
    (0..outcome.workloads.len() as u16).filter_map(timeline).collect()
}

/// An iteration whose timeline is made.
struct Drawing<'a> {
    begun: Time,
    slowest: &'a IterationRecord,
    operations: Vec<&'a OperationRecord>,
    groups: &'a [String],
}

impl Drawing<'_> {
    fn timeline(&self, bars_most: usize) -> JobTimeline {
        let mut on_path: Vec<&OperationRecord> =
            self.operations.iter().copied().filter(|one| one.path.is_some()).collect();
        on_path.sort_unstable_by_key(|one| one.path);
        let (rows, other_ranks) = self.rows(&on_path);
        let steps = self.steps(&on_path);
        let mut gap = self.slowest.took / GAPS;
        let mut bars = self.bars(&rows, gap);
        // At least one bar is left for each row and kind.
        while bars.len() > bars_most && gap < self.slowest.took {
            gap = gap * 2 + Span::from_ps(1);
            bars = self.bars(&rows, gap);
        }
        let mut longest = steps.clone();
        longest.sort_by(|a, b| b.took_us.total_cmp(&a.took_us));
        longest.truncate(STEPS);
        longest.sort_by(|a, b| a.until_us.total_cmp(&b.until_us));
        JobTimeline {
            variant: String::new(),
            sweep: Vec::new(),
            workload: String::new(),
            iteration: self.slowest.index,
            iterations: 0,
            took_us: self.slowest.took.as_us_f64(),
            groups: self.groups.to_vec(),
            other_ranks,
            bars,
            gap_us: gap.as_us_f64(),
            path: self.path(&rows, &on_path, gap, bars_most),
            rows,
            steps: longest,
            all_steps: steps.len(),
        }
    }

    /// The rows, and the number of ranks without one. The ranks of the critical path come first.
    fn rows(&self, on_path: &[&OperationRecord]) -> (Vec<TimelineRow>, usize) {
        let mut visits: BTreeMap<u32, usize> = self.operations.iter().map(|one| (one.rank, 0)).collect();
        on_path.iter().for_each(|one| *visits.entry(one.rank).or_default() += 1);
        let mut ranks: Vec<(u32, usize)> = visits.into_iter().collect();
        ranks.sort_by_key(|(_, visits)| std::cmp::Reverse(*visits));
        let others = ranks.len().saturating_sub(RANKS);
        ranks.truncate(RANKS);
        let mut ranks: Vec<u32> = ranks.into_iter().map(|(rank, _)| rank).collect();
        ranks.sort_unstable();
        let takes_time = self.operations.iter().filter(|one| one.ended > one.began);
        let row = |one: &&OperationRecord| TimelineRow { rank: one.rank, stream: Some(one.stream) };
        let mut streams: Vec<TimelineRow> =
            takes_time.map(row).filter(|row| ranks.binary_search(&row.rank).is_ok()).collect();
        streams.sort_unstable();
        streams.dedup();
        if streams.len() <= STREAM_ROWS && streams.len() > ranks.len() {
            (streams, others)
        } else {
            (ranks.into_iter().map(|rank| TimelineRow { rank, stream: None }).collect(), others)
        }
    }

    fn row_of(&self, rows: &[TimelineRow], one: &OperationRecord) -> Option<usize> {
        let is_own = |row: &TimelineRow| row.rank == one.rank && row.stream.is_none_or(|of| of == one.stream);
        rows.iter().position(is_own).or_else(|| rows.iter().position(|row| row.rank == one.rank))
    }

    /// The bars, by row and kind and then by time, without gaps of less than `gap`.
    fn bars(&self, rows: &[TimelineRow], gap: Span) -> Vec<TimelineBar> {
        let mut by_kind: BTreeMap<(usize, BarKind), Vec<(Time, Time)>> = BTreeMap::new();
        for one in self.operations.iter().filter(|one| one.ended > one.began) {
            let Some(row) = self.row_of(rows, one) else { continue };
            let kind = match one.action {
                0 => BarKind::Computes,
                1 => BarKind::Sends(one.group),
                _ => BarKind::Waits(one.group),
            };
            by_kind.entry((row, kind)).or_default().push((one.began, one.ended));
        }
        let mut bars = Vec::new();
        for ((row, kind), mut times) in by_kind {
            times.sort_unstable();
            let mut joined: Vec<(Time, Time)> = Vec::new();
            for (from, until) in times {
                match joined.last_mut() {
                    Some(last) if from <= last.1 + gap => last.1 = last.1.max(until),
                    _ => joined.push((from, until)),
                }
            }
            bars.extend(joined.into_iter().map(|(from, until)| TimelineBar {
                row,
                kind,
                from_us: self.us(from),
                until_us: self.us(until),
            }));
        }
        bars
    }

    /// The points of the path, without those of one row that are closer than `gap`.
    fn path(
        &self,
        rows: &[TimelineRow],
        on_path: &[&OperationRecord],
        gap: Span,
        most: usize,
    ) -> Vec<PathPoint> {
        let mut points: Vec<PathPoint> = Vec::new();
        let mut latest = f64::INFINITY;
        for one in on_path.iter().rev() {
            let Some(row) = self.row_of(rows, one) else { continue };
            // What waits for the beginning of an operation goes on before it ends.
            latest = self.us(reached(one)).min(latest);
            points.push(PathPoint { row, us: latest });
        }
        if let Some(first) = points.last().copied() {
            points.push(PathPoint { us: 0.0, ..first });
        }
        points.reverse();
        // Within a row only the first and the last point of a stay are needed.
        let stays = |a: &PathPoint, b: &PathPoint| a.row == b.row;
        let mut kept: Vec<PathPoint> = Vec::new();
        for stay in points.chunk_by(stays) {
            kept.push(stay[0]);
            kept.extend(stay.last().filter(|last| last.us - stay[0].us > gap.as_us_f64()));
        }
        kept.truncate(most);
        kept
    }

    fn steps(&self, on_path: &[&OperationRecord]) -> Vec<PathStep> {
        let mut since = 0.0;
        let step = |one: &&OperationRecord| {
            let until_us = self.us(one.ended);
            let group = self.groups.get(usize::from(one.group)).map_or("", String::as_str);
            let peer = one.peer.map_or("any rank".to_owned(), |peer| format!("rank {peer}"));
            let what = match one.action {
                0 => "computes".to_owned(),
                1 => format!("sends to {peer}"),
                _ => format!("receives from {peer}"),
            };
            let what = if group.is_empty() { what } else { format!("{what} ({group})") };
            let took_us = until_us - since;
            since = until_us;
            PathStep { rank: one.rank, what, until_us, took_us }
        };
        on_path.iter().map(step).collect()
    }

    fn us(&self, time: Time) -> f64 {
        time.saturating_since(self.begun).as_us_f64()
    }
}

/// When the path leaves an operation: a send's message leaves as it begins.
fn reached(one: &OperationRecord) -> Time {
    if one.action == 1 { one.began } else { one.ended }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{QueryRecord, Split, Supply, WorkloadInfo};

    /// Rank 0 computes for 10 us and sends to rank 1, which receives at 15 us and computes for 5 us; `ranks` others
    /// compute for 1 us.
    fn run(others: u32) -> Outcome {
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        let operation = OperationRecord {
            workload: 0,
            index: 1,
            operation: 0,
            rank: 0,
            stream: 0,
            group: 0,
            action: 0,
            peer: None,
            bytes: 0,
            began: at(100),
            ended: at(110),
            path: Some(0),
        };
        let (one, other) = (Some(1), Some(0));
        let mut operations = vec![
            operation,
            OperationRecord { action: 1, group: 1, peer: one, began: at(110), path: Some(1), ..operation },
            OperationRecord {
                rank: 1,
                action: 2,
                group: 1,
                peer: other,
                ended: at(115),
                path: Some(2),
                ..operation
            },
            OperationRecord { rank: 1, began: at(115), ended: at(120), path: Some(3), ..operation },
        ];
        operations.extend((2..2 + others).map(|rank| OperationRecord {
            rank,
            ended: at(101),
            path: None,
            ..operation
        }));
        let iteration = |index, us| IterationRecord {
            workload: 0,
            index,
            took: Span::from_us(us),
            ideal: Span::ZERO,
            bytes: 0,
            bus_bytes: 0,
            split: Split::default(),
        };
        let query = QueryRecord {
            workload: 0,
            index: 1,
            created: at(100),
            completed: Some(at(120)),
            servers: 2,
            in_deadline: 2,
            response_mean: Span::ZERO,
            response_min: Span::ZERO,
        };
        let info = WorkloadInfo {
            name: "train".to_owned(),
            kind: "training".to_owned(),
            deadline: None,
            observed: None,
            supply: Supply::Fixed,
            groups: vec![String::new(), "dp".to_owned()],
        };
        Outcome {
            workloads: vec![info],
            queries: vec![query],
            iterations: vec![iteration(0, 18), iteration(1, 20), iteration(2, 20)],
            operations,
            ..Outcome::default()
        }
    }

    #[test]
    fn the_slowest_iteration_has_bars_and_a_path() {
        let timelines = timelines("TCP", &[], &run(0), BARS);
        let [timeline] = &timelines[..] else { panic!("{timelines:?}") };
        assert_eq!((timeline.iteration, timeline.iterations, timeline.took_us), (1, 3, 20.0));
        let bars: Vec<_> =
            timeline.bars.iter().map(|bar| (bar.row, bar.kind, bar.from_us, bar.until_us)).collect();
        let expected = [
            (0, BarKind::Computes, 0.0, 10.0),
            (1, BarKind::Waits(1), 0.0, 15.0),
            (1, BarKind::Computes, 15.0, 20.0),
        ];
        assert_eq!(bars, expected);
        let path: Vec<_> = timeline.path.iter().map(|point| (point.row, point.us)).collect();
        assert_eq!(path, [(0, 0.0), (0, 10.0), (1, 15.0), (1, 20.0)]);
        let steps: Vec<_> =
            timeline.steps.iter().map(|step| (step.rank, step.what.as_str(), step.took_us)).collect();
        let expected =
            [(0, "computes", 10.0), (0, "sends to rank 1 (dp)", 0.0), (1, "receives from rank 0 (dp)", 5.0)];
        assert_eq!(steps[..3], expected);
    }

    #[test]
    fn many_ranks_and_many_bars_stay_within_bounds() {
        let timelines = timelines("TCP", &[], &run(98), 40);
        assert_eq!((timelines[0].rows.len(), timelines[0].other_ranks), (64, 36));
        let ranks: Vec<u32> = timelines[0].rows.iter().map(|row| row.rank).take(3).collect();
        assert_eq!(ranks, [0, 1, 2]);
        let mut comb = run(0);
        let first = comb.operations[0];
        comb.operations = (0..100)
            .map(|n| OperationRecord {
                began: first.began + Span::from_ns(200 * n),
                ended: first.began + Span::from_ns(200 * n + 100),
                ..first
            })
            .collect();
        let comb = super::timelines("TCP", &[], &comb, 40);
        assert_eq!((comb[0].bars.len(), comb[0].bars[0].until_us), (1, 19.9));
    }
}
