//! The agent's side: takes one caller at a time, and sends load only as that caller says.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use plimsoll_process::note_or_drop;
use plimsoll_units::Span;
use rustix::io::Errno;

use super::strangers::Strangers;
use super::wire::{Wire, is_timeout};
use super::{AGENTS_MAX, AgentMessage, Call, LoadRound, Preparation, RoundPace, SentBook, Token, VERSION};
use crate::book::Book;
use crate::endpoint::ServerAddress;
use crate::options::{Clients, RequestMix, read};
use crate::phase::{ClientThreads, GeneratorShare, phase};
use crate::setup::{LoadPhase, Pace, Setup};

/// The options of the load that an agent gets.
#[derive(Debug, Args)]
struct ServedLoad {
    #[command(flatten)]
    workload: RequestMix,
    #[command(flatten)]
    clients: Clients,
}

/// The agent, as all its connections see it.
#[derive(Debug)]
struct Agent {
    token: Token,
    /// True while a caller uses it.
    is_taken: AtomicBool,
    /// The connections that have not shown the token yet.
    strangers: Mutex<Strangers<TcpStream>>,
}

/// A load that is ready to be sent.
struct Prepared {
    setup: Arc<Setup>,
    client_threads: ClientThreads,
}

/// Serves callers that hold `token`, one at a time, until the listener fails.
///
/// # Errors
/// Returns the error of the listener.
pub fn serve(listener: &TcpListener, token: Token) -> io::Result<()> {
    let strangers = Mutex::new(Strangers::new());
    let agent = Arc::new(Agent { token, is_taken: AtomicBool::new(false), strangers });
    loop {
        let accepted =
            listener.accept().and_then(|(stream, caller)| Ok((stream.try_clone()?, stream, caller)));
        let (handle, stream, caller) = match accepted {
            Ok(accepted) => accepted,
            Err(error) if is_passing(&error) => {
                // Connections of a load may use up the descriptors, which are free again at its end.
                thread::sleep(RETRY_AFTER);
                continue;
            }
            Err(error) => return Err(error),
        };
        let (number, replaced) = agent.strangers().admit(caller.ip(), handle);
        if let Some(replaced) = replaced {
            // The connection may have ended already. Its thread notices the end.
            let _ = replaced.shutdown(Shutdown::Both);
        }
        let serving = Arc::clone(&agent);
        let started = thread::Builder::new().spawn(move || {
            if let Err(error) = serving.receive(stream, number) {
                note_or_drop(format_args!("{caller}: {error:#}"));
            }
        });
        if let Err(error) = started {
            agent.strangers().leave(number);
            note_or_drop(format_args!("{caller}: cannot start a thread for it: {error}"));
        }
    }
}

/// Returns whether connections may be accepted after this error: only one connection failed, or a resource is short for
/// a while.
fn is_passing(error: &io::Error) -> bool {
    let passing = [Errno::CONNABORTED, Errno::INTR, Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
    Errno::from_io_error(error).is_some_and(|error| passing.contains(&error))
}

impl Agent {
    fn strangers(&self) -> impl std::ops::DerefMut<Target = Strangers<TcpStream>> + '_ {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves a connection from anyone, which is the stranger with this number.
    fn receive(&self, stream: TcpStream, number: u64) -> anyhow::Result<()> {
        let hello = Wire::new(stream).map_err(anyhow::Error::from).and_then(|mut wire| {
            let hello = wire.receive(HELLO_BYTES_MAX, HELLO_PATIENCE)?;
            Ok((wire, hello))
        });
        self.strangers().leave(number);
        let (wire, hello) = hello?;
        let mut wire = self.greet(wire, hello)?;
        let done = self.answer(&mut wire);
        self.is_taken.store(false, Ordering::Release);
        if let Err(error) = &done {
            // The caller may have gone.
            let _ = wire.send(&AgentMessage::Error(format!("{error:#}")));
        }
        done
    }

    /// Admits a caller that holds the token, unless there is another.
    fn greet(&self, mut wire: Wire, hello: Call) -> anyhow::Result<Wire> {
        let refusal = match hello {
            Call::Hello { token, .. } if !self.token.is(&token) => "the token is wrong".to_owned(),
            Call::Hello { version, .. } if version != VERSION => {
                format!("the caller has version {version} of the messages, this agent has {VERSION}")
            }
            Call::Hello { .. } if self.is_taken.swap(true, Ordering::Acquire) => {
                "another caller uses this agent".to_owned()
            }
            Call::Hello { .. } => {
                if let Err(error) = wire.send(&AgentMessage::Welcome) {
                    self.is_taken.store(false, Ordering::Release);
                    return Err(error.into());
                }
                return Ok(wire);
            }
            Call::Prepare(_) | Call::Run(_) | Call::Go => "the first message must be a hello".to_owned(),
        };
        // A stranger need not read it.
        let _ = wire.send(&AgentMessage::Error(refusal.clone()));
        bail!("refused: {refusal}")
    }

    /// Carries out the caller's messages until it ends the connection.
    fn answer(&self, wire: &mut Wire) -> anyhow::Result<()> {
        let mut prepared = None;
        loop {
            let call = match wire.receive(CALL_BYTES_MAX, CALLER_PATIENCE) {
                Err(super::wire::WireError::Ended) => return Ok(()),
                call => call?,
            };
            match call {
                Call::Prepare(preparation) => {
                    prepared = Some(prepare(&preparation)?);
                    wire.send(&AgentMessage::Ready)?;
                }
                Call::Run(round) => {
                    let prepared = prepared.as_ref().context("run: nothing is prepared")?;
                    let Some(book) = run(wire, prepared, &round)? else { return Ok(()) };
                    wire.send(&AgentMessage::Done(Box::new(SentBook::of(&book))))?;
                }
                Call::Hello { .. } | Call::Go => bail!("this message is not expected here"),
            }
        }
    }
}

/// Resolves the options that the caller has sent, and stores the keys if this agent is to.
fn prepare(preparation: &Preparation) -> anyhow::Result<Prepared> {
    let Preparation { servers, options, share, stores } = preparation;
    let GeneratorShare { index, of } = *share;
    ensure!(
        (1..=AGENTS_MAX).contains(&of) && index < of,
        "share {index} of {of}: expected 0 to {}",
        AGENTS_MAX - 1
    );
    let words: Vec<&str> = options.iter().map(String::as_str).collect();
    let ServedLoad { mut workload, clients } =
        read(&words).map_err(|error| anyhow::anyhow!("{}", error.to_string().trim()))?;
    ensure!(workload.terms.is_none(), "--terms: an agent reads no files for its caller");
    let servers: Vec<ServerAddress> =
        servers.iter().map(|server| server.parse()).collect::<Result<_, _>>()?;
    ensure!(!servers.is_empty(), "there is no server");
    ensure!(
        !servers.iter().any(|server| matches!(server, ServerAddress::Unix(_))),
        "--server: an agent connects to addresses, not to UNIX sockets"
    );
    let client_threads = ClientThreads { share: *share, ..clients.client_threads(servers.clone()) };
    if *stores && workload.loads() {
        client_threads.store(&workload.setup(&servers, clients.connections)?)?;
    }
    // The other agents write values, too.
    workload.no_load = true;
    let setup = workload.setup(&servers, clients.connections)?;
    Ok(Prepared { setup, client_threads })
}

/// Runs a round once the caller sends `go`; none if the caller disconnected before its end.
fn run(wire: &mut Wire, prepared: &Prepared, round: &LoadRound) -> anyhow::Result<Option<Book>> {
    let phase = phase_of(round)?;
    let stop = AtomicBool::new(false);
    let caller = wire.stream().try_clone()?;
    let book = thread::scope(|scope| {
        let go = || -> anyhow::Result<()> {
            wire.send(&AgentMessage::Connected)?;
            match wire.receive(CALL_BYTES_MAX, GO_PATIENCE)? {
                Call::Go => {}
                _ => bail!("expected go"),
            }
            let watched = thread::Builder::new().spawn_scoped(scope, || watch(&caller, &stop));
            watched.map(drop).context("cannot start a thread that watches the caller")
        };
        let book = prepared.client_threads.run_after(go, &prepared.setup, phase, &stop, |_| ());
        // Ends the watch, too.
        let was_stopped = stop.swap(true, Ordering::Relaxed);
        book.map(|book| (!was_stopped).then_some(book))
    })?;
    Ok(book)
}

/// Sets `stop` when the caller ends the connection, or sends anything before the round ends: the load stops at once.
fn watch(caller: &TcpStream, stop: &AtomicBool) {
    // A stream without a timeout would keep the agent from its next caller.
    if caller.set_read_timeout(Some(WATCH_EVERY)).is_err() {
        return stop.store(true, Ordering::Relaxed);
    }
    while !stop.load(Ordering::Relaxed) {
        match caller.peek(&mut [0]) {
            Err(error) if is_timeout(&error) || error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return stop.store(true, Ordering::Relaxed),
        }
    }
}

fn phase_of(round: &LoadRound) -> anyhow::Result<LoadPhase> {
    let pace = match &round.pace {
        RoundPace::Open { arrivals, rate } => {
            ensure!((1e-3..=1e9).contains(rate), "the rate {rate} is not from 0.001 to 1000000000");
            Pace::Open(arrivals.parse()?, *rate)
        }
        RoundPace::Closed { outstanding } => {
            ensure!((1..=10_000).contains(outstanding), "{outstanding} outstanding; expected 1 to 10000");
            Pace::Closed(*outstanding)
        }
    };
    let (warm_up, time) = (Span::from_ps(round.warm_up_ps), Span::from_ps(round.time_ps));
    let is_allowed = |span: Span| span <= ROUND_MAX;
    ensure!(
        is_allowed(warm_up) && is_allowed(time) && !time.is_zero(),
        "a round has at most {ROUND_MAX} of load"
    );
    Ok(phase(round.index, pace, warm_up, time))
}

const HELLO_BYTES_MAX: usize = 1024;
/// The longest wait for a caller's hello, which it sends as soon as it has connected.
const HELLO_PATIENCE: Duration = Duration::from_secs(2);
const CALL_BYTES_MAX: usize = 64 * 1024;
/// The longest silence of a caller between rounds, such as while other agents store keys.
const CALLER_PATIENCE: Duration = Duration::from_secs(900);
/// The longest wait for the other agents to connect.
const GO_PATIENCE: Duration = Duration::from_secs(60);
/// The pause before connections are accepted again.
const RETRY_AFTER: Duration = Duration::from_millis(50);
/// The interval at which the end of the round is checked while the caller is watched.
const WATCH_EVERY: Duration = Duration::from_millis(20);
/// The longest warm-up, and the longest measured time.
const ROUND_MAX: Span = Span::from_secs(3600);
