//! The queues of a switch port by class, and the scheduler that serves them, as every vendor's switches have it.
//!
//! ```text
//!                 ┌─ class of 7      strict ─────────────────────┐
//! packet ─> class ├─ class of 5, 6   strict, at most `rate` ─────┼─> link: the highest strict class that may send,
//!  by priority    ├─ class of 3, 4   weight 3 ──┐ DWRR or WFQ ───┘         then the weighted classes
//!                 └─ class of 0..2   weight 1 ──┘
//! ```
//!
//! Two schedulers share the link by weight:
//! * **Deficit weighted round robin** (Shreedhar and Varghese, SIGCOMM 1995): in its turn a class may send `weight`
//!   full packets' bytes, and keeps what it does not use while packets wait.
//! * **Weighted fair queueing** by start times (Goyal, Vin and Cheng, SIGCOMM 1996): a packet starts, in virtual time,
//!   at the end of its class's packet before it or at the start of the packet in service, whichever is later, and takes
//!   its bytes over the weight. The earliest start is served next. The bound on its fairness holds for a link of
//!   changing rate too, as the weighted classes see it below strict ones and pauses.
//!
//! A class that may not send (its priority is paused, or its rate is used up) saves no claim to its weight for later. A
//! class with a rate that waits for the link makes up for it, so that each class gets the smaller of its rate and its
//! fair share: by a full packet of each class at most, and in round robin by one turn more.

mod scheduler;

use std::collections::BTreeMap;

use plimsoll_units::{Bytes, Rate};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::by_priority::{by_priority, check_entries};
use crate::ecn::EcnParams;
use crate::mechanism::{EngineNeed, Marking, Mechanism, Section, Table};
use crate::pfc::Priorities;
use crate::{Depth, InvalidParam};

pub use scheduler::ClassScheduler;

/// Queues by class. Each packet waits in the queue of its priority's class, and the scheduler decides which class sends
/// next. Priorities without a class share one of weight 1.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClassesParams {
    /// How the classes with a weight share what strict classes leave. Default `dwrr`.
    pub scheduler: WeightedScheduler,
    /// The class of a priority such as `"7"`, or of several such as `"0..4"`, the last one included. Priorities are 0
    /// to 7, and each has one class at most.
    pub priority: BTreeMap<String, ClassParams>,
}

/// One class of a port: a queue, its limits, and its part in the schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClassParams {
    /// The class's share of the link beside other classes with a weight: 1 to 1000. A class without a weight is strict:
    /// it is served before all classes with one, the class of the highest priority first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub weight: Option<u32>,
    /// The order in which the packets of the class are served. Default `fifo`.
    pub order: OrderInClass,
    /// The most that may wait in the class, such as `"200KB"` or `"100 packets"`: more than 0. The port's `buffer`
    /// limits all classes together as well. Default as much as that. Beside `trim` the class of its `priority` is the
    /// header queue: the port's `buffer` does not limit it, and its default is twice that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<Depth>,
    /// Marks by the class's own queue. The port's own marking, where it is on, acts as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecn: Option<EcnParams>,
    /// The most that the class sends, even where the link is idle: more than 0. While packets wait for the link the
    /// class falls behind the rate, and makes up for it by a full packet of each class and, with `dwrr`, one turn.
    /// Default no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The bytes that a class with a `rate` may send at once after a pause, at least one full packet. Default one full
    /// packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<Bytes>,
}

/// The rule by which classes share the link by weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WeightedScheduler {
    /// Deficit weighted round robin, with a quantum of `weight` full packets.
    #[default]
    Dwrr,
    /// Weighted fair queueing, by the start times of packets.
    Wfq,
}

/// The order in which the packets of a class are served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OrderInClass {
    /// First come, first served.
    #[default]
    Fifo,
    /// One queue per flow, deficit round robin with a quantum of one full-size packet.
    FairPerFlow,
}

impl Mechanism for ClassesParams {
    const TABLE: Table = Table::replaced_whole(Section::Port, "classes", "the port has one queue")
        .needs(EngineNeed::GeneralHere);

    fn marking(&self) -> Option<Marking> {
        let mut rules = self.priority.values().filter_map(|class| class.ecn).peekable();
        rules.peek()?;
        let (thresholds, at): (Vec<Depth>, Vec<_>) = rules.map(|ecn| (ecn.threshold, ecn.marking())).unzip();
        let at_dequeue = at.into_iter().flatten().any(|marking| marking.at_dequeue);
        Some(Marking { marks: true, thresholds, at_dequeue })
    }

    fn validate(&self) -> Result<(), InvalidParam> {
        by_priority(&self.priority)?;
        check_entries(&self.priority, ClassParams::validate)
    }
}

impl ClassesParams {
    /// Returns the name of the entry that has `priority`, `None` if it is one of those that share a class.
    pub fn entry_of(&self, priority: u8) -> Option<&str> {
        let entry = by_priority(&self.priority).ok()?.get(usize::from(priority)).copied()??;
        self.priority.keys().nth(entry).map(String::as_str)
    }
}

impl ClassesParams {
    /// Returns the classes with their names and priorities, where the names can be read.
    pub fn with_priorities(&self) -> impl Iterator<Item = (&str, &ClassParams, Priorities)> {
        let entries = by_priority(&self.priority).unwrap_or_default();
        self.priority.iter().enumerate().map(move |(number, (name, class))| {
            let own = (0..).zip(entries).filter(|(_, entry)| *entry == Some(number));
            let priorities = own.fold(Priorities::default(), |set, (priority, _)| set.with(priority));
            (name.as_str(), class, priorities)
        })
    }
}

impl ClassParams {
    fn validate(&self) -> Result<(), InvalidParam> {
        let ClassParams { weight, buffer, ecn, rate, burst, .. } = *self;
        if let Some(weight) = weight {
            InvalidParam::unless((1..=1000).contains(&weight), "weight", weight, "1 to 1000")?;
        }
        if let Some(buffer) = buffer {
            let allowed = "more than 0; a class without `buffer` has the port's";
            InvalidParam::unless(buffer.count() > 0, "buffer", buffer, allowed)?;
        }
        if let Some(rate) = rate {
            InvalidParam::unless(rate > Rate::ZERO, "rate", rate, "more than 0bps")?;
        }
        if let Some(burst) = burst {
            InvalidParam::unless(rate.is_some(), "burst", burst, "set beside a `rate` only")?;
        }
        ecn.map_or(Ok(()), |ecn| ecn.validate().map_err(|invalid| invalid.within(&["ecn"])))
    }

    /// Returns whether the class is served before all classes with a weight.
    pub fn is_strict(&self) -> bool {
        self.weight.is_none()
    }
}

/// The classes of a port in the order of their numbers: by their highest priority, from the highest to the lowest. The
/// class of the priorities without an entry, if there are any, is the last.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassMap {
    /// The parameters of each class.
    pub classes: Vec<ClassParams>,
    /// The number of the class of each priority.
    pub of_priority: [u8; 8],
}

impl ClassMap {
    /// Numbers the classes of `params`, which must be valid.
    pub fn of(params: &ClassesParams) -> ClassMap {
        let entries = by_priority(&params.priority).unwrap_or_default();
        let given: Vec<ClassParams> = params.priority.values().copied().collect();
        let mut order: Vec<usize> = Vec::new();
        for entry in entries.iter().rev().flatten() {
            if !order.contains(entry) {
                order.push(*entry);
            }
        }
        let mut classes: Vec<ClassParams> = order.iter().map(|entry| given[*entry]).collect();
        let rest = classes.len() as u8;
        if entries.contains(&None) {
            classes.push(ClassParams { weight: Some(1), ..ClassParams::default() });
        }
        let number = |entry: Option<usize>| {
            entry.and_then(|entry| order.iter().position(|other| *other == entry)).map_or(rest, |at| at as u8)
        };
        ClassMap { classes, of_priority: entries.map(number) }
    }
}

#[cfg(test)]
mod tests;
