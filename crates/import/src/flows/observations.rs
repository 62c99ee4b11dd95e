//! [`Observations`]: the records of flows, joined where an active timeout has cut one, and counted once where several
//! places saw the same.
//!
//! ```text
//! records ──> sorted by connection, exporter and start
//!             │ a record that overlaps the one before it: both interfaces of one exporter; the larger counts
//!             │ a record that begins within the gap after it: the same flow, cut by a timeout; joined
//!             └─ of several exporters of a connection, the one that saw the most bytes of the sender
//! ```
//!
//! Joining is associative, so records are joined whenever the buffer is full: memory is that of the flows, not that of
//! the records.

use std::collections::BTreeMap;

use crate::invalid::Invalid;

/// The connection and the direction that a record belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct RecordKey {
    pub(crate) source: u32,
    pub(crate) destination: u32,
    pub(crate) source_port: u16,
    pub(crate) destination_port: u16,
    pub(crate) protocol: u8,
    pub(crate) class: u32,
    /// Distinguishes the records of logs without ports, each of which is a flow of its own; 0 elsewhere.
    pub(crate) serial: u32,
}

/// The bytes of a flow that one exporter saw.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct FlowObservation {
    pub(crate) key: RecordKey,
    pub(crate) exporter: u32,
    /// The time of the first packet, in nanoseconds.
    pub(crate) start: u64,
    /// The time of the last packet, in nanoseconds.
    pub(crate) end: u64,
    pub(crate) bytes: u64,
    /// The number of packets; 0 where the log has none.
    pub(crate) packets: u64,
    /// The number of sampled packets on which bytes and packets are based; 0 where every packet was seen.
    pub(crate) samples: u64,
}

/// The most flows that are kept, of about 80 bytes each.
pub(crate) const FLOWS_MAX: usize = 4_000_000;

/// The records that are kept before they are joined the first time.
const BUFFER: usize = 1 << 18;

/// Counts of what happened to the records.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct JoinCounts {
    /// Records that were joined to the record before them.
    pub(crate) joined: u64,
    /// Records of an exporter that saw a flow at two of its interfaces.
    pub(crate) doubled: u64,
    /// Flows of connections that another exporter saw, too.
    pub(crate) repeated: u64,
}

/// The records of all files by their keys, from which flows are joined and doubles removed.
pub(crate) struct Observations {
    list: Vec<FlowObservation>,
    /// The list is joined when it has this many records.
    limit: usize,
    flows_max: usize,
    /// The longest time between two records of one flow, in nanoseconds.
    gap: u64,
    counts: JoinCounts,
}

impl Observations {
    pub(crate) fn new(gap: u64) -> Observations {
        Observations::with_limits(gap, BUFFER, FLOWS_MAX)
    }

    fn with_limits(gap: u64, limit: usize, flows_max: usize) -> Observations {
        Observations { list: Vec::new(), limit, flows_max, gap, counts: JoinCounts::default() }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Returns an error if there are more flows than are kept.
    pub(crate) fn push(&mut self, observation: FlowObservation) -> Result<(), Invalid> {
        if self.list.len() >= self.limit {
            self.join();
            if self.list.len() >= self.flows_max {
                return Err(Invalid::new(
                    "flows",
                    format!("more than {} flows", self.flows_max),
                    "records of a shorter time, or of fewer hosts",
                ));
            }
            self.limit = self.limit.max(self.list.len() * 2).min(self.flows_max);
        }
        self.list.push(observation);
        Ok(())
    }

    /// Places records without times evenly over `duration`: their start is their number, from 0 to `count`.
    pub(crate) fn spread(&mut self, count: u64, duration: u64) {
        let at = |number: u64| (u128::from(number) * u128::from(duration) / u128::from(count.max(1))) as u64;
        for observation in &mut self.list {
            (observation.start, observation.end) = (at(observation.start), at(observation.end));
        }
    }

    /// Joins the records of each flow at each exporter.
    fn join(&mut self) {
        self.list.sort_unstable();
        let mut kept = 0;
        let mut last: Option<FlowObservation> = None;
        for index in 0..self.list.len() {
            let next = self.list[index];
            let of_same = last.filter(|last| (last.key, last.exporter) == (next.key, next.exporter));
            match of_same {
                Some(before) if is_doubled(&before, &next) => {
                    let flow = &mut self.list[kept - 1];
                    flow.bytes += next.bytes.saturating_sub(before.bytes);
                    flow.packets += next.packets.saturating_sub(before.packets);
                    flow.end = flow.end.max(next.end);
                    self.counts.doubled += 1;
                    continue;
                }
                Some(_) if next.start <= self.list[kept - 1].end.saturating_add(self.gap) => {
                    let flow = &mut self.list[kept - 1];
                    flow.end = flow.end.max(next.end);
                    flow.bytes = flow.bytes.saturating_add(next.bytes);
                    flow.packets = flow.packets.saturating_add(next.packets);
                    flow.samples += next.samples;
                    self.counts.joined += 1;
                }
                _ => {
                    self.list[kept] = next;
                    kept += 1;
                }
            }
            last = Some(next);
        }
        self.list.truncate(kept);
    }

    /// Returns each flow once, with the counts.
    pub(crate) fn finish(mut self) -> (Vec<FlowObservation>, JoinCounts) {
        self.join();
        let mut seen: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for flow in &self.list {
            *seen.entry((flow.key.source, flow.exporter)).or_default() += flow.bytes;
        }
        let mut flows: Vec<FlowObservation> = Vec::new();
        for of_key in self.list.chunk_by(|a, b| a.key == b.key) {
            let bytes_seen = |flow: &FlowObservation| seen.get(&(flow.key.source, flow.exporter)).copied();
            let nearest =
                of_key.iter().max_by_key(|flow| (bytes_seen(flow), std::cmp::Reverse(flow.exporter)));
            let Some(nearest) = nearest.map(|flow| flow.exporter) else { continue };
            let first = flows.len();
            flows.extend(of_key.iter().filter(|flow| flow.exporter == nearest));
            let known = first..flows.len();
            for flow in of_key.iter().filter(|flow| flow.exporter != nearest) {
                let gap = self.gap;
                let is_known = flows[known.clone()].iter().any(|other| {
                    flow.start <= other.end.saturating_add(gap) && other.start <= flow.end.saturating_add(gap)
                });
                if is_known {
                    self.counts.repeated += 1;
                } else {
                    flows.push(*flow);
                }
            }
        }
        (flows, self.counts)
    }
}

/// Returns whether two records in a row are of the same packets, seen at two interfaces of one exporter: they are
/// equal, or overlap by more than half of the shorter one. Samples of packets never are.
fn is_doubled(before: &FlowObservation, next: &FlowObservation) -> bool {
    if before.samples > 0 || next.samples > 0 {
        return false;
    }
    let of = |flow: &FlowObservation| (flow.start, flow.end, flow.bytes, flow.packets);
    let shorter = (before.end - before.start).min(next.end - next.start);
    let overlap = before.end.min(next.end).saturating_sub(next.start);
    of(before) == of(next) || overlap > shorter / 2 && shorter > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn record(port: u16, exporter: u32, (start, end): (u64, u64), bytes: u64) -> FlowObservation {
        let key = RecordKey {
            source: 0,
            destination: 1,
            source_port: port,
            destination_port: 80,
            protocol: 6,
            class: 80,
            serial: 0,
        };
        FlowObservation { key, exporter, start: start * MS, end: end * MS, bytes, packets: 1, samples: 0 }
    }

    /// Returns start, end and bytes of the flows that these records are.
    fn joined(records: &[FlowObservation], limit: usize) -> (Vec<(u64, u64, u64)>, JoinCounts) {
        let mut all = Observations::with_limits(100 * MS, limit, 1000);
        for record in records {
            all.push(*record).unwrap();
        }
        let (flows, counts) = all.finish();
        (flows.iter().map(|flow| (flow.start / MS, flow.end / MS, flow.bytes)).collect(), counts)
    }

    /// The start and the end of a flow in seconds, and its bytes.
    type Joined = (u64, u64, u64);

    #[test]
    fn records_of_one_flow_are_joined() {
        let counts = |joined, doubled, repeated| JoinCounts { joined, doubled, repeated };
        let cases: [(&str, Vec<FlowObservation>, Vec<Joined>, JoinCounts); 7] = [
            (
                "cut twice by an active timeout, in any order",
                vec![record(1, 0, (60, 119), 5), record(1, 0, (0, 60), 7), record(1, 0, (121, 130), 1)],
                vec![(0, 130, 13)],
                counts(2, 0, 0),
            ),
            (
                "idle for longer than the gap",
                vec![record(1, 0, (0, 60), 7), record(1, 0, (161, 170), 5)],
                vec![(0, 60, 7), (161, 170, 5)],
                counts(0, 0, 0),
            ),
            (
                "another connection",
                vec![record(1, 0, (0, 60), 7), record(2, 0, (60, 70), 5)],
                vec![(0, 60, 7), (60, 70, 5)],
                counts(0, 0, 0),
            ),
            (
                "both interfaces of one exporter, cut by its timeout",
                vec![
                    record(1, 0, (0, 60), 7),
                    record(1, 0, (1, 60), 8),
                    record(1, 0, (61, 90), 5),
                    record(1, 0, (61, 90), 5),
                ],
                vec![(0, 90, 13)],
                counts(1, 2, 0),
            ),
            (
                "the switch of the sender, which saw another flow, too, and a second one",
                vec![record(1, 0, (1, 61), 6), record(1, 1, (0, 60), 7), record(2, 1, (0, 60), 9)],
                vec![(0, 60, 7), (0, 60, 9)],
                counts(0, 0, 1),
            ),
            (
                "another exporter at another time",
                vec![record(1, 0, (0, 60), 6), record(1, 1, (500, 560), 7)],
                vec![(500, 560, 7), (0, 60, 6)],
                counts(0, 0, 0),
            ),
            ("nothing", Vec::new(), Vec::new(), counts(0, 0, 0)),
        ];
        for (name, records, flows, counts) in cases {
            assert_eq!(joined(&records, 100), (flows.clone(), counts), "{name}");
            assert_eq!(joined(&records, 2).0, flows, "{name}, joined on the way");
        }
    }

    #[test]
    fn samples_are_never_doubled() {
        let sample = FlowObservation { samples: 1, ..record(1, 0, (5, 5), 100) };
        assert_eq!(joined(&[sample, sample], 100).0, [(5, 5, 200)]);
    }

    #[test]
    fn the_memory_is_bounded_by_flows_not_by_records() {
        let mut all = Observations::with_limits(100 * MS, 16, 100);
        for at in 0..10_000 {
            all.push(record(1, 0, (at, at), 1)).unwrap();
            assert!(all.list.len() <= 16);
        }
        let mut all = Observations::with_limits(100 * MS, 16, 100);
        let error = (0..1000).find_map(|port| all.push(record(port, 0, (0, 1), 1)).err());
        assert_eq!(
            error.unwrap().to_string(),
            "flows: more than 100 flows: expected records of a shorter time, or of fewer hosts"
        );
    }
}
