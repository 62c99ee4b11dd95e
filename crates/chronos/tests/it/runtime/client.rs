//! Servers and clients of the tests.
#![allow(clippy::print_stderr, reason = "a test; its runner shows it where it fails")]

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use plimsoll_chronos::{Config, IoBackend, Listen, Poll, RunningServer, Runtime};

use super::service::Logs;

/// Returns any free port of this host.
pub fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

/// Returns a configuration with `threads` threads and one TCP port.
pub fn config(threads: u32) -> Config {
    Config { threads, listen: vec![Listen::Tcp(any_port())], ..Config::default() }
}

/// Starts a server of [`Logs`], and returns its count of puts that ran out of order.
pub fn start(config: &Config) -> (RunningServer, Arc<AtomicU64>) {
    let logs = Logs::default();
    let disorder = logs.disorder.clone();
    (Runtime::start(logs, config).unwrap(), disorder)
}

/// Returns the first TCP port of a server.
pub fn tcp_address(server: &RunningServer) -> SocketAddr {
    let tcp = |listen: &Listen| if let Listen::Tcp(address) = listen { Some(*address) } else { None };
    server.bound().iter().find_map(tcp).unwrap()
}

/// A connection to a server.
pub struct Client<S = TcpStream> {
    pub stream: S,
    reader: BufReader<S>,
}

impl Client {
    pub fn connect(server: &RunningServer) -> Client {
        Client::to(tcp_address(server))
    }

    pub fn to(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        Client { reader: BufReader::new(stream.try_clone().unwrap()), stream }
    }
}

impl<S: Read + Write> Client<S> {
    pub fn over(stream: S, same: S) -> Client<S> {
        Client { stream, reader: BufReader::new(same) }
    }

    pub fn send(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Returns the next line, without its end; empty at the end of the stream.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    pub fn ask(&mut self, request: &str) -> String {
        self.send(&format!("{request}\n"));
        self.line()
    }

    pub fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        self.reader.read_exact(&mut bytes).unwrap();
        bytes
    }

    /// Reports whether the server has closed the connection, after everything was read.
    pub fn is_closed(&mut self) -> bool {
        let mut rest = Vec::new();
        self.reader.read_to_end(&mut rest).is_err() || rest.is_empty()
    }
}

/// Sends a request with this envelope, and returns the `parts` datagrams of the reply in one piece.
pub fn ask(socket: &UdpSocket, envelope: u8, request: &[u8], parts: usize) -> Vec<u8> {
    socket.send(&[&[envelope], request].concat()).unwrap();
    let mut reply = Vec::new();
    let mut buffer = [0; 65_536];
    let mut missing = parts;
    while missing > 0 {
        let count = match socket.recv(&mut buffer) {
            // A receive with a timeout fails after the process was stopped and continued.
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            result => result.unwrap(),
        };
        assert_eq!(buffer[0], envelope);
        reply.extend_from_slice(&buffer[1..count]);
        missing -= 1;
    }
    reply
}

/// Returns every combination of an I/O backend and a way to wait, with two threads.
pub fn all_modes() -> Vec<Config> {
    let mut modes = Vec::new();
    for poll in [Poll::Block, Poll::Spin] {
        for io in backends() {
            modes.push(Config { poll, io, ..config(2) });
        }
    }
    modes
}

/// Returns the backends that this kernel has.
pub fn backends() -> Vec<IoBackend> {
    let server = start(&Config { io: IoBackend::Fastest, ..config(1) }).0;
    let fastest = server.io();
    server.stop().unwrap();
    if fastest == IoBackend::Epoll {
        eprintln!("io_uring is left out: this kernel has none for this process");
        return vec![IoBackend::Epoll];
    }
    vec![IoBackend::Epoll, fastest]
}
