//! [`LaidOut`]: what a model comes to on this kernel, before anything is made.

use std::sync::Arc;

use plimsoll_fabric::Unbuildable;
use plimsoll_mechanisms::tcp::{Config, Recovery};
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;
use plimsoll_traffic::Source;
use plimsoll_units::{Span, Time};

use super::observed::listed;
use super::{EmulateError, Options};
use crate::agent::{AgentPlan, Settings, Shares};
use crate::clock::Clock;
use crate::congestion::CongestionControl;
use crate::live::LiveFabric;
use crate::namespaces::HostSettings;

/// Time for connections to be opened before workloads begin.
const LEAD: Span = Span::from_ms(500);
const LEAD_PER_CONNECTION: Span = Span::from_ms(1);

/// TCP's header and IPv4's, without options; and with the timestamps option.
const PLAIN_HEADER: u64 = 40;
const TIMESTAMPS_HEADER: u64 = 52;
const ETHERNET_HEADER: u64 = 14;
/// Smallest and largest MTU that hosts get (RFC 791; a frame is read whole).
const MTU: std::ops::RangeInclusive<u64> = 576..=65_500;

/// What a model comes to on this kernel, before anything is made.
pub(super) struct LaidOut {
    pub(super) plan: Arc<AgentPlan>,
    pub(super) transport: Config,
    pub(super) congestion: CongestionControl,
    /// How long before the workloads the fabric's clock starts.
    pub(super) lead: Span,
    /// The model on the fabric's clock.
    pub(super) shifted: Model,
    /// Bytes of IP's and TCP's headers.
    header: u64,
    /// Bytes of an IP packet at most.
    pub(super) mtu: u32,
}

impl LaidOut {
    /// With the sources of its traffic.
    pub(super) fn of(
        model: &Model,
        options: &Options,
    ) -> Result<(LaidOut, Vec<Box<dyn Source>>), EmulateError> {
        let (plan, sources) = AgentPlan::new(model)?;
        let transport = resolved(model)?;
        let congestion = CongestionControl::find(&transport, options.congestion_control.as_deref())?;
        let lead = LEAD + LEAD_PER_CONNECTION * plan.kept_connections as u64;
        let has_timestamps = u64::from(transport.header_bytes) >= TIMESTAMPS_HEADER;
        let header = if has_timestamps { TIMESTAMPS_HEADER } else { PLAIN_HEADER };
        let mtu = (transport.segment + header).clamp(*MTU.start(), *MTU.end()) as u32;
        let shifted = shifted(model, lead);
        Ok((LaidOut { plan: Arc::new(plan), transport, congestion, lead, shifted, header, mtu }, sources))
    }

    pub(super) fn host_settings(&self, model: &Model, options: &Options) -> HostSettings {
        let LaidOut { transport, congestion, .. } = self;
        HostSettings {
            mtu: self.mtu,
            ecn: transport.ecn || congestion.needs_ecn(),
            congestion_control: congestion.name().to_owned(),
            timestamps: self.header == TIMESTAMPS_HEADER,
            min_rto_ms: (model.transport.min_rto.as_ms_f64() as u64).max(1),
            selective_acks: transport.recovery == Recovery::Sack,
            reordering: transport.dup_ack_threshold,
            initial_window: model.transport.initial_window,
            single_segments: model.host.qjump().is_some(),
            subflows: options.mptcp,
        }
    }

    pub(super) fn agent_settings(
        &self,
        model: &Model,
        options: &Options,
        clock: Clock,
    ) -> Result<Settings, EmulateError> {
        let shares = match options.mptcp {
            // Its sockets have no pace of their own.
            Some(_) => Shares::default(),
            None => Shares::new(model, self.transport.segment, ETHERNET_HEADER + self.header)?,
        };
        Ok(Settings {
            congestion_control: self.congestion.name().to_owned(),
            multipath: options.mptcp.is_some(),
            origin: self.lead,
            clock,
            shares: Arc::new(shares),
        })
    }

    /// What the fabric has seen until `end`.
    pub(super) fn outcome(&self, model: &Model, fabric: &mut LiveFabric, end: Time) -> Outcome {
        Outcome {
            workloads: self.plan.workloads.clone(),
            tiers: fabric.network().tiers().iter().map(|&tier| tier.to_owned()).collect(),
            end: Time::ZERO + end.saturating_since(Time::ZERO + self.lead),
            warmup: model.run.warmup,
            queues: fabric.take_queues(self.lead, end),
            counters: fabric.counters(),
            faults: model.fault.iter().map(listed).collect(),
            ..Outcome::default()
        }
    }
}

/// The transport's parameters.
pub(super) fn resolved(model: &Model) -> Result<Config, Unbuildable> {
    model.transport.resolve().map_err(|invalid| Unbuildable {
        key: format!("transport.{}", invalid.key),
        problem: invalid.to_string(),
    })
}

/// The model on the fabric's clock, which starts `lead` before the workloads.
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
