//! [`HostCredit`]: the pull queue of a host, and the senders that share its NIC.

use plimsoll_mechanisms::transports::credit::PullPacer;
use plimsoll_mechanisms::transports::uet::CreditRate;
use plimsoll_traffic::ConnectionEnd as End;
use plimsoll_units::Time;

/// The state of one host, where its NIC carries Ultra Ethernet or NDP.
#[derive(Debug)]
pub(super) struct HostCredit {
    pub(super) pacer: PullPacer<(u32, End)>,
    /// The time of the event that the queue has for the pacer; [`Time::MAX`] if it has none.
    pub(super) armed: Time,
    /// The ends with data to send.
    pub(super) senders: u32,
    /// The rate of the grants, where links before the host's own may be congested.
    pub(super) rate: CreditRate,
}

impl Default for HostCredit {
    fn default() -> HostCredit {
        HostCredit { pacer: PullPacer::default(), armed: Time::MAX, senders: 0, rate: CreditRate::default() }
    }
}
