//! [`Datagrams`]: single packets between namespaces, over UDP.
//!
//! A packet's first eight bytes are its sequence and acknowledgement numbers. A packet that the system rejects, such as
//! a limiter's excess, is lost, as in a simulation.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use plimsoll_fabric::net::{HostId, Packet};
use plimsoll_traffic::raw_packet;
use socket2::{Domain, Protocol, Socket, Type};

use super::context::AgentContext;
use super::events::{DATAGRAMS, ready, watch};
use super::plan::DrivenSource;
use super::sockets::{self, DRIVER_PORT};
use crate::edge::frame::ipv4;
use crate::failure::failed;

/// The UDP sockets of one source, by host.
#[derive(Debug)]
pub(super) struct Datagrams {
    context: Arc<AgentContext>,
    driven: DrivenSource,
    sockets: BTreeMap<u32, UdpSocket>,
    hosts: BTreeMap<IpAddr, u32>,
    room: Box<[u8]>,
}

/// The bytes that may wait for the agent at a socket: a tenth of a second of 1 Gb/s with the kernel's overhead. A
/// datagram dropped there does not count as a loss of the network.
const ROOM: usize = 32 << 20;
/// The bytes of sequence and acknowledgement number.
const LABEL: usize = 8;
/// The largest payload of UDP over IPv4.
const PAYLOAD_MAX: u64 = 65_507;

impl Datagrams {
    /// Returns a set of sockets that is empty.
    pub(super) fn new(context: &Arc<AgentContext>, driven: DrivenSource) -> Datagrams {
        let hosts = 0..context.names.len() as u32;
        Datagrams {
            context: Arc::clone(context),
            driven,
            room: vec![0; PAYLOAD_MAX as usize].into(),
            sockets: BTreeMap::new(),
            hosts: hosts.map(|host| (IpAddr::from(ipv4(HostId(host))), host)).collect(),
        }
    }

    /// Returns the payload of `packet` in bytes, its size without the header.
    pub(super) fn payload(&self, packet: &Packet) -> u64 {
        u64::from(packet.size).saturating_sub(self.driven.packet_header)
    }

    /// Sends a packet; a packet that the system does not take is lost.
    ///
    /// # Errors
    /// Fails if the system refuses a socket.
    pub(super) fn send(&mut self, epoll: &OwnedFd, packet: &Packet) -> io::Result<()> {
        self.open(epoll, packet.dst.0)?;
        self.open(epoll, packet.src.0)?;
        let length = self.payload(packet).clamp(LABEL as u64, PAYLOAD_MAX);
        let bytes = &mut self.room[..length as usize];
        bytes[..4].copy_from_slice(&packet.seq.to_be_bytes());
        bytes[4..LABEL].copy_from_slice(&packet.ack.to_be_bytes());
        let to = sockets::address(packet.dst.0, DRIVER_PORT + self.driven.number);
        let _ = self.sockets[&packet.src.0].send_to(bytes, to);
        Ok(())
    }

    /// Returns the next packet that has arrived at `host`.
    ///
    /// # Errors
    /// Fails if its socket is broken.
    pub(super) fn receive(&mut self, host: u32) -> io::Result<Option<Packet>> {
        while let Some((length, from)) = ready(self.sockets[&host].recv_from(&mut self.room))? {
            // A program of another host may send to the socket.
            let Some(&from) = self.hosts.get(&from.ip()) else { continue };
            let Some((label, _)) = self.room[..length].split_first_chunk::<LABEL>() else { continue };
            let [a, b, c, d, e, f, g, h] = *label;
            let size = (length as u64 + self.driven.packet_header).min(u64::from(u16::MAX)) as u16;
            let (seq, ack) = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
            return Ok(Some(packet_of(self.driven.number, (from, host), size, seq, ack)));
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

/// Returns a single packet as it was sent.
fn packet_of(workload: u16, (from, to): (u32, u32), size: u16, seq: u32, ack: u32) -> Packet {
    let mut packet = raw_packet(workload, HostId(from), HostId(to), size);
    (packet.seq, packet.ack) = (seq, ack);
    packet
}
