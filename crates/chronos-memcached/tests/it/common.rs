//! memcached itself beside this server; both are fed the same bytes.

#![allow(dead_code, reason = "every test uses its part")]

pub mod mix;
pub mod random;
pub mod server;
pub mod table;

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use plimsoll_chronos::{Direct, Now, Service, SessionTransport};
use plimsoll_chronos_memcached::{Memcached, MemcachedSettings, Session};

/// The time, as a runtime would read it.
pub fn now(started: SystemTime) -> Now {
    let unix = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let since_start = started.elapsed().expect("a clock that goes on");
    Now { since_start, unix_seconds: unix.as_secs() }
}

/// This server without a network, and one connection to it.
pub struct Ours {
    pub direct: Direct<Memcached>,
    pub session: Session,
    pub closed: bool,
    started: SystemTime,
    pending: Vec<u8>,
    skip: usize,
}

impl Ours {
    /// A server with `partitions` and one connection.
    pub fn new(mut settings: MemcachedSettings, partitions: u32) -> Ours {
        settings.partitions = partitions;
        let direct = Direct::new(Memcached::new(settings).expect("good settings"), partitions);
        let session = direct.service().open(SessionTransport::Unix);
        let started = SystemTime::now();
        Ours { direct, session, closed: false, started, pending: Vec::new(), skip: 0 }
    }

    /// Opens another connection in place of this one.
    pub fn reconnect(&mut self) {
        self.session = self.direct.service().open(SessionTransport::Unix);
        self.pending.clear();
        (self.skip, self.closed) = (0, false);
    }

    /// Sends `bytes` and returns the answers.
    pub fn send(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut reply = Vec::new();
        if self.closed {
            return reply;
        }
        self.pending.extend_from_slice(bytes);
        let skipped = self.skip.min(self.pending.len());
        self.pending.drain(..skipped);
        self.skip -= skipped;
        let now = now(self.started);
        let served = self.direct.serve(&mut self.session, now, &self.pending, &mut reply);
        self.skip += served.consumed.saturating_sub(self.pending.len());
        self.pending.drain(..served.consumed.min(self.pending.len()));
        self.closed = served.close;
        reply
    }
}

/// A running memcached, which ends when this is dropped.
pub struct Theirs {
    child: Child,
    path: PathBuf,
    _directory: tempfile::TempDir,
}

/// Reports whether memcached is installed, and prints a line if it is not.
pub fn have_memcached() -> bool {
    let found =
        Command::new("memcached").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        plimsoll_testing::missing("memcached is not installed (apt-get install memcached)");
    }
    found
}

impl Theirs {
    /// Starts memcached with `options` on a socket of its own.
    pub fn start(options: &[&str]) -> Theirs {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let mut command = Command::new("memcached");
        command.arg("-s").arg(&path).args(["-t", "1"]).args(options).stderr(Stdio::null());
        // As root it refuses to start without a user; a user other than root could not write the directory.
        if std::env::var("USER").is_ok_and(|user| user != "root") {
            command.env_remove("USER");
        } else {
            command.args(["-u", "root"]);
        }
        let child = command.spawn().expect("memcached starts");
        let mut theirs = Theirs { child, path, _directory: directory };
        while UnixStream::connect(&theirs.path).is_err() {
            assert!(theirs.child.try_wait().expect("a child").is_none(), "memcached did not start");
            std::thread::yield_now();
        }
        theirs
    }

    /// Returns the path of its socket.
    pub fn path(&self) -> &std::path::Path {
        &self.path
    }

    /// Opens a connection to the server.
    pub fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).expect("memcached listens");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
        stream
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sends `bytes` and then `mark`, and returns the bytes before `answer`, the answer to the mark.
pub fn ask(stream: &mut (impl Read + Write), bytes: &[u8], mark: &[u8], answer: &[u8]) -> Vec<u8> {
    let mut all = bytes.to_vec();
    all.extend_from_slice(mark);
    let mut reply = Vec::new();
    if stream.write_all(&all).is_err() {
        return reply;
    }
    let mut buffer = [0; 65536];
    while !reply.ends_with(answer) {
        match stream.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                panic!("no answer in time to {}", bytes[..bytes.len().min(200)].escape_ascii())
            }
            Ok(0) | Err(_) => return reply,
            Ok(count) => reply.extend_from_slice(&buffer[..count]),
        }
    }
    reply.truncate(reply.len() - answer.len());
    reply
}

/// Sends the last `bytes`, ends the sending, and returns everything until the other side closes.
pub fn finish(mut stream: UnixStream, bytes: &[u8]) -> Vec<u8> {
    let mut reply = Vec::new();
    if stream.write_all(bytes).is_ok() {
        drop(stream.shutdown(std::net::Shutdown::Write));
    }
    drop(stream.read_to_end(&mut reply));
    reply
}

/// True if the answers are the same. Where `timed`, numbers may differ by the seconds that pass in between.
pub fn same(ours: &[u8], theirs: &[u8], timed: bool) -> bool {
    if ours == theirs {
        return true;
    }
    let split = |text: &'_ [u8]| -> Vec<Vec<u8>> {
        text.split(|byte| b" \r\n=".contains(byte)).map(<[u8]>::to_vec).collect()
    };
    let (ours, theirs) = (split(ours), split(theirs));
    timed
        && ours.len() == theirs.len()
        && ours.iter().zip(&theirs).all(|(ours, theirs)| ours == theirs || is_near(ours, theirs))
}

fn is_near(ours: &[u8], theirs: &[u8]) -> bool {
    const SECONDS_MAX: i64 = 3;
    let number = |word: &[u8]| {
        let digits = word.iter().position(|byte| byte.is_ascii_digit() || *byte == b'-')?;
        let number: i64 = std::str::from_utf8(&word[digits..]).ok()?.parse().ok()?;
        Some((word[..digits].to_vec(), number))
    };
    match (number(ours), number(theirs)) {
        (Some((name, ours)), Some((other, theirs))) => name == other && (ours - theirs).abs() <= SECONDS_MAX,
        _ => false,
    }
}
