//! The program chronos-memcached: reads its flags, starts the server, and handles signals until it ends.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use plimsoll_chronos::{Config, RunningServer, StartError, metrics::MetricsSocket};
use plimsoll_process::{note, outln};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use crate::memory_file::MemoryFile;
use crate::options::Options;
use crate::{Memcached, journal, process};

/// Calls `run`, prints its error, and returns the exit status.
pub fn main(run: impl FnOnce() -> Result<()>) -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            note!("chronos-memcached: {error:#}");
            ExitCode::from(71)
        }
    }
}

/// Runs the program with a command line, until it ends; `start` starts the server.
///
/// # Errors
/// If a flag is wrong, the kernel refuses a resource of the server, or a thread of the server fails.
pub fn run(
    arguments: impl IntoIterator<Item = OsString>,
    start: impl FnOnce(Memcached, &Config) -> Result<RunningServer, StartError>,
) -> Result<()> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let options: Options = plimsoll_command_line::parse(arguments.iter().cloned());
    if options.license {
        outln!("MIT OR Apache-2.0. It has no code of memcached's.");
        return Ok(());
    }
    if options.daemon && !process::is_daemon() {
        return process::become_daemon();
    }
    let options = options.with_file(&arguments)?;
    let (settings, config, files) = options.resolve(plimsoll_process::control_group_memory())?;
    process::allow_files(&config)?;
    if options.enable_coredumps {
        process::allow_cores()?;
    }
    process::change_user(options.user.as_deref())?;
    let verbose = settings.verbosity;
    // Before any thread is started, so that all of them leave these signals to this one.
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1, SIGHUP]).context("cannot wait for signals")?;
    let memory_file = settings.memory_file.clone().map(MemoryFile::new);
    let mut service = Memcached::new(settings)?;
    if let Some(file) = &memory_file {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        service = file.restore(service, now.as_secs())?;
    }
    let bind = |address| MetricsSocket::bind(address).with_context(|| format!("--metrics {address}"));
    let metrics = options.metrics.as_deref().map(bind).transpose()?;
    let metrics = metrics.map(|socket| (socket, service.publish()));
    service.on_shutdown(|is_graceful| {
        // Only a signal that does not exist is refused.
        let _ = signal_hook::low_level::raise(if is_graceful { SIGUSR1 } else { SIGINT });
    });
    if files.have_certificates() {
        let files = files.clone();
        service.on_refresh(move || files.read_certificates().map_err(|error| format!("{error:#}")));
    }
    let shared = Arc::clone(service.shared());
    let running = start(service, &config)?;
    if let Some((socket, shown)) = metrics {
        note!("metrics at {}, path /metrics", socket.address());
        let more = move |out: &mut _| shown.expose(out);
        socket
            .serve("chronos-memcached", env!("CARGO_PKG_VERSION"), (&running, &config), more)
            .context("--metrics")?;
    }
    let pid_file = options.pidfile.as_deref().filter(|_| options.daemon);
    let pid_file = pid_file.map(std::path::absolute).transpose().context("-P")?;
    if let Some(path) = &pid_file {
        process::write_pid(path);
    }
    if verbose > 0 {
        for place in running.bound() {
            note!("listening on {place}");
        }
        for device in running.stats().devices() {
            note!("{device}");
        }
    }
    if let Some(path) = std::env::var_os("MEMCACHED_PORT_FILENAME") {
        process::write_ports(Path::new(&path), running.bound(), config.ipv6_only)?;
    }
    process::leave_parent(verbose > 0, options.enable_coredumps)?;
    let (stop, kept) = (running.stop_handle(), memory_file.clone());
    let handle = move || {
        for signal in signals.forever() {
            if let Some(file) = kept.as_ref().filter(|_| signal == SIGUSR1) {
                file.want();
            }
            if signal != SIGHUP {
                stop.stop();
                continue;
            }
            for read in [files.read_users(), files.read_certificates()] {
                if let Err(error) = read {
                    note!("SIGHUP: {error:#}; what was read before stays");
                }
            }
        }
    };
    std::thread::Builder::new().spawn(handle).context("cannot start a thread for signals")?;
    let (end_journal, journal_ends) = mpsc::channel();
    let journal = move || journal::keep(&shared, &journal_ends, std::io::stderr());
    let journal =
        std::thread::Builder::new().spawn(journal).context("cannot start a thread for the journal")?;
    let ended = running.join();
    drop(end_journal);
    // The journal cannot fail.
    let _ = journal.join();
    if let Some(path) = pid_file {
        // Another process may have removed it already.
        let _ = std::fs::remove_file(path);
    }
    ended?;
    if let Some(file) = memory_file
        && let Some(items) = file.kept()?
    {
        note!("{items} items are kept for the next start");
    }
    if verbose > 0 {
        note!("stopped");
    }
    Ok(())
}
