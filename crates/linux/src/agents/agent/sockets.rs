//! The priority and the addresses of the agent's sockets.

use std::io;
use std::net::SocketAddr;

use plimsoll_fabric::net::HostId;
use socket2::Socket;

use super::plan::DrivenSource;
use crate::edge::frame::ipv4;

/// The port of the first source; the others' ports follow by their number in the scenario.
pub(crate) const DRIVER_PORT: u16 = 20_000;

/// Gives the socket's packets their DSCP, which the fabric reads, and their priority as `SO_PRIORITY`, which a limiter
/// of the host reads.
///
/// # Errors
/// Fails if the system refuses.
pub(super) fn prepare(socket: &Socket, driven: &DrivenSource) -> io::Result<()> {
    socket.set_tos_v4(u32::from(driven.dscp) << 2)?;
    // After the DSCP, which changes it.
    socket.set_priority(driven.priority.into())
}

/// Returns the address of a port of a host.
pub(super) fn address(host: u32, port: u16) -> SocketAddr {
    SocketAddr::from((ipv4(HostId(host)), port))
}
