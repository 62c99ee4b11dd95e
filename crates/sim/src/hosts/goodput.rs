//! [`GoodputMeter`]: the payload that workloads send and receive, by interval and in the measurement window.

use plimsoll_fabric::MeasurementWindow;
use plimsoll_results::outcome::{Delivered, GoodputInterval};
use plimsoll_units::{Bytes, Span, Time};

/// Counts the payload that is delivered in the measurement window, and by interval where the scenario asks for it.
#[derive(Debug)]
pub(super) struct GoodputMeter {
    every: Option<Span>,
    /// The number of workloads.
    workloads: usize,
    /// The bytes sent for the first time and the bytes delivered, by interval, then workload.
    intervals: Vec<Vec<(u64, u64)>>,
    window: MeasurementWindow,
    /// The bytes delivered in the window, by workload.
    delivered: Vec<u64>,
}

impl GoodputMeter {
    pub(super) fn new(workloads: usize, every: Option<Span>, window: MeasurementWindow) -> GoodputMeter {
        GoodputMeter { every, workloads, intervals: Vec::new(), window, delivered: vec![0; workloads] }
    }

    /// Adds what another logical process has counted.
    pub(super) fn absorb(&mut self, other: GoodputMeter) {
        if self.intervals.len() < other.intervals.len() {
            self.intervals.resize(other.intervals.len(), vec![(0, 0); self.workloads]);
        }
        for (own, other) in self.intervals.iter_mut().flatten().zip(other.intervals.iter().flatten()) {
            *own = (own.0 + other.0, own.1 + other.1);
        }
        for (own, other) in self.delivered.iter_mut().zip(other.delivered) {
            *own += other;
        }
    }

    /// `bytes` of payload of `workload` were sent for the first time.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Time, workload: u16, bytes: u64) {
        if let Some(every) = self.every {
            self.interval(now, every, workload).0 += bytes;
        }
    }

    /// `bytes` of payload of `workload` were delivered in order.
    #[inline]
    pub(super) fn on_delivered(&mut self, now: Time, workload: u16, bytes: u64) {
        if let Some(every) = self.every {
            self.interval(now, every, workload).1 += bytes;
        }
        self.on_datagram(now, workload, bytes);
    }

    /// A datagram of `workload` with `bytes` of payload was delivered. Intervals do not have it.
    #[inline]
    pub(super) fn on_datagram(&mut self, now: Time, workload: u16, bytes: u64) {
        if self.window.has(now) {
            self.delivered[usize::from(workload)] += bytes;
        }
    }

    fn interval(&mut self, now: Time, every: Span, workload: u16) -> &mut (u64, u64) {
        let index = (now.as_ps() / every.as_ps()) as usize;
        if index >= self.intervals.len() {
            self.intervals.resize(index + 1, vec![(0, 0); self.workloads]);
        }
        &mut self.intervals[index][usize::from(workload)]
    }

    /// Returns the payload delivered in the measurement window of a run that has ended at `end`.
    pub(super) fn delivered(&self, end: Time) -> Delivered {
        Delivered { observed: self.window.part_of(Time::ZERO, end), bytes: self.delivered.clone() }
    }

    /// Returns the intervals in their order.
    pub(super) fn intervals(&self) -> Vec<GoodputInterval> {
        let every = self.every.unwrap_or(Span::ZERO);
        let intervals = self.intervals.iter().enumerate();
        intervals
            .flat_map(|(index, of_workload)| {
                let time = Time::ZERO + every * index as u64;
                of_workload.iter().enumerate().map(move |(workload, &(sent, delivered))| GoodputInterval {
                    time,
                    length: every,
                    workload: workload as u16,
                    sent: Bytes::new(sent),
                    delivered: Bytes::new(delivered),
                })
            })
            .collect()
    }
}
