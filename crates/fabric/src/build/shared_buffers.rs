//! [`SharedBuffers`]: the buffers that ports of a switch share.

use plimsoll_mechanisms::shared_buffer::SharedBuffer;

use crate::net::port::SharedRoom;
use crate::net::{Node, PortId};
use crate::spec::FabricSpec;

/// One buffer for each switch whose ports share one, and each port's place in it.
#[derive(Debug, Default)]
pub(crate) struct SharedBuffers {
    /// The buffers by number, as [`SharedRoom::pool`] gives it.
    pub(crate) buffers: Vec<SharedBuffer>,
    /// By number of the buffer: the ports that share it.
    pub(crate) members: Vec<Vec<PortId>>,
    /// The place of each port.
    rooms: Vec<Option<SharedRoom>>,
}

impl SharedBuffers {
    pub(crate) fn new(spec: &FabricSpec) -> SharedBuffers {
        let network = &spec.network;
        let mut ports_of = vec![Vec::new(); network.switches() as usize];
        for (port, link) in (0..).map(PortId).zip(network.links()) {
            if let Node::Switch(switch) = link.from {
                ports_of[switch as usize].push(port);
            }
        }
        let mut shared = SharedBuffers {
            buffers: Vec::new(),
            members: Vec::new(),
            rooms: vec![None; network.links().len()],
        };
        for ports in &ports_of {
            // All ports of a switch are of one tier, and so have the same settings.
            let first = ports.first().map(|port| spec.port(network.link(*port)));
            let Some(params) = first.and_then(|port| port.mechanisms.shared_buffer.as_ref()) else {
                continue;
            };
            let pool = shared.buffers.len() as u32;
            shared.buffers.push(SharedBuffer::new(params, ports.len()));
            for (number, port) in ports.iter().enumerate() {
                shared.rooms[port.0 as usize] = Some(SharedRoom { pool, port: number });
            }
            shared.members.push(ports.clone());
        }
        shared
    }

    /// Returns the place of `port`, if its switch has a shared buffer.
    pub(crate) fn room(&self, port: PortId) -> Option<SharedRoom> {
        self.rooms[port.0 as usize]
    }
}
