//! Checks of `host.qjump`: a share of the epoch for every priority in use, with room for its packets.

use plimsoll_mechanisms::qjump::Levels;

use plimsoll_units::Bytes;

use super::Checker;
use crate::model::Model;

impl Checker<'_> {
    pub(super) fn qjump(&mut self, model: &Model) {
        let Some(params) = model.host.qjump() else { return };
        let senders = model.topology.host_count() * model.guests();
        match params.resolve(senders, model.topology.host_rate(0)) {
            Err(invalid) => self.params(&["host", "qjump"], Err(invalid)),
            Ok(levels) => {
                self.levels_in_use(model, levels.levels.len());
                self.room_for_segments(model, &levels);
            }
        }
    }

    /// Checks that each priority in use has a level: packets without one would wait for ever.
    fn levels_in_use(&mut self, model: &Model, levels: usize) {
        let host = &model.host;
        let named = host.priority.iter().map(|(name, priority)| (vec!["priority", name], *priority));
        let of_dscp =
            host.dscp.keys().filter_map(|name| Some((vec!["dscp", name], model.priority_of(name)?)));
        let acks = host.ack_priority.map(|priority| (vec!["ack_priority"], priority));
        let by_size = (!host.priority_by_size.is_empty()).then_some((vec!["priority_by_size"], 7));
        for (key, priority) in named.chain(of_dscp).chain(acks).chain(by_size) {
            if usize::from(priority) >= levels && priority <= 7 {
                let path: Vec<&str> = std::iter::once("host").chain(key).collect();
                let message = format!("priority {priority}, and `host.qjump.levels` has {levels} levels");
                let allowed = format!("0 to {}, or a level for each priority", levels - 1);
                self.error(&path, message, allowed);
            }
        }
    }

    /// A level that never holds a full packet of the transport never lets one pass.
    fn room_for_segments(&mut self, model: &Model, levels: &Levels) {
        let packet = Bytes::new(model.packet_bytes());
        let mut used = [None; 8];
        for (name, workload) in &model.workload {
            if workload.params().uses_transport() {
                for priority in priorities(model, name) {
                    used[usize::from(priority & 7)].get_or_insert(name);
                }
            }
        }
        for (index, level) in levels.levels.iter().enumerate() {
            let Some(name) = used[index].filter(|_| level.bucket < packet) else { continue };
            let index = index.to_string();
            let message = format!(
                "an epoch of {} holds no full packet, and the transport of `{name}` sends at this level",
                level.bucket
            );
            let path = ["host", "qjump", "levels", &index];
            // Where the levels are the default, the file has the table only.
            let written = self.tree.at(&path).is_some();
            let allowed = format!("at least segment and header, {packet}");
            self.error(if written { &path } else { &path[..2] }, message, allowed);
        }
    }
}

/// The priorities that a workload's messages may have.
fn priorities(model: &Model, workload: &str) -> Vec<u8> {
    let host = &model.host;
    match model.priority_of(workload) {
        Some(priority) => vec![priority],
        None if host.priority_by_size.is_empty() => vec![0],
        None => (0..=host.priority_by_size.len().min(7)).map(|larger| 7 - larger as u8).collect(),
    }
}
