//! Implements `plimsoll run-at-level`, which runs an unmodified program at a level of QJump.

#[cfg(feature = "kernel")]
use std::process::ExitCode;

#[cfg(feature = "kernel")]
use plimsoll_process::note;
use plimsoll_scenario::Registry;
use plimsoll_units::{Bytes, whole};

use crate::output::Done;

/// Run an unmodified program at a level of QJump: its sockets, and those of the programs that it starts, have the
/// level.
///
/// `plimsoll run-at-level 7 -- memcached -m 64`. Needs root; with --user, the program runs without it. The limits of
/// this process's cgroup stay in force. Passes on SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2, and SIGINT where no terminal
/// does. Ends with the program's status, once all its descendants have ended too.
#[derive(clap::Args)]
pub struct Args {
    /// Level from 0 (the lowest) to 7.
    #[arg(value_parser = whole::<u8>(..=7))]
    level: u8,
    /// Size of the send buffers of its TCP connections: writes beyond it block. By default two epochs' share of its
    /// level by the policy that is applied here; `kernel` leaves it to the kernel.
    #[arg(long, value_name = "SIZE")]
    send_buffer: Option<SendBuffer>,
    /// Pacing of its TCP connections: with `level`, they share the level's rate and soon retransmit what the limiter
    /// drops; with `kernel`, TCP sends unpaced, packets are refused, and TCP then waits for 200 ms.
    #[arg(long, value_enum, default_value_t = Pace::Level)]
    pace: Pace,
    /// User to run it as, with that user's group, by name or number.
    #[arg(long, value_name = "USER")]
    user: Option<String>,
    /// Program, followed by its arguments.
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

/// The value of `--pace`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Pace {
    Level,
    Kernel,
}

/// The value of `--send-buffer`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SendBuffer {
    Kernel,
    Size(Bytes),
}

impl std::str::FromStr for SendBuffer {
    type Err = String;
    fn from_str(text: &str) -> Result<SendBuffer, String> {
        if text == "kernel" {
            return Ok(SendBuffer::Kernel);
        }
        text.parse().map(SendBuffer::Size).map_err(|error| format!("{error}, or `kernel`"))
    }
}

#[cfg(not(feature = "kernel"))]
pub fn run(args: &Args, _: &Registry) -> Done {
    let Args { level: _, send_buffer: _, pace: _, user: _, command: _ } = args;
    Err(anyhow::anyhow!(crate::output::NO_PROGRAMS))
}

#[cfg(feature = "kernel")]
pub fn run(args: &Args, _: &Registry) -> Done {
    use std::os::unix::process::ExitStatusExt as _;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

    let launch = plimsoll_host::Launch {
        level: args.level,
        connections: connections(args)?,
        user: args.user.clone(),
        command: args.command.clone(),
    };
    let mut caught = Vec::new();
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2] {
        let flag = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal, flag.clone())?;
        caught.push((signal, flag));
    }
    let mut signal = || {
        let mut passed_on = caught.iter().filter(|(signal, _)| *signal != SIGINT || !is_in_foreground());
        passed_on.find(|(_, flag)| flag.swap(false, Ordering::Relaxed)).map(|(signal, _)| *signal)
    };
    let ended = plimsoll_host::launch(&launch, &mut signal)?;
    let status = ended.code().or_else(|| Some(128 + ended.signal()?)).unwrap_or(1);
    Ok(ExitCode::from(status as u8))
}

/// Returns whether a terminal's Ctrl-C reaches this process: then it also reaches the program.
#[cfg(feature = "kernel")]
fn is_in_foreground() -> bool {
    use rustix::process::getpgrp;
    let terminal = std::fs::File::open("/dev/tty");
    terminal.is_ok_and(|terminal| rustix::termios::tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

/// Returns the pacing rate of the level by the tightest policy that is applied here, and two epochs' share for the send
/// buffers; none where no policy limits the level.
#[cfg(feature = "kernel")]
fn connections(args: &Args) -> anyhow::Result<plimsoll_host::ConnectionOptions> {
    use plimsoll_host::{ConnectionOptions, PolicyJournal, StateFolders};

    let folders = StateFolders::default();
    let mut shares = Vec::new();
    for name in PolicyJournal::all(&folders)? {
        let applied = PolicyJournal::of(&folders, &name).read()?;
        let levels =
            applied.and_then(|applied| applied.plan.policy.qjump).and_then(|qjump| qjump.levels().ok());
        let level =
            levels.and_then(|levels| Some((*levels.levels.get(usize::from(args.level))?, levels.epoch)));
        shares.extend(level.map(|(level, epoch)| level.latency_bound.map(|_| (level, epoch))));
    }
    if shares.is_empty() {
        note!("warning: no applied policy has level {}; nothing limits it yet", args.level);
    }
    let limits = || shares.iter().flatten();
    let send_buffer = match args.send_buffer {
        Some(SendBuffer::Kernel) => None,
        Some(SendBuffer::Size(bytes)) => Some(bytes.get()),
        None => limits().map(|(level, _)| level.bucket.get().saturating_mul(2)).min(),
    };
    let tightest = limits().min_by_key(|(level, _)| level.rate).filter(|_| args.pace != Pace::Kernel);
    Ok(ConnectionOptions {
        // The kernel doubles the requested size, for its own structures.
        send_buffer: send_buffer.map(|bytes| u32::try_from(bytes / 2).unwrap_or(u32::MAX)),
        share: tightest.map(|(level, epoch)| (level.bucket, *epoch)),
    })
}
