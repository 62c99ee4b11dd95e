//! What an operation costs its rank, and networks of messages without packets: LogGOPS, and a server's own links.
//!
//! ```text
//! send of s bytes:     the stream is held o + (s - 1) O, the NIC g + (s - 1) G; the first byte is there o + L later
//! receive of s bytes:  the stream is held o + max((s - 1) O, (s - 1) G), the NIC g + (s - 1) G
//! ```
//!
//! Source: Hoefler et al., LogGOPSim (HPDC 2010), with the letters of its parameters.

use plimsoll_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The network that carries the messages between servers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum JobNetwork {
    /// The network of the scenario, in packets of the workload's transport.
    #[default]
    Packets,
    /// None: each message takes the times of `costs`, however many others are under way.
    Loggops,
}

/// The costs of a message, as LogGOPS has them. Over packets the network has its own delay and rate, so that `latency`
/// and `gap_per_byte` have no effect, and the other costs are those of the ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MessageCosts {
    /// The delay of the network (L): 0 or more. Default 0 s.
    pub latency: Span,
    /// The time of a rank's stream for a message, at either end (o): 0 or more. Default 0 s.
    pub overhead: Span,
    /// The same for each byte after the first (O): 0 or more. Default 0 s.
    pub overhead_per_byte: Span,
    /// The time between two messages at a NIC (g): 0 or more. Default 0 s.
    pub gap: Span,
    /// The time of a NIC for each byte after the first (G): 0 or more. Default 0 s.
    pub gap_per_byte: Span,
    /// The largest message whose send ends before it is received (S). A larger one ends when its receive has begun, and
    /// a `latency` later. Over packets every send ends when it is handed to the transport. Default 65,535 B.
    pub eager: Bytes,
}

impl Default for MessageCosts {
    fn default() -> MessageCosts {
        MessageCosts {
            latency: Span::ZERO,
            overhead: Span::ZERO,
            overhead_per_byte: Span::ZERO,
            gap: Span::ZERO,
            gap_per_byte: Span::ZERO,
            eager: Bytes::new(65_535),
        }
    }
}

impl MessageCosts {
    /// Returns how long a send holds its stream.
    pub(super) fn sending(&self, bytes: u64) -> Span {
        self.overhead + self.overhead_per_byte * (bytes - 1)
    }

    /// Returns how long a receive holds its stream, with the network of `self`.
    pub(super) fn receiving(&self, bytes: u64) -> Span {
        self.overhead + self.overhead_per_byte.max(self.gap_per_byte) * (bytes - 1)
    }

    /// Returns how long a message holds a NIC.
    pub(super) fn holding(&self, bytes: u64) -> Span {
        self.gap + self.gap_per_byte * (bytes - 1)
    }

    /// Returns the costs of ranks over a network of packets, which has a rate of its own.
    pub(super) fn over_packets(self) -> MessageCosts {
        MessageCosts { latency: Span::ZERO, gap_per_byte: Span::ZERO, eager: Bytes::new(u64::MAX), ..self }
    }

    /// Returns whether messages cost nothing.
    pub(crate) fn is_default(&self) -> bool {
        *self == MessageCosts::default()
    }
}

/// The links inside a server, such as NVLink: ranks of a server send to each other over them and not over the network.
/// A rank has a link out and a link in; a message takes each for its bytes, one message after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScaleUp {
    /// The ranks of a server, which have consecutive numbers: 1 or more.
    pub ranks: u32,
    /// The rate of a rank's links: more than 0.
    pub rate: Rate,
    /// The delay of a message's first bit: 0 or more. Default 0 s.
    #[serde(default)]
    pub delay: Span,
}
