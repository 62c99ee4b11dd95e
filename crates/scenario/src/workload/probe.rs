//! Probes: `ping` and `ptp`, which measure a path by small packets of their own.

use plimsoll_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Arrivals, HostName, Hosts};

/// Small messages that come back at once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// The host that asks; default `client`.
    #[serde(default)]
    pub from: HostName,
    /// The host that echoes.
    pub to: HostName,
    /// Payload each way; `transport.header` comes on top of every packet.
    #[serde(default = "Ping::default_size")]
    pub size: Bytes,
    /// Time from one ping to the next; the mean, where they are Poisson.
    pub interval: Span,
    /// Equal or exponential intervals.
    #[serde(default = "constant")]
    pub arrivals: Arrivals,
    /// The next ping waits for the echo of the last one (or its loss) where that is later. Default: pings
    /// go out whatever became of those before.
    #[serde(default)]
    pub one_at_a_time: bool,
    /// As single packets, or on a connection of the scenario's transport.
    #[serde(default)]
    pub over: PingOver,
    /// Stop after this many pings.
    #[serde(default)]
    pub count: Option<u64>,
    /// When the first ping may go; with equal intervals it goes then.
    #[serde(default)]
    pub start: Span,
}

impl Ping {
    /// What `ping` of Linux sends by default, with its ICMP header: 56 B + 8 B.
    fn default_size() -> Bytes {
        Bytes::new(64)
    }
}

fn constant() -> Arrivals {
    Arrivals::Constant
}

/// What carries a ping.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PingOver {
    /// Single packets, as of ICMP: a lost one is a lost ping.
    #[default]
    Datagram,
    /// The scenario's transport.
    Tcp,
}

/// Clocks compared by two-way timestamps, as the Precision Time Protocol does (IEEE 1588). All clocks are
/// perfect, so that the estimated offset is nothing but the asymmetry of the two ways:
/// `(forward - backward) / 2`. Timestamps are those of software: the waits in NICs count.
///
/// The server sends `sync`; the client answers with a delay request as soon as it has it; the server's delay
/// response tells the client when that came. All three are single packets, and a lost one is a lost exchange.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ptp {
    /// The host whose clock is right; default `client`, the first host.
    #[serde(default)]
    pub server: HostName,
    /// The hosts that follow it; default: all others.
    #[serde(default)]
    pub clients: Hosts,
    /// Payload of each of the three packets; `transport.header` comes on top.
    #[serde(default = "Ptp::default_size")]
    pub size: Bytes,
    /// Time from one `sync` to the next. Clients take turns within it, in equal steps.
    #[serde(default = "Ptp::default_interval")]
    pub interval: Span,
    /// Stop after this many exchanges of each client.
    #[serde(default)]
    pub count: Option<u64>,
    /// When the first `sync` goes.
    #[serde(default)]
    pub start: Span,
}

impl Ptp {
    /// Sync and delay request over UDP have 44 B (IEEE 1588-2008, 13.6).
    fn default_size() -> Bytes {
        Bytes::new(44)
    }

    /// One a second is the protocol's default (IEEE 1588-2008, J.3.2).
    fn default_interval() -> Span {
        Span::from_secs(1)
    }
}
