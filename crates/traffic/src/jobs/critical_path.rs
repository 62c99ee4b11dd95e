//! [`CriticalPaths`]: what each operation and each message of an iteration waited for last.
//!
//! ```text
//! operation <── message <── operation <── operation <── the iteration begins
//! ```

use std::collections::BTreeMap;

use plimsoll_units::Span;

use crate::record::{Split, WaitedAt};
use crate::source::MessageWaits;

/// A critical path from the beginning of the iteration.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PathTo {
    /// The components of all time since then.
    pub(super) split: Split,
    /// The number of its last step, counted from 1; 0 without one.
    last: u32,
}

impl PathTo {
    /// Returns a path without steps.
    pub(super) fn of(split: Split) -> PathTo {
        PathTo { split, last: 0 }
    }
}

/// The steps of all critical paths of an iteration.
#[derive(Debug)]
pub(super) struct CriticalPaths {
    /// Whether steps are kept.
    are_kept: bool,
    steps: Vec<Step>,
    /// Where messages waited, by step.
    waits: Vec<(u32, WaitedAt, Span)>,
}

/// A step of a path: an operation or a message.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The number of the step before.
    before: u32,
    /// The operation that it is; `None` of a message.
    operation: Option<u32>,
}

impl CriticalPaths {
    pub(super) fn new(are_kept: bool) -> CriticalPaths {
        CriticalPaths { are_kept, steps: Vec::new(), waits: Vec::new() }
    }

    /// Begins an iteration without any step.
    pub(super) fn begin(&mut self) {
        self.steps.clear();
        self.waits.clear();
    }

    /// Adds an operation to a path.
    pub(super) fn with_operation(&mut self, path: PathTo, operation: u32) -> PathTo {
        self.with(path, Some(operation))
    }

    /// Adds a message with the components of its latency to a path.
    pub(super) fn with_message(&mut self, path: PathTo, split: Split, waits: &MessageWaits) -> PathTo {
        let path = self.with(PathTo { split: path.split + split, ..path }, None);
        if self.are_kept {
            let waited = waits.0.iter().filter(|(_, waited)| !waited.is_zero());
            self.waits.extend(waited.map(|(at, waited)| (path.last, *at, *waited)));
        }
        path
    }

    fn with(&mut self, path: PathTo, operation: Option<u32>) -> PathTo {
        if !self.are_kept {
            return path;
        }
        self.steps.push(Step { before: path.last, operation });
        PathTo { last: self.steps.len() as u32, ..path }
    }

    /// Returns the operations of a path from its beginning on, and how long its messages waited at each place.
    pub(super) fn trace(&self, path: PathTo) -> (Vec<u32>, BTreeMap<WaitedAt, Span>) {
        let (mut operations, mut waits) = (Vec::new(), BTreeMap::new());
        let mut number = path.last;
        while let Some(step) = number.checked_sub(1).and_then(|index| self.steps.get(index as usize)) {
            operations.extend(step.operation);
            let first = self.waits.partition_point(|(of, ..)| *of < number);
            for (_, at, waited) in self.waits[first..].iter().take_while(|(of, ..)| *of == number) {
                *waits.entry(*at).or_insert(Span::ZERO) += *waited;
            }
            if step.before >= number {
                break; // a message of an earlier iteration
            }
            number = step.before;
        }
        operations.reverse();
        (operations, waits)
    }
}
