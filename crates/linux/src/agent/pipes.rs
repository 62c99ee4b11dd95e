//! [`Pipes`]: TCP connections between namespaces, and the messages in their byte streams.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use plimsoll_results::outcome;
use plimsoll_units::Span;
use rustix::event::epoll;
use socket2::{Domain, Socket, Type};

use super::driver::{Place, token};
use super::pace::Pace;
use super::plan::Driven;
use super::run::{PIECE, ZEROS};
use super::sockets::{self, DRIVER_PORT};

/// The connections of one source.
#[derive(Debug)]
pub(super) struct Pipes {
    place: Arc<Place>,
    driven: Driven,
    pipes: Vec<Pipe>,
    /// Those that have been closed.
    closed: usize,
    /// By host.
    listeners: BTreeMap<u32, Socket>,
    expected: Expected,
    piece: Vec<u8>,
}

/// Pipes that their server has not accepted, by the client's address and the server: one address may have connections to
/// several, and which of them is accepted first is nobody's choice.
#[derive(Debug, Default)]
struct Expected(BTreeMap<(SocketAddr, u32), usize>);

impl Expected {
    fn insert(&mut self, client: SocketAddr, server: u32, pipe: usize) {
        self.0.insert((client, server), pipe);
    }

    /// The pipe of a connection from `client` that `server` has accepted; none of one that nobody has opened.
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
    /// The client's and the server's.
    ends: [End; 2],
    delivered: u64,
}

/// One end: what it has yet to write, and the messages that are on the way to it.
#[derive(Debug, Default)]
struct End {
    stream: Option<TcpStream>,
    pace: Pace,
    unsent: u64,
    messages: VecDeque<OnTheWay>,
}

#[derive(Clone, Copy, Debug)]
struct OnTheWay {
    /// Bytes that have not arrived.
    left: u64,
    tag: u64,
    ideal: Span,
}

/// Most connections of a source at a time: each has two sockets.
const PIPES_MAX: usize = 4_000;

impl Pipes {
    /// None yet.
    pub(super) fn new(place: &Arc<Place>, driven: Driven) -> Pipes {
        Pipes {
            place: Arc::clone(place),
            driven,
            pipes: Vec::new(),
            closed: 0,
            listeners: BTreeMap::new(),
            expected: Expected::default(),
            piece: vec![0; PIECE],
        }
    }

    /// Begins to open a connection, and gives its number.
    ///
    /// # Errors
    /// If the system refuses, or there are too many.
    pub(super) fn open(&mut self, epoll: &OwnedFd, client: u32, server: u32) -> io::Result<usize> {
        let number = self.pipes.len();
        if number - self.closed >= PIPES_MAX {
            let text = format!(
                "more than {PIPES_MAX} connections at a time; `transport.connections = \"long-lived\"` needs fewer"
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
        let pace = |host| Pace::new(&self.place.settings.shares, host, self.driven.priority);
        let ends = [
            End { stream: Some(stream), pace: pace(client), ..End::default() },
            End { pace: pace(server), ..End::default() },
        ];
        self.pipes.push(Pipe { client, server, ends, delivered: 0 });
        Ok(number)
    }

    fn port(&self) -> u16 {
        DRIVER_PORT + self.driven.number
    }

    fn socket(&self, host: u32) -> io::Result<Socket> {
        crate::namespaces::enter(&self.place.names[host as usize])?;
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(self.place.settings.protocol()))?;
        sockets::prepare(&socket, self.driven.priority)?;
        socket.set_tcp_congestion(self.place.settings.congestion_control.as_bytes())?;
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
        listener.listen(PIPES_MAX as i32)?;
        watch(epoll, &listener, token::LISTENER | u64::from(host))?;
        self.listeners.insert(host, listener);
        Ok(())
    }

    /// The server on `host` takes the connections that have come in.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn accept(&mut self, epoll: &OwnedFd, host: u32) -> io::Result<()> {
        while let Some((socket, from)) = ready(self.listeners[&host].accept())? {
            let Some(number) = from.as_socket().and_then(|from| self.expected.accepted(from, host)) else {
                continue;
            };
            sockets::prepare(&socket, self.driven.priority)?;
            socket.set_tcp_nodelay(true)?;
            socket.set_nonblocking(true)?;
            let stream = TcpStream::from(socket);
            watch(epoll, &stream, (number as u64) << 1 | 1)?;
            self.pipes[number].ends[1].stream = Some(stream);
            self.flush(number, 1)?;
        }
        Ok(())
    }

    /// Closes a connection, unless something is under way on it.
    pub(super) fn close_if_idle(&mut self, pipe: usize) {
        let ends = &mut self.pipes[pipe].ends;
        let idle = |end: &End| end.stream.is_some() && end.unsent == 0 && end.messages.is_empty();
        if ends.iter().all(idle) {
            ends.iter_mut().for_each(|end| end.stream = None);
            self.closed += 1;
        }
    }

    /// Whether every connection is open.
    pub(super) fn are_open(&self) -> bool {
        self.expected.is_empty()
    }

    /// Client and server.
    pub(super) fn hosts(&self, pipe: usize) -> (u32, u32) {
        (self.pipes[pipe].client, self.pipes[pipe].server)
    }

    /// Writes a message at one end, as far as there is room; the rest follows.
    ///
    /// # Errors
    /// If the connection is broken.
    pub(super) fn write(
        &mut self,
        pipe: usize,
        end: usize,
        bytes: u64,
        tag: u64,
        ideal: Span,
    ) -> io::Result<()> {
        let ends = &mut self.pipes[pipe].ends;
        ends[1 - end].messages.push_back(OnTheWay { left: bytes, tag, ideal });
        ends[end].unsent += bytes;
        self.flush(pipe, end)
    }

    /// Writes what is left to write, as far as there is room.
    ///
    /// # Errors
    /// If the connection is broken.
    pub(super) fn flush(&mut self, pipe: usize, end: usize) -> io::Result<()> {
        let End { stream: Some(stream), unsent, pace, .. } = &mut self.pipes[pipe].ends[end] else {
            return Ok(());
        };
        if *unsent > 0 {
            pace.keep(&*stream, self.place.settings.clock.now())?;
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

    /// Reads what there is: tags and ideal times of the messages that are whole now.
    ///
    /// # Errors
    /// If the connection is broken.
    pub(super) fn read(&mut self, pipe: usize, end: usize) -> io::Result<Vec<(u64, Span)>> {
        let Pipe { ends, delivered, .. } = &mut self.pipes[pipe];
        let End { stream: Some(stream), messages, .. } = &mut ends[end] else { return Ok(Vec::new()) };
        let mut whole = Vec::new();
        while let Some(read) = ready(stream.read(&mut self.piece))? {
            if read == 0 {
                return Err(io::Error::other("the other end has closed the connection"));
            }
            *delivered += read as u64;
            let mut left = read as u64;
            while left > 0 {
                let message =
                    messages.front_mut().ok_or_else(|| io::Error::other("more came than was sent"))?;
                let part = left.min(message.left);
                (left, message.left) = (left - part, message.left - part);
                if message.left == 0 {
                    whole.push((message.tag, message.ideal));
                    messages.pop_front();
                }
            }
        }
        Ok(whole)
    }

    /// Records of the connections, by their numbers in `pipe_of`.
    pub(super) fn records(&self, pipe_of: &[usize]) -> Vec<outcome::Connection> {
        let record = |pipe: &Pipe| outcome::Connection {
            workload: self.driven.number,
            client: pipe.client,
            server: pipe.server,
            delivered: pipe.delivered,
            ..outcome::Connection::default()
        };
        pipe_of.iter().map(|pipe| record(&self.pipes[*pipe])).collect()
    }
}

/// Tells of every change of the socket's readiness.
pub(super) fn watch(epoll: &OwnedFd, socket: impl AsFd, token: u64) -> io::Result<()> {
    let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
    Ok(epoll::add(epoll, socket, epoll::EventData::new_u64(token), flags)?)
}

/// None where it would have to wait.
pub(super) fn ready<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => Ok(None),
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(None),
        Err(error) => Err(error),
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
