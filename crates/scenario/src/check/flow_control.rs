//! Checks `port.*.pfc`, and that no limit of a queue drops the packets that flow control has room for.
//!
//! ```text
//! packet ─> room in the buffer of its link, or the memory? ─> room in its queue? ─> queue
//!             no: dropped, unless headroom suffices             no: dropped, however large the headroom is
//! ```

use plimsoll_mechanisms::Depth;
use plimsoll_mechanisms::pfc::{PausedLink, Priorities};
use plimsoll_units::Bytes;

use super::Checker;
use super::port::{in_bytes, keys};
use crate::model::{Model, Port};
use crate::quantity::QueueLimit;

/// The room that flow control has for packets which it never drops.
struct LosslessRoom {
    /// The key of its table.
    key: &'static str,
    /// The most bytes that one queue of a switch may hold.
    most: Bytes,
    /// The priorities of these packets.
    priorities: Priorities,
}

impl Checker<'_> {
    /// Checks `pfc` and the limits of queues at the NIC and at every tier. The files of workloads are loaded.
    pub(super) fn flow_control(&mut self, model: &Model) {
        let tiers = model.topology.tiers().iter().map(|tier| (*tier, model.port.of_tier(tier)));
        for (name, port) in [("host", &model.port.host)].into_iter().chain(tiers) {
            self.pfc(name, port, model);
            if let Some(room) = lossless_room(name, port, model) {
                self.limits_beside(name, port, model, &room);
            }
        }
    }

    /// Flow control whose thresholds and headroom fit the buffer of every link.
    fn pfc(&mut self, name: &str, port: &Port, model: &Model) {
        let Some(params) = port.pfc() else { return };
        let path = self.path_of(name, "pfc");
        if name == "host" {
            self.error(&keys(&path), "a host's NIC does not pause others", "switch ports only");
            return;
        }
        let QueueLimit::Bytes(buffer) = port.buffer else {
            let path = self.path_of(name, "buffer");
            self.error(
                &keys(&path),
                "flow control shares out a buffer in bytes",
                "a size, such as \"128KB\"",
            );
            return;
        };
        let mtu = Bytes::new(model.largest_packet());
        for (rate, propagation) in model.topology.link_classes() {
            let priorities = model.priorities_in_use();
            let link = PausedLink { rate, back_rate: rate, propagation, mtu, buffer, priorities };
            if let Err(error) = params.resolve(&link) {
                let allowed = "a buffer with room for thresholds and headroom of every class";
                self.error(&keys(&path), error.to_string(), allowed);
                return;
            }
        }
        if port.shared_buffer().is_some() {
            let help = "turn one off: `pfc = \"off\"` or `shared_buffer = \"off\"`";
            self.error(
                &keys(&path),
                "shared_buffer drops packets that the buffer of a link has room for",
                help,
            );
        }
    }

    /// Queues with less room than flow control gives to their packets: these would be dropped, and no sender paused.
    fn limits_beside(&mut self, name: &str, port: &Port, model: &Model, room: &LosslessRoom) {
        let LosslessRoom { key, most, priorities } = room;
        let mut limits: Vec<(Vec<&str>, String)> = Vec::new();
        if let Some(pfabric) = port.pfabric().filter(|pfabric| pfabric.limit <= *most) {
            limits.push((vec!["pfabric", "limit"], pfabric.limit.to_string()));
        }
        // A class counted in packets may be full of small ones.
        let smallest = model.carriers().map(|of| of.header.get()).min().unwrap_or_default();
        for (class, params, of_class) in port.classes().iter().flat_map(|classes| classes.with_priorities()) {
            let lossless = of_class.iter().any(|priority| priorities.has(priority));
            let is_smaller = |depth: &Depth| in_bytes(*depth, smallest) <= most.get();
            if let Some(depth) = params.buffer.filter(is_smaller).filter(|_| lossless) {
                limits.push((vec!["classes", "priority", class, "buffer"], depth.to_string()));
            }
        }
        for (key_in_port, limit) in limits {
            let place = self.path_of(name, key_in_port[0]);
            let path: Vec<&str> = keys(&place).into_iter().chain(key_in_port[1..].iter().copied()).collect();
            let message = format!(
                "packets beyond {limit} are dropped, though `{key}` has room for up to {most} of them"
            );
            self.error(&path, message, format!("more than {most}, or `{key} = \"off\"`"));
        }
    }
}

/// Returns the room that the flow control of a tier has, unless something is wrong with its parameters.
fn lossless_room(name: &str, port: &Port, model: &Model) -> Option<LosslessRoom> {
    let used = model.used_priorities().into_iter().fold(Priorities::default(), Priorities::with);
    if let (Some(_), QueueLimit::Bytes(buffer)) = (port.pfc(), port.buffer) {
        let links = model.topology.switch_ports(name) as u64;
        let most = Bytes::new(buffer.get().saturating_mul(links));
        return Some(LosslessRoom { key: "pfc", most, priorities: used });
    }
    let params = port.lossless()?;
    let lossless = params.lossless().ok()?;
    let priorities = used.without(Priorities::ALL.without(lossless));
    Some(LosslessRoom { key: "lossless", most: params.memory, priorities })
}
