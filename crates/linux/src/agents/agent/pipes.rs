//! [`Pipes`]: TCP connections between namespaces, and the messages in their byte streams.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use plimsoll_results::outcome;
use socket2::{Domain, Protocol, Socket, Type};

use super::context::AgentContext;
use super::events::{LISTENER, ready, watch};
use super::pace::Pace;
use super::plan::{CONNECTIONS_MAX, DrivenSource};
use super::sockets::{self, DRIVER_PORT};
use crate::failure::failed;

/// The connections of one source.
#[derive(Debug)]
pub(super) struct Pipes {
    context: Arc<AgentContext>,
    driven: DrivenSource,
    pipes: Vec<Pipe>,
    /// The number of connections that have been closed.
    closed: usize,
    /// The listeners, by host.
    listeners: BTreeMap<u32, Socket>,
    expected: Expected,
    piece: Vec<u8>,
}

/// The connections that their server has not accepted, by the client's address and the server: one address may have
/// connections to several servers, which accept them in any order.
#[derive(Debug, Default)]
struct Expected(BTreeMap<(SocketAddr, u32), usize>);

impl Expected {
    fn insert(&mut self, client: SocketAddr, server: u32, pipe: usize) {
        self.0.insert((client, server), pipe);
    }

    /// Returns the number of a connection from `client` that `server` has accepted; `None` if no source has opened it.
    fn accepted(&mut self, client: SocketAddr, server: u32) -> Option<usize> {
        self.0.remove(&(client, server))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[derive(Debug)]
struct Pipe {
    client: u32,
    server: u32,
    /// The client's end and the server's.
    ends: [PipeEnd; 2],
    delivered: u64,
}

/// One end of a connection: the bytes it has yet to write, and the messages in flight to it.
#[derive(Debug, Default)]
struct PipeEnd {
    stream: Option<TcpStream>,
    pace: Pace,
    unsent: u64,
    messages: VecDeque<InFlight>,
}

/// A message as its source wrote it.
#[derive(Clone, Copy, Debug)]
pub(super) struct PipedMessage {
    /// The number that the source gave the connection.
    pub(super) connection: u32,
    pub(super) bytes: u64,
    /// The source's tag, which its arrival returns.
    pub(super) tag: u64,
}

#[derive(Clone, Copy, Debug)]
struct InFlight {
    /// The bytes that have not arrived.
    left: u64,
    message: PipedMessage,
}

/// The number of bytes written or read at once.
const PIECE: usize = 64 << 10;

static ZEROS: [u8; PIECE] = [0; PIECE];

impl Pipes {
    /// Returns a set of connections that is empty.
    pub(super) fn new(context: &Arc<AgentContext>, driven: DrivenSource) -> Pipes {
        Pipes {
            context: Arc::clone(context),
            driven,
            pipes: Vec::new(),
            closed: 0,
            listeners: BTreeMap::new(),
            expected: Expected::default(),
            piece: vec![0; PIECE],
        }
    }

    /// Begins to open a connection and returns its number.
    ///
    /// # Errors
    /// Fails if the system refuses, or too many connections are open.
    pub(super) fn open(&mut self, epoll: &OwnedFd, client: u32, server: u32) -> io::Result<usize> {
        let number = self.pipes.len();
        if number - self.closed >= CONNECTIONS_MAX {
            let text = format!(
                "more than {CONNECTIONS_MAX} connections at a time; \
                 `transport.connections = \"long-lived\"` needs fewer"
            );
            return Err(io::Error::other(text));
        }
        self.listen(epoll, server)?;
        let socket = self.socket(client)?;
        match socket.connect(&sockets::address(server, self.port()).into()) {
            Err(error) if error.raw_os_error() != Some(rustix::io::Errno::INPROGRESS.raw_os_error()) => {
                return Err(error);
            }
            _ => {}
        }
        let own =
            socket.local_addr()?.as_socket().ok_or_else(|| io::Error::other("a socket without address"))?;
        self.expected.insert(own, server, number);
        let stream = TcpStream::from(socket);
        watch(epoll, &stream, (number as u64) << 1)?;
        let transport = self.context.transport(&self.driven);
        let (shares, segment) = (&self.context.settings.shares, transport.config.segment);
        // Sockets of MPTCP are not paced.
        let pace = |host| match transport.multipath {
            true => Pace::default(),
            false => Pace::new(shares, host, self.driven.priority, segment),
        };
        let ends = [
            PipeEnd { stream: Some(stream), pace: pace(client), ..PipeEnd::default() },
            PipeEnd { pace: pace(server), ..PipeEnd::default() },
        ];
        self.pipes.push(Pipe { client, server, ends, delivered: 0 });
        Ok(number)
    }

    fn port(&self) -> u16 {
        DRIVER_PORT + self.driven.number
    }

    fn socket(&self, host: u32) -> io::Result<Socket> {
        crate::net::namespaces::enter(&self.context.names[host as usize])?;
        let transport = self.context.transport(&self.driven);
        let protocol = if transport.multipath { Protocol::MPTCP } else { Protocol::TCP };
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol));
        let socket = socket.map_err(|error| failed("cannot open a socket", error))?;
        sockets::prepare(&socket, &self.driven)?;
        socket.set_tcp_congestion(transport.congestion_control.as_bytes())?;
        socket.set_tcp_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }

    fn listen(&mut self, epoll: &OwnedFd, host: u32) -> io::Result<()> {
        if self.listeners.contains_key(&host) {
            return Ok(());
        }
        let listener = self.socket(host)?;
        listener.set_reuse_address(true)?;
        listener.bind(&sockets::address(host, self.port()).into())?;
        listener.listen(CONNECTIONS_MAX as i32)?;
        watch(epoll, &listener, LISTENER | u64::from(host))?;
        self.listeners.insert(host, listener);
        Ok(())
    }

    /// Accepts the connections that wait at the server on `host`.
    ///
    /// # Errors
    /// Fails if the system refuses.
    pub(super) fn accept(&mut self, epoll: &OwnedFd, host: u32) -> io::Result<()> {
        while let Some((socket, from)) = ready(self.listeners[&host].accept())? {
            let Some(number) = from.as_socket().and_then(|from| self.expected.accepted(from, host)) else {
                continue;
            };
            sockets::prepare(&socket, &self.driven)?;
            socket.set_tcp_nodelay(true)?;
            socket.set_nonblocking(true)?;
            let stream = TcpStream::from(socket);
            watch(epoll, &stream, (number as u64) << 1 | 1)?;
            self.pipes[number].ends[1].stream = Some(stream);
            self.flush(number, 1)?;
        }
        Ok(())
    }

    /// Closes a connection, unless a message is in flight on it.
    pub(super) fn close_if_idle(&mut self, pipe: usize) {
        let ends = &mut self.pipes[pipe].ends;
        let idle = |end: &PipeEnd| end.stream.is_some() && end.unsent == 0 && end.messages.is_empty();
        if ends.iter().all(idle) {
            ends.iter_mut().for_each(|end| end.stream = None);
            self.closed += 1;
        }
    }

    /// Returns whether every connection is open.
    pub(super) fn are_open(&self) -> bool {
        self.expected.is_empty()
    }

    /// Returns the client and the server of a connection.
    pub(super) fn hosts(&self, pipe: usize) -> (u32, u32) {
        (self.pipes[pipe].client, self.pipes[pipe].server)
    }

    /// Writes a message at one end, as far as the socket has room; the rest follows when it has more.
    ///
    /// # Errors
    /// Fails if the connection is broken.
    pub(super) fn write(&mut self, pipe: usize, end: usize, message: PipedMessage) -> io::Result<()> {
        let ends = &mut self.pipes[pipe].ends;
        ends[1 - end].messages.push_back(InFlight { left: message.bytes, message });
        ends[end].unsent += message.bytes;
        self.flush(pipe, end)
    }

    /// Writes the bytes that are left, as far as the socket has room.
    ///
    /// # Errors
    /// Fails if the connection is broken.
    pub(super) fn flush(&mut self, pipe: usize, end: usize) -> io::Result<()> {
        let PipeEnd { stream: Some(stream), unsent, pace, .. } = &mut self.pipes[pipe].ends[end] else {
            return Ok(());
        };
        if *unsent > 0 {
            pace.keep(&*stream, self.context.settings.clock.now())?;
        }
        while *unsent > 0 {
            let most = (*unsent).min(PIECE as u64) as usize;
            match ready(stream.write(&ZEROS[..most]))? {
                Some(written) => *unsent -= written as u64,
                None => break,
            }
        }
        Ok(())
    }

    /// Reads the bytes that have arrived and returns the messages that they complete.
    ///
    /// # Errors
    /// Fails if the connection is broken.
    pub(super) fn read(&mut self, pipe: usize, end: usize) -> io::Result<Vec<PipedMessage>> {
        let Pipe { ends, delivered, .. } = &mut self.pipes[pipe];
        let PipeEnd { stream: Some(stream), messages, .. } = &mut ends[end] else { return Ok(Vec::new()) };
        let mut whole = Vec::new();
        while let Some(read) = ready(stream.read(&mut self.piece))? {
            if read == 0 {
                return Err(io::Error::other("the other end has closed the connection"));
            }
            *delivered += read as u64;
            let mut left = read as u64;
            while left > 0 {
                let first =
                    messages.front_mut().ok_or_else(|| io::Error::other("more came than was sent"))?;
                let part = left.min(first.left);
                (left, first.left) = (left - part, first.left - part);
                if first.left == 0 {
                    whole.push(first.message);
                    messages.pop_front();
                }
            }
        }
        Ok(whole)
    }

    /// Returns the records of the connections, by their numbers in `pipe_of`.
    pub(super) fn records(&self, pipe_of: &[usize]) -> Vec<outcome::ConnectionRecord> {
        let record = |pipe: &Pipe| outcome::ConnectionRecord {
            workload: self.driven.number,
            client: pipe.client,
            server: pipe.server,
            delivered: pipe.delivered,
            ..outcome::ConnectionRecord::default()
        };
        pipe_of.iter().map(|pipe| record(&self.pipes[*pipe])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel gives connections to different servers the same port of the client, where it likes.
    #[test]
    fn connections_of_one_address_are_told_apart_by_their_servers() {
        let mut expected = Expected::default();
        let (client, other) = (sockets::address(3, 40_000), sockets::address(4, 40_000));
        expected.insert(client, 0, 10);
        expected.insert(client, 1, 11);
        expected.insert(other, 0, 12);
        assert_eq!(expected.accepted(client, 1), Some(11), "not in the order of opening");
        assert_eq!(expected.accepted(other, 1), None, "nobody has opened it");
        assert_eq!(expected.accepted(client, 0), Some(10));
        assert_eq!(expected.accepted(client, 0), None, "once");
        assert!(!expected.is_empty());
        assert_eq!(expected.accepted(other, 0), Some(12));
        assert!(expected.is_empty());
    }
}
