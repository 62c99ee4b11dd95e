//! Checks of `fault`: links that there are, and at most one fault of a link at a time.

use plimsoll_fabric::net::Node;
use plimsoll_units::{Rate, Span};

use super::Checker;
use crate::error::did_you_mean;
use crate::model::{Direction, Fault, Model};

impl Checker<'_> {
    pub(super) fn faults(&mut self, model: &Model) {
        let mut known: Vec<(usize, [Node; 2])> = Vec::new();
        for (number, fault) in model.fault.iter().enumerate() {
            let index = number.to_string();
            self.fault_itself(&index, fault);
            let Some(ends) = self.link_ends(&index, fault, model) else { continue };
            let twin = known.iter().find(|(before, other)| {
                let before = &model.fault[*before];
                overlap(fault, before) && share_a_direction((fault, ends), (before, *other))
            });
            if let Some((before, _)) = twin {
                let message = format!("fault.{before} has the same link at the same time");
                self.error(&["fault", &index, "from"], message, "one fault of a link at a time");
            }
            known.push((number, ends));
        }
    }

    /// Checks the keys that do not depend on the topology.
    fn fault_itself(&mut self, index: &str, fault: &Fault) {
        if fault.rate == Some(Rate::ZERO) {
            let allowed = "more than 0bps; `down = true` in its place for a link that fails";
            self.error(&["fault", index, "rate"], "a link of rate 0 carries nothing", allowed);
        }
        if fault.down == fault.rate.is_some() {
            let message =
                if fault.down { "a dead link has no rate" } else { "the link is neither slow nor dead" };
            self.error(&["fault", index], message, "either `rate` or `down = true`");
        }
        if let Some(until) = fault.until.filter(|until| *until <= fault.at) {
            let message = format!("the fault ends at {until}, and begins at {}", fault.at);
            self.error(&["fault", index, "until"], message, format!("after {}", fault.at));
        }
    }

    /// The two ends of a fault's link, or an error.
    fn link_ends(&mut self, index: &str, fault: &Fault, model: &Model) -> Option<[Node; 2]> {
        let topology = &model.topology;
        let mut ends = [("from", &fault.from), ("to", &fault.to)].map(|(key, name)| {
            let end = topology.node(name);
            if end.is_none() {
                let names: Vec<String> = topology.node_names().take(NAMES_MAX).collect();
                let tiers = topology.tiers().iter().filter_map(|tier| topology.first_of_tier(tier));
                let nic = topology.all_nics().next().map(|nic| topology.nic_name(nic));
                let allowed = nic.into_iter().chain(tiers).collect::<Vec<_>>().join(", ");
                let report = self
                    .report(&["fault", index, key], format!("no host or switch `{name}`"))
                    .allowed(format!("a node such as {allowed}"))
                    .maybe_help(did_you_mean(name, names.iter().map(String::as_str)));
                self.found.errors.push(report);
            }
            end
        });
        let (from, to) = (ends[0].take()?, ends[1].take()?);
        let neighbours = topology.neighbours(from);
        if neighbours.contains(&to) {
            return Some([from, to]);
        }
        let names: Vec<String> = neighbours.into_iter().map(|end| topology.node_name(end)).collect();
        let few = names.iter().take(NEIGHBOURS_SHOWN).cloned().collect::<Vec<_>>().join(", ");
        let more = if names.len() > NEIGHBOURS_SHOWN { ", ..." } else { "" };
        let report = self
            .report(
                &["fault", index, "to"],
                format!("there is no link between `{}` and `{}`", fault.from, fault.to),
            )
            .allowed(format!("a neighbour of `{}`: {few}{more}", fault.from))
            .maybe_help(did_you_mean(&fault.to, names.iter().map(String::as_str)));
        self.found.errors.push(report);
        None
    }
}

/// Whether both are in force at some instant.
fn overlap(a: &Fault, b: &Fault) -> bool {
    let end = |fault: &Fault| fault.until.unwrap_or(Span::MAX);
    a.at < end(b) && b.at < end(a)
}

/// Whether the two concern one link, and one direction of it.
fn share_a_direction((a, a_ends): (&Fault, [Node; 2]), (b, b_ends): (&Fault, [Node; 2])) -> bool {
    let turned = a_ends[0] == b_ends[1] && a_ends[1] == b_ends[0];
    let same_way = a.direction == b.direction;
    match (a.direction, b.direction) {
        (Direction::Both, _) | (_, Direction::Both) => turned || a_ends == b_ends,
        _ => (a_ends == b_ends && same_way) || (turned && !same_way),
    }
}

/// Node names compared for the nearest spelling.
const NAMES_MAX: usize = 2_000;

/// Neighbours named in an error.
const NEIGHBOURS_SHOWN: usize = 8;
