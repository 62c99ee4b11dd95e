//! Checks `transport` against the rest of a scenario.

use plimsoll_fabric::net::{Network, PortId};
use plimsoll_mechanisms::mptcp::{Coupling, SubflowPaths};
use plimsoll_mechanisms::tcp::{EcnMode, Kind, TransportParams};
use plimsoll_mechanisms::transports::roce::controller::TimelyParams;
use plimsoll_mechanisms::transports::uet::UetParams;
use plimsoll_mechanisms::transports::{Carrier, Family, Feature};
use plimsoll_traffic::record::Supply;
use plimsoll_units::Span;

use super::Checker;
use super::port::keys;
use crate::keys::TRANSPORTS;
use crate::model::{Completion, Model, QueueOrder};
use crate::ports::one_of_the_markers;

impl Checker<'_> {
    /// Checks the tables of all transports, and whether queues mark what can carry marks.
    pub(super) fn transport(&mut self, model: &Model) {
        for name in model.transport.workload.keys().chain(model.outside.workload_controllers.keys()) {
            self.known_workload(&["transport", "workload", name], name, model);
        }
        let marker = self.marker(model);
        let tables = model.transports.iter().map(|(name, params)| (vec![TRANSPORTS, name], params));
        for (section, params) in tables.chain([(vec!["transport"], &model.transport)]) {
            self.table(&section, params, marker.is_some());
            self.mptcp(&section, params, model);
            self.stamps(&section, params, model);
            self.turns(&section, params, model);
            self.homa(&section, params, model);
            self.trims(&section, params, model);
        }
        for (name, params) in &model.transports {
            if !params.workload.is_empty() {
                let message = "a workload names its transport, which has one controller";
                self.error(&[TRANSPORTS, name, "workload"], message, "only in `[transport]`");
            }
            if !model.carried_by.values().any(|used| used == name) {
                let message = format!("no workload names the transport `{name}`");
                self.warn(&[TRANSPORTS, name], message, format!("`workload.NAME.transport = \"{name}\"`"));
            }
        }
        if let (Some(marker), false) = (&marker, model.carriers().any(can_carry_marks)) {
            let path: Vec<&str> = marker.iter().map(String::as_str).collect();
            let message = "the queue marks, and no packet can carry a mark";
            self.warn(&path, message, "in transport, use `kind = \"dctcp\"` or `ecn = \"on\"`");
        }
        let needs_marks = model.carriers().any(|transport| transport.kind.describe().needs_marks);
        if model.host.pacer().is_some() && marker.is_none() && !needs_marks {
            let message = "no queue marks, so no flow is ever paced";
            self.warn(
                &["host", "pacer"],
                message,
                format!("turn on {} in port.switch", one_of_the_markers()),
            );
        }
    }

    /// Checks the parameters of the transport at `section`.
    fn table(&mut self, section: &[&str], params: &TransportParams, marking: bool) {
        self.params(section, params.validate());
        let delays_acks = params.ack_every > 1 && params.kinds().any(|kind| kind.describe().delays_acks);
        if delays_acks && params.ack_delay >= params.min_rto {
            let name = section.join(".");
            self.warn(
                &[section, &["ack_delay"]].concat(),
                format!(
                    "an ACK may wait {} while a sender waits only {} for it: timeouts without a loss",
                    params.ack_delay, params.min_rto
                ),
                format!("set {name}.ack_every = 1, or an ack_delay well below {name}.min_rto"),
            );
        }
        let excludes = |family: &'static Family| Some((family, family.excludes(Feature::RestartOnWrite)?));
        if let Some((family, reason)) = params.families().find_map(excludes)
            && params.restart_on_write
        {
            let path = [section, &["restart_on_write"]].concat();
            self.error(&path, reason, format!("false with {}", family.setting));
        }
        if params.kind.describe().needs_marks && !marking {
            let effect = match params.kind.describe().family.carrier {
                Carrier::Stack => "does what tcp does",
                Carrier::Roce => "never leaves the rate of its NIC",
                Carrier::Uet | Carrier::Ndp => "learns of no queue before it is full",
                Carrier::Homa => "does the same",
            };
            let message = format!("no queue marks, so {} {effect}", params.kind.name());
            let help = format!("turn on {} in port.switch", one_of_the_markers());
            self.warn(&[section, &["kind"]].concat(), message, help);
        }
    }

    /// Checks that ports write the telemetry that the transport at `section` steers by.
    fn stamps(&mut self, section: &[&str], params: &TransportParams, model: &Model) {
        let Some(kind) = params.kinds().find(|kind| kind.describe().needs_stamps) else { return };
        let tiers = model.topology.tiers();
        if !tiers.iter().any(|tier| model.port.of_tier(tier).int().is_some()) {
            let message = format!("{} steers by telemetry, and no switch writes it", kind.name());
            self.error(&[section, &["kind"]].concat(), message, "another kind, or `port.switch.int = {}`");
        }
        let int_of = |name: &str| model.port.of_tier(name).int();
        if let Some(exact) = params.kinds().find(|kind| *kind == Kind::Powertcp)
            && let Some(tier) =
                tiers.iter().find(|name| int_of(name).is_some_and(|int| int.nic_rate.is_some()))
        {
            let path = self.path_of(tier, "int");
            let message = format!("{} computes with exact stamps", exact.name());
            self.error(&keys(&path), message, "no `nic_rate`");
        }
        if let Some(other) = params.kinds().find(|kind| kind.describe().needs_stamps && *kind != Kind::Hpcc)
            && let Some(tier) = tiers.iter().find(|name| int_of(name).is_some_and(|int| int.digest.is_some()))
        {
            let path = self.path_of(tier, "int");
            let message = format!("{} computes with the stamps of all ports", other.name());
            self.error(&keys(&path), message, "no `digest`");
        }
        // A packet has one unit for all of its stamps, or one digest.
        let of_host = model.port.host.int().map(|int| ("host", int));
        let forms = tiers.iter().filter_map(|tier| Some((*tier, int_of(tier)?))).chain(of_host);
        let mut forms = forms.map(|(tier, int)| (tier, (int.nic_rate, int.digest))).peekable();
        if let Some((_, first)) = forms.peek().copied()
            && let Some((tier, _)) = forms.find(|(_, form)| *form != first)
        {
            let path = self.path_of(tier, "int");
            let message = "its stamps differ in their unit or form from those of other ports";
            self.error(&keys(&path), message, "one `nic_rate` and one `digest` for all ports, or none");
        }
    }

    /// Refuses flows without an end beside a limit of active queue pairs: with no turn, they would keep their places.
    fn turns(&mut self, section: &[&str], params: &TransportParams, model: &Model) {
        let nic = &params.roce.nic;
        if nic.active.is_none()
            || nic.turn.is_some()
            || !params.kinds().any(|kind| kind.describe().family.carrier == Carrier::Roce)
        {
            return;
        }
        let is_endless = |name: &str| {
            model.workload.get(name).is_some_and(|workload| workload.params().supply() == Supply::Endless)
        };
        let mut carried = model.workload.keys().filter(|name| std::ptr::eq(model.transport_of(name), params));
        if let Some(name) = carried.find(|name| is_endless(name)) {
            let message = format!("flows of `{name}` have no end, so the first ones would keep their places");
            let allowed = "with `roce.nic.turn`, or flows that have a `size`";
            self.error(&[section, &["roce", "nic", "active"]].concat(), message, allowed);
        }
    }

    /// Warns where Ultra Ethernet or NDP counts on headers of trimmed packets, and no switch trims.
    fn trims(&mut self, section: &[&str], params: &TransportParams, model: &Model) {
        let is_carried_by = |carrier| params.kinds().any(|kind| kind.describe().family.carrier == carrier);
        let help = if params.uet.trimming && is_carried_by(Carrier::Uet) {
            "use `port.switch.trim = {}`, or `uet = { trimming = false, overtaken_is_lost = true }`"
        } else if is_carried_by(Carrier::Ndp) {
            "use `port.switch.trim = {}`, or the preset `ndp`"
        } else {
            return;
        };
        let tiers = model.topology.tiers();
        if !tiers.iter().any(|tier| model.port.of_tier(tier).trim().is_some()) {
            let message = "no switch trims, so each loss waits for a timeout";
            self.warn(&[section, &["kind"]].concat(), message, help);
        }
    }

    /// Checks that switches serve the priorities that Homa gives its packets, and that what completes messages is sent.
    fn homa(&mut self, section: &[&str], params: &TransportParams, model: &Model) {
        if !params.kinds().any(|kind| kind == Kind::Homa) {
            return;
        }
        let completes = model.observe.completion == Completion::Acknowledged;
        if completes && !params.homa.repair {
            let path = [section, &["homa", "repair"]].concat();
            self.error(&path, "nothing is acknowledged, and messages complete when they are", "true");
        }
        if !params.homa.repair && (model.host.loss > 0.0 || !model.fault.is_empty()) {
            let path = [section, &["homa", "repair"]].concat();
            let message = "packets get lost here (`host.loss` or a fault), and their messages never end";
            self.warn(&path, message, "homa.repair = true");
        }
        let tiers = model.topology.tiers();
        let serves = |name: &&str| model.port.of_tier(name).order == QueueOrder::Priorities;
        if !tiers.iter().all(serves) {
            let message = "Homa gives its packets priorities, and not all switches serve them";
            self.warn(&[section, &["kind"]].concat(), message, "use `port.switch.order = \"priorities\"`");
        }
    }

    /// Warns of thresholds of TIMELY that the round trip of an idle path exceeds, and of credit of Ultra Ethernet that
    /// is too little for the longest path. The topology is one that may be built.
    pub(super) fn round_trips(&mut self, model: &Model) {
        let tables = model.transports.iter().map(|(name, params)| (vec![TRANSPORTS, name], params));
        for (section, params) in tables.chain([(vec!["transport"], &model.transport)]) {
            let has = |kinds: &[Kind]| params.kinds().any(|kind| kinds.contains(&kind));
            if has(&[Kind::Uet, Kind::UetRccc]) {
                self.credit(&section, params, model);
            }
            if !has(&[Kind::Timely]) {
                continue;
            }
            let Ok(network) = model.topology.network() else { return };
            let (longest, TimelyParams { low, high, .. }) =
                (longest_round_trip(&network, params), &params.roce.timely);
            for (key, threshold, effect) in [
                ("low", *low, "no round-trip time is below it, and a short queue does not raise the rate"),
                ("high", *high, "every update cuts the rate, down to `min_rate`"),
            ] {
                if threshold <= longest {
                    let message = format!("the longest idle path takes {longest} both ways, so {effect}");
                    let help = format!("more than {longest}");
                    self.warn(&[&section[..], &["roce", "timely", key]].concat(), message, help);
                }
            }
        }
    }

    /// Warns if a sender of the transport at `section` cannot ask for the credit of its window.
    fn credit(&mut self, section: &[&str], params: &TransportParams, model: &Model) {
        let Ok(network) = model.topology.network() else { return };
        let size = (params.segment + params.header).get() as u16;
        let longest = || network.longest_round_trip(size, params.uet.control_size.get() as u16);
        let round_trip = params.uet.base_rtt.unwrap_or_else(longest);
        let rates = (0..network.hosts()).map(|host| network.link(PortId(host)).rate);
        let bits = rates.max().map_or(0.0, |rate| rate.as_bps() as f64) * round_trip.as_secs_f64();
        let quantum = params.uet.rccc.quantum.get() as f64;
        let window = params.uet.max_window.map_or(1.5 * bits / 8.0, |window| window.get() as f64);
        let most = UetParams::QUANTA_AHEAD as f64;
        if window > most * quantum {
            let message =
                format!("a sender asks for at most {most} quanta ahead, and its window is {window:.0} B");
            let help = format!("{} B or more", (window / most).ceil());
            self.warn(&[section, &["uet", "rccc", "quantum"]].concat(), message, help);
        }
    }

    /// Checks the table `mptcp` of the transport at `section` against controllers and topology.
    fn mptcp(&mut self, section: &[&str], params: &TransportParams, model: &Model) {
        let Some(mptcp) = &params.mptcp else { return };
        let path = |key| [section, &["mptcp", key]].concat();
        for name in mptcp.workloads.iter().flatten() {
            self.known_workload(&path("workloads"), name, model);
        }
        let is_linked = |name: &&String| {
            let is_of_section = std::ptr::eq(model.transport_of(name), params);
            is_of_section && mptcp.coupling == Coupling::Lia && mptcp.is_for(name)
        };
        for name in model.workload.keys().filter(is_linked) {
            let (kind, outside) = model.controller_of(name);
            if outside.is_some() || kind != Kind::Tcp {
                let kind = outside.map_or(kind.name(), |own| own.name.as_str());
                let message = format!("`lia` takes the place of `tcp`, and workload `{name}` has `{kind}`");
                self.error(&path("coupling"), message, "\"uncoupled\" with other congestion controllers");
                break;
            }
        }
        if mptcp.paths == SubflowPaths::Classes && model.topology.kind() != "hybrid" {
            let message = "there are no circuits in this network, so subflows differ as with `hash`";
            self.warn(&path("paths"), message, "use `topology.kind = \"hybrid\"`, or `paths = \"distinct\"`");
        }
    }

    /// Checks that no family meets a feature that it excludes.
    pub(super) fn excluded(&mut self, model: &Model) {
        let mut refuse = |is_on: bool, feature: Feature, path: &[&str], allowed: &str| {
            if let Some((family, reason)) = model.excludes(feature).filter(|_| is_on) {
                self.error(path, reason, format!("{allowed} with {}", family.setting));
            }
        };
        let segments = model.host.bursts().is_some_and(|bursts| bursts.segmentation.get() > 0);
        refuse(segments, Feature::Segmentation, &["host", "bursts", "segmentation"], "\"0B\"");
        for holding in model.host.mechanisms().active().iter().filter(|active| active.table.holds_packets) {
            refuse(true, Feature::HeldPackets, &["host", holding.table.key], "\"off\"");
        }
        let is_hybrid = model.topology.kind() == "hybrid";
        refuse(is_hybrid, Feature::Circuits, &["topology", "kind"], "another topology");
        let tiers = model.topology.tiers().iter().map(|tier| (*tier, model.port.of_tier(tier)));
        let ranks = tiers.chain([("host", &model.port.host)]).find(|(_, port)| port.pfabric().is_some());
        let name = ranks.map_or("host", |(name, _)| name);
        refuse(ranks.is_some(), Feature::Rank, &["port", name, "pfabric"], "\"off\"");
    }
}

/// Returns the longest time that a full packet of `transport` and its acknowledgement take on an idle network.
fn longest_round_trip(network: &Network, transport: &TransportParams) -> Span {
    let size = (transport.segment + transport.header).get() as u16;
    network.longest_round_trip(size, transport.roce.ack_size.get() as u16)
}

/// Returns whether packets of some connection can carry marks.
fn can_carry_marks(transport: &TransportParams) -> bool {
    match transport.ecn {
        EcnMode::On => true,
        EcnMode::Off => false,
        EcnMode::Auto => transport.kinds().any(|kind| kind.describe().needs_marks),
    }
}
