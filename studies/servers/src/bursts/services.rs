//! Hosts that ask others for data: a file server with a disk, the shuffle of a sort, and memcached.
//!
//! ```text
//! client ──request──> disk: batch by batch, clients in turn ──sendfile: a whole read, or each batch──> client
//! ```
//!
//! The disk is a time, that of the simulated kind `file-service`; the file is in memory, and `sendfile` hands over its
//! pages.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_chronos_load::endpoint::ServerAddress;
use plimsoll_chronos_load::process::{Recipe, ServerProcess, ServerTransport};
use plimsoll_fabric::net::HostId;
use plimsoll_linux::Star;
use plimsoll_linux::frame::ipv6;
use rustix::fs::sendfile;

use super::arm::{Arm, Pattern};
use super::flows::StarFlows;
use super::trains::LINK;

/// The bytes of a request for data.
const REQUEST: usize = 100;
/// The bytes of a status request and of its reply, and the share of a link that replies take: those of
/// `scenarios/bullettrains/terasort.toml`.
const STATUS: (usize, usize) = (200, 2_000);
const STATUS_ONE_IN: u64 = 500;
/// The bytes of a key and of a value of memcached: those of Chronos.
const KEY: usize = 64;
const VALUE: usize = 1_024;
/// The connections of a host to memcached: a choice.
const CLIENTS: usize = 4;
/// The number of gets that a client of memcached makes for each set.
const GETS: usize = 9;
/// The bytes of a call that receives, or sends from memory.
const CHUNK: usize = 128 << 10;
/// A disk without a request looks for one after this time.
const IDLE: Duration = Duration::from_micros(200);

/// A request, and the bytes of its reply.
#[derive(Clone)]
struct Exchange {
    request: Vec<u8>,
    reply: u64,
}

/// Requests of a client over one connection.
struct ClientLoad {
    /// The exchanges, which are repeated in their order.
    exchanges: Vec<Exchange>,
    outstanding: u32,
    /// The time from a reply to the next request.
    pause: Duration,
}

impl StarFlows {
    /// Opens the connections of a pattern whose data is asked for, and begins to ask.
    ///
    /// # Errors
    /// If a host does not connect or accept, or memcached does not start.
    pub(super) fn start_services(
        &mut self,
        star: &Star,
        arm: &Arm,
        listeners: &[TcpListener],
    ) -> io::Result<()> {
        let ask_of = |bytes: u64, outstanding, pause| ClientLoad {
            exchanges: vec![Exchange { request: vec![0; REQUEST], reply: bytes }],
            outstanding,
            pause,
        };
        let connect = |client: u32, server: u32| -> io::Result<(TcpStream, TcpStream)> {
            let listener = &listeners[server as usize];
            let at = listener.local_addr()?;
            let asking = star.inside(client, || TcpStream::connect(at))?;
            Ok((asking, listener.accept()?.0))
        };
        match arm.pattern {
            Pattern::FileService => {
                let ends: Vec<_> =
                    (1..arm.hosts).map(|client| connect(client, 0)).collect::<io::Result<_>>()?;
                let (asking, serving): (Vec<_>, Vec<_>) = ends.into_iter().unzip();
                self.serve_files(serving, arm)?;
                asking.into_iter().try_for_each(|stream| {
                    self.ask(stream, ask_of(arm.read.get(), arm.outstanding, Duration::ZERO))
                })
            }
            Pattern::Sort => {
                let master = arm.hosts - 1;
                for reducer in 0..master {
                    for mapper in (0..master).filter(|mapper| *mapper != reducer) {
                        let (asking, serving) = connect(reducer, mapper)?;
                        self.reply(serving, REQUEST, arm.read.get())?;
                        self.ask(asking, ask_of(arm.read.get(), 1, Duration::ZERO))?;
                    }
                }
                let (request, reply) = STATUS;
                let at_rate = arm.rate.unwrap_or(LINK).byte_time().span(reply as u64 * STATUS_ONE_IN);
                // Replies of all hosts together take that share of the link.
                let pause = Duration::from_nanos(at_rate.as_ps() / 1_000) * master;
                for node in 0..master {
                    let (asking, serving) = connect(master, node)?;
                    self.reply(serving, request, reply as u64)?;
                    let exchanges = vec![Exchange { request: vec![0; request], reply: reply as u64 }];
                    self.ask(asking, ClientLoad { exchanges, outstanding: 1, pause })?;
                }
                Ok(())
            }
            Pattern::Memcached => self.ask_memcached(star, arm),
            _ => Ok(()),
        }
    }

    fn ask_memcached(&mut self, star: &Star, arm: &Arm) -> io::Result<()> {
        let address = IpAddr::V6(ipv6(HostId(0)));
        let listen = address.to_string();
        let words =
            ["memcached", "-u", "root", "-l", &listen, "-p", "{port}", "-U", "0", "-m", "64", "-t", "1"];
        let words = words.map(str::to_owned).to_vec();
        let recipe = Recipe { address, ..Recipe::new("memcached", words) };
        let start = || ServerProcess::start(&recipe, ServerTransport::Tcp, &[]).map_err(io::Error::other);
        let server = star.inside(0, start)?;
        let ServerAddress::Tcp(at) = server.endpoint else {
            return Err(io::Error::other("a server that was started for TCP has another address"));
        };
        self.server = Some(server);
        for client in 1..arm.hosts {
            for number in 0..CLIENTS {
                let stream = star.inside(client, || TcpStream::connect(at))?;
                let exchanges = key_exchanges(&format!("{:0KEY$}", client as usize * CLIENTS + number));
                self.ask(stream, ClientLoad { exchanges, outstanding: 1, pause: Duration::ZERO })?;
            }
        }
        Ok(())
    }

    /// Sends requests and receives their replies, until the connection is shut down.
    fn ask(&mut self, mut stream: TcpStream, load: ClientLoad) -> io::Result<()> {
        self.streams.push(stream.try_clone()?);
        let received = Arc::clone(&self.received);
        self.spawn(move || {
            let mut requests = load.exchanges.iter().cycle();
            let mut buffer = vec![0; CHUNK];
            let mut ask = |stream: &mut TcpStream| {
                requests.next().is_some_and(|next| stream.write_all(&next.request).is_ok())
            };
            if !(0..load.outstanding).all(|_| ask(&mut stream)) {
                return;
            }
            for Exchange { reply, .. } in load.exchanges.iter().cycle() {
                let mut left = *reply;
                while left > 0 {
                    let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                    let Ok(bytes @ 1..) = stream.read(&mut buffer[..most]) else { return };
                    received.fetch_add(bytes as u64, Ordering::Relaxed);
                    left -= bytes as u64;
                }
                thread::sleep(load.pause);
                if !ask(&mut stream) {
                    return;
                }
            }
        })
    }

    /// Answers each request with bytes from memory, until the connection is shut down.
    fn reply(&mut self, mut stream: TcpStream, request: usize, reply: u64) -> io::Result<()> {
        self.streams.push(stream.try_clone()?);
        self.spawn(move || {
            let (mut request, chunk) = (vec![0; request], vec![0; CHUNK]);
            while stream.read_exact(&mut request).is_ok() {
                let mut left = reply as usize;
                while left > 0 {
                    let bytes = left.min(CHUNK);
                    if stream.write_all(&chunk[..bytes]).is_err() {
                        return;
                    }
                    left -= bytes;
                }
            }
        })
    }

    /// Serves reads of a file to these clients: a disk reads batch by batch, clients in turn.
    fn serve_files(&mut self, streams: Vec<TcpStream>, arm: &Arm) -> io::Result<()> {
        let Arm { read, read_ahead, disk, sends_batches, .. } = *arm;
        let at_once = if sends_batches { read_ahead.min(read) } else { read };
        let file = file_in_memory(at_once.get())?;
        let mut clients = Vec::new();
        for stream in streams {
            self.streams.push(stream.try_clone()?);
            let (mut requests, requested) = (stream.try_clone()?, Arc::new(AtomicU64::new(0)));
            let counted = Arc::clone(&requested);
            self.spawn(move || {
                let mut request = [0; REQUEST];
                while requests.read_exact(&mut request).is_ok() {
                    counted.fetch_add(1, Ordering::Release);
                }
            })?;
            clients.push(FileClient { stream, requested, begun: 0, unread: 0, in_memory: 0 });
        }
        let stop = Arc::clone(&self.stop);
        self.spawn(move || {
            let (mut turn, mut free) = (0, Instant::now());
            while !stop.load(Ordering::Relaxed) {
                let count = clients.len();
                let waiting = (0..count).map(|step| (turn + step) % count);
                let Some(place) = waiting.into_iter().find(|place| clients[*place].waits(read.get())) else {
                    thread::sleep(IDLE);
                    free = Instant::now();
                    continue;
                };
                turn = (place + 1) % count;
                let client = &mut clients[place];
                let bytes = client.unread.min(read_ahead.get());
                free += Duration::from_nanos(disk.byte_time().span(bytes).as_ps() / 1_000);
                thread::sleep(free.saturating_duration_since(Instant::now()));
                client.unread -= bytes;
                client.in_memory += bytes;
                if (sends_batches || client.unread == 0) && client.send(&file).is_err() {
                    return;
                }
            }
        })
    }
}

/// The disk's work for a client.
struct FileClient {
    stream: TcpStream,
    /// The requests that have arrived.
    requested: Arc<AtomicU64>,
    /// The requests for which the disk has begun to read.
    begun: u64,
    /// The bytes of the last of these that the disk has not read.
    unread: u64,
    /// The bytes that wait to be sent.
    in_memory: u64,
}

impl FileClient {
    /// Returns whether the disk has to read for this client; it begins the next request of `read` bytes, if that is
    /// due.
    fn waits(&mut self, read: u64) -> bool {
        if self.unread == 0 && self.requested.load(Ordering::Acquire) > self.begun {
            self.begun += 1;
            self.unread = read;
        }
        self.unread > 0
    }

    /// Sends the bytes that are in memory.
    fn send(&mut self, file: &File) -> io::Result<()> {
        let mut offset = 0;
        while offset < self.in_memory {
            let left = (self.in_memory - offset) as usize;
            if sendfile(&self.stream, file, Some(&mut offset), left)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.in_memory = 0;
        Ok(())
    }
}

/// Makes a file without a name, whose pages are in memory.
fn file_in_memory(bytes: u64) -> io::Result<File> {
    let mut file = tempfile::tempfile()?;
    io::copy(&mut io::repeat(0).take(bytes), &mut file)?;
    Ok(file)
}

/// Returns the requests of a memcached client for its key: it sets the value, and gets it several times.
fn key_exchanges(key: &str) -> Vec<Exchange> {
    let value = "x".repeat(VALUE);
    let set = Exchange {
        request: format!("set {key} 0 0 {VALUE}\r\n{value}\r\n").into_bytes(),
        reply: "STORED\r\n".len() as u64,
    };
    let reply = format!("VALUE {key} 0 {VALUE}\r\n{value}\r\nEND\r\n").len() as u64;
    let get = Exchange { request: format!("get {key}\r\n").into_bytes(), reply };
    std::iter::once(set).chain(vec![get; GETS]).collect()
}
