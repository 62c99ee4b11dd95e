//! The buffers that ports of a switch share.

use plimsoll_fabric::net::port::SharedRoom;
use plimsoll_fabric::net::{Network, Node, PortId};
use plimsoll_mechanisms::shared_buffer::SharedBuffer;
use plimsoll_scenario::model::Model;

use crate::ports::settings;

/// One buffer for each switch whose ports share one, and each port's place in it.
#[derive(Debug, Default)]
pub struct Pools {
    /// By number, as [`SharedRoom::pool`] says.
    pub buffers: Vec<SharedBuffer>,
    rooms: Vec<Option<SharedRoom>>,
}

impl Pools {
    /// Those of `model`.
    pub fn new(model: &Model, network: &Network) -> Pools {
        let mut ports_of = vec![Vec::new(); network.switches() as usize];
        for (port, link) in (0..).map(PortId).zip(network.links()) {
            if let Node::Switch(switch) = link.from {
                ports_of[switch as usize].push(port);
            }
        }
        let mut pools = Pools { buffers: Vec::new(), rooms: vec![None; network.links().len()] };
        for ports in &ports_of {
            // All ports of a switch are of one tier, and so have the same settings.
            let shared = ports.first().and_then(|&port| settings(model, network, port).shared_buffer());
            let Some(params) = shared else { continue };
            let pool = pools.buffers.len() as u32;
            pools.buffers.push(SharedBuffer::new(params, ports.len()));
            for (number, port) in ports.iter().enumerate() {
                pools.rooms[port.0 as usize] = Some(SharedRoom { pool, port: number });
            }
        }
        pools
    }

    /// The place of `port`, if its switch has a shared buffer.
    pub fn room(&self, port: PortId) -> Option<SharedRoom> {
        self.rooms[port.0 as usize]
    }
}
