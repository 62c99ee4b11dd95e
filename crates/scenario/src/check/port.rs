//! Checks the tables below `port`.

use plimsoll_fabric::net::topology::Link;
use plimsoll_fabric::net::{Network, Node};
use plimsoll_mechanisms::shared_buffer::SharedBufferParams;
use plimsoll_mechanisms::telemetry::IntParams;
use plimsoll_mechanisms::{Active, Depth, Marking};
use plimsoll_units::Bytes;

use super::Checker;
use crate::keys::DISCIPLINE;
use crate::model::{BufferCounts, Model, Port, PortEngine, QueueOrder};
use crate::quantity::QueueLimit;

impl Checker<'_> {
    /// The NIC and every tier; `port.switch` only through its tiers.
    pub(super) fn ports(&mut self, model: &Model) {
        self.port("host", &model.port.host, model);
        for tier in model.topology.tiers() {
            self.port(tier, model.port.of_tier(tier), model);
        }
    }

    fn port(&mut self, name: &str, port: &Port, model: &Model) {
        for active in port.mechanisms().active() {
            let path = self.path_of(name, active.table.key);
            self.params(&keys(&path), active.verdict);
        }
        let shared = self.path_of(name, "shared_buffer");
        if let Some(params) = port.shared_buffer() {
            self.params(&keys(&shared), params.validate_for(model.topology.switch_ports(name)));
        }
        self.order_of_service(name, port, model);
        self.classes(name, port, model);
        self.trimming(name, port, model);
        if name == "host" && port.shared_buffer().is_some() {
            self.error(&keys(&shared), "a NIC shares its buffer with no other port", "switch ports only");
        }
        if name != "host" && port.order == QueueOrder::FairPerFlow {
            let path = self.path_of(name, "order");
            self.error(
                &keys(&path),
                "a switch port does not know flows",
                "\"fifo\" or \"priorities\"; \"fair-per-flow\" only in port.host",
            );
        }
        self.buffer(name, port, model);
        self.reach(name, port, model);
        self.engine(name, port, model);
    }

    /// One thing orders the queue.
    fn order_of_service(&mut self, name: &str, port: &Port, model: &Model) {
        let has_discipline = model.outside.disciplines.contains_key(name);
        let by = [
            ("pfabric", port.pfabric().is_some(), "\"off\""),
            ("classes", port.classes().is_some(), "\"off\""),
            (DISCIPLINE, has_discipline, "\"off\""),
            ("order", port.classes().is_some() && port.order != QueueOrder::Fifo, "\"fifo\""),
        ];
        let mut on = by.into_iter().filter(|(_, is_on, _)| *is_on);
        if let (Some((first, _, no_first)), Some((second, _, no_second))) = (on.next(), on.next()) {
            let path = self.path_of(name, second);
            let article = if second == DISCIPLINE { "a " } else { "" };
            let message = format!("{first} and {article}{second} would both order the queue");
            let help = format!("turn one off: `{first} = {no_first}` or `{second} = {no_second}`");
            self.error(&keys(&path), message, help);
        }
        let Some(classes) = port.classes() else { return };
        let path = self.path_of(name, "classes");
        let mut classes = classes.priority.iter();
        if name == "host" && model.host.backpressure && classes.any(|(_, class)| class.buffer.is_some()) {
            let message = "a host with `host.backpressure` waits for room in the whole queue, not in a class";
            self.error(&keys(&path), message, "no `buffer` by class, or `host.backpressure = false`");
        }
        if name == "host" && model.topology.kind() == "hybrid" {
            let message = "the queues of a host in a hybrid network are by destination";
            self.error(&keys(&path), message, "classes at switches only");
        }
    }

    /// Checks that HPCC's released header, where ports write it, has codes for the rates of their links. The topology
    /// is one that may be built.
    pub(super) fn telemetry(&mut self, model: &Model) {
        if !model.has_telemetry() {
            return;
        }
        let Ok(network) = model.topology.network() else { return };
        let tiers = model.topology.tiers().iter().map(|tier| (*tier, model.port.of_tier(tier)));
        for (name, port) in tiers.chain([("host", &model.port.host)]) {
            if let Some(int) = port.int() {
                self.rates_with_codes(name, int, &network);
            }
        }
    }

    fn rates_with_codes(&mut self, name: &str, int: &IntParams, network: &Network) {
        let of_port = |link: &&Link| match link.from {
            Node::Host(_) => name == "host",
            Node::Switch(_) => network.tiers().get(usize::from(link.tier)).is_some_and(|tier| *tier == name),
        };
        if let Some(link) = network.links().iter().filter(of_port).find(|link| !int.has_code_for(link.rate)) {
            let path = self.path_of(name, "int");
            let message = format!("HPCC's released header has no code for a link of {}", link.rate);
            let allowed = "links of 25, 50, 100, 200 or 400 Gb/s, or no `nic_rate`";
            self.error(&keys(&path), message, allowed);
        }
    }

    /// Warns of thresholds that the buffer never reaches: a full packet that is admitted finds a shorter queue.
    fn reach(&mut self, name: &str, port: &Port, model: &Model) {
        let packet = model.packet_bytes().max(1);
        let (room, key) = match (port.shared_buffer(), port.buffer) {
            _ if let Some(lossless) = port.lossless() => (lossless.memory.get(), "lossless"),
            // The most that one port alone gets of the shared buffer.
            (Some(SharedBufferParams { total, alpha, reserved }), _) => {
                let others = (model.topology.switch_ports(name) as u64).saturating_mul(reserved.get());
                let shared = total.get().saturating_sub(others) as f64;
                (reserved.get() + (shared * alpha / (1.0 + alpha)) as u64, "shared_buffer")
            }
            (None, QueueLimit::Bytes(bytes)) => (bytes.get(), "buffer"),
            (None, QueueLimit::Packets(packets)) => (packets.saturating_mul(packet), "buffer"),
            (None, QueueLimit::Unlimited) => return,
        };
        for (active, marking) in port.mechanisms().active().into_iter().filter_map(with_marking) {
            // What leaves a queue behind that it did not find may be marked by the last packet that fits.
            let last = if marking.at_dequeue { 0 } else { packet };
            let is_out = |threshold: &u64| threshold.saturating_add(last) > room && room > 0;
            let Some(threshold) =
                marking.thresholds.iter().map(|depth| in_bytes(*depth, packet)).find(is_out)
            else {
                continue;
            };
            let path = self.path_of(name, active.table.key);
            let does = if marking.marks { "marks no full packet" } else { "drops no full packet early" };
            let message = format!(
                "it {does}: `{key}` has room for {} at this port, and the threshold is {}",
                Bytes::new(room),
                Bytes::new(threshold)
            );
            self.warn(&keys(&path), message, format!("a lower threshold, or a larger `{key}`"));
            return;
        }
    }

    /// A queue into which nothing fits.
    fn buffer(&mut self, name: &str, port: &Port, model: &Model) {
        let packet = model.packet_bytes();
        let path = self.path_of(name, "buffer");
        let with_service = port.counts == BufferCounts::WaitingAndInService;
        match port.buffer {
            QueueLimit::Packets(0) if with_service => {
                self.error(
                    &keys(&path),
                    "no packet fits",
                    "at least 1 packet where the one in service counts",
                );
            }
            QueueLimit::Bytes(bytes) if bytes.get() < packet && with_service => {
                let message = format!("no full packet fits into {bytes}");
                self.error(&keys(&path), message, format!("at least segment and header, {packet}B"));
            }
            QueueLimit::Bytes(bytes) if bytes.get() < packet && bytes.get() > 0 => {
                let message = format!("no full packet ({packet} B) ever waits in {bytes}");
                self.warn(&keys(&path), message, "\"0 packets\" says so plainly");
            }
            _ => {}
        }
    }

    /// Express needs every departure to be known at admission.
    fn engine(&mut self, name: &str, port: &Port, model: &Model) {
        if port.engine != PortEngine::Express {
            return;
        }
        let reason = match () {
            () if port.order == QueueOrder::FairPerFlow => "order = \"fair-per-flow\"".to_owned(),
            () if port.order == QueueOrder::Priorities => "order = \"priorities\"".to_owned(),
            () if model.outside.disciplines.contains_key(name) => DISCIPLINE.to_owned(),
            () if name != "host" && model.outside.selector.is_some() => {
                "a path selector from outside".to_owned()
            }
            () if model.has_scheduled_faults() => "links that change during the run".to_owned(),
            () if name == "host" && model.host.backpressure => "host.backpressure".to_owned(),
            () => match model.general_engine_for(name) {
                Some(setting) => setting,
                None => return,
            },
        };
        let path = self.path_of(name, "engine");
        let message = format!("the express engine cannot do {reason}");
        self.error(&keys(&path), message, "\"auto\" or \"general\"");
    }

    /// Returns the path of the key that makes the first queue mark.
    pub(super) fn marker(&self, model: &Model) -> Option<[String; 3]> {
        let tiers = model.topology.tiers().iter().map(|tier| (*tier, model.port.of_tier(tier)));
        tiers.chain([("host", &model.port.host)]).find_map(|(name, port)| {
            let mechanisms = port.mechanisms().active().into_iter().filter_map(with_marking);
            let marks = mechanisms.filter(|(_, marking)| marking.marks).map(|(active, _)| active.table.key);
            let key = marks.min_by_key(|key| *key != "phantom_queue")?;
            Some(self.path_of(name, key))
        })
    }

    /// The path of a tier's key where it was written: in the tier's own table, or in `port.switch`.
    pub(super) fn path_of(&self, name: &str, key: &str) -> [String; 3] {
        let resolved = self.tree.at(&["port", name, key]);
        let shared = self.tree.at(&["port", "switch", key]);
        let inherited = match (resolved, shared) {
            (Some(resolved), Some(shared)) => resolved.origin == shared.origin,
            _ => false,
        };
        let name = if inherited && name != "host" { "switch" } else { name };
        ["port", name, key].map(str::to_owned)
    }
}

/// A mechanism with how it marks, if it does.
fn with_marking(active: Active) -> Option<(Active, Marking)> {
    let marking = active.marking.clone()?;
    Some((active, marking))
}

/// A depth in bytes, where packets have `packet` bytes.
pub(super) fn in_bytes(depth: Depth, packet: u64) -> u64 {
    match depth {
        Depth::Bytes(bytes) => bytes.get(),
        Depth::Packets(packets) => packets.saturating_mul(packet),
    }
}

pub(super) fn keys(path: &[String; 3]) -> [&str; 3] {
    [&path[0], &path[1], &path[2]]
}
