//! Prints an [`ApplyPlan`] and a [`PlanChange`].

use std::fmt;
use std::fmt::Write as _;

use plimsoll_mechanisms::qjump::{Levels, latency_bound, priority_of};

use super::ApplyPlan;
use super::difference::{Difference, PlanMove};
use crate::change::PlanChange;
use crate::policy::{QjumpPolicy, Tagging};
use crate::step::Step;

/// Prints the diff, the computed numbers, and the steps that are left to the operator.
impl fmt::Display for ApplyPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_plan(f, self, &self.steps.iter().map(Step::to_string).collect::<Vec<_>>())
    }
}

/// Prints the difference from the policy in force in the same way; a line with `=` stays as it is.
impl fmt::Display for PlanChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { kept, released, .. } = &self.difference;
        let kept = kept.iter().flat_map(|step| {
            let lines = step.to_string();
            lines.lines().map(|line| line.trim_start().replacen(['+', '~', '-'], "=", 1)).collect::<Vec<_>>()
        });
        let moves = self.difference.moves();
        let moves = moves
            .iter()
            .map(PlanMove::to_string)
            .chain(released.iter().map(|step| PlanMove::Undo(step).to_string()));
        write_plan(f, &self.plan, &kept.chain(moves).collect::<Vec<_>>())
    }
}

fn write_plan(f: &mut fmt::Formatter<'_>, plan: &ApplyPlan, lines: &[String]) -> fmt::Result {
    if let Some(qjump) = &plan.policy.qjump {
        f.write_str(&shown(qjump))?;
    }
    for line in lines {
        writeln!(f, "  {line}")?;
    }
    if let Some(advice) = plan.policy.qjump.as_ref().and_then(for_the_switch) {
        writeln!(f, "\nAt the switches:\n  {advice}")?;
    }
    if !plan.notes.is_empty() {
        writeln!(f, "\nNote:")?;
    }
    for note in &plan.notes {
        writeln!(f, "  {note}")?;
    }
    Ok(())
}

/// Prints the epoch and the budgets of its levels.
fn shown(qjump: &QjumpPolicy) -> String {
    let Levels { epoch, levels } =
        qjump.levels().expect("a policy's levels were resolved when it was checked");
    let QjumpPolicy { device, hosts, rate, packet, epsilon, .. } = qjump;
    let how = match qjump.epoch {
        Some(_) => "as the policy says".to_owned(),
        None => format!("2 n P / R + eps with n = {hosts}, P = {packet}, R = {rate}, eps = {epsilon}"),
    };
    let mut text = format!("QJump at {device}: network epoch {epoch}, {how}\n");
    let _ = writeln!(
        text,
        "  bound of one packet from each host: {}\n",
        latency_bound(*hosts, *packet, *packet, *rate, *epsilon)
    );
    let _ = writeln!(text, "  level  bytes per epoch            rate  longest wait  members");
    for (number, level) in levels.iter().enumerate() {
        let bytes = level.latency_bound.map_or_else(|| "any".to_owned(), |_| level.bucket.to_string());
        let bound = level.latency_bound.map_or_else(|| "no bound".to_owned(), |bound| bound.to_string());
        let who = qjump.assign.iter().filter(|one| usize::from(one.level) == number);
        let who: Vec<String> = who.filter_map(|one| Some(one.subject()?.to_string())).collect();
        let line = format!(
            "  {number:>5}  {bytes:>15}  {:>14}  {bound:>13}  {}",
            level.rate.to_string(),
            who.join(", ")
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text.push('\n');
    text
}

/// Returns how to configure the switches, so that they handle the tags.
fn for_the_switch(qjump: &QjumpPolicy) -> Option<String> {
    let count = qjump.levels.len() as u8;
    let map = |value: fn(u8) -> u8| {
        let pairs = (0..count).map(|level| format!("{} -> queue {}", value(level), priority_of(level)));
        pairs.collect::<Vec<_>>().join(", ")
    };
    let strict = "and serve the queues by strict priority, the highest number first; queue 1 above queue 0, unlike the \
                  mapping that 802.1Q recommends";
    match qjump.tag {
        Tagging::Dscp => Some(format!("trust DSCP; map DSCP {}; {strict}", map(|level| 8 * level))),
        Tagging::Pcp => Some(format!(
            "trust the 802.1Q priority, and accept tags of VLAN {} (0 is a priority tag) at the hosts' ports; map PCP \
             {}; {strict}",
            qjump.vlan,
            map(|level| level)
        )),
        Tagging::None => None,
    }
}
