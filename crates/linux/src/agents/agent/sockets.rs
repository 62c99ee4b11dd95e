//! The priority and the addresses of the agent's sockets.

use std::io;
use std::net::SocketAddr;

use plimsoll_fabric::net::HostId;
use socket2::Socket;

use super::plan::DrivenSource;
use crate::edge::frame::ipv4;

/// The port of the first source; the others' ports follow by their number in the scenario.
pub(crate) const DRIVER_PORT: u16 = 20_000;

/// Gives the socket's packets a priority, 0 to 7: as the upper bits of their DSCP, which the fabric reads, and as
/// `SO_PRIORITY`, which a limiter of the host reads. The DSCP's lower bits name the switches of a hybrid network that
/// may carry them.
///
/// # Errors
/// Fails if the system refuses.
pub(super) fn prepare(socket: &Socket, driven: &DrivenSource) -> io::Result<()> {
    let priority = u32::from(driven.priority & 7);
    socket.set_tos_v4(priority << 5 | u32::from(driven.pool & 7) << 2)?;
    // After the DSCP, which changes it.
    socket.set_priority(priority)
}

/// Returns the address of a port of a host.
pub(super) fn address(host: u32, port: u16) -> SocketAddr {
    SocketAddr::from((ipv4(HostId(host)), port))
}
