//! A request as it crosses from one thread to another.
//!
//! ```text
//! version (1) | datapath (8) | transaction (4) | event (1) | buffer (4) total (2) port (4) data ...  for a packet
//!                                                          | port (4) gone (1)                       for a port
//! ```

use plimsoll_openflow::{PacketIn, PortStatus, Version, u16_at, u32_at, u64_at};

use crate::service::Request;
use crate::session::{DatapathEvent, Peer};

const JOIN: u8 = 0;
const PACKET: u8 = 1;
const PORT: u8 = 2;

/// Appends `request` to `message`.
pub fn encode(request: &Request<'_>, message: &mut Vec<u8>) {
    message.push(request.peer.version as u8);
    message.extend(request.peer.datapath.to_be_bytes());
    message.extend(request.transaction.to_be_bytes());
    match &request.event {
        DatapathEvent::Join => message.push(JOIN),
        DatapathEvent::Packet(packet) => {
            message.push(PACKET);
            message.extend(packet.buffer.to_be_bytes());
            message.extend(packet.total_bytes.to_be_bytes());
            message.extend(packet.port.to_be_bytes());
            message.extend(packet.data);
        }
        DatapathEvent::Port(status) => {
            message.push(PORT);
            message.extend(status.port.to_be_bytes());
            message.push(u8::from(status.gone));
        }
    }
}

/// Returns the request that [`encode`] wrote; None for anything else.
pub fn decode(message: &[u8]) -> Option<Request<'_>> {
    let version = Version::from_wire(*message.first()?)?;
    let peer = Peer { version, datapath: u64_at(message, 1)? };
    let transaction = u32_at(message, 9)?;
    let event = match *message.get(13)? {
        JOIN => DatapathEvent::Join,
        PACKET => DatapathEvent::Packet(PacketIn {
            buffer: u32_at(message, 14)?,
            total_bytes: u16_at(message, 18)?,
            port: u32_at(message, 20)?,
            data: message.get(24..)?,
        }),
        PORT => DatapathEvent::Port(PortStatus { port: u32_at(message, 14)?, gone: *message.get(18)? != 0 }),
        _ => return None,
    };
    Some(Request { peer, transaction, event })
}
