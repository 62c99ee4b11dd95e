//! [`CircuitsConfig`]: the file that a controller and its agents share.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use plimsoll_circuits::{ControlParams, LIVE_HOSTS_MAX, LiveParams, SchedulerKind, Switching};
use plimsoll_files::{Origin, read_text};
use plimsoll_host::{DeviceName, in_line};
use plimsoll_units::{Rate, Span};
use serde::Deserialize;

use crate::LiveError;
use crate::seal::ControlKey;

/// The parameters of a control loop, and its hosts.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitsConfig {
    /// The address and UDP port of the controller, to which agents report. It is not the address of a host, so that
    /// no circuit carries the control protocol.
    pub controller: SocketAddr,
    /// The address and TCP port to which the circuit switch connects by OpenFlow 1.3.
    pub openflow: SocketAddr,
    /// The file of the shared key: 32 to 4,096 bytes that only their owner can read. Its path is relative to the
    /// folder of this file.
    pub key: PathBuf,
    /// Where agents read the demand of their hosts. Default `socket_buffers`.
    #[serde(default)]
    pub estimator: LiveEstimator,
    /// The algorithm that makes a schedule of the demand. Default `solstice`.
    #[serde(default)]
    pub scheduler: SchedulerKind,
    /// The rate of a circuit, more than 0.
    pub circuit_rate: Rate,
    /// The rate at which a host sends to the packet switch.
    pub packet_rate: Rate,
    /// The accumulation period of demand, for which one schedule is made. Default 100 ms.
    #[serde(default = "week")]
    pub week: Span,
    /// Time before the begin of a week at which its demand is read. Default 10 ms.
    #[serde(default = "lead")]
    pub lead: Span,
    /// The planned time from one circuit to the next: pausing, draining, and changing the switch. Default 5 ms.
    #[serde(default = "night")]
    pub night: Span,
    /// Time after which a packet that has passed a host's gate has passed the circuit switch: the longest queue of a
    /// circuit device, and the way from there. Default 1 ms.
    #[serde(default = "drain")]
    pub drain: Span,
    /// Time between two reports of an agent. Default 10 ms.
    #[serde(default = "report")]
    pub report: Span,
    /// Length of the lease of a circuit, and the silence after which the other side counts as gone. Default 50 ms.
    #[serde(default = "lease")]
    pub lease: Span,
    /// The hosts, in the order of their numbers: 2 to 1,024.
    pub host: Vec<LiveHost>,
}

/// Where an agent reads the demand of its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LiveEstimator {
    /// Bytes in TCP sockets that have never been sent, by sock_diag.
    #[default]
    SocketBuffers,
    /// Bytes that programs have given to send calls of TCP and that the receiver has not acknowledged, by eBPF.
    SendCalls,
}

/// A host at both switches.
#[derive(Clone, PartialEq, Eq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveHost {
    /// The name, by which `plimsoll circuits agent --host` chooses its host.
    pub name: String,
    /// The IPv4 address to which other hosts send.
    pub address: Ipv4Addr,
    /// The host's port at the circuit switch, as OpenFlow numbers it.
    pub port: u32,
    /// The link-layer address of the host's device to the circuit switch.
    pub circuit_address: LinkAddress,
    /// The device to the packet switch, by which routes lead.
    pub packet_device: DeviceName,
    /// The device to the circuit switch.
    pub circuit_device: DeviceName,
}

/// A link-layer address, written as `02:00:00:00:00:01`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct LinkAddress(pub [u8; 6]);

impl TryFrom<String> for LinkAddress {
    type Error = String;

    fn try_from(text: String) -> Result<LinkAddress, String> {
        let byte = |part: &str| u8::from_str_radix(part, 16).ok().filter(|_| part.len() == 2);
        let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
        let address =
            bytes.and_then(|bytes| bytes.try_into().ok()).filter(|[first, ..]: &[u8; 6]| first & 1 == 0);
        address.map(LinkAddress).ok_or_else(|| {
            format!(
                "`{text}` is not the link-layer address of a device: expected a form like 02:00:00:00:00:01"
            )
        })
    }
}

/// An invalid configuration; the message states the place, the value, and the expected form.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl CircuitsConfig {
    /// Reads and checks the file at `path`.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is not a valid configuration.
    pub fn read(path: &Path) -> Result<CircuitsConfig, ConfigError> {
        let of = |problem: String| ConfigError(format!("{}: {problem}", path.display()));
        let text = read_text(path, Origin::Argument, LONGEST).map_err(|error| of(error.to_string()))?;
        let mut config = CircuitsConfig::parse(&text).map_err(|ConfigError(problem)| of(problem))?;
        if let Some(folder) = path.parent() {
            config.key = folder.join(&config.key);
        }
        Ok(config)
    }

    /// Parses and checks `text`.
    ///
    /// # Errors
    /// Returns an error if it is not a valid configuration.
    pub fn parse(text: &str) -> Result<CircuitsConfig, ConfigError> {
        let config: CircuitsConfig =
            toml::from_str(text).map_err(|error| ConfigError(in_line(text, &error)))?;
        config.check()?;
        Ok(config)
    }

    /// Returns the number of the host of this name.
    ///
    /// # Errors
    /// Returns an error that lists the names.
    pub fn host_number(&self, name: &str) -> Result<usize, ConfigError> {
        self.host.iter().position(|host| host.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.host.iter().map(|host| host.name.as_str()).collect();
            ConfigError(format!("no host `{name}` in the file; expected one of {}", names.join(", ")))
        })
    }

    /// Returns the parameters of the controller's state machine.
    pub fn params(&self) -> LiveParams {
        let CircuitsConfig { circuit_rate, packet_rate, night, week, lead, drain, lease, .. } = *self;
        let switching = Switching { circuit_rate, packet_rate, night, window: week };
        LiveParams { switching, lead, drain, lease }
    }

    /// Reads the shared key.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read as a secret key.
    pub(crate) fn key(&self) -> Result<ControlKey, LiveError> {
        ControlKey::read(&self.key).map_err(LiveError::doing(format!("key = \"{}\"", self.key.display())))
    }

    fn check(&self) -> Result<(), ConfigError> {
        let CircuitsConfig { circuit_rate, week, lead, night, drain, report, lease, .. } = *self;
        allowed(circuit_rate > Rate::ZERO, "circuit_rate", circuit_rate, "more than 0bps")?;
        allowed(night > drain, "night", night, &format!("more than drain = {drain}"))?;
        let control = ControlParams {
            week,
            lead,
            reconfiguration: night - drain,
            drain: Some(drain),
            demand_loop: Span::ZERO,
            demand_packet: Span::ZERO,
            computation: Span::ZERO,
            ..ControlParams::default()
        };
        control.validate(drain).map_err(|invalid| {
            let key = if invalid.key == "reconfiguration" { "night" } else { invalid.key };
            ConfigError(format!("{key}: {invalid}"))
        })?;
        allowed(!drain.is_zero(), "drain", drain, "more than 0s")?;
        allowed(report >= Span::from_us(100), "report", report, "at least 100us")?;
        allowed(lease <= Span::from_secs(10), "lease", lease, "at most 10s")?;
        allowed(lease >= report * 3, "lease", lease, &format!("at least three reports, {}", report * 3))?;
        let count = self.host.len();
        allowed((2..=LIVE_HOSTS_MAX).contains(&count), "host", format!("{count} hosts"), "2 to 1024 hosts")?;
        self.each_once("name", |host| host.name.clone())?;
        self.each_once("address", |host| host.address)?;
        self.each_once("port", |host| host.port)?;
        self.each_once("circuit_address", |host| host.circuit_address)?;
        for (index, host) in self.host.iter().enumerate() {
            let place = format!("host[{index}]");
            // OFPP_MAX of OpenFlow 1.3.
            let is_port = (1..=0xffff_ff00).contains(&host.port);
            allowed(is_port, &format!("{place}.port"), host.port, "1 to 4294967040")?;
            let differs = host.packet_device != host.circuit_device;
            let expected = "another device than packet_device";
            allowed(differs, &format!("{place}.circuit_device"), &host.circuit_device, expected)?;
            let is_apart = self.controller.ip() != host.address;
            let expected = format!("an address that is not that of {}", host.name);
            allowed(is_apart, "controller", self.controller, &expected)?;
        }
        Ok(())
    }

    fn each_once<T: Ord + fmt::Debug>(
        &self,
        key: &str,
        of: impl Fn(&LiveHost) -> T,
    ) -> Result<(), ConfigError> {
        let mut seen = BTreeMap::new();
        for (index, host) in self.host.iter().enumerate() {
            if let Some(first) = seen.insert(of(host), index) {
                let value = of(host);
                let expected = format!("a value that host[{first}] does not have");
                return allowed(false, &format!("host[{index}].{key}"), format!("{value:?}"), &expected);
            }
        }
        Ok(())
    }
}

fn allowed(ok: bool, place: &str, value: impl fmt::Display, range: &str) -> Result<(), ConfigError> {
    if ok { Ok(()) } else { Err(ConfigError(format!("{place} = {value}: expected {range}"))) }
}

/// The longest file, in bytes; that of 1,024 hosts has about 200 KB.
const LONGEST: u64 = 1 << 20;

fn week() -> Span {
    Span::from_ms(100)
}

fn lead() -> Span {
    Span::from_ms(10)
}

fn night() -> Span {
    Span::from_ms(5)
}

fn drain() -> Span {
    Span::from_ms(1)
}

fn report() -> Span {
    Span::from_ms(10)
}

fn lease() -> Span {
    Span::from_ms(50)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    const TWO: &str = r#"
controller = "10.0.0.1:6750"
openflow = "10.0.0.1:6653"
key = "circuits.key"
circuit_rate = "10Gbps"
packet_rate = "1Gbps"

[[host]]
name = "a"
address = "10.0.0.11"
port = 1
circuit_address = "02:00:00:00:00:01"
packet_device = "eth0"
circuit_device = "eth1"

[[host]]
name = "b"
address = "10.0.0.12"
port = 2
circuit_address = "02:00:00:00:00:02"
packet_device = "eth0"
circuit_device = "eth1"
"#;

    #[test]
    fn a_configuration_is_read_with_its_defaults() {
        let config = CircuitsConfig::parse(TWO).unwrap();
        assert_eq!((config.week, config.lease), (Span::from_ms(100), Span::from_ms(50)));
        assert_eq!(config.host[1].circuit_address, LinkAddress([2, 0, 0, 0, 0, 2]));
        assert_eq!(config.host_number("b").unwrap(), 1);
        let error = config.host_number("c").unwrap_err().to_string();
        assert_eq!(error, "no host `c` in the file; expected one of a, b");
    }

    #[test]
    fn an_error_names_place_value_and_what_is_allowed() {
        for (from, to, error) in [
            ("key =", "keys =", "line 4: unknown field `keys`"),
            ("key =", "keys =", "did you mean `key`?"),
            ("\"10Gbps\"", "\"0bps\"", "circuit_rate = 0bps: expected more than 0bps"),
            ("port = 2", "port = 1", "host[1].port = 1: expected a value that host[0] does not have"),
            (
                "10.0.0.12",
                "10.0.0.11",
                "host[1].address = 10.0.0.11: expected a value that host[0] does not have",
            ),
            (
                "10.0.0.12",
                "10.0.0.1",
                "controller = 10.0.0.1:6750: expected an address that is not that of b",
            ),
            (
                "02:00:00:00:00:02",
                "03:00:00:00:00:02",
                "line 20: `03:00:00:00:00:02` is not the link-layer address",
            ),
            ("key =", "lease = \"20ms\"\nkey =", "lease = 20ms: expected at least three reports, 30ms"),
            (
                "key =",
                "week = \"4ms\"\nlead = \"1ms\"\nkey =",
                "night: a night of 5ms, with the drain, leaves nothing",
            ),
            ("key =", "drain = \"5ms\"\nkey =", "night = 5ms: expected more than drain = 5ms"),
            ("key =", "scheduler = \"solstis\"\nkey =", "did you mean `solstice`?"),
            ("key =", "estimator = \"send_call\"\nkey =", "did you mean `send_calls`?"),
        ] {
            let text = TWO.replacen(from, to, 1);
            let found = CircuitsConfig::parse(&text).unwrap_err().to_string();
            assert!(found.contains(error), "{from} -> {to}: {found}");
        }
    }
}
