//! The kernel's data on TCP sockets, by `NETLINK_SOCK_DIAG` (linux/inet_diag.h): the bytes that are written and not
//! sent.
//!
//! ```text
//! dump of TCP ──> connection, tcp_info: not sent; of a subflow also the token of its connection of MPTCP
//! one query a token ──> mptcp_info: written, acknowledged and sent by the connection
//! ```
//!
//! A message is read by its fixed offsets, for kernels append to its structures and never move a field. A structure
//! that is too short for a field lacks it. MPTCP is not dumped: the kernel would walk a table of all namespaces.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;

use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{bind, recv, send, socket_with};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;

const AF_INET: u8 = 2;
const IPPROTO_TCP: u8 = 6;
const IPPROTO_MPTCP: u32 = 262;

/// States of connections that may have something to send: established, FIN_WAIT1, CLOSE_WAIT, LAST_ACK, CLOSING.
const STATES: u32 = 1 << 1 | 1 << 4 | 1 << 8 | 1 << 9 | 1 << 11;

/// Lengths of `nlmsghdr`, `inet_diag_req_v2` and `inet_diag_msg`.
const HEADER: usize = 16;
const REQUEST: usize = 56;
const MESSAGE: usize = 72;
/// Attributes of a request and of messages.
const INET_DIAG_REQ_PROTOCOL: u16 = 3;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_ULP_INFO: u16 = 19;
const INET_ULP_INFO_MPTCP: u16 = 3;
const MPTCP_SUBFLOW_ATTR_TOKEN_LOC: u16 = 2;
/// Bits of an attribute's kind that say how it is encoded.
const KIND: u16 = 0x3fff;

/// Offsets in the structures: in `inet_diag_msg` the ports, the source and the destination; in `tcp_info` the segment
/// size, threshold and window, the segments retransmitted, the bytes acknowledged and the bytes not sent; in
/// `mptcp_info` the sequence number behind the last byte written, the first that is not acknowledged, and the bytes
/// sent and acknowledged.
const PORTS: usize = 4;
const SOURCE: usize = 8;
const DESTINATION: usize = 24;
const SEGMENT: usize = 16;
const SSTHRESH: usize = 76;
const CWND: usize = 80;
const RETRANSMITTED: usize = 100;
const TCP_ACKED: usize = 120;
const NOTSENT: usize = 144;
const WRITE_SEQ: usize = 16;
const SND_UNA: usize = 24;
const BYTES_SENT: usize = 56;
const BYTES_ACKED: usize = 72;

/// The slow start threshold, in segments, of a slow start without an end (include/net/tcp.h).
const NO_SSTHRESH: u32 = 0x7fff_ffff;

/// The room for the data that the kernel hands over at once: a dump fills 32 KiB at most.
const ROOM: usize = 64 << 10;

/// A TCP connection's end, or a subflow's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpSocket {
    /// The address of this end.
    pub from: Ipv4Addr,
    /// The address at the other end.
    pub to: Ipv4Addr,
    /// The bytes that are written and have never been sent.
    pub unsent: u64,
    /// The connection of MPTCP that a subflow belongs to.
    pub token: Option<u32>,
    /// The ports of this end and of the other.
    pub ports: [u16; 2],
    /// Its window and progress.
    pub window: SendWindow,
}

/// Window and progress of an end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SendWindow {
    /// The congestion window in bytes.
    pub cwnd: u64,
    /// The slow start threshold in bytes; `None` while slow start has no end.
    pub ssthresh: Option<u64>,
    /// The segments retransmitted so far.
    pub retransmissions: u64,
    /// The bytes acknowledged so far.
    pub acknowledged: u64,
}

/// Requests the sockets of its namespace from the kernel.
#[derive(Debug)]
pub struct SockDiag {
    socket: OwnedFd,
    room: Box<[u8]>,
}

impl SockDiag {
    /// Opens a socket in this thread's namespace.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn open() -> io::Result<SockDiag> {
        let (family, kind) = (AddressFamily::NETLINK, SocketType::RAW);
        let socket = socket_with(family, kind, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
        bind(&socket, &SocketAddrNetlink::new(0, 0))?;
        Ok(SockDiag { socket, room: vec![0; ROOM].into() })
    }

    /// Calls `each` with every TCP connection over IPv4.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn tcp(&mut self, mut each: impl FnMut(TcpSocket)) -> io::Result<()> {
        send(&self.socket, &request(IPPROTO_TCP, STATES, NLM_F_DUMP, 0), SendFlags::empty())?;
        loop {
            let (read, _) = recv(&self.socket, &mut self.room[..], RecvFlags::empty())?;
            if !read_tcp(&self.room[..read], &mut each)? {
                return Ok(());
            }
        }
    }

    /// Returns the bytes that were written to the connection of MPTCP with `token` and not yet handed to a subflow; 0
    /// if the connection has ended.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn mptcp_unsent(&mut self, token: u32) -> io::Result<u64> {
        let protocol = (IPPROTO_MPTCP & 0xff) as u8;
        send(&self.socket, &request(protocol, STATES, 0, token), SendFlags::empty())?;
        let (read, _) = recv(&self.socket, &mut self.room[..], RecvFlags::empty())?;
        let mut messages = NetlinkMessages(&self.room[..read]);
        let found = messages.next().filter(|(kind, _)| *kind == SOCK_DIAG_BY_FAMILY);
        Ok(found.and_then(|(_, body)| mptcp_unsent(body)).unwrap_or(0))
    }
}

/// Returns a request for sockets in `states`, with the kernel's data on each: all, or the one of MPTCP with a token.
fn request(protocol: u8, states: u32, flags: u16, token: u32) -> Vec<u8> {
    let is_mptcp = token != 0;
    let length = HEADER + REQUEST + if is_mptcp { 8 } else { 0 };
    let mut request = Vec::with_capacity(length);
    request.extend_from_slice(&(length as u32).to_ne_bytes());
    request.extend_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request.extend_from_slice(&(NLM_F_REQUEST | flags).to_ne_bytes());
    request.extend_from_slice(&[0; 8]); // the number of the request, and the sender
    request.extend_from_slice(&[AF_INET, protocol, 1 << (INET_DIAG_INFO - 1), 0]);
    request.extend_from_slice(&states.to_ne_bytes());
    request.extend_from_slice(&[0; 40]); // ports, addresses and interface: any
    request.extend_from_slice(&token.to_ne_bytes());
    request.extend_from_slice(&[0; 4]);
    if is_mptcp {
        request.extend_from_slice(&8u16.to_ne_bytes());
        request.extend_from_slice(&INET_DIAG_REQ_PROTOCOL.to_ne_bytes());
        request.extend_from_slice(&IPPROTO_MPTCP.to_ne_bytes());
    }
    request
}

/// Reads a part of a dump of TCP. Returns whether more follows.
fn read_tcp(bytes: &[u8], each: &mut impl FnMut(TcpSocket)) -> io::Result<bool> {
    for (kind, body) in NetlinkMessages(bytes) {
        match kind {
            NLMSG_DONE => return Ok(false),
            NLMSG_ERROR => {
                let error = word(body, 0).map_or(0, |error| (error as i32).wrapping_neg());
                return Err(io::Error::from_raw_os_error(error));
            }
            SOCK_DIAG_BY_FAMILY => {
                if let Some(socket) = tcp_socket(body) {
                    each(socket);
                }
            }
            _ => {}
        }
    }
    Ok(true)
}

/// Reads an `inet_diag_msg` of TCP over IPv4.
fn tcp_socket(body: &[u8]) -> Option<TcpSocket> {
    if *body.first()? != AF_INET {
        return None;
    }
    let address = |at| Some(Ipv4Addr::from(<[u8; 4]>::try_from(body.get(at..at + 4)?).ok()?));
    let port = |at| Some(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?));
    let ports = [port(PORTS)?, port(PORTS + 2)?];
    let (from, to) = (address(SOURCE)?, address(DESTINATION)?);
    let mut socket = TcpSocket { from, to, unsent: 0, token: None, ports, window: SendWindow::default() };
    for (kind, value) in Attributes(body.get(MESSAGE..)?) {
        match kind {
            INET_DIAG_INFO => {
                socket.unsent = word(value, NOTSENT).map_or(0, u64::from);
                socket.window = window(value).unwrap_or_default();
            }
            INET_DIAG_ULP_INFO => socket.token = token(value),
            _ => {}
        }
    }
    Some(socket)
}

/// Reads of a `tcp_info` how the socket sends.
fn window(info: &[u8]) -> Option<SendWindow> {
    let segment = u64::from(word(info, SEGMENT)?);
    let ssthresh = word(info, SSTHRESH)?;
    Some(SendWindow {
        cwnd: u64::from(word(info, CWND)?) * segment,
        ssthresh: (ssthresh < NO_SSTHRESH).then(|| u64::from(ssthresh) * segment),
        retransmissions: u64::from(word(info, RETRANSMITTED)?),
        acknowledged: long(info, TCP_ACKED)?,
    })
}

/// Parses the token of a subflow's connection from the data on a socket's upper layer.
fn token(upper_layer: &[u8]) -> Option<u32> {
    let (_, mptcp) = Attributes(upper_layer).find(|(kind, _)| *kind == INET_ULP_INFO_MPTCP)?;
    let (_, token) = Attributes(mptcp).find(|(kind, _)| *kind == MPTCP_SUBFLOW_ATTR_TOKEN_LOC)?;
    word(token, 0)
}

/// Parses the bytes that were written and handed to no subflow from an `inet_diag_msg` of MPTCP.
fn mptcp_unsent(body: &[u8]) -> Option<u64> {
    let (_, info) = Attributes(body.get(MESSAGE..)?).find(|(kind, _)| *kind == INET_DIAG_INFO)?;
    let unacknowledged = long(info, WRITE_SEQ)?.wrapping_sub(long(info, SND_UNA)?);
    // A kernel that does not count these bytes (before 6.5) has all that is not acknowledged count.
    let in_flight = long(info, BYTES_SENT).zip(long(info, BYTES_ACKED));
    let in_flight = in_flight.map_or(0, |(sent, acknowledged)| sent.saturating_sub(acknowledged));
    Some(unacknowledged.saturating_sub(in_flight))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

/// The netlink messages in a buffer, by kind and body.
struct NetlinkMessages<'a>(&'a [u8]);

impl<'a> Iterator for NetlinkMessages<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let length = word(self.0, 0)? as usize;
        let kind = u16::from_ne_bytes(self.0.get(4..6)?.try_into().ok()?);
        let body = self.0.get(HEADER..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, body))
    }
}

/// Netlink attributes, by kind and value.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let header = word(self.0, 0)?.to_ne_bytes();
        let length = usize::from(u16::from_ne_bytes([header[0], header[1]]));
        let kind = u16::from_ne_bytes([header[2], header[3]]) & KIND;
        let value = self.0.get(4..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

#[cfg(test)]
mod tests;
