//! [`SourceSockets`]: single packets between namespaces, over UDP.
//!
//! The first eight bytes of the payload are the tag. A datagram that the system does not take, such as a limiter's
//! excess, is lost, as in a simulation.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use plimsoll_fabric::net::HostId;
use plimsoll_traffic::Datagram;
use socket2::{Domain, Protocol, Socket, Type};

use super::context::AgentContext;
use super::events::{DATAGRAMS, ready, watch};
use super::plan::DrivenSource;
use super::sockets::{self, DRIVER_PORT};
use crate::edge::frame::ipv4;
use crate::failure::failed;

/// The UDP sockets of one source, by host.
#[derive(Debug)]
pub(super) struct SourceSockets {
    context: Arc<AgentContext>,
    driven: DrivenSource,
    sockets: BTreeMap<u32, UdpSocket>,
    hosts: BTreeMap<IpAddr, u32>,
    room: Box<[u8]>,
}

/// The bytes that may wait for the agent at a socket: a tenth of a second of 1 Gb/s with the kernel's overhead. A
/// datagram dropped there does not count as a loss of the network.
const ROOM: usize = 32 << 20;
/// The bytes of the tag.
const LABEL: usize = 8;
/// The largest payload of UDP over IPv4.
const PAYLOAD_MAX: u64 = 65_507;

impl SourceSockets {
    /// Returns a set of sockets that is empty.
    pub(super) fn new(context: &Arc<AgentContext>, driven: DrivenSource) -> SourceSockets {
        let hosts = 0..context.names.len() as u32;
        SourceSockets {
            context: Arc::clone(context),
            driven,
            room: vec![0; PAYLOAD_MAX as usize].into(),
            sockets: BTreeMap::new(),
            hosts: hosts.map(|host| (IpAddr::from(ipv4(HostId(host))), host)).collect(),
        }
    }

    /// Returns the payload of a datagram in bytes, its size without the header.
    pub(super) fn payload(&self, datagram: &Datagram) -> u64 {
        u64::from(datagram.size).saturating_sub(self.driven.packet_header)
    }

    /// Sends a datagram; one that the system does not take is lost.
    ///
    /// # Errors
    /// Fails if the system refuses a socket.
    pub(super) fn send(&mut self, epoll: &OwnedFd, datagram: &Datagram) -> io::Result<()> {
        let Datagram { from, to, tag, .. } = *datagram;
        self.open(epoll, to.0)?;
        self.open(epoll, from.0)?;
        let length = self.payload(datagram).clamp(LABEL as u64, PAYLOAD_MAX);
        let bytes = &mut self.room[..length as usize];
        bytes[..LABEL].copy_from_slice(&tag.to_be_bytes());
        let to = sockets::address(to.0, DRIVER_PORT + self.driven.number);
        let _ = self.sockets[&from.0].send_to(bytes, to);
        Ok(())
    }

    /// Returns the next datagram that has arrived at `host`.
    ///
    /// # Errors
    /// Fails if its socket is broken.
    pub(super) fn receive(&mut self, host: u32) -> io::Result<Option<Datagram>> {
        while let Some((length, from)) = ready(self.sockets[&host].recv_from(&mut self.room))? {
            // A program of another host may send to the socket.
            let Some(&from) = self.hosts.get(&from.ip()) else { continue };
            let Some((label, _)) = self.room[..length].split_first_chunk::<LABEL>() else { continue };
            let size = (length as u64 + self.driven.packet_header).min(u64::from(u16::MAX)) as u16;
            let (from, to) = (HostId(from), HostId(host));
            return Ok(Some(Datagram { from, to, size, tag: u64::from_be_bytes(*label) }));
        }
        Ok(None)
    }

    fn open(&mut self, epoll: &OwnedFd, host: u32) -> io::Result<()> {
        if self.sockets.contains_key(&host) {
            return Ok(());
        }
        crate::net::namespaces::enter(&self.context.names[host as usize])?;
        let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP));
        let socket = socket.map_err(|error| failed("cannot open a socket", error))?;
        sockets::prepare(&socket, &self.driven)?;
        socket.set_nonblocking(true)?;
        rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, ROOM)?;
        socket.bind(&sockets::address(host, DRIVER_PORT + self.driven.number).into())?;
        let socket = UdpSocket::from(socket);
        watch(epoll, &socket, DATAGRAMS | u64::from(host))?;
        self.sockets.insert(host, socket);
        Ok(())
    }
}
