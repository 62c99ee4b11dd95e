//! [`Difference`] is what leads from an applied plan to another plan of the same policy.
//!
//! ```text
//! applied plan:  A  B  C  D          kept:     A  D      are not touched
//! new plan:      A  B' D  E          removed:  C, B      undone first, the last step first
//!                                    added:    B', E     made then, in the order of the plan
//! ```

use std::fmt;

use crate::policy::{Pace, Pacer, QjumpPolicy, Segments};
use crate::step::{PortProgram, Step};

/// The steps in which two plans of a policy differ.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Difference {
    /// Steps of both plans, as the new plan has them; they stay as they are.
    pub kept: Vec<Step>,
    /// Steps of the applied plan alone, in the order in which they are undone.
    pub removed: Vec<Step>,
    /// Steps of the new plan alone, in the order in which they are made.
    pub added: Vec<Step>,
    /// Cgroups of the applied plan alone. They are removed when the change is final, since their processes would not
    /// come back if it was reverted.
    pub released: Vec<Step>,
}

/// One part of a change.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PlanMove<'a> {
    /// A step of the applied plan is undone.
    Undo(&'a Step),
    /// A step of the new plan is made.
    Make(&'a Step),
}

impl Difference {
    /// Compares the steps of an applied plan with the steps of a new plan.
    pub fn between(applied: &[Step], new: &[Step]) -> Difference {
        let mut difference = Difference::default();
        let mut is_kept = vec![false; applied.len()];
        let mut from = 0;
        for step in new {
            let same = (from..applied.len()).find(|at| applied[*at].makes_the_same_as(step));
            match same.filter(|_| difference.may_keep(step)) {
                Some(at) => {
                    is_kept[at] = true;
                    from = at + 1;
                    difference.kept.push(step.clone());
                }
                None => difference.added.push(step.clone()),
            }
        }
        let gone = applied.iter().zip(is_kept).filter(|(_, is_kept)| !is_kept).map(|(step, _)| step.clone());
        let (released, mut removed): (Vec<Step>, Vec<Step>) =
            gone.partition(|step| matches!(step, Step::Cgroup { .. }) && !difference.added.contains(step));
        removed.reverse();
        Difference { removed, released: released.into_iter().rev().collect(), ..difference }
    }

    /// Returns whether a step that both plans have may stay, given the steps ahead of it: programs at a device run in
    /// the order in which they are attached, so none stays behind a new one, and the pacer's feedback uses a map of the
    /// pacer.
    fn may_keep(&self, step: &Step) -> bool {
        let Step::Program { device, side, program, .. } = step else { return true };
        !self.added.iter().any(|ahead| match ahead {
            Step::Program { device: of, side: at, program: other, .. } => {
                let is_pacer = matches!(other, PortProgram::Pacer { .. });
                (of, at) == (device, side)
                    || (is_pacer && matches!(program, PortProgram::PacerFeedback { .. }))
            }
            _ => false,
        })
    }

    /// Returns the parts of the change in order.
    pub fn moves(&self) -> Vec<PlanMove<'_>> {
        self.removed.iter().map(PlanMove::Undo).chain(self.added.iter().map(PlanMove::Make)).collect()
    }

    /// Returns whether the plans have the same steps.
    pub fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty() && self.released.is_empty()
    }

    /// Returns whether `step` makes an object in place of one that is removed first.
    pub(crate) fn replaces(&self, step: &Step) -> bool {
        self.removed.iter().any(|removed| removed.object() == step.object())
    }
}

impl Step {
    /// Returns whether two steps of a policy's versions make exactly the same change. A program's keys of the policy
    /// that other steps implement do not matter.
    fn makes_the_same_as(&self, other: &Step) -> bool {
        match (self, other) {
            (
                Step::Program { device, side, program, hold, pins },
                Step::Program { device: device2, side: side2, program: program2, hold: hold2, pins: pins2 },
            ) => {
                (device, side, hold, pins) == (device2, side2, hold2, pins2)
                    && own_part(program.clone()) == own_part(program2.clone())
            }
            _ => self == other,
        }
    }

    /// Returns the object of the host that the step creates or sets: two steps with the same one exclude each other.
    fn object(&self) -> (u8, String) {
        match self {
            Step::Program { pins, .. } | Step::Level { pins, .. } | Step::Dctcp { pins } => {
                (0, pins.display().to_string())
            }
            Step::Cgroup { folder } => (1, folder.display().to_string()),
            Step::Segments { device, .. } => (2, device.to_string()),
            Step::Clsact { device } => (3, device.to_string()),
            Step::Departures { device, .. } | Step::Shaper { device, .. } => (4, device.to_string()),
            Step::DropIn { file, .. } => (5, file.display().to_string()),
            Step::Route { prefix, .. } => (6, prefix.to_string()),
            Step::Sysctl { name, .. } => (7, name.clone()),
        }
    }
}

/// Returns the program with the keys that it does not depend on set to one value.
fn own_part(program: PortProgram) -> PortProgram {
    let pacer_part =
        |pacer: Pacer| Pacer { segments: Segments::Fit, departure: None, cgroups: Vec::new(), ..pacer };
    match program {
        PortProgram::Limiter(qjump) => PortProgram::Limiter(QjumpPolicy {
            segments: Segments::Fit,
            pace: Pace::Level,
            assign: Vec::new(),
            ..qjump
        }),
        PortProgram::Pacer { pacer, root, cgroups, shaped } => {
            PortProgram::Pacer { pacer: pacer_part(pacer), root, cgroups, shaped }
        }
        PortProgram::PacerFeedback { pacer, flows } => {
            PortProgram::PacerFeedback { pacer: pacer_part(pacer), flows }
        }
        PortProgram::Ports(_) | PortProgram::PhantomQueue(_) => program,
    }
}

/// Prints the part as a line of a diff.
impl fmt::Display for PlanMove<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanMove::Make(step) => step.fmt(f),
            PlanMove::Undo(Step::Segments { device, before, after }) => {
                Step::Segments { device: device.clone(), before: *after, after: *before }.fmt(f)
            }
            PlanMove::Undo(Step::Sysctl { name, before, after }) => {
                Step::Sysctl { name: name.clone(), before: after.clone(), after: before.clone() }.fmt(f)
            }
            PlanMove::Undo(step) => {
                let inverse = |line: &str| match line.trim_start().split_at_checked(1) {
                    Some(("+", rest)) => format!("-{rest}"),
                    Some(("-", rest)) => format!("+{rest}"),
                    _ => line.trim_start().to_owned(),
                };
                let lines: Vec<String> = step.to_string().lines().rev().map(inverse).collect();
                f.write_str(&lines.join("\n  "))
            }
        }
    }
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;
