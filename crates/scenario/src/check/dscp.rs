//! Checks of `host.dscp` and `host.dscp_to_priority`: every code point is known, and has one priority.

use super::Checker;
use crate::did_you_mean;
use crate::dscp::{DSCP_NAMES, DSCPS, code_points};
use crate::model::Model;

const ALLOWED: &str = "0 to 63, CS0 to CS7, LE, AF11 to AF43, VA or EF";

impl Checker<'_> {
    pub(super) fn dscp(&mut self, model: &Model) {
        let host = &model.host;
        for (name, dscp) in &host.dscp {
            let path = ["host", "dscp", name];
            self.known_workload(&path, name, model);
            if host.priority.contains_key(name) {
                let message = format!("workload `{name}` has a priority in `host.priority` as well");
                self.error(&path, message, "one of the two");
            }
            if dscp.code_point().is_none() {
                self.unknown_dscp(&path, &dscp.to_string(), ALLOWED);
            }
        }
        let mut key_of = [None; DSCPS];
        for (key, priority) in &host.dscp_to_priority {
            let path = ["host", "dscp_to_priority", key];
            self.priority(&path, *priority);
            let Some(points) = code_points(key) else {
                self.unknown_dscp(&path, key, &format!("{ALLOWED}, or a range such as 8..15"));
                continue;
            };
            let others = points.clone().filter_map(|point| Some((point, key_of[usize::from(point)]?)));
            if let Some((point, other)) = others.min() {
                self.error(&path, format!("DSCP {point} has a priority by `{other}`"), "each DSCP once");
            }
            points.for_each(|point| key_of[usize::from(point)] = Some(key.as_str()));
        }
        if !host.dscp_to_priority.is_empty() && host.dscp.is_empty() && model.program.is_empty() {
            let message = "no packet has a DSCP, so the map has no effect";
            self.warn(&["host", "dscp_to_priority"], message, "host.dscp gives workloads a DSCP");
        }
    }

    fn unknown_dscp(&mut self, path: &[&str], text: &str, allowed: &str) {
        let names = DSCP_NAMES.iter().map(|(name, _)| *name);
        let report = self.report(path, format!("`{text}` is no DSCP")).allowed(allowed);
        self.found.errors.push(report.maybe_help(did_you_mean(text, names)));
    }
}
