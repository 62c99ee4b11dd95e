//! [`LaidOut`]: the plan of a model on this kernel, before anything is made.

use std::sync::Arc;

use plimsoll_circuits::ControlParams;
use plimsoll_fabric::Unbuildable;
use plimsoll_mechanisms::tcp::Recovery;
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;
use plimsoll_traffic::Source;
use plimsoll_units::{Span, Time};

use super::observed::listed;
use super::options::{EmulateError, Options};
use super::transports::KernelTransports;
use crate::agents::agent::{AgentPlan, AgentSettings, Shares};
use crate::clock::Clock;
use crate::edge::live::LiveFabric;
use crate::net::multipath;
use crate::net::namespaces::HostSettings;
use crate::read_outs::control;

/// The time for connections to be opened before workloads begin.
const LEAD: Span = Span::from_ms(500);
const LEAD_PER_CONNECTION: Span = Span::from_ms(1);

/// The size of Ethernet's header in bytes.
const ETHERNET_HEADER: u64 = 14;
/// A model prepared for this kernel, before anything is created.
pub(super) struct LaidOut {
    pub(super) plan: Arc<AgentPlan>,
    pub(super) transports: KernelTransports,
    /// The control loop of a hybrid network's circuits.
    pub(super) control: Option<ControlParams>,
    /// The time between the start of the fabric's clock and the workloads.
    pub(super) lead: Span,
    /// The model on the fabric's clock.
    pub(super) shifted: Model,
}

impl LaidOut {
    /// Prepares `model`, and returns it with the sources of its traffic.
    pub(super) fn of(
        model: &Model,
        options: &Options,
    ) -> Result<(LaidOut, Vec<Box<dyn Source>>), EmulateError> {
        let (plan, sources) = AgentPlan::new(model)?;
        let transports = KernelTransports::new(model, options)?;
        let lead = LEAD + LEAD_PER_CONNECTION * plan.kept_connections as u64;
        let control = control::control(model);
        // Workloads begin with a week, as in a simulation.
        let lead = control.as_ref().map_or(lead, |control| whole(lead, control.week));
        let shifted = shifted(model, lead);
        let plan = Arc::new(plan);
        Ok((LaidOut { plan, transports, control, lead, shifted }, sources))
    }

    /// Returns the connections that are MPTCP's, as a warning names them.
    pub(super) fn multipath_connections(&self) -> String {
        let all = self.plan.workloads.iter().zip(&self.transports.of_workloads);
        let (multipath, plain): (Vec<_>, Vec<_>) = all.partition(|(_, transport)| transport.multipath);
        let names: Vec<String> = multipath.iter().map(|(info, _)| format!("`{}`", info.name)).collect();
        match plain.is_empty() {
            true => "the agent's connections".to_owned(),
            false => format!("the connections of {}", names.join(", ")),
        }
    }

    /// Returns the control loop of circuits that reads hosts' sockets.
    pub(super) fn read_by(&self) -> Option<&ControlParams> {
        self.control.as_ref().filter(|control| control::reads_sockets(control))
    }

    /// Returns whether the controller of circuits takes account of announced data.
    pub(super) fn takes_hints(&self) -> bool {
        self.control.as_ref().is_some_and(|control| control.hints_within(Time::ZERO).is_some())
    }

    /// Returns the fabric of the run, or of its replay.
    pub(super) fn fabric(&self) -> Result<LiveFabric, Unbuildable> {
        let mut fabric = LiveFabric::new(&self.shifted)?;
        if self.transports.subflows.is_some_and(|subflows| subflows > 1) {
            fabric.bind_subflows();
        }
        Ok(fabric)
    }

    /// Returns whether connections have two subflows, one of which is active at a time.
    pub(super) fn keeps_one_active(&self) -> bool {
        let transports = &self.transports;
        let mut all = transports.of_workloads.iter().map(|transport| &transport.config.params);
        transports.subflows == Some(2) && self.control.is_some() && all.any(multipath::keeps_one_active)
    }

    pub(super) fn host_settings(&self, model: &Model) -> HostSettings {
        let transports = &self.transports;
        let params = &transports.of_host.config.params;
        let socket_buffer = self.read_by().map(|control| control.socket_buffer.get());
        HostSettings {
            mtu: transports.mtu(),
            route: transports.route(),
            ports: transports.ports(),
            ecn: transports.have_ecn(),
            timestamps: params.has_timestamps(),
            selective_acks: params.recovery == Recovery::Sack,
            reordering: transports.of_host.config.dup_ack_threshold,
            single_segments: model.host.qjump().is_some(),
            // MPTCP hands a slow subflow at once as much data as its buffer holds, and waits for that to arrive.
            send_buffer: socket_buffer.filter(|_| transports.subflows.is_none()),
            // And a small window is soon full of data that has overtaken the slow subflow.
            receive_buffer: socket_buffer.map(|bytes| 2 * bytes),
            own_tables: self.control.is_some(),
            subflows: transports.subflows,
            one_active: self.keeps_one_active(),
        }
    }

    pub(super) fn agent_settings(&self, model: &Model, clock: Clock) -> Result<AgentSettings, EmulateError> {
        let shares = Shares::new(model, ETHERNET_HEADER + self.transports.of_host.header())?;
        Ok(AgentSettings { origin: self.lead, clock, shares: Arc::new(shares) })
    }

    /// Returns the outcome as far as the fabric has observed it until `end`.
    pub(super) fn outcome(&self, model: &Model, fabric: &mut LiveFabric, end: Time) -> Outcome {
        let (circuits, circuit_weeks) = fabric.take_circuits(self.lead, end);
        Outcome {
            workloads: self.plan.workloads.clone(),
            tiers: fabric.network().wait_places().iter().map(|&tier| tier.to_owned()).collect(),
            end: Time::ZERO + end.saturating_since(Time::ZERO + self.lead),
            warmup: model.run.warmup,
            queues: fabric.take_queues(self.lead, end),
            circuits,
            circuit_weeks,
            counters: fabric.counters(),
            mechanisms: fabric.mechanism_uses(),
            faults: model.fault.iter().map(listed).collect(),
            ..Outcome::default()
        }
    }
}

/// Returns the first multiple of `week` that is at least `lead`.
fn whole(lead: Span, week: Span) -> Span {
    week * lead.as_ps().div_ceil(week.as_ps().max(1))
}

/// Returns the model on the fabric's clock, which starts `lead` before the workloads.
fn shifted(model: &Model, lead: Span) -> Model {
    let mut model = model.clone();
    model.run.warmup += lead;
    model.run.duration = model.run.duration.map(|duration| duration + lead);
    for fault in model.fault.iter_mut().filter(|fault| fault.is_scheduled()) {
        fault.at += lead;
        fault.until = fault.until.map(|until| until + lead);
    }
    model
}
