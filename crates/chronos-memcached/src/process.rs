//! Preparations of the process before the server starts: files, a user, running in the background.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::unistd::{User, geteuid, initgroups, setgid, setuid};
use plimsoll_chronos::{Config, Listen};
use plimsoll_process::note;
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit, setsid, test_kill_process};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout};

/// Set for the process that `-d` leaves in the background.
const DAEMON: &str = "CHRONOS_MEMCACHED_DAEMON";
/// The word that this process prints when it listens.
const READY: &str = "ready";
/// Files of a thread: its epoll instance or ring, and its alarm.
const FILES_A_THREAD: u64 = 2;
/// Files of a device's queues and programs, as far as they can be foreseen.
const FILES_A_DEVICE: u64 = 64;
/// Files of the process: standard streams, signals, and files that are opened for a moment.
const FILES_BESIDE: u64 = 64;

/// Reports whether this process runs in the background.
pub fn is_daemon() -> bool {
    std::env::var_os(DAEMON).is_some()
}

/// Starts this program again in the background, and returns when it listens.
pub fn become_daemon() -> Result<()> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut child = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(DAEMON, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start in the background")?;
    let mut line = String::new();
    let output = child.stdout.take().context("a child with a pipe")?;
    BufReader::new(output).read_line(&mut line).context("the background process cannot be heard")?;
    if line.trim_end() != READY {
        let status = child.wait()?;
        bail!("the server did not start in the background ({status})");
    }
    Ok(())
}

/// In the background: starts a session of its own, and reports success to the parent. After that it holds nothing of
/// the parent's: neither its standard streams (standard error stays if `verbose`) nor, unless it is to leave a core
/// file there, its working directory.
pub fn leave_parent(verbose: bool, stays: bool) -> Result<()> {
    if !is_daemon() {
        return Ok(());
    }
    // The process has a session already if another program started it so.
    let _ = setsid();
    if !stays {
        std::env::set_current_dir("/").context("cannot change to the directory /")?;
    }
    let nothing =
        OpenOptions::new().read(true).write(true).open("/dev/null").context("cannot open /dev/null")?;
    if !verbose {
        dup2_stderr(&nothing).context("cannot let go of standard error")?;
    }
    // The parent may have been killed.
    let _ = writeln!(std::io::stdout(), "{READY}");
    dup2_stdin(&nothing).and_then(|()| dup2_stdout(&nothing)).context("cannot let go of the standard streams")
}

/// Writes the pid file, which appears when it is complete. The server also runs without it, so an error is only
/// printed.
pub fn write_pid(path: &Path) {
    let running = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    let running = running.and_then(Pid::from_raw).filter(|&pid| test_kill_process(pid).is_ok());
    if let Some(pid) = running {
        note!("WARNING: The pid file contained the following (running) pid: {}", pid.as_raw_nonzero());
    }
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".tmp");
    let written = std::fs::write(&unfinished, format!("{}\n", std::process::id()))
        .and_then(|()| std::fs::rename(&unfinished, path));
    if let Err(error) = written {
        note!("WARNING: cannot write the pid file {}: {error}", path.display());
    }
}

/// Writes the ports that the server listens on into memcached's file, which appears when it is complete.
pub fn write_ports(path: &Path, bound: &[Listen], ipv6_only: bool) -> Result<()> {
    let mut lines = String::new();
    for place in bound {
        let (kind, address) = match place {
            Listen::Tcp(address) | Listen::Tls { address, .. } => ("TCP", address),
            Listen::Udp(address) => ("UDP", address),
            // A device has the ports of the sockets.
            Listen::Unix { .. } | Listen::Device { .. } => continue,
        };
        // A socket for both address families counts as two to a reader that looks for one of them.
        if address.is_ipv4() || (address.ip().is_unspecified() && !ipv6_only) {
            lines += &format!("{kind} INET: {}\n", address.port());
        }
        if address.is_ipv6() {
            lines += &format!("{kind} INET6: {}\n", address.port());
        }
    }
    let unfinished = path.with_extension("lck");
    std::fs::write(&unfinished, lines)
        .and_then(|()| std::fs::rename(&unfinished, path))
        .with_context(|| format!("cannot write MEMCACHED_PORT_FILENAME, {}", path.display()))
}

/// Returns the number of files that a server needs: one for each connection, the files of each thread, among them a
/// socket for each place of datagrams, and the listeners.
fn files_needed(config: &Config) -> u64 {
    let count = |is: fn(&Listen) -> bool| config.listen.iter().filter(|place| is(place)).count() as u64;
    let datagrams = count(|place| matches!(place, Listen::Udp(_)));
    let devices = count(|place| matches!(place, Listen::Device { .. }));
    let listeners = config.listen.len() as u64 - datagrams - devices;
    let threads = u64::from(config.threads) * (FILES_A_THREAD + datagrams);
    config.limits.connections as u64 + threads + listeners + devices * FILES_A_DEVICE + FILES_BESIDE
}

/// Raises the limit on open files to the number that the server needs.
pub fn allow_files(config: &Config) -> Result<()> {
    let (needed, connections) = (files_needed(config), config.limits.connections);
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let maximum = limit.maximum.map(|maximum| maximum.max(needed));
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).with_context(|| {
        let threads = config.threads;
        format!(
            "-c {connections} and -t {threads} need {needed} open files: raise the limit (ulimit -n), \
             or ask for fewer"
        )
    })
}

/// Raises the limit on core files, as `-r` asks.
pub fn allow_cores() -> Result<()> {
    let maximum = getrlimit(Resource::Core).maximum;
    setrlimit(Resource::Core, Rlimit { current: maximum, maximum })
        .context("-r: cannot raise the limit on core files")
}

/// Becomes `user`. As root one must be given, as with memcached.
pub fn change_user(user: Option<&str>) -> Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    let Some(name) = user else { bail!("can't run as root without the -u switch") };
    let user = User::from_name(name)?.with_context(|| format!("can't find the user {name} to switch to"))?;
    let failed = || format!("failed to assume identity of user {name}");
    let c_name = std::ffi::CString::new(name).context("a user's name has no zero byte")?;
    initgroups(&c_name, user.gid).with_context(failed)?;
    setgid(user.gid).with_context(failed)?;
    setuid(user.uid).with_context(failed)
}

#[cfg(test)]
mod tests {
    use plimsoll_chronos::Limits;

    use super::*;

    #[test]
    fn threads_and_places_need_files_too() {
        let udp = Listen::Udp("127.0.0.1:1".parse().expect("an address"));
        let tcp = Listen::Tcp("127.0.0.1:1".parse().expect("an address"));
        let limits = Limits { connections: 100, ..Limits::default() };
        for (threads, listen, expected) in [
            (1, vec![tcp.clone()], 100 + 2 + 1 + 64),
            (1024, vec![tcp.clone(), udp.clone()], 100 + 1024 * 3 + 1 + 64),
            (8, vec![tcp.clone(), tcp, udp.clone(), udp], 100 + 8 * 4 + 2 + 64),
        ] {
            assert_eq!(files_needed(&Config { threads, listen, limits, ..Config::default() }), expected);
        }
    }
}
