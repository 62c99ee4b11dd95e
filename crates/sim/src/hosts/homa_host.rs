//! [`HomaHost`]: who sends and who is granted at a host, where messages of Homa travel.

use std::collections::BTreeMap;

use plimsoll_mechanisms::transports::Carrier;
use plimsoll_mechanisms::transports::homa::{GrantScheduler, HomaConfig, SenderQueue};
use plimsoll_units::Time;

use super::transports::Transports;

/// An end of a connection, by the connection's number, and whether it is the server's.
pub(super) type Key = (u32, bool);

/// The state of one host, where messages of Homa travel.
#[derive(Debug)]
pub(super) struct HomaHost {
    pub(super) sending: SenderQueue<Key>,
    /// The bytes left of the message that sent last, and the priority of the packet.
    pub(super) handed: (u64, u8),
    pub(super) grants: GrantScheduler<Key>,
    /// When the next packet of a message may be granted without one that has arrived.
    pub(super) next_grant: BTreeMap<Key, Time>,
    /// The time of the event that the queue has for grants; [`Time::MAX`] if it has none.
    pub(super) armed: Time,
    /// The senders that are granted at a time, and the slots.
    pub(super) degree: usize,
    pub(super) levels: usize,
}

impl HomaHost {
    fn new(config: &HomaConfig) -> HomaHost {
        HomaHost {
            sending: SenderQueue::default(),
            handed: (0, 0),
            grants: GrantScheduler::default(),
            next_grant: BTreeMap::new(),
            armed: Time::MAX,
            degree: config.degree(),
            levels: config.params.scheduled_levels.into(),
        }
    }

    /// Returns the state of `count` hosts; none without Homa. The first of several transports says how many senders are
    /// granted at a time.
    pub(super) fn all(transports: &Transports, count: u32) -> Vec<HomaHost> {
        let first = transports.all().find(|config| config.carrier() == Carrier::Homa);
        first.map_or_else(Vec::new, |config| (0..count).map(|_| HomaHost::new(&config.homa)).collect())
    }
}
