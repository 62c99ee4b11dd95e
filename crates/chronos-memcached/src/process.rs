//! What the kernel is asked for before the server starts: files, a user, a place in the background.

use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use nix::unistd::{User, geteuid, initgroups, setgid, setuid};
use plimsoll_chronos::Listen;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit, setsid};

/// Set for the process that `-d` leaves in the background.
const DAEMON: &str = "CHRONOS_MEMCACHED_DAEMON";
/// What that process says when it listens.
const READY: &str = "ready";
/// Files of a thread and of the process beside the connections.
const FILES_BESIDE: u64 = 256;

/// True in the background.
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

/// In the background: a session of its own, and word to the parent that all is well.
pub fn tell_parent() {
    if is_daemon() {
        // It has a session already if something else started it so.
        let _ = setsid();
        // The parent may have been killed.
        let _ = writeln!(std::io::stdout(), "{READY}");
    }
}

/// Writes the ports that the server listens on where memcached writes them: the file appears when it is whole.
pub fn write_ports(path: &Path, bound: &[Listen]) -> Result<()> {
    let mut lines = String::new();
    for place in bound {
        match place {
            Listen::Tcp(address) | Listen::Tls { address, .. } => {
                lines += &format!("TCP {}: {}\n", family(*address), address.port())
            }
            Listen::Udp(address) => lines += &format!("UDP {}: {}\n", family(*address), address.port()),
            // A device has the ports of the sockets.
            Listen::Unix { .. } | Listen::Device { .. } => {}
        }
    }
    let unfinished = path.with_extension("lck");
    std::fs::write(&unfinished, lines)
        .and_then(|()| std::fs::rename(&unfinished, path))
        .with_context(|| format!("cannot write MEMCACHED_PORT_FILENAME, {}", path.display()))
}

fn family(address: SocketAddr) -> &'static str {
    if address.is_ipv4() { "INET" } else { "INET6" }
}

/// Raises the limit on open files to what so many connections need.
pub fn allow_files(connections: u32) -> Result<()> {
    let needed = u64::from(connections) + FILES_BESIDE;
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let maximum = limit.maximum.map(|maximum| maximum.max(needed));
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum }).with_context(|| {
        format!("-c {connections} needs {needed} open files: raise the limit (ulimit -n), or ask for fewer connections")
    })
}

/// `-r`.
pub fn allow_cores() -> Result<()> {
    let maximum = getrlimit(Resource::Core).maximum;
    setrlimit(Resource::Core, Rlimit { current: maximum, maximum })
        .context("-r: cannot raise the limit on core files")
}

/// Becomes `user`. As root there must be one, as with memcached.
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
