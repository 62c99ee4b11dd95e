//! [`NetworkPaths`]: what senders that choose paths know of the network.

use plimsoll_fabric::net::Network;
use plimsoll_mechanisms::tcp::TcpConfig;
use plimsoll_scenario::model::Model;
use plimsoll_units::{Span, Streams};

use super::transports::Transports;

/// What senders that choose paths know of the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct NetworkPaths {
    /// The longest round trip of an idle path.
    pub(super) round_trip: Span,
    /// The word on which their choices depend.
    pub(super) seed: u64,
}

impl NetworkPaths {
    /// Returns the facts that such senders have; `None` if no transport has any.
    pub(super) fn of(model: &Model, network: &Network, transports: &Transports) -> Option<NetworkPaths> {
        let sizes = transports.all().filter(|config| config.carrier().chooses_paths());
        let of = |config: &TcpConfig| {
            network.longest_round_trip(
                config.segment as u16 + config.header_bytes as u16,
                config.ack_bytes as u16,
            )
        };
        let round_trip = sizes.map(of).max()?;
        Some(NetworkPaths { round_trip, seed: Streams::new(model.run.seed).word("entropy") })
    }
}
