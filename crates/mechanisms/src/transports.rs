//! The transports, by family. A family is a state machine in a folder of its own here, the file in `sim/src/hosts` that
//! carries it, and its [`Family`]; a [`Kind`] is what `transport.kind` chooses. Scenarios, simulated hosts and
//! emulation ask these descriptions, so that no other file lists families or kinds.

mod arrived_packets;
pub mod credit;
pub mod datagram;
mod describe;
mod endpoint;
pub mod entropy;
pub mod homa;
pub mod mptcp;
pub mod ndp;
mod nic_end;
mod numbers;
mod packet_types;
pub mod roce;
mod sent_packets;
pub mod tcp;
pub mod uet;
mod unused;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use describe::{Carrier, Description, Family, Feature, HostWide};
pub use endpoint::{Endpoint, PathFacts};
pub use nic_end::NicEnd;
pub use numbers::nearest;
pub use packet_types::{PacketTypes, TypeCounts};
pub use unused::{UnusedKey, unused_keys};

/// Makes the enum of kinds and their descriptions from one list.
macro_rules! kinds {
    ($($(#[$doc:meta])* $Kind:ident: $description:path,)+) => {
        /// A kind of transport: a congestion controller of TCP, of RoCE or of Ultra Ethernet, NDP, Homa, or datagrams.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum Kind { $($(#[$doc])* $Kind,)+ }

        impl Kind {
            /// All kinds, in the order of the schema.
            pub const ALL: &[Kind] = &[$(Kind::$Kind,)+];

            /// Returns the description of the kind.
            pub fn describe(self) -> &'static Description {
                match self {
                    $(Kind::$Kind => &$description,)+
                }
            }
        }
    };
}

kinds! {
    /// Reno's window rules (RFC 5681).
    Tcp: tcp::controller::RENO,
    /// CUBIC's window, a cubic function of the time since the last cut (RFC 9438).
    Cubic: tcp::controller::CUBIC,
    /// DCTCP, which cuts the window by the share of marked bytes (RFC 8257).
    Dctcp: tcp::controller::DCTCP,
    /// Swift (Kumar et al., SIGCOMM 2020). Its ACKs are not delayed.
    Swift: tcp::controller::SWIFT,
    /// Messages in paced packets that are neither acknowledged nor repaired (UDP, as applications use it).
    Datagram: datagram::DATAGRAM,
    /// RoCE with DCQCN, which cuts the rate by congestion notification packets (SIGCOMM 2015).
    Dcqcn: roce::controller::DCQCN,
    /// RoCE with HPCC, which sets the window by telemetry (SIGCOMM 2019).
    Hpcc: roce::controller::HPCC,
    /// RoCE with TIMELY, which sets the rate by the gradient of the round-trip time (SIGCOMM 2015).
    Timely: roce::controller::TIMELY,
    /// RoCE with PowerTCP, which sets the rate by arrivals and queues in telemetry (NSDI 2022).
    Powertcp: roce::controller::POWERTCP,
    /// RoCE with PowerTCP by round-trip times, without telemetry (NSDI 2022).
    ThetaPowertcp: roce::controller::THETA_POWERTCP,
    /// RoCE with DCTCP, which cuts the rate by the share of marked bytes, as in the runs of HPCC's paper.
    RoceDctcp: roce::controller::ROCE_DCTCP,
    /// RoCE with Swift, which sets the window by the delay (SIGCOMM 2020).
    RoceSwift: roce::controller::ROCE_SWIFT,
    /// Ultra Ethernet with the window of its senders (NSCC).
    UetNscc: uet::UET_NSCC,
    /// Ultra Ethernet with the credit of its receivers (RCCC).
    UetRccc: uet::UET_RCCC,
    /// Ultra Ethernet with both.
    Uet: uet::UET,
    /// NDP: a first window at once, and behind it a packet for each pull of the receiver (SIGCOMM 2017).
    Ndp: ndp::NDP,
    /// Homa, whose receivers grant messages and choose the priorities of packets (SIGCOMM 2018).
    Homa: homa::HOMA,
}

impl Kind {
    /// Returns the kind's name, which is the value of `transport.kind`.
    pub fn name(self) -> &'static str {
        self.describe().name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_by_the_name_in_its_description() {
        for kind in Kind::ALL {
            let written = toml::Value::try_from(kind).unwrap();
            assert_eq!(written.as_str(), Some(kind.describe().name));
        }
    }
}
