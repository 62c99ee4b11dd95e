//! Weighted random early detection: RED whose thresholds depend on a packet's priority (Cisco's WRED, by 802.1p
//! priority in place of IP precedence; Broadcom and others keep one profile for each egress queue).
//!
//! Every priority has the rule of [`crate::red`] with parameters, average and count of its own. It measures the waiting
//! packets of its own priority, or all that wait at the port:
//!
//! ```text
//! queue = priority    average of priority p:  steps at arrivals of p, over the bytes of p that wait
//! queue = port        average of priority p:  steps at every arrival, over all bytes that wait
//! ```
//!
//! With `port` and one weight for all, all averages are the same, as Cisco's single average.

use std::collections::BTreeMap;

use plimsoll_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::by_priority::{PRIORITIES, by_priority, check_entries};
use crate::mechanism::{EngineNeed, Marking, Mechanism, Section, Table};
use crate::red::{Red, RedParams, Verdict};
use crate::{Depth, InvalidParam};

/// Random early detection by priority. Packets of a priority without a rule are never marked, and dropped only when the
/// buffer is full.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WredParams {
    /// The queue whose length counts. Default `priority`.
    pub queue: WredQueue,
    /// The rule of a priority such as `"5"`, or of several such as `"0..4"`, the last one included. Priorities
    /// are 0 to 7, and each has one rule at most. Each rule is that of `red`: `weight = 1.0` judges the
    /// instantaneous queue, `ecn = false` drops in place of marking.
    pub priority: BTreeMap<String, RedParams>,
}

impl Mechanism for WredParams {
    const TABLE: Table = Table::replaced_whole(
        Section::Port,
        "wred",
        "the queue treats all priorities alike when it drops and marks",
    )
    .needs(EngineNeed::GeneralHere)
    .marks_queue();

    fn marking(&self) -> Option<Marking> {
        let thresholds = self.priority.values().map(|params| Depth::Bytes(params.min)).collect();
        Some(Marking {
            marks: self.priority.values().any(|params| params.ecn),
            thresholds,
            at_dequeue: false,
        })
    }

    fn validate(&self) -> Result<(), InvalidParam> {
        self.rules().map(|_| ())
    }
}

/// Chooses the queue that the rule of a priority reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WredQueue {
    /// The rule reads the queue of the packet's own priority.
    #[default]
    Priority,
    /// The rule reads the whole queue of the port.
    Port,
}

impl WredParams {
    /// Returns the rule of each priority.
    ///
    /// # Errors
    /// A name that is not a priority or range, a priority with two rules, or a rule that does not fit.
    pub fn rules(&self) -> Result<[Option<RedParams>; PRIORITIES], InvalidParam> {
        check_entries(&self.priority, RedParams::validate)?;
        let rules: Vec<RedParams> = self.priority.values().copied().collect();
        Ok(by_priority(&self.priority)?.map(|entry| entry.map(|entry| rules[entry])))
    }
}

/// Keeps the state of all rules of one port.
#[derive(Clone, PartialEq, Debug)]
pub struct Wred {
    queue: WredQueue,
    rules: [Option<Red>; PRIORITIES],
    /// The number of bytes that wait, by priority.
    waiting: [u64; PRIORITIES],
    /// When the last packet of a priority had been sent.
    sent: [Time; PRIORITIES],
}

impl Wred {
    /// The rules of `params`, which must be valid, on an empty port in front of a link of rate `link`.
    pub fn new(params: &WredParams, link: Rate) -> Wred {
        let rules = params.rules().unwrap_or_default().map(|rule| rule.map(|rule| Red::new(&rule, link)));
        Wred { queue: params.queue, rules, waiting: [0; PRIORITIES], sent: [Time::ZERO; PRIORITIES] }
    }

    /// Decides on a packet of `priority`, 0 to 7, and `bytes` bytes. `draw` yields a uniform 64-bit value if one
    /// is needed.
    pub fn on_enqueue(
        &mut self,
        now: Time,
        priority: u8,
        bytes: u64,
        ect: bool,
        draw: impl FnOnce() -> u64,
    ) -> Verdict {
        let own = usize::from(priority);
        let (queue, idle_since) = match self.queue {
            WredQueue::Priority => (self.waiting[own], self.sent[own]),
            WredQueue::Port => {
                (self.waiting.iter().sum(), self.sent.iter().copied().fold(Time::ZERO, Time::max))
            }
        };
        if self.queue == WredQueue::Port {
            let others = self.rules.iter_mut().enumerate().filter(|(number, _)| *number != own);
            for rule in others.filter_map(|(_, rule)| rule.as_mut()) {
                if queue == 0 && idle_since < now {
                    rule.on_idle(idle_since);
                }
                rule.on_other_arrival(now, queue);
            }
        }
        let Some(rule) = &mut self.rules[own] else { return Verdict::Pass };
        if queue == 0 && idle_since < now {
            rule.on_idle(idle_since);
        }
        rule.on_enqueue(now, queue, bytes, ect, draw)
    }

    /// The port dropped the packet of `priority` just decided on, as its buffer was full.
    pub fn on_overflow(&mut self, priority: u8) {
        if let Some(rule) = &mut self.rules[usize::from(priority)] {
            rule.on_overflow();
        }
    }

    /// Counts a packet that has joined the queue.
    pub fn on_entered(&mut self, priority: u8, bytes: u64) {
        self.waiting[usize::from(priority)] += bytes;
    }

    /// Counts a packet that has left the queue.
    pub fn on_left(&mut self, priority: u8, bytes: u64) {
        self.waiting[usize::from(priority)] -= bytes;
    }

    /// Notes that a packet is being sent until `until`.
    pub fn on_transmit(&mut self, priority: u8, until: Time) {
        self.sent[usize::from(priority)] = until;
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{Drop, Mark, Pass};
    use super::*;
    use plimsoll_units::Span;

    const NEVER: fn() -> u64 = || panic!("a draw was taken");

    fn params(text: &str) -> WredParams {
        toml::from_str(text).unwrap()
    }

    fn wred(text: &str) -> Wred {
        let params = params(text);
        params.validate().unwrap();
        Wred::new(&params, Rate::from_gbps(1))
    }

    /// Steps at 10 KB and 30 KB that mark all but the first packet of an excursion.
    const STEPS: &str = "
        [priority.'0..2']
        min = '10KB'
        max = '10KB'
        bytes = false
        ecn = false
        [priority.'7']
        min = '30KB'
        max = '30KB'
        bytes = false
        ";

    fn verdicts(wred: &mut Wred, priority: u8, packets: usize) -> Vec<Verdict> {
        (0..packets).map(|_| wred.on_enqueue(Time::ZERO, priority, 1_000, true, NEVER)).collect()
    }

    #[test]
    fn each_priority_has_its_own_thresholds_and_queue() {
        let mut wred = wred(STEPS);
        wred.on_entered(1, 20_000);
        wred.on_entered(7, 20_000);
        assert_eq!(verdicts(&mut wred, 1, 3), [Pass, Drop, Drop]);
        assert_eq!(verdicts(&mut wred, 2, 3), [Pass; 3], "nothing of it waits");
        assert_eq!(verdicts(&mut wred, 7, 3), [Pass; 3], "20 KB are less than 30 KB");
        wred.on_entered(7, 10_000);
        assert_eq!(verdicts(&mut wred, 7, 3), [Pass, Mark, Mark]);
        wred.on_left(1, 15_000);
        assert_eq!(verdicts(&mut wred, 1, 2), [Pass; 2]);
        wred.on_entered(4, 1_000_000);
        assert_eq!(verdicts(&mut wred, 4, 3), [Pass; 3], "a priority without a rule");
    }

    #[test]
    fn the_queue_of_the_port_counts_all_priorities() {
        let mut wred = wred(&format!("queue = 'port'\n{STEPS}"));
        wred.on_entered(4, 29_000);
        assert_eq!(verdicts(&mut wred, 1, 3), [Pass, Drop, Drop]);
        assert_eq!(verdicts(&mut wred, 7, 3), [Pass; 3]);
        wred.on_entered(5, 1_000);
        assert_eq!(verdicts(&mut wred, 7, 3), [Pass, Mark, Mark]);
    }

    /// An average over half the arrivals' queues: with `port` every arrival is a step.
    #[test]
    fn averages_step_at_the_arrivals_that_they_are_of() {
        let rules = "[priority.'0']\nmin = '5KB'\nmax = '50KB'\nweight = 0.5\n\
                     [priority.'1']\nmin = '5KB'\nmax = '50KB'\nweight = 0.5\n";
        let average = |wred: &Wred, priority: usize| wred.rules[priority].as_ref().unwrap().average_bytes();
        let (mut own, mut port) = (wred(rules), wred(&format!("queue = 'port'\n{rules}")));
        for wred in [&mut own, &mut port] {
            wred.on_entered(0, 8_000);
            for priority in [0, 0, 1, 0] {
                assert_eq!(wred.on_enqueue(Time::ZERO, priority, 1_000, true, || u64::MAX), Pass);
            }
        }
        // 4000, 6000, then 7000; no packet of priority 1 waits.
        assert_eq!((average(&own, 0), average(&own, 1)), (7_000.0, 0.0));
        // 4000, 6000, 7000, 7500 for both.
        assert_eq!((average(&port, 0), average(&port, 1)), (7_500.0, 7_500.0));
        // 80 us after its last packet had been sent: ten packets of 1000 B, and the step of the arrival.
        let at = |us| Time::ZERO + Span::from_us(us);
        own.on_left(0, 8_000);
        own.on_transmit(0, at(20));
        own.on_enqueue(at(100), 0, 1_000, true, NEVER);
        assert_eq!(average(&own, 0), 7_000.0 * 0.5f64.powi(11));
    }

    #[test]
    fn names_are_priorities_and_each_has_one_rule() {
        let bad = |names: &[&str]| {
            let tables: String = names.iter().map(|name| format!("[priority.'{name}']\n")).collect();
            params(&tables).validate().unwrap_err()
        };
        for names in [&["8"][..], &["x"], &["3..1"], &["0..8"], &["0..3", "3"], &["2", "1..7"], &[""]] {
            assert_eq!(bad(names).key, "priority", "{names:?}");
        }
        assert_eq!(params("[priority.'1']\nweight = 0.0").validate().unwrap_err().key, "weight");
        assert!(params("[priority.'0..6']\n[priority.'7']").validate().is_ok());
        assert!(toml::from_str::<WredParams>("[priorities.'0']").is_err());
    }
}
