//! [`Policy`] is an operator's configuration of a host, read from TOML and checked.
//!
//! Names that reach the kernel, a path or a program's arguments are parsed into types that hold only valid ones:
//! [`DeviceName`], [`CgroupPath`], [`UnitName`], [`Prefix`], [`PolicyName`].
//!
//! A key has the same name as in a scenario (`association_timeout`). The spelling with hyphens, which policies had
//! before, is still read.

use std::fmt;
use std::path::Path;

use plimsoll_files::Origin;
use plimsoll_mechanisms::pacer::{EarliestDepartureConstants, PacerParams};
use plimsoll_mechanisms::phantom_queue::PhantomQueueParams;
use plimsoll_mechanisms::qjump::{Excess, LevelShare, Levels, QjumpParams, Refill};
use plimsoll_mechanisms::{InvalidParam, Mechanism};
use plimsoll_units::{Bytes, Rate, Span};
use serde::{Deserialize, Serialize};

use crate::names::{CgroupPath, DeviceName, MacAddress, PolicyName, Prefix, UnitName, nearest};

/// The mechanisms to install on a host. `docs/host.md` explains each key with examples.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The version of this format, which is 1.
    pub version: u32,
    /// The policy's name, which also names its state and its pins: 1 to 40 lower-case letters, digits, `-` and `_`.
    /// Defaults to the file's name without `.toml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<PolicyName>,
    /// QJump: its levels, their budgets, and their members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qjump: Option<QjumpPolicy>,
    /// Phantom queues beside ports, at most one a device and direction.
    #[serde(default, alias = "phantom-queue", skip_serializing_if = "Vec::is_empty")]
    pub phantom_queue: Vec<PhantomQueuePolicy>,
    /// DCTCP for chosen destinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dctcp: Option<Dctcp>,
    /// HULL's pacer at a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacer: Option<Pacer>,
}

/// QJump's limiter on a device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QjumpPolicy {
    /// The device whose egress is limited.
    pub device: DeviceName,
    /// n: how many hosts may send to one at the same time, 1 or more; each guest with buckets of its own counts as one.
    pub hosts: u32,
    /// R: the rate of the slowest edge link, more than 0.
    pub rate: Rate,
    /// P: the largest packet of the levels with a bound, with its headers: 1 B to 65 KB. Default 256 B.
    #[serde(default = "packet_default")]
    pub packet: Bytes,
    /// eps: propagation and processing along the longest path, at most 1 s. Default 4 us.
    #[serde(default = "epsilon_default")]
    pub epsilon: Span,
    /// The network epoch in place of 2 n P / R + eps; more than 0 and at most 1000 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<Span>,
    /// The bytes that each level may send in an epoch, level 0 (the lowest) first: `"6x"`, `"5Gbps"`, `"9750B"` or
    /// `"line"`. Default as in a scenario: `["line", "64x", "32x", "16x", "8x", "4x", "2x", "1x"]`.
    #[serde(default = "levels_default")]
    pub levels: Vec<LevelShare>,
    /// The action for a packet beyond its level's share: `refuse` (its sender gets an error) or `drop`. Default
    /// `refuse`.
    #[serde(default = "excess_default")]
    pub excess: Excess,
    /// The header field that carries a level to switches: `dscp` (8 x level), `pcp` (the priority of an 802.1Q tag),
    /// `none`. Default `dscp`.
    #[serde(default)]
    pub tag: Tagging,
    /// With `tag = "pcp"`, the VLAN of packets that have no tag: 0 (a tag of priority only) to 4094. Default 0.
    #[serde(default)]
    pub vlan: u16,
    /// Whether TCP's segments are cut to the size of a bucket: `fit` (default) lowers the device's gso_max_segs, `keep`
    /// leaves it. A segment beyond the bucket never leaves.
    #[serde(default)]
    pub segments: Segments,
    /// The pacing of TCP connections of members with a limited level by cgroup or unit: with `level` (default), they
    /// share the level's rate; with `kernel`, TCP sends unpaced, packets are refused, and TCP then waits for 200 ms.
    #[serde(default)]
    pub pace: Pace,
    /// The members of levels; other programs have level 0, or the level that they set by SO_PRIORITY.
    #[serde(default)]
    pub assign: Vec<LevelMember>,
    /// The guests that share the device, at most 8, each with a bucket of its own for every level.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub guest: Vec<GuestPolicy>,
}

/// A guest that shares the limiter's device, such as a virtual machine behind a bridge.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuestPolicy {
    /// The source address of its frames.
    pub address: MacAddress,
    /// The level of its packets, which `levels` must define. By default it is the class selector of the DSCP that the
    /// guest has written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u8>,
}

/// The header field that carries a level to switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tagging {
    /// The DSCP carries 8 x level.
    #[default]
    Dscp,
    /// The priority of an 802.1Q tag carries the level.
    Pcp,
    /// No field carries the level.
    None,
}

/// The handling of TCP segments that are longer than a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Segments {
    /// The device's gso_max_segs is lowered, so that they fit.
    #[default]
    Fit,
    /// The device keeps its gso_max_segs.
    Keep,
}

/// The pacing of TCP connections at a level with a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// The connections share the level's rate.
    #[default]
    Level,
    /// The connections are not paced.
    Kernel,
}

/// A member of a level: exactly one of `cgroup`, `unit` and `port`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelMember {
    /// The level, from 0 (the lowest) to 7, which `levels` must define.
    pub level: u8,
    /// A cgroup of version 2, by its path from the root of the hierarchy; it is created if missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupPath>,
    /// A systemd unit: a running service, slice or scope, or a stopped service or slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitName>,
    /// A TCP and UDP port at either end, 1 to 65535.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// The member that an [`LevelMember`] names.
#[derive(Clone, PartialEq, Debug)]
pub enum Subject<'a> {
    /// The programs in a cgroup.
    Cgroup(&'a CgroupPath),
    /// The programs of a systemd unit.
    Unit(&'a UnitName),
    /// The packets from or to a port.
    Port(u16),
}

/// A phantom queue beside a port of a device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PhantomQueuePolicy {
    /// The device whose packets it counts.
    pub device: DeviceName,
    /// The direction: `egress` counts packets that are passed to the device; `ingress` counts arriving packets, which
    /// is behind the shaper of the link's other end. Default `egress`.
    #[serde(default)]
    pub direction: DeviceSide,
    /// The link's rate, more than 0.
    pub rate: Rate,
    /// The share of the rate at which it drains: more than 0, at most 1. Default 0.95.
    #[serde(default = "drain_default")]
    pub drain: f64,
    /// The length above which packets are marked, at most 16 MB. Default 1 KB.
    #[serde(default = "threshold_default")]
    pub threshold: Bytes,
}

/// The direction of a device's packets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceSide {
    /// The packets that arrive at the device.
    Ingress,
    /// The packets that leave the device.
    #[default]
    Egress,
}

/// HULL's pacer at a device: connections whose acknowledgements carry ECE are paced for a while.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pacer {
    /// The device, whose queue must obey departure times (fq).
    pub device: DeviceName,
    /// The link's rate, more than 0.
    pub rate: Rate,
    /// The cgroups (version 2) whose packets are paced, by their paths from the root of the hierarchy, at most 8.
    /// Default all packets.
    #[serde(default)]
    pub cgroups: Vec<CgroupPath>,
    /// The bytes that may leave back to back: 1 B to 1 GB. Default 3 KB (HULL).
    #[serde(default = "bucket_default")]
    pub bucket: Bytes,
    /// The weight of the newest interval in the rate: 0.001 to 1. Default 0.125 (HULL).
    #[serde(default = "eta_default")]
    pub eta: f64,
    /// How fast a backlog raises the rate, in bit/s per bit and interval: 0 to 10^9. Default 16 (HULL, at 1 Gb/s).
    #[serde(default = "beta_default")]
    pub beta: f64,
    /// The probability that an acknowledgement with ECE makes its connection paced: 0 to 1. Default 0.125 (HULL).
    #[serde(default = "association_probability_default", alias = "association-probability")]
    pub association_probability: f64,
    /// The time for which it stays paced after the last such acknowledgement. Default 10 ms (HULL).
    #[serde(default = "association_timeout_default", alias = "association-timeout")]
    pub association_timeout: Span,
    /// The interval at which the rate changes: 1 us to 1 s. Default 64 us (HULL).
    #[serde(default = "interval_default")]
    pub interval: Span,
    /// The minimum pacing rate: 1 kb/s to 1 Tb/s. Default 1 % of the link's rate, which is also the initial rate.
    #[serde(default, alias = "min-rate", skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<Rate>,
    /// Whether TCP's segments are cut to the size of the bucket, as for `qjump`: one that is longer leaves at once.
    #[serde(default)]
    pub segments: Segments,
    /// The queue that delays packets. Default `edt` where the kernel has fq, else `tbf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departure: Option<PacerQueue>,
}

/// The queue that delays the pacer's packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PacerQueue {
    /// Each packet has a departure time, which the device's queue obeys (fq).
    Edt,
    /// A token bucket filter for paced packets, whose rate `plimsoll host pace` continually sets to the pacer's.
    Tbf,
}

/// DCTCP for chosen destinations.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dctcp {
    /// Networks such as `10.0.0.0/8` or `fd00::/8`: connections with them use DCTCP.
    #[serde(default)]
    pub destinations: Vec<Prefix>,
    /// Whether all other connections use DCTCP too, unless a program chooses otherwise. Default false.
    #[serde(default)]
    pub default: bool,
}

/// An invalid policy; the message states the place, the value, and the expected form.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(String);

impl Policy {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not a valid policy; the message names the file, and the line
    /// if known.
    pub fn read(path: &Path) -> Result<Policy, PolicyError> {
        let text = plimsoll_files::read_text(path, Origin::Argument, LONGEST)
            .map_err(|error| PolicyError(format!("{}: {error}", path.display())))?;
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        Policy::parse(&text, stem)
            .map_err(|PolicyError(why)| PolicyError(format!("{}: {why}", path.display())))
    }

    /// Parses and checks `text`; a policy without a name gets the name `stem`.
    ///
    /// # Errors
    /// Returns the errors of [`Policy::read`].
    pub fn parse(text: &str, stem: &str) -> Result<Policy, PolicyError> {
        let mut policy: Policy = toml::from_str(text).map_err(|error| PolicyError(in_line(text, &error)))?;
        if policy.name.is_none() {
            let name = stem.parse().map_err(|why| PolicyError(format!("{why}; set `name`")))?;
            policy.name = Some(name);
        }
        policy.check()?;
        Ok(policy)
    }

    /// Returns the policy's name.
    ///
    /// # Panics
    /// Never panics: [`Policy::parse`] sets the name.
    pub fn name(&self) -> &PolicyName {
        self.name.as_ref().expect("parse sets it")
    }

    /// Returns the devices that the policy names.
    pub(crate) fn devices(&self) -> impl Iterator<Item = &DeviceName> {
        let Policy { qjump, pacer, phantom_queue, .. } = self;
        let (limited, paced) =
            (qjump.iter().map(|qjump| &qjump.device), pacer.iter().map(|pacer| &pacer.device));
        limited.chain(paced).chain(phantom_queue.iter().map(|queue| &queue.device))
    }

    pub(crate) fn check(&self) -> Result<(), PolicyError> {
        allowed(self.version == 1, "version", self.version, "1")?;
        let one = self.qjump.is_some() || self.dctcp.is_some() || self.pacer.is_some();
        if !one && self.phantom_queue.is_empty() {
            return Err(PolicyError(
                "the policy is empty: add [qjump], [[phantom_queue]], [pacer] or [dctcp]".to_owned(),
            ));
        }
        self.qjump.as_ref().map_or(Ok(()), QjumpPolicy::check)?;
        self.pacer.as_ref().map_or(Ok(()), Pacer::check)?;
        for (index, queue) in self.phantom_queue.iter().enumerate() {
            queue.check(index)?;
            let twin = self.phantom_queue[..index]
                .iter()
                .any(|other| (&other.device, other.direction) == (&queue.device, queue.direction));
            allowed(
                !twin,
                &format!("phantom_queue[{index}].device"),
                &queue.device,
                "one queue a device and direction",
            )?;
        }
        self.dctcp.as_ref().map_or(Ok(()), Dctcp::check)?;
        let nobody = |dctcp: &Dctcp| dctcp.destinations.is_empty() && !dctcp.default;
        let somebody = !self.dctcp.as_ref().is_some_and(nobody);
        allowed(somebody, "dctcp.destinations", "[]", "at least one network, or `default = true`")
    }
}

impl QjumpPolicy {
    /// Computes the epoch and the levels' buckets, by Eqs. 2 and 4.
    ///
    /// # Errors
    /// Returns an error if a value is outside its range.
    pub fn levels(&self) -> Result<Levels, InvalidParam> {
        let params = QjumpParams {
            hosts: Some(self.hosts),
            packet: self.packet,
            epsilon: self.epsilon,
            epoch: self.epoch,
            levels: self.levels.clone(),
            refill: Refill::OnPacket,
            excess: self.excess,
        };
        params.resolve(self.hosts, self.rate)
    }

    fn check(&self) -> Result<(), PolicyError> {
        allowed(self.rate > Rate::ZERO, "qjump.rate", self.rate, "more than 0bps")?;
        let levels = self.levels().map_err(|invalid| of("qjump", &invalid))?;
        allowed(self.vlan <= VLAN_MAX, "qjump.vlan", self.vlan, "0 to 4094")?;
        let vlan_used = self.vlan == 0 || self.tag == Tagging::Pcp;
        allowed(vlan_used, "qjump.vlan", self.vlan, "0, unless tag = \"pcp\"")?;
        for (index, assignment) in self.assign.iter().enumerate() {
            let place = format!("qjump.assign[{index}]");
            let count = levels.levels.len();
            let range = format!("0 to {}, as `levels` has {count}", count - 1);
            allowed(
                usize::from(assignment.level) < count,
                &format!("{place}.level"),
                assignment.level,
                &range,
            )?;
            let subject = assignment.subject().ok_or_else(|| {
                PolicyError(format!("{place}: expected exactly one of `cgroup`, `unit` and `port`"))
            })?;
            allowed(subject != Subject::Port(0), &format!("{place}.port"), 0, "1 to 65535")?;
            let twin = self.assign[..index].iter().any(|other| other.subject().as_ref() == Some(&subject));
            allowed(!twin, &place, &subject, "one level for each")?;
        }
        for (index, guest) in self.guest.iter().enumerate() {
            let (place, count) = (format!("qjump.guest[{index}]"), levels.levels.len());
            let range = format!("0 to {}, as `levels` has {count}", count - 1);
            let level = guest.level.unwrap_or(0);
            allowed(usize::from(level) < count, &format!("{place}.level"), level, &range)?;
            let twin = self.guest[..index].iter().any(|other| other.address.bits() == guest.address.bits());
            allowed(!twin, &format!("{place}.address"), &guest.address, "one entry for each address")?;
        }
        let guests = self.guest.len();
        allowed(guests <= GUESTS_MAX, "qjump.guest", format!("{guests} guests"), "at most 8 guests")?;
        let ports = self.assign.iter().filter(|assignment| assignment.port.is_some()).count();
        allowed(ports <= PORTS_MAX, "qjump.assign", format!("{ports} ports"), "at most 16 ports")
    }

    /// Returns the ports that have a level.
    pub fn ports(&self) -> Vec<(u16, u8)> {
        self.assign.iter().filter_map(|assignment| Some((assignment.port?, assignment.level))).collect()
    }
}

impl LevelMember {
    /// Returns the member that the assignment names, if it names exactly one.
    pub fn subject(&self) -> Option<Subject<'_>> {
        match (&self.cgroup, &self.unit, self.port) {
            (Some(cgroup), None, None) => Some(Subject::Cgroup(cgroup)),
            (None, Some(unit), None) => Some(Subject::Unit(unit)),
            (None, None, Some(port)) => Some(Subject::Port(port)),
            _ => None,
        }
    }
}

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Cgroup(cgroup) => write!(f, "cgroup {cgroup}"),
            Subject::Unit(unit) => write!(f, "unit {unit}"),
            Subject::Port(port) => write!(f, "port {port}"),
        }
    }
}

impl PhantomQueuePolicy {
    /// Returns the parameters of the mechanism.
    pub fn params(&self) -> PhantomQueueParams {
        PhantomQueueParams { drain: self.drain, threshold: self.threshold }
    }

    fn check(&self, index: usize) -> Result<(), PolicyError> {
        let place = format!("phantom_queue[{index}]");
        allowed(self.rate > Rate::ZERO, &format!("{place}.rate"), self.rate, "more than 0bps")?;
        self.params().validate().map_err(|invalid| of(&place, &invalid))
    }
}

impl Dctcp {
    fn check(&self) -> Result<(), PolicyError> {
        for (index, prefix) in self.destinations.iter().enumerate() {
            let place = format!("dctcp.destinations[{index}]");
            allowed(!self.destinations[..index].contains(prefix), &place, prefix, "each network once")?;
        }
        Ok(())
    }
}

impl Pacer {
    /// Returns the parameters of the mechanism.
    pub fn params(&self) -> PacerParams {
        let min_rate = self.min_rate.unwrap_or(Rate::from_bps(self.rate.as_bps() / 100));
        PacerParams {
            bucket: self.bucket,
            eta: self.eta,
            beta: self.beta,
            association_probability: self.association_probability,
            association_timeout: self.association_timeout,
            interval: self.interval,
            initial_rate: min_rate,
            min_rate: Some(min_rate),
            ..PacerParams::default()
        }
    }

    fn check(&self) -> Result<(), PolicyError> {
        allowed(self.rate > Rate::ZERO, "pacer.rate", self.rate, "more than 0bps")?;
        let few = self.cgroups.len() <= PACED_CGROUPS_MAX;
        allowed(few, "pacer.cgroups", format!("{} cgroups", self.cgroups.len()), "at most 8 cgroups")?;
        EarliestDepartureConstants::new(&self.params()).map(drop).map_err(|invalid| of("pacer", &invalid))
    }
}

fn allowed(ok: bool, place: &str, value: impl fmt::Display, range: &str) -> Result<(), PolicyError> {
    if ok { Ok(()) } else { Err(PolicyError(format!("{place} = {value}: expected {range}"))) }
}

fn of(place: &str, invalid: &InvalidParam) -> PolicyError {
    PolicyError(format!("{place}.{} = {}: expected {}", invalid.key, invalid.value, invalid.allowed))
}

/// Adds to the parser's message its line, and the nearest spelling of an unknown key.
pub fn in_line(text: &str, error: &toml::de::Error) -> String {
    let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
    let said = error.message();
    let mut quoted = said.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| said.starts_with("unknown "));
    let nearest = unknown.and_then(|unknown| nearest(unknown, quoted));
    let hint = nearest.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
    format!("line {line}: {said}{hint}")
}

fn packet_default() -> Bytes {
    QjumpParams::default().packet
}

fn epsilon_default() -> Span {
    QjumpParams::default().epsilon
}

fn levels_default() -> Vec<LevelShare> {
    QjumpParams::default().levels
}

fn excess_default() -> Excess {
    QjumpParams::default().excess
}

fn bucket_default() -> Bytes {
    PacerParams::default().bucket
}

fn eta_default() -> f64 {
    PacerParams::default().eta
}

fn beta_default() -> f64 {
    PacerParams::default().beta
}

fn association_probability_default() -> f64 {
    PacerParams::default().association_probability
}

fn association_timeout_default() -> Span {
    PacerParams::default().association_timeout
}

fn interval_default() -> Span {
    PacerParams::default().interval
}

fn drain_default() -> f64 {
    PhantomQueueParams::default().drain
}

fn threshold_default() -> Bytes {
    PhantomQueueParams::default().threshold
}

/// The longest policy file, in bytes; a policy for a hundred cgroups has about 10 KB.
const LONGEST: u64 = 1 << 20;
/// The most ports that the program of port levels accepts.
const PORTS_MAX: usize = 16;
/// The most guests of the limiter.
const GUESTS_MAX: usize = 8;
/// The most cgroups that the pacer's program accepts.
const PACED_CGROUPS_MAX: usize = 8;
/// The highest VLAN number: 4095 is reserved (802.1Q).
const VLAN_MAX: u16 = 4094;

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
