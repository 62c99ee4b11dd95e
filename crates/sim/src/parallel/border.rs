//! [`Border`]: what leaves a part of a network for another.

use plimsoll_fabric::net::{HostId, Packet, PortId};
use plimsoll_units::Time;

use super::plan::Plan;
use crate::connection::{End, Outgoing};
use crate::world::World;

/// The way out of a part.
#[derive(Debug)]
pub(crate) struct Border {
    here: u8,
    /// By link: the part that it ends in.
    ends_in: Vec<u8>,
    /// By host: its part.
    hosts: Vec<u8>,
    /// By part: what is posted at the end of this stretch of time.
    pub(super) outgoing: Vec<Vec<Letter>>,
}

/// What one part sends another.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Letter {
    /// A packet, on the link of `port`.
    Packet { port: PortId, arrives: Time, packet: Packet },
    /// The last byte of `message` is on its way to an end of a connection.
    Message { connection: u32, to: End, message: Outgoing },
}

impl Border {
    pub(super) fn new(world: &World, plan: &Plan, here: u8) -> Border {
        Border {
            here,
            ends_in: world.network.links().iter().map(|link| plan.part(link.to)).collect(),
            hosts: plan.hosts.clone(),
            outgoing: (0..plan.parts).map(|_| Vec::new()).collect(),
        }
    }

    /// Whether the link of `port` ends in another part.
    #[inline]
    pub(crate) fn is_crossed_by(&self, port: PortId) -> bool {
        self.ends_in[port.0 as usize] != self.here
    }

    /// Whether `host` is in this part.
    pub(crate) fn has(&self, host: HostId) -> bool {
        self.hosts[host.0 as usize] == self.here
    }

    /// `packet` leaves on the link of `port`.
    #[inline(never)]
    pub(crate) fn transmit(&mut self, port: PortId, arrives: Time, packet: Packet) -> &mut Packet {
        let letters = &mut self.outgoing[usize::from(self.ends_in[port.0 as usize])];
        letters.push(Letter::Packet { port, arrives, packet });
        match letters.last_mut() {
            Some(Letter::Packet { packet, .. }) => packet,
            _ => unreachable!("it has just been put there"),
        }
    }

    /// `host`, at the end `to` of `connection`, is to expect `message`.
    pub(crate) fn announce(&mut self, host: HostId, connection: u32, to: End, message: Outgoing) {
        self.outgoing[usize::from(self.hosts[host.0 as usize])].push(Letter::Message {
            connection,
            to,
            message,
        });
    }
}
