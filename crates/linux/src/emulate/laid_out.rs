//! [`LaidOut`]: the plan of a model on this kernel, before anything is made.

use std::sync::Arc;

use plimsoll_circuits::ControlParams;
use plimsoll_fabric::Unbuildable;
use plimsoll_mechanisms::tcp::{Recovery, TcpConfig};
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;
use plimsoll_traffic::Source;
use plimsoll_units::{Span, Time};

use super::observed::listed;
use super::{EmulateError, Options};
use crate::agents::agent::{AgentPlan, AgentSettings, Shares};
use crate::clock::Clock;
use crate::edge::live::LiveFabric;
use crate::net::congestion::KernelCongestionControl;
use crate::net::multipath;
use crate::net::namespaces::HostSettings;
use crate::read_outs::control;

/// The time for connections to be opened before workloads begin.
const LEAD: Span = Span::from_ms(500);
const LEAD_PER_CONNECTION: Span = Span::from_ms(1);

/// TCP's header and IPv4's, without options; and with the timestamps option.
const PLAIN_HEADER: u64 = 40;
const TIMESTAMPS_HEADER: u64 = 52;
const ETHERNET_HEADER: u64 = 14;
/// Smallest and largest MTU that hosts get (RFC 791; a frame is read whole).
const MTU: std::ops::RangeInclusive<u64> = 576..=65_500;

/// A model prepared for this kernel, before anything is created.
pub(super) struct LaidOut {
    pub(super) plan: Arc<AgentPlan>,
    pub(super) transport: TcpConfig,
    pub(super) congestion: KernelCongestionControl,
    /// The control loop of a hybrid network's circuits.
    pub(super) control: Option<ControlParams>,
    /// The time between the start of the fabric's clock and the workloads.
    pub(super) lead: Span,
    /// The model on the fabric's clock.
    pub(super) shifted: Model,
    /// The size of IP's and TCP's headers in bytes.
    header: u64,
    /// The most bytes of an IP packet.
    pub(super) mtu: u32,
}

impl LaidOut {
    /// Prepares `model`, and returns it with the sources of its traffic.
    pub(super) fn of(
        model: &Model,
        options: &Options,
    ) -> Result<(LaidOut, Vec<Box<dyn Source>>), EmulateError> {
        let (plan, sources) = AgentPlan::new(model)?;
        let transport = resolved(model)?;
        let congestion = KernelCongestionControl::find(&transport, options.congestion_control.as_deref())?;
        let lead = LEAD + LEAD_PER_CONNECTION * plan.kept_connections as u64;
        let control = control::control(model);
        // Workloads begin with a week, as in a simulation.
        let lead = control.as_ref().map_or(lead, |control| whole(lead, control.week));
        let has_timestamps = u64::from(transport.header_bytes) >= TIMESTAMPS_HEADER;
        let header = if has_timestamps { TIMESTAMPS_HEADER } else { PLAIN_HEADER };
        let mtu = (transport.segment + header).clamp(*MTU.start(), *MTU.end()) as u32;
        let shifted = shifted(model, lead);
        let plan = Arc::new(plan);
        Ok((LaidOut { plan, transport, congestion, control, lead, shifted, header, mtu }, sources))
    }

    /// Returns the warning of packets that are longer or shorter than the scenario's, since an MTU has its range.
    pub(super) fn mtu_warning(&self) -> Option<String> {
        let asked = self.transport.segment + self.header;
        (u64::from(self.mtu) != asked).then(|| {
            format!(
                "`transport.segment`: packets of {asked} B were asked for, and the hosts' MTU is {} B (allowed: {} to \
                 {} B with headers)",
                self.mtu,
                MTU.start(),
                MTU.end()
            )
        })
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
    pub(super) fn fabric(&self, options: &Options) -> Result<LiveFabric, Unbuildable> {
        let mut fabric = LiveFabric::new(&self.shifted)?;
        if options.mptcp.is_some_and(|subflows| subflows > 1) {
            fabric.bind_subflows();
        }
        Ok(fabric)
    }

    /// Returns whether connections have two subflows, one of which is active at a time.
    pub(super) fn keeps_one_active(&self, model: &Model, options: &Options) -> bool {
        options.mptcp == Some(2) && self.control.is_some() && multipath::keeps_one_active(model)
    }

    pub(super) fn host_settings(&self, model: &Model, options: &Options) -> HostSettings {
        let LaidOut { transport, congestion, .. } = self;
        let socket_buffer = self.read_by().map(|control| control.socket_buffer.get());
        HostSettings {
            mtu: self.mtu,
            ecn: transport.ecn || congestion.needs_ecn(),
            congestion_control: congestion.name().to_owned(),
            timestamps: self.header == TIMESTAMPS_HEADER,
            min_rto_ms: (model.transport.min_rto.as_ms_f64() as u64).max(1),
            selective_acks: transport.params.recovery == Recovery::Sack,
            reordering: transport.dup_ack_threshold,
            initial_window: model.transport.initial_window,
            single_segments: model.host.qjump().is_some(),
            // MPTCP hands a slow subflow at once as much data as its buffer holds, and waits for that to arrive.
            send_buffer: socket_buffer.filter(|_| options.mptcp.is_none()),
            // And a small window is soon full of data that has overtaken the slow subflow.
            receive_buffer: socket_buffer.map(|bytes| 2 * bytes),
            own_tables: self.control.is_some(),
            subflows: options.mptcp,
            one_active: self.keeps_one_active(model, options),
        }
    }

    pub(super) fn agent_settings(
        &self,
        model: &Model,
        options: &Options,
        clock: Clock,
    ) -> Result<AgentSettings, EmulateError> {
        let shares = match options.mptcp {
            // Its sockets are not paced.
            Some(_) => Shares::default(),
            None => Shares::new(model, self.transport.segment, ETHERNET_HEADER + self.header)?,
        };
        Ok(AgentSettings {
            congestion_control: self.congestion.name().to_owned(),
            multipath: options.mptcp.is_some(),
            origin: self.lead,
            clock,
            shares: Arc::new(shares),
        })
    }

    /// Returns the outcome as far as the fabric has observed it until `end`.
    pub(super) fn outcome(&self, model: &Model, fabric: &mut LiveFabric, end: Time) -> Outcome {
        let (circuits, circuit_weeks) = fabric.take_circuits(self.lead, end);
        Outcome {
            workloads: self.plan.workloads.clone(),
            tiers: fabric.network().tiers().iter().map(|&tier| tier.to_owned()).collect(),
            end: Time::ZERO + end.saturating_since(Time::ZERO + self.lead),
            warmup: model.run.warmup,
            queues: fabric.take_queues(self.lead, end),
            circuits,
            circuit_weeks,
            counters: fabric.counters(),
            faults: model.fault.iter().map(listed).collect(),
            ..Outcome::default()
        }
    }
}

/// Returns the first multiple of `week` that is at least `lead`.
fn whole(lead: Span, week: Span) -> Span {
    week * lead.as_ps().div_ceil(week.as_ps().max(1))
}

/// Resolves the transport's parameters.
pub(super) fn resolved(model: &Model) -> Result<TcpConfig, Unbuildable> {
    model.transport.resolve().map_err(|invalid| Unbuildable {
        key: format!("transport.{}", invalid.key),
        problem: invalid.to_string(),
    })
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
