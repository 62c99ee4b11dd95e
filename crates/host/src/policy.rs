//! [`Policy`]: what an operator wants of a host, read from TOML and checked.
//!
//! Names that reach the kernel, a path or a program's arguments are parsed into types that can hold no others:
//! [`DeviceName`], [`CgroupPath`], [`UnitName`], [`Prefix`], [`PolicyName`].

use std::fmt;
use std::io::Read as _;
use std::path::Path;

use plimsoll_mechanisms::InvalidParam;
use plimsoll_mechanisms::pacer::{EarliestDepartureConstants, PacerParams};
use plimsoll_mechanisms::phantom_queue::PhantomQueueParams;
use plimsoll_mechanisms::qjump::{Excess, LevelShare, Levels, QjumpParams, Refill};
use plimsoll_units::{Bytes, Rate, Span};
use serde::{Deserialize, Serialize};

use crate::names::{CgroupPath, DeviceName, PolicyName, Prefix, UnitName, nearest};

/// What a host should do. `docs/host.md` explains each key with examples.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Policy {
    /// Of this format: 1.
    pub version: u32,
    /// Its name, by which its state and its pins are known: 1 to 40 lower-case letters, digits, `-` and `_`. Default the
    /// file's name without `.toml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<PolicyName>,
    /// QJump: levels, their budgets, and who has which.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qjump: Option<Qjump>,
    /// Phantom queues beside ports, at most one a device and direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phantom_queue: Vec<PhantomQueue>,
    /// DCTCP for chosen destinations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dctcp: Option<Dctcp>,
    /// HULL's pacer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacer: Option<Pacer>,
}

/// QJump on a device.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Qjump {
    /// The device whose egress is limited.
    pub device: DeviceName,
    /// n: how many hosts may send to one at the same time, 1 or more.
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
    /// What each level may send in an epoch, level 0 (the lowest) first: `"6x"`, `"5Gbps"`, `"9750B"` or `"line"`.
    /// Default as in a scenario: `["line", "64x", "32x", "16x", "8x", "4x", "2x", "1x"]`.
    #[serde(default = "levels_default")]
    pub levels: Vec<LevelShare>,
    /// What becomes of a packet beyond its level's share: `refuse` (its sender is told) or `drop`. Default `refuse`.
    #[serde(default = "excess_default")]
    pub excess: Excess,
    /// How switches learn of a level: `dscp` (8 x level), `pcp` (the priority of an 802.1Q tag), `none`. Default `dscp`.
    #[serde(default)]
    pub tag: Tagging,
    /// With `tag = "pcp"`, the VLAN of packets that have no tag: 0 (a tag of priority only) to 4094. Default 0.
    #[serde(default)]
    pub vlan: u16,
    /// Whether TCP's segments are cut to what a bucket holds: `fit` (default) lowers the device's gso_max_segs, `keep`
    /// leaves it. A segment beyond the bucket never leaves.
    #[serde(default)]
    pub segments: Segments,
    /// Who paces the TCP connections of what has a level with a limit by cgroup or unit: `level` (default), so that
    /// together they keep to it by themselves; or `kernel`, which is refused, and then waits for 200 ms.
    #[serde(default)]
    pub pace: Pace,
    /// Who has which level; what is not named has level 0, or what it set as SO_PRIORITY.
    #[serde(default)]
    pub assign: Vec<Assignment>,
}

/// How switches learn of a level.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tagging {
    /// DSCP 8 x level.
    #[default]
    Dscp,
    /// The priority of an 802.1Q tag.
    Pcp,
    /// Not at all.
    None,
}

/// What becomes of TCP's long segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Segments {
    /// They are made short enough.
    #[default]
    Fit,
    /// Nothing.
    Keep,
}

/// Who paces TCP connections at a level with a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// The level does.
    #[default]
    Level,
    /// Nobody.
    Kernel,
}

/// Who has a level: exactly one of `cgroup`, `unit` and `port`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Assignment {
    /// 0 (the lowest) to 7, and one that `levels` has.
    pub level: u8,
    /// A cgroup of version 2, by its path from the root of the hierarchy; made if it is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupPath>,
    /// A systemd unit: a service, a slice or a scope that runs, or a service or slice that does not run yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<UnitName>,
    /// A port of TCP and UDP, 1 to 65535, at either end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
}

/// Whom an [`Assignment`] names.
#[derive(Clone, PartialEq, Debug)]
pub enum Subject<'a> {
    /// What runs in a cgroup.
    Cgroup(&'a CgroupPath),
    /// What runs in a systemd unit.
    Unit(&'a UnitName),
    /// What uses a port.
    Port(u16),
}

/// A phantom queue beside a port.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PhantomQueue {
    /// The device.
    pub device: DeviceName,
    /// `egress` counts packets that the device is given, `ingress` those that arrive, which is behind the shaper of the
    /// link's other end. Default `egress`.
    #[serde(default)]
    pub direction: Side,
    /// The link's rate, more than 0.
    pub rate: Rate,
    /// The share of the rate at which it drains: more than 0, at most 1. Default 0.95.
    #[serde(default = "drain_default")]
    pub drain: f64,
    /// The length above which packets are marked, at most 16 MB. Default 1 KB.
    #[serde(default = "threshold_default")]
    pub threshold: Bytes,
}

/// Which packets of a device.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// Those that arrive.
    Ingress,
    /// Those that leave.
    #[default]
    Egress,
}

/// HULL's pacer at a device: connections whose acknowledgements carry ECE are spread out for a while.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Pacer {
    /// The device, whose queue must keep departure times (fq).
    pub device: DeviceName,
    /// The link's rate, more than 0.
    pub rate: Rate,
    /// Whose packets: cgroups of version 2, by their paths from the root of the hierarchy, at most 8. Default everybody's.
    #[serde(default)]
    pub cgroups: Vec<CgroupPath>,
    /// What may leave back to back: 1 B to 1 GB. Default 3 KB (HULL).
    #[serde(default = "bucket_default")]
    pub bucket: Bytes,
    /// The weight of the newest interval in the rate: 0.001 to 1. Default 0.125 (HULL).
    #[serde(default = "eta_default")]
    pub eta: f64,
    /// How fast a backlog raises the rate, in bit/s per bit and interval: 0 to 10^9. Default 16 (HULL, at 1 Gb/s).
    #[serde(default = "beta_default")]
    pub beta: f64,
    /// The probability that an acknowledgement with ECE makes its connection paced: 0 to 1. Default 0.125 (HULL).
    #[serde(default = "association_probability_default")]
    pub association_probability: f64,
    /// How long it stays paced after the last such one. Default 10 ms (HULL).
    #[serde(default = "association_timeout_default")]
    pub association_timeout: Span,
    /// How often the rate changes: 1 us to 1 s. Default 64 us (HULL).
    #[serde(default = "interval_default")]
    pub interval: Span,
    /// The least pacing rate: 1 kb/s to 1 Tb/s. Default 1 % of the link's, with which the pacer also begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<Rate>,
    /// Whether TCP's segments are cut to what the bucket holds, as for `qjump`: one that is longer leaves at once.
    #[serde(default)]
    pub segments: Segments,
    /// What holds packets back. Default `edt` where there is a queue for it, else `tbf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub departure: Option<Departure>,
}

/// What holds the pacer's packets back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Departure {
    /// Each packet has its departure time, which the device's queue keeps (fq).
    Edt,
    /// A token bucket filter for what is paced, whose rate `plimsoll host pace` sets to the pacer's again and again.
    Tbf,
}

/// DCTCP for chosen destinations.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Dctcp {
    /// Networks such as `10.0.0.0/8` or `fd00::/8`: connections with them use DCTCP.
    #[serde(default)]
    pub destinations: Vec<Prefix>,
    /// Whether connections with everybody do, unless a program chooses otherwise. Default false.
    #[serde(default)]
    pub default: bool,
}

/// A policy that is not one: where, what, and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(String);

impl Policy {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// If it cannot be read, or is no policy; names the file, and the line where it can.
    pub fn read(path: &Path) -> Result<Policy, PolicyError> {
        let mut text = String::new();
        let read =
            std::fs::File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_string(&mut text));
        read.map_err(|error| PolicyError(format!("{}: {error}", path.display())))?;
        if text.len() as u64 > LONGEST {
            return Err(PolicyError(format!("{}: it is longer than {LONGEST} bytes", path.display())));
        }
        let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
        Policy::parse(&text, stem)
            .map_err(|PolicyError(why)| PolicyError(format!("{}: {why}", path.display())))
    }

    /// Parses and checks `text`; a policy without a name is called `stem`.
    ///
    /// # Errors
    /// As [`Policy::read`].
    pub fn parse(text: &str, stem: &str) -> Result<Policy, PolicyError> {
        let mut policy: Policy = toml::from_str(text).map_err(|error| in_line(text, &error))?;
        if policy.name.is_none() {
            let name = stem.parse().map_err(|why| PolicyError(format!("{why}; set `name`")))?;
            policy.name = Some(name);
        }
        policy.check()?;
        Ok(policy)
    }

    /// Its name.
    ///
    /// # Panics
    /// Never: [`Policy::parse`] sets it.
    pub fn name(&self) -> &PolicyName {
        self.name.as_ref().expect("parse sets it")
    }

    /// The devices that it names.
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
                "it does nothing: add [qjump], [[phantom-queue]], [pacer] or [dctcp]".to_owned(),
            ));
        }
        self.qjump.as_ref().map_or(Ok(()), Qjump::check)?;
        self.pacer.as_ref().map_or(Ok(()), Pacer::check)?;
        for (index, queue) in self.phantom_queue.iter().enumerate() {
            queue.check(index)?;
            let twin = self.phantom_queue[..index]
                .iter()
                .any(|other| (&other.device, other.direction) == (&queue.device, queue.direction));
            allowed(
                !twin,
                &format!("phantom-queue[{index}].device"),
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

impl Qjump {
    /// The epoch and the levels' buckets, by Eqs. 2 and 4.
    ///
    /// # Errors
    /// If a value is outside its range.
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
                PolicyError(format!("{place}: allowed is exactly one of `cgroup`, `unit` and `port`"))
            })?;
            allowed(subject != Subject::Port(0), &format!("{place}.port"), 0, "1 to 65535")?;
            let twin = self.assign[..index].iter().any(|other| other.subject().as_ref() == Some(&subject));
            allowed(!twin, &place, &subject, "one level for each")?;
        }
        let ports = self.assign.iter().filter(|assignment| assignment.port.is_some()).count();
        allowed(ports <= PORTS_MAX, "qjump.assign", format!("{ports} ports"), "at most 16 ports")
    }

    /// The ports that have a level.
    pub fn ports(&self) -> Vec<(u16, u8)> {
        self.assign.iter().filter_map(|assignment| Some((assignment.port?, assignment.level))).collect()
    }
}

impl Assignment {
    /// Whom it names, if it is exactly one.
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

impl PhantomQueue {
    /// What the mechanism takes.
    pub fn params(&self) -> PhantomQueueParams {
        PhantomQueueParams { drain: self.drain, threshold: self.threshold }
    }

    fn check(&self, index: usize) -> Result<(), PolicyError> {
        let place = format!("phantom-queue[{index}]");
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
    /// What the mechanism takes.
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
        EarliestDepartureConstants::new(&self.params())
            .map(drop)
            .map_err(|invalid| PolicyError(of("pacer", &invalid).0.replace('_', "-")))
    }
}

fn allowed(ok: bool, place: &str, value: impl fmt::Display, range: &str) -> Result<(), PolicyError> {
    if ok { Ok(()) } else { Err(PolicyError(format!("{place} = {value}: allowed is {range}"))) }
}

fn of(place: &str, invalid: &InvalidParam) -> PolicyError {
    PolicyError(format!("{place}.{} = {}: allowed is {}", invalid.key, invalid.value, invalid.allowed))
}

/// What the parser says, with the line, and the nearest spelling of an unknown key.
fn in_line(text: &str, error: &toml::de::Error) -> PolicyError {
    let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
    let said = error.message();
    let mut quoted = said.split('`').skip(1).step_by(2);
    let unknown = quoted.next().filter(|_| said.starts_with("unknown "));
    let nearest = unknown.and_then(|unknown| nearest(unknown, quoted));
    let hint = nearest.map(|known| format!("; did you mean `{known}`?")).unwrap_or_default();
    PolicyError(format!("line {line}: {said}{hint}"))
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

/// A policy for a hundred cgroups has some 10 KB.
const LONGEST: u64 = 1 << 20;
/// The program that classifies by port knows so many.
const PORTS_MAX: usize = 16;
/// The pacer's program knows so many.
const PACED_CGROUPS_MAX: usize = 8;
/// 4095 is reserved (802.1Q).
const VLAN_MAX: u16 = 4094;

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
