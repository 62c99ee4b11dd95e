//! [`OneRun`]: results of one run for one workload, message by message, for judging it against an objective.

use super::workload::{WorkloadReplicates, begun_us, mean_parts, part_names};
use crate::outcome::{MessageRecord, Outcome, QueryRecord, WorkloadInfo};

/// One workload of one run. The same messages count as in a [`super::Summary`].
pub struct OneRun<'a> {
    outcome: &'a Outcome,
    info: &'a WorkloadInfo,
    runs: WorkloadReplicates<'a>,
}

/// Messages, or responses of queries, and how many of them missed something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Missed {
    /// The number of messages or responses that missed it.
    pub missed: u64,
    /// The number of messages or responses in all.
    pub of: u64,
}

impl<'a> OneRun<'a> {
    /// The workload of this name; `None` if the run has none.
    pub fn new(name: &'a str, outcome: &'a Outcome) -> Option<OneRun<'a>> {
        let info = outcome.workloads.iter().find(|workload| workload.name == name)?;
        Some(OneRun { outcome, info, runs: WorkloadReplicates::new(name, &[outcome]) })
    }

    /// Completion times in us, in order of creation: of queries where there are any, of messages
    /// elsewhere.
    pub fn completion_us(&self) -> Vec<f64> {
        let (begun, _) = begun_us(&self.info.name, &[self.outcome]);
        begun.into_iter().filter_map(|(_, us)| us).collect()
    }

    /// Returns for each message (or query) that had not completed when the run ended how long it had waited until then,
    /// in us.
    pub fn open_us(&self) -> Vec<f64> {
        let age = |created| self.outcome.end.saturating_since(created).as_us_f64();
        if self.runs.has_queries() {
            let open = self.runs.queries().flatten().filter(|query| query.completed.is_none());
            open.map(|query| age(query.created)).collect()
        } else {
            let open = self.runs.messages().flatten().filter(|message| message.completed.is_none());
            open.map(|message| age(message.created)).collect()
        }
    }

    /// Returns the completion time in us that each message (or query) needs on idle links at least; `None` where a
    /// query may end without some of its responses.
    pub fn idle_us(&self) -> Option<Vec<f64>> {
        let messages = || self.runs.messages().flatten();
        if !self.runs.has_queries() {
            return Some(messages().map(|message| message.ideal.as_us_f64()).collect());
        }
        if self.info.deadline.is_some() {
            return None;
        }
        let mut slowest = std::collections::BTreeMap::<u64, f64>::new();
        for message in messages() {
            let least = slowest.entry(message.query?).or_default();
            *least = least.max(message.ideal.as_us_f64());
        }
        Some(slowest.into_values().collect())
    }

    /// Returns the deadline of the workload's responses in us.
    pub fn deadline_us(&self) -> Option<f64> {
        self.info.deadline.map(|deadline| deadline.as_us_f64())
    }

    /// Completed payload in Mb/s over the time in which the workload was active; see
    /// [`super::WorkloadSummary::goodput_mbps`].
    pub fn goodput_mbps(&self) -> Option<f64> {
        self.runs.goodput()[0].map(|estimate| estimate.value)
    }

    /// Messages (or responses of queries) that were later than the workload's deadline, or still open
    /// after it; `None` where it has no deadline.
    pub fn late(&self) -> Option<Missed> {
        let deadline = self.info.deadline?;
        let mut late = Missed::default();
        if self.runs.has_queries() {
            for query in self.runs.queries().flatten() {
                let QueryRecord { servers, in_deadline, .. } = query;
                late.of += u64::from(*servers);
                late.missed += u64::from(servers - in_deadline);
            }
            return Some(late);
        }
        let limit = deadline.as_us_f64();
        for message in self.runs.messages().flatten() {
            late.of += 1;
            late.missed += u64::from(message.latency().is_none_or(|latency| latency.as_us_f64() >= limit));
        }
        Some(late)
    }

    /// Names of the parts that a completion time splits into.
    pub fn part_names(&self) -> Vec<String> {
        part_names(self.runs.tiers())
    }

    /// The mean of each part in us over the slowest `share` (0..=1) of the completed messages, at least
    /// one; `None` where none completed.
    pub fn slowest_us(&self, share: f64) -> Option<Vec<f64>> {
        let done: Vec<&MessageRecord> = self.runs.slowest_first();
        let count = ((done.len() as f64 * share).ceil() as usize).clamp(1, done.len().max(1));
        (!done.is_empty()).then(|| mean_parts(&done[..count], self.runs.tiers().len()))
    }
}
