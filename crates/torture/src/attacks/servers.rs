//! Clients that churn, flood, never read, send nothing or speak another protocol: the three servers must keep serving,
//! and must free the clients' memory and sockets.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::program::{PATIENCE, ProgramFolder, RunningProgram, wait_until};
use crate::trial::{Broken, Outcome, Trial, hold};

/// The most clients of one flood; the servers accept 1024 at a time.
const CLIENTS: u64 = 200;
/// Memory that a server may keep beyond its initial memory and the budget of its flags, in bytes: code, threads, rings
/// and the allocator's own.
const OVERHEAD_BYTES: u64 = 96 << 20;

/// The bytes that a server's clients send, and the replies to expect.
struct Protocol {
    /// The bytes that open a connection.
    greeting: &'static [u8],
    question: &'static [u8],
    /// The end of the reply to the test request.
    answer: &'static [u8],
    /// Returns the command of this number, which has no reply.
    silent: fn(u64) -> Vec<u8>,
    /// A command with a long reply.
    long: &'static [u8],
    /// The memory in bytes that the server's flags allow.
    budget_bytes: u64,
}

/// A server process under attack.
struct Target {
    running: RunningProgram,
    address: SocketAddr,
    protocol: Protocol,
}

const MEMCACHED: Protocol = Protocol {
    greeting: b"",
    question: b"version\r\n",
    answer: b"\r\n",
    silent: |number| match number % 4 {
        0 => format!("set quiet{number} 0 0 4 noreply\r\nsilk\r\n").into_bytes(),
        1 => format!("delete none{number} noreply\r\n").into_bytes(),
        2 => format!("mg none{number} v q\r\n").into_bytes(),
        _ => format!("ms quiet{number} 2 q\r\nhi\r\n").into_bytes(),
    },
    long: b"get large large large large large large large large\r\n",
    budget_bytes: 64 << 20,
};

const SEARCH: Protocol = Protocol {
    silent: |number| format!("set d{number} 0 0 9 noreply\r\nsun m{:04}\r\n", number % 10_000).into_bytes(),
    long: b"get sun moon stars sun moon stars\r\n",
    budget_bytes: 256 << 20,
    ..MEMCACHED
};

/// OpenFlow 1.0: a hello, and an echo request whose reply is awaited.
const OPENFLOW: Protocol = Protocol {
    greeting: b"\x01\x00\x00\x08\x00\x00\x00\x01",
    question: b"\x01\x02\x00\x08\x00\x00\x00\x07",
    answer: b"\x01\x03\x00\x08\x00\x00\x00\x07",
    // Echo replies, which get no reply themselves.
    silent: |number| [b"\x01\x03\x00\x08".as_slice(), &(number as u32).to_be_bytes()].concat(),
    long: b"\x01\x02\x00\x0f\x00\x00\x00\x07payload",
    budget_bytes: 256 << 20,
};

/// Attacks chronos-memcached with a random number of threads and a random way of waiting.
pub fn memcached(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    let address = free_address()?;
    let mut command = programs.command("chronos-memcached");
    let threads = trial.number(1..5).to_string();
    let io = trial.one_of(&["epoll", "uring"]);
    let poll = trial.one_of(&["block", "block", "spin"]);
    command.args(["-u", "root", "-m", "32", "-l", "127.0.0.1", "-p", &address.port().to_string()]);
    command.args(["-t", &threads, "-o", &format!("chronos_io={io},chronos_poll={poll}")]);
    let target = Target::start(&mut command, address, MEMCACHED)?;
    let large = [b"set large 0 0 1000000\r\n".as_slice(), &vec![b'v'; 1_000_000], b"\r\n"].concat();
    ask(&target.address, &large, b"STORED\r\n")?;
    torture(trial, target)
}

/// Attacks chronos-search with a random number of threads and a random way of waiting.
pub fn search(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    on_runtime(trial, programs, "chronos-search", SEARCH)
}

/// Attacks chronos-openflow with a random number of threads and a random way of waiting.
pub fn openflow(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    on_runtime(trial, programs, "chronos-openflow", OPENFLOW)
}

/// Attacks a server that has the flags of the Chronos runtime.
fn on_runtime(trial: &mut Trial, programs: &ProgramFolder, name: &str, protocol: Protocol) -> Outcome {
    let address = free_address()?;
    let mut command = programs.command(name);
    let threads = trial.number(1..5).to_string();
    let io = trial.one_of(&["epoll", "io-uring"]);
    let poll = trial.one_of(&["block", "block", "spin"]);
    command.args(["--listen", &address.to_string(), "--threads", &threads, "--io", io, "--poll", poll]);
    torture(trial, Target::start(&mut command, address, protocol)?)
}

/// Runs three to six floods; then sockets and memory must be as before, and SIGTERM must end the server.
fn torture(trial: &mut Trial, mut target: Target) -> Outcome {
    target.answers("at the start")?;
    let sockets = target.least_sockets()?;
    let memory = target.running.resident_bytes()?;
    for _ in 0..trial.number(3..7) {
        let flood = trial.number(0..6);
        let what = match flood {
            0 => churn(trial, &target)?,
            1 => silent_pipelines(trial, &target)?,
            2 => never_readers(trial, &target)?,
            3 => garbage(trial, &target)?,
            4 => other_protocol(trial, &target)?,
            _ => unfinished(trial, &target)?,
        };
        target.answers(&what)?;
    }
    let back = wait_until("the initial number of sockets", || {
        target.running.sockets().is_ok_and(|now| now <= sockets)
    });
    hold!(back.is_ok(), "{} sockets, {sockets} before the clients", target.running.sockets()?);
    let bound = memory + target.protocol.budget_bytes + OVERHEAD_BYTES;
    let now = target.running.resident_bytes()?;
    hold!(now <= bound, "{} MB resident after the clients, {} before", now >> 20, memory >> 20);
    target.running.signal(Signal::TERM);
    let ended = target.running.ended()?;
    hold!(ended.code() == Some(0), "stopped: {}", ended.described());
    Ok(())
}

impl Target {
    /// Starts a server, and waits until its port accepts connections.
    fn start(command: &mut Command, address: SocketAddr, protocol: Protocol) -> Result<Target, Broken> {
        let running = RunningProgram::start(command)?;
        wait_until("a listening server", || TcpStream::connect(address).is_ok())?;
        Ok(Target { running, address, protocol })
    }

    fn connect(&self) -> Result<TcpStream, Broken> {
        let stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// Checks that a well-behaved client gets a reply.
    fn answers(&mut self, after: &str) -> Outcome {
        hold!(self.running.is_running(), "the server is gone after {after}");
        self.ask(&[]).map_err(|error| self::after(error, after))
    }

    /// Sends the test request after `commands` without replies, on a connection of its own.
    fn ask(&self, commands: &[u8]) -> Outcome {
        ask(
            &self.address,
            &[self.protocol.greeting, commands, self.protocol.question].concat(),
            self.protocol.answer,
        )
    }

    /// Returns the fewest sockets within a fifth of a second, by when the first client's socket is closed.
    fn least_sockets(&self) -> Result<usize, Broken> {
        let mut least = usize::MAX;
        for _ in 0..20 {
            least = least.min(self.running.sockets()?);
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(least)
    }
}

/// Returns a loopback address without a listener.
pub(super) fn free_address() -> Result<SocketAddr, Broken> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

/// Adds the preceding events to an error.
fn after(error: Broken, what: &str) -> Broken {
    match error {
        Broken::Lost(lost) => Broken::Lost(format!("no reply after {what}: {lost}")),
        other => other,
    }
}

/// Sends a request on a connection of its own, and reads until the expected end of the reply.
fn ask(address: &SocketAddr, question: &[u8], end: &[u8]) -> Outcome {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(question)?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 4096]);
    while !answer.ends_with(end) {
        let count = stream.read(&mut buffer)?;
        hold!(count > 0, "the connection ended after {:?}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&buffer[..count]);
    }
    let answer = String::from_utf8_lossy(&answer);
    hold!(!answer.contains("ERROR"), "an error: {answer:?}");
    Ok(())
}

/// Opens and closes connections, some of them with half a command.
fn churn(trial: &mut Trial, target: &Target) -> Result<String, Broken> {
    let count = trial.number(1..CLIENTS * 3);
    for _ in 0..count {
        let mut stream = target.connect()?;
        let bytes = [target.protocol.greeting, target.protocol.question].concat();
        let length = trial.number(0..bytes.len() as u64 + 1) as usize;
        let _ = stream.write_all(&bytes[..length]);
        if trial.once_in(3) {
            let _ = stream.shutdown(Shutdown::Write);
        }
    }
    Ok(format!("{count} connections that came and went"))
}

/// Sends long pipelines of commands without replies, then a request; some clients disconnect without it.
fn silent_pipelines(trial: &mut Trial, target: &Target) -> Result<String, Broken> {
    let (clients, commands) = (trial.number(1..20), trial.number(1..5001));
    let mut pipeline = Vec::new();
    let first = trial.number(0..1 << 20);
    (first..first + commands)
        .for_each(|number| pipeline.extend_from_slice(&(target.protocol.silent)(number)));
    for _ in 0..clients {
        if trial.once_in(3) {
            let mut stream = target.connect()?;
            let _ = stream.write_all(&[target.protocol.greeting, &pipeline].concat());
        } else {
            let what = format!("{commands} silent commands");
            target.ask(&pipeline).map_err(|error| after(error, &what))?;
        }
    }
    Ok(format!("{clients} silent pipelines of {commands}"))
}

/// Holds clients that request much and read nothing, while another client is served.
fn never_readers(trial: &mut Trial, target: &Target) -> Result<String, Broken> {
    let clients = trial.number(1..CLIENTS);
    let mut held = Vec::new();
    for _ in 0..clients {
        let mut stream = target.connect()?;
        stream.set_nonblocking(true)?;
        let _ = stream.write(target.protocol.greeting);
        for _ in 0..trial.number(1..100) {
            if stream.write(target.protocol.long).is_err() {
                break;
            }
        }
        held.push(stream);
    }
    target.ask(&[])?;
    Ok(format!("{clients} clients that read nothing"))
}

/// Sends random bytes from many connections.
fn garbage(trial: &mut Trial, target: &Target) -> Result<String, Broken> {
    let clients = trial.number(1..50);
    for _ in 0..clients {
        let mut stream = target.connect()?;
        let bytes: Vec<u8> = (0..trial.number(1..5000)).map(|_| trial.number(0..256) as u8).collect();
        let _ = stream.write_all(&bytes);
    }
    Ok(format!("{clients} clients of random bytes"))
}

/// Sends HTTP whose body contains commands.
fn other_protocol(trial: &mut Trial, target: &Target) -> Result<String, Broken> {
    let body = "set smuggled 0 0 3\r\nbad\r\n".repeat(trial.number(1..20) as usize);
    let path = trial.one_of(&["/", "/set", "*", "http://localhost/"]);
    let method = trial.one_of(&["POST", "PUT", "GET", "OPTIONS"]);
    let mut stream = target.connect()?;
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n", body.len());
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body.as_bytes());
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    // The server may close or reset the connection: both reject the client.
    let _ = stream.read_to_end(&mut answer);
    hold!(!answer.windows(6).any(|part| part == b"STORED"), "{method} {path} stores");
    Ok(format!("a {method} of HTTP"))
}

/// Holds clients that have sent half a command.
fn unfinished(trial: &mut Trial, target: &Target) -> Result<String, Broken> {
    let clients = trial.number(1..CLIENTS);
    let mut held = Vec::new();
    for number in 0..clients {
        let mut stream = target.connect()?;
        let mut bytes = [target.protocol.greeting, &(target.protocol.silent)(number)].concat();
        bytes.truncate(trial.number(0..bytes.len() as u64) as usize);
        let _ = stream.write_all(&bytes);
        held.push(stream);
    }
    target.ask(&[])?;
    std::thread::sleep(Duration::from_millis(trial.number(0..100)));
    Ok(format!("{clients} clients with half a command"))
}
