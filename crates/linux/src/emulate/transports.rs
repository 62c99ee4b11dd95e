//! [`KernelTransports`]: the transports of a run, resolved for this kernel.
//!
//! A socket has its own congestion control. The other keys apply to its route, which policy routing chooses by the
//! workload's port ([`RouteSettings`]). Keys that Linux has for a whole host must be equal in all transports, as their
//! families say (`host_wide`).

use std::rc::Rc;

use plimsoll_fabric::Unbuildable;
use plimsoll_mechanisms::tcp::{Recovery, TcpConfig, TransportParams};
use plimsoll_scenario::model::Model;

use super::options::{EmulateError, Options};
use crate::agents::agent::DRIVER_PORT;
use crate::features;
use crate::net::congestion::KernelCongestionControl;
use crate::net::multipath;
use crate::net::namespaces::RouteSettings;
use crate::net::transports::KernelTransport;
use crate::read_outs::control;

/// The transports of all workloads.
#[derive(Debug)]
pub(super) struct KernelTransports {
    /// The transport of programs: `transport` where there are any, else the first workload's.
    pub(super) of_host: KernelTransport,
    /// The workloads' transports, by number.
    pub(super) of_workloads: Vec<KernelTransport>,
    /// The most subflows of a connection, where some are of MPTCP.
    pub(super) subflows: Option<u8>,
    controls: Vec<Rc<KernelCongestionControl>>,
}

impl KernelTransports {
    /// Resolves the transports of `model` for this kernel.
    ///
    /// # Errors
    /// Names the first key that is not emulated, or that two transports of a host cannot have different.
    pub(super) fn new(model: &Model, options: &Options) -> Result<KernelTransports, EmulateError> {
        let has_programs = !options.programs.is_empty() || options.shell.is_some();
        let base = (has_programs || model.workload.is_empty()).then_some(None);
        let users: Vec<Option<&str>> =
            base.into_iter().chain(model.workload.keys().map(|name| Some(name.as_str()))).collect();
        let mut found: Vec<((String, u64, u32), Rc<KernelCongestionControl>)> = Vec::new();
        let mut all: Vec<(String, KernelTransport)> = Vec::new();
        for workload in users {
            let (section, config) = resolved(model, workload)?;
            check(&section, &config)?;
            conflicts(&section, &config.params, &all)?;
            let multipath = options.mptcp.is_some() || is_multipath(&config.params, workload);
            if multipath && options.mptcp.is_none() {
                multipath::check_scenario(model, &section, &config.params)?;
            }
            let key = (config.params.kind.name().to_owned(), config.dctcp_gain, config.initial_alpha);
            let control = match found.iter().find(|(known, _)| *known == key) {
                Some((_, control)) => Rc::clone(control),
                None => {
                    let place = kind_key(model, workload, &section);
                    let asked = options.congestion_control.as_deref();
                    let control = Rc::new(KernelCongestionControl::find(&config, asked, &place)?);
                    found.push((key, Rc::clone(&control)));
                    control
                }
            };
            let transport = KernelTransport {
                ecn: config.ecn || control.needs_ecn(),
                needs_ecn: control.needs_ecn(),
                congestion_control: control.name().to_owned(),
                multipath,
                config,
            };
            all.push((section, transport));
        }
        check_mixture(model, &all)?;
        let of_scenario = all.iter().map(|(_, transport)| transport).filter(|transport| transport.multipath);
        let of_scenario = of_scenario.filter_map(|transport| transport.config.params.mptcp.as_ref());
        let of_scenario = of_scenario.map(|mptcp| mptcp.subflows.min(u32::from(u8::MAX)) as u8).max();
        let subflows = options.mptcp.or(of_scenario);
        let mut all: Vec<KernelTransport> = all.into_iter().map(|(_, transport)| transport).collect();
        let of_host = if base.is_some() { all.remove(0) } else { all[0].clone() };
        let transports = KernelTransports {
            of_host,
            of_workloads: all,
            subflows,
            controls: found.into_iter().map(|(_, control)| control).collect(),
        };
        if !transports.ports().is_empty() && !features::has_policy_routing() {
            let problem = "transports that differ need routes by port, and this kernel has no policy routing \
                           (CONFIG_IP_MULTIPLE_TABLES)";
            return Err(Unbuildable::new("transports", problem).into());
        }
        Ok(transports)
    }

    /// Returns the MTU of the hosts' devices.
    pub(super) fn mtu(&self) -> u32 {
        self.of_workloads.iter().map(KernelTransport::mtu).fold(self.of_host.mtu(), u32::max)
    }

    /// Returns whether every connection of a host negotiates ECN.
    pub(super) fn have_ecn(&self) -> bool {
        self.of_host.ecn && self.of_workloads.iter().all(|transport| transport.ecn)
    }

    /// Returns the settings of the route of programs.
    pub(super) fn route(&self) -> RouteSettings {
        self.of_host.route(self.have_ecn())
    }

    /// Returns the workloads' ports whose connections have a route with other settings, with these.
    pub(super) fn ports(&self) -> Vec<(u16, RouteSettings)> {
        let of_host = self.route();
        let routes = self.of_workloads.iter().map(|transport| transport.route(self.have_ecn()));
        let ports = (0..).map(|number: u16| DRIVER_PORT + number).zip(routes);
        ports.filter(|(_, route)| *route != of_host).collect()
    }

    /// Returns the windows that the congestion controls' guards had to put back: a run with any is suspect.
    pub(super) fn guarded(&self) -> u64 {
        self.controls.iter().map(|control| control.guarded()).sum()
    }

    /// Returns the warnings of packets that are longer or shorter than the scenario's.
    pub(super) fn mtu_warnings(&self) -> impl Iterator<Item = String> {
        let mut warnings: Vec<String> =
            self.of_workloads.iter().filter_map(KernelTransport::mtu_warning).collect();
        warnings.dedup();
        warnings.into_iter()
    }
}

/// Returns the parameters of a workload's transport, or of `transport`, and the name of their table.
fn resolved(model: &Model, workload: Option<&str>) -> Result<(String, TcpConfig), Unbuildable> {
    let Some(workload) = workload else {
        let resolved = model.transport.resolve();
        let mut config =
            resolved.map_err(|invalid| Unbuildable::new(format!("transport.{}", invalid.key), invalid))?;
        config.custom = model.outside.controller.as_ref().map(|outside| outside.factory.clone());
        return Ok(("transport".to_owned(), config));
    };
    Ok((model.transport_section(workload), model.transport_config(workload)?))
}

/// Returns the key that names the congestion controller of a workload, whose transport is in the table `section`.
fn kind_key(model: &Model, workload: Option<&str>, section: &str) -> String {
    let own = workload.filter(|name| section == "transport" && model.transport.workload.contains_key(*name));
    own.map_or_else(|| format!("{section}.kind"), |name| format!("{section}.workload.{name}"))
}

fn is_multipath(params: &TransportParams, workload: Option<&str>) -> bool {
    params.mptcp.as_ref().zip(workload).is_some_and(|(mptcp, name)| mptcp.is_for(name))
}

/// Checks that this kernel can do as the table `section` says.
fn check(section: &str, config: &TcpConfig) -> Result<(), Unbuildable> {
    let refuse = |key: &str, problem: &str| Err(Unbuildable::new(format!("{section}.{key}"), problem));
    let params = &config.params;
    if config.custom.is_some() {
        return refuse("kind", "a congestion controller from outside is not emulated");
    }
    if config.carrier().is_nic() {
        let problem = format!(
            "`{}` is a transport of NICs, which the kernel's sockets do not speak: `plimsoll run` simulates it",
            params.kind.name()
        );
        return refuse("kind", &problem);
    }
    if params.pacing_rate.is_some() {
        return refuse("pacing_rate", "a pacing rate of all connections is not emulated");
    }
    if params.recovery == Recovery::Sack
        && params.dup_ack_threshold != TransportParams::default().dup_ack_threshold
    {
        let problem = "with selective acknowledgements Linux finds losses by time (RACK), not by so many duplicate \
                       acknowledgements; `recovery = \"newreno\"` has it count them";
        return refuse("dup_ack_threshold", problem);
    }
    Ok(())
}

/// Checks that a host can have the transport `params` of the table `section` beside those in `all`.
fn conflicts(
    section: &str,
    params: &TransportParams,
    all: &[(String, KernelTransport)],
) -> Result<(), Unbuildable> {
    for (other, transport) in all.iter().filter(|(other, _)| other != section) {
        for key in params.families().flat_map(|family| family.host_wide) {
            let values = [params, &transport.config.params].map(|params| params.host_value(key.key));
            if let [Some(own), Some(other_value)] = values
                && own != other_value
            {
                let problem = format!("it differs from that of `{other}`. {}", key.reason);
                return Err(Unbuildable::new(format!("{section}.{}", key.key), problem));
            }
        }
    }
    Ok(())
}

/// Checks that the connections of a hybrid network are all of MPTCP, or none: subflows are bound to switches by their
/// addresses.
fn check_mixture(model: &Model, all: &[(String, KernelTransport)]) -> Result<(), Unbuildable> {
    if control::control(model).is_none() {
        return Ok(());
    }
    let of_workloads = &all[all.len() - model.workload.len()..];
    let both = of_workloads.iter().zip(model.workload.values());
    let both = both.filter(|(_, workload)| workload.params().uses_transport()).map(|(of, _)| of);
    let is_multipath = |of: &&(String, KernelTransport)| of.1.multipath;
    let (multipath, plain): (Vec<_>, Vec<_>) = both.partition(is_multipath);
    let (Some((section, _)), false) = (multipath.first(), plain.is_empty()) else { return Ok(()) };
    let problem = "beside MPTCP all connections of TCP would travel by the packet switch, since addresses bind \
                   subflows to switches: in a hybrid network all workloads have MPTCP, or none";
    Err(Unbuildable::new(format!("{section}.mptcp"), problem))
}
