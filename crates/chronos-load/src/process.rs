//! Starts servers for a comparison, assigns their ports and processors, and measures their processor time.

use std::fs;
use std::io;
use std::iter::Sum;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use plimsoll_units::Span;
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use tempfile::TempDir;

use crate::endpoint::ServerAddress;
use crate::phase::{MeasurementEdge, pin};

/// The transport between clients and a started server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ServerTransport {
    /// TCP connections to `{port}`.
    Tcp,
    /// UDP datagrams to `{port}`.
    Udp,
    /// Connections to the UNIX socket `{socket}`.
    Unix,
}

/// The command that starts a server, and a name for it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Recipe {
    /// The name of the server in reports.
    pub name: String,
    /// The words of the command, with the placeholders `{port}`, `{socket}` and `{folder}`, a private folder.
    pub words: Vec<String>,
    /// The address at which it is asked; that of the loopback unless the words move it to another network.
    pub address: IpAddr,
}

impl Recipe {
    /// Creates the recipe of a server that listens on the loopback.
    pub fn new(name: impl Into<String>, words: Vec<String>) -> Recipe {
        Recipe { name: name.into(), words, address: IpAddr::V4(Ipv4Addr::LOCALHOST) }
    }

    /// Parses `NAME=COMMAND`.
    ///
    /// # Errors
    /// Returns a message that describes the error in `text`.
    pub fn parse(text: &str) -> Result<Recipe, String> {
        let bad = |problem: &str| {
            format!("`{text}` {problem}; write NAME=COMMAND, such as 'A=memcached -t 1 -p {{port}}'")
        };
        let (name, command) = text.split_once('=').ok_or_else(|| bad("has no name"))?;
        let words = shlex::split(command).ok_or_else(|| bad("has a quote that does not end"))?;
        if name.is_empty() || words.is_empty() {
            return Err(bad("has no name or no command"));
        }
        if !command.contains("{port}") && !command.contains("{socket}") {
            return Err(bad("has neither {port} nor {socket}"));
        }
        Ok(Recipe::new(name, words))
    }
}

/// A running server, which is stopped when this value is dropped.
#[derive(Debug)]
pub struct ServerProcess {
    child: Child,
    /// The address at which it listens.
    pub endpoint: ServerAddress,
    /// The folder of its socket and its log.
    directory: TempDir,
}

impl ServerProcess {
    /// Starts `recipe` on `cpus` and waits until it listens.
    ///
    /// # Errors
    /// Returns an error if it cannot be started, ends, or does not listen within ten seconds.
    pub fn start(
        recipe: &Recipe,
        transport: ServerTransport,
        cpus: &[usize],
    ) -> anyhow::Result<ServerProcess> {
        let directory = tempfile::tempdir().context("cannot make a directory for the server")?;
        let port = free_port().context("cannot find a free port")?;
        let socket = directory.path().join("socket");
        let fill = |word: &String| {
            let folder = directory.path().display().to_string();
            let word = word.replace("{port}", &port.to_string()).replace("{folder}", &folder);
            word.replace("{socket}", &socket.display().to_string())
        };
        let words: Vec<String> = recipe.words.iter().map(fill).collect();
        let log = fs::File::create(directory.path().join("log")).context("cannot write the server's log")?;
        let before = sched_getaffinity(None).context("cannot read the processors of this thread")?;
        if !cpus.is_empty() {
            pin(cpus)?;
        }
        // A child process inherits the processors of this thread.
        let child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        sched_setaffinity(None, &before).context("cannot restore the processors of this thread")?;
        let child =
            child.with_context(|| format!("cannot start `{}` of server {}", words[0], recipe.name))?;
        let address = SocketAddr::new(recipe.address, port);
        let endpoint = match transport {
            ServerTransport::Tcp => ServerAddress::Tcp(address),
            ServerTransport::Udp => ServerAddress::Udp(address),
            ServerTransport::Unix => ServerAddress::Unix(socket),
        };
        let mut server = ServerProcess { child, endpoint, directory };
        server.wait_until_ready().with_context(|| format!("server {}: {}", recipe.name, words.join(" ")))?;
        Ok(server)
    }

    fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        loop {
            if self.answers() {
                return Ok(());
            }
            let ended = self.child.try_wait().context("cannot query the state of the server")?;
            if ended.is_some() || began.elapsed() > READY_MAX {
                let log = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
                let what = match ended {
                    Some(status) => format!("it ended with {status}"),
                    None => format!("it does not answer at {} after {READY_MAX:?}", self.endpoint),
                };
                bail!("{what}; it said: {}", if log.is_empty() { "nothing" } else { log.trim() });
            }
            thread::sleep(READY_CHECK);
        }
    }

    /// Returns whether the server listens: a connection is accepted, or a datagram is answered.
    fn answers(&self) -> bool {
        let Ok(socket) = self.endpoint.connect() else { return false };
        if !self.endpoint.is_datagrams() {
            return true;
        }
        let asked = socket.set_nonblocking(false).and_then(|()| {
            socket.set_read_timeout(Some(READY_CHECK * 10))?;
            socket.send(b"\0\0\0\0\0\x01\0\0version\r\n")?;
            io::Read::read(&mut &socket, &mut [0; 2048])
        });
        asked.is_ok()
    }

    /// Returns the processor time of all its threads so far.
    ///
    /// # Errors
    /// Returns an error if the server has ended.
    pub fn processor_time(&self) -> anyhow::Result<ProcessorTime> {
        let tasks = format!("/proc/{}/task", self.child.id());
        let listed = fs::read_dir(&tasks);
        let listed = listed.with_context(|| format!("cannot list {tasks}: has the server ended?"))?;
        let mut sum = ProcessorTime::default();
        for task in listed {
            // A thread may have ended since it was listed.
            let time = ProcessorTime::read(&task?.path().join("schedstat"));
            sum = [sum, time.unwrap_or_default()].into_iter().sum();
        }
        ensure!(!sum.ran.is_zero(), "the kernel does not count the time that tasks run (CONFIG_SCHED_INFO)");
        Ok(sum)
    }

    /// Returns the number of its process.
    pub fn process(&self) -> u32 {
        self.child.id()
    }
}

/// The processor time of servers during the measured time of a phase.
#[derive(Debug)]
pub struct Stopwatch<'a> {
    servers: &'a [ServerProcess],
    /// Tasks of the kernel that work for the servers.
    helpers: &'a [u32],
    at: [anyhow::Result<ProcessorTime>; 2],
}

impl<'a> Stopwatch<'a> {
    /// Creates a stopwatch for all of `servers` together with `helpers`, the numbers of tasks of the kernel that work
    /// for them.
    pub fn of(servers: &'a [ServerProcess], helpers: &'a [u32]) -> Stopwatch<'a> {
        Stopwatch {
            servers,
            helpers,
            at: [const { Ok(ProcessorTime { ran: Span::ZERO, waited: Span::ZERO }) }; 2],
        }
    }

    /// Reads the processor time at the start or the end.
    pub fn look(&mut self, edge: MeasurementEdge) {
        let helper = |task: &u32| {
            let path = format!("/proc/{task}/schedstat");
            ProcessorTime::read(Path::new(&path)).with_context(|| format!("cannot read {path}"))
        };
        let servers = self.servers.iter().map(ServerProcess::processor_time);
        self.at[usize::from(edge == MeasurementEdge::End)] =
            servers.chain(self.helpers.iter().map(helper)).sum();
    }

    /// Returns the processor time between the start and the end.
    ///
    /// # Errors
    /// Returns an error if a server has ended.
    pub fn taken(self) -> anyhow::Result<ProcessorTime> {
        let [from, to] = self.at;
        let (from, to) = (from?, to?);
        Ok(ProcessorTime {
            ran: to.ran.saturating_sub(from.ran),
            waited: to.waited.saturating_sub(from.waited),
        })
    }
}

/// The processor time of a task, or of many tasks, as the kernel reports it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ProcessorTime {
    /// The time spent running.
    pub ran: Span,
    /// The time spent runnable while other tasks had the processor.
    pub waited: Span,
}

impl Sum for ProcessorTime {
    fn sum<I: Iterator<Item = ProcessorTime>>(times: I) -> ProcessorTime {
        times.fold(ProcessorTime::default(), |sum, time| ProcessorTime {
            ran: sum.ran + time.ran,
            waited: sum.waited + time.waited,
        })
    }
}

impl ProcessorTime {
    /// Returns the processor time of the calling thread; none where the kernel does not measure it.
    pub fn of_this_thread() -> Option<ProcessorTime> {
        ProcessorTime::read(Path::new("/proc/thread-self/schedstat"))
    }

    fn read(path: &Path) -> Option<ProcessorTime> {
        let text = fs::read_to_string(path).ok()?;
        let mut numbers = text.split_whitespace().map(|word| word.parse().map(Span::from_ns));
        let (ran, waited) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        Some(ProcessorTime { ran, waited })
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            // If the process ends at this moment, the signal has no receiver.
            let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
            let began = Instant::now();
            while began.elapsed() < STOP_MAX && matches!(self.child.try_wait(), Ok(None)) {
                thread::sleep(READY_CHECK);
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Returns a port without a listener, by TCP and by UDP.
fn free_port() -> io::Result<u16> {
    loop {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = tcp.local_addr()?.port();
        if std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
}

const READY_MAX: Duration = Duration::from_secs(10);
const READY_CHECK: Duration = Duration::from_millis(5);
const STOP_MAX: Duration = Duration::from_secs(3);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_words_not_a_shells_text() {
        let recipe = Recipe::parse("A=memcached -o 'a b' -p {port}").unwrap();
        assert_eq!(recipe.name, "A");
        assert_eq!(recipe.words, ["memcached", "-o", "a b", "-p", "{port}"]);
        for (text, part) in [
            ("memcached -p {port}", "has no name"),
            ("A=memcached 'x {port}", "a quote that does not end"),
            ("A=memcached", "has neither {port} nor {socket}"),
            ("=memcached {port}", "no name or no command"),
        ] {
            let error = Recipe::parse(text).unwrap_err();
            assert!(error.contains(part) && error.contains("-p {port}'"), "{error}");
        }
    }

    #[test]
    fn a_server_that_ends_says_why() {
        let recipe = Recipe::parse("A=ls --no-such-option-{port}").unwrap();
        let error = format!("{:#}", ServerProcess::start(&recipe, ServerTransport::Tcp, &[]).unwrap_err());
        assert!(error.contains("it ended with") && error.contains("no-such-option"), "{error}");
    }
}
