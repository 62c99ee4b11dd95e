//! Network namespaces, one a host, which the next start or `--clean` removes if their owner does not.
//!
//! Names are `plimsoll-<process>-<host>`. `/run/plimsoll/<process>`, which only root can open, is locked while its
//! owner or an `ip` that makes its namespaces lives, so a namespace with a name and without a lock was left behind.
//! Only namespaces with such names are ever removed; devices outside them are never touched.
//!
//! Removing the name of a namespace does not yet remove the namespace: a socket whose program has ended, with data that
//! is never read, keeps it for minutes, with its memory and its congestion control. So a namespace is emptied before it
//! is removed: processes are killed and awaited, and connections reset.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_fabric::net::HostId;
use plimsoll_process::Folder;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Pid, Signal, kill_process};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::edge::frame::{HOSTS_MAX, alias, ipv4, ipv6, mac};
use crate::edge::tap;
use crate::failure::failed;

/// The prefix of every name.
const PREFIX: &str = "plimsoll-";
/// Where iproute2 keeps the names of namespaces.
const NETNS: &str = "/run/netns";
/// The shortest retransmission timeout of sockets that ask for no other, in us (Linux 6.11).
const MIN_RTO_OF_SOCKETS: &str = "/proc/sys/net/ipv4/tcp_rto_min_us";
/// Where owners have their locks.
const STATE: &str = "/run/plimsoll";

/// The settings of connections that their route has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RouteSettings {
    /// Bytes of an IP packet at most.
    pub mtu: u32,
    /// Whether TCP negotiates ECN where the host does not by default.
    pub ecn: bool,
    /// The kernel's name of the congestion control.
    pub congestion_control: String,
    /// Shortest retransmission timeout, in ms.
    pub min_rto_ms: u64,
    /// Initial congestion window, in segments.
    pub initial_window: u32,
}

/// The network settings that all emulated hosts share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostSettings {
    /// Bytes of an IP packet at most.
    pub mtu: u32,
    /// The settings of connections of programs, and of workloads whose port has no others.
    pub route: RouteSettings,
    /// The ports of workloads whose connections have other settings, with these.
    pub ports: Vec<(u16, RouteSettings)>,
    /// Whether TCP negotiates ECN, whichever the route.
    pub ecn: bool,
    /// Whether TCP uses timestamps.
    pub timestamps: bool,
    /// TCP acknowledges selectively, and finds losses by time (RACK, RFC 8985) rather than by `reordering`.
    pub selective_acks: bool,
    /// Duplicate acknowledgements that mean a loss.
    pub reordering: u32,
    /// TCP hands over its segments one by one, not several at a time to be cut later: a limiter passes or refuses each.
    pub single_segments: bool,
    /// The bytes that a connection's send buffer has room for from the first; the kernel's default grows with the
    /// window.
    pub send_buffer: Option<u64>,
    /// The bytes of a connection's receive buffer from the first, half of which is the window that a receiver offers;
    /// the kernel's default grows with the received data.
    pub receive_buffer: Option<u64>,
    /// Every host has its own table of connections, so that they are listed without a walk over a large one.
    pub own_tables: bool,
    /// The most subflows of a connection, where connections may be of MPTCP.
    pub subflows: Option<u8>,
    /// One subflow of a connection is active at a time, at first that of the first address; [`IpBatch`] makes another
    /// one active.
    pub one_active: bool,
}

impl HostSettings {
    /// Returns whether a socket may have a shorter timeout than others, as sockets at a level of QJump request: not
    /// where the route has it.
    fn sockets_choose_min_rto(&self) -> bool {
        self.single_segments && Path::new(MIN_RTO_OF_SOCKETS).exists()
    }

    /// Returns the options of a route with the settings `of`. Sockets have their own congestion control, so the route
    /// has it only for programs `with_control`.
    fn words(&self, of: &RouteSettings, with_control: bool) -> String {
        let RouteSettings { mtu, ecn, congestion_control, min_rto_ms, initial_window } = of;
        let by_socket = self.sockets_choose_min_rto() && *min_rto_ms == self.route.min_rto_ms;
        let options = [
            (!by_socket, format!(" rto_min {min_rto_ms}ms")),
            (true, format!(" initcwnd {initial_window}")),
            (*mtu < self.mtu, format!(" mtu {mtu}")),
            (*ecn, " features ecn".to_owned()),
            (with_control, format!(" congctl {congestion_control}")),
        ];
        options.into_iter().filter(|(is_set, _)| *is_set).map(|(_, words)| words).collect()
    }
}

/// The hosts of a run; dropping them removes them.
#[derive(Debug)]
pub struct Namespaces {
    names: Vec<String>,
    state: Folder,
    lock: File,
}

impl Namespaces {
    /// Makes a namespace for each of `hosts` hosts, with its TAP device `eth0`, whose files are returned by host.
    /// Namespaces that an earlier run has left behind are removed before.
    ///
    /// # Errors
    /// If the system refuses. Namespaces made until then are removed.
    pub fn create(hosts: u32, settings: &HostSettings) -> io::Result<(Namespaces, Vec<File>)> {
        let namespaces = Namespaces::claim(hosts)?;
        if settings.own_tables {
            let process = std::process::id();
            namespaces.add_with_own_tables(&format!("{PREFIX}{process}-h{hosts}"))?;
        } else {
            namespaces.add()?;
        }
        let mut taps = Vec::new();
        for host in 0..hosts {
            let mut is_restricted = false;
            let tap = namespaces.inside(host, || {
                let number = |on| if on { "1" } else { "0" };
                if settings.sockets_choose_min_rto() {
                    fs::write(MIN_RTO_OF_SOCKETS, (settings.route.min_rto_ms * 1_000).to_string())
                        .map_err(|error| failed(MIN_RTO_OF_SOCKETS, error))?;
                }
                let reordering = settings.reordering.min(REORDERING_MAX);
                let (largest, reordering) =
                    (reordering.max(REORDERING_LEARNT).to_string(), reordering.to_string());
                let buffers = [
                    ("tcp_wmem", settings.send_buffer, SEND_BUFFER_MAX),
                    ("tcp_rmem", settings.receive_buffer, RECEIVE_BUFFER_MAX),
                ]
                .map(|(name, bytes, largest)| {
                    bytes.map(|bytes| (name, format!("{BUFFER_MIN} {bytes} {}", bytes.max(largest))))
                });
                let buffers = buffers.iter().flatten().map(|(name, value)| (*name, value.as_str()));
                for (name, value) in [
                    ("tcp_ecn", number(settings.ecn)),
                    ("tcp_timestamps", number(settings.timestamps)),
                    ("tcp_sack", number(settings.selective_acks)),
                    // The upper limit of `tcp_reordering`, so it must be set first.
                    ("tcp_max_reordering", &largest),
                    ("tcp_reordering", &reordering),
                    ("tcp_congestion_control", &settings.route.congestion_control),
                ]
                .into_iter()
                .chain(buffers)
                {
                    let path = format!("/proc/sys/net/ipv4/{name}");
                    match fs::write(&path, value) {
                        // A namespace cannot set a default that this kernel restricts; a route can.
                        Err(error)
                            if error.kind() == io::ErrorKind::PermissionDenied
                                && name.ends_with("control") =>
                        {
                            is_restricted = true;
                        }
                        written => written.map_err(|error| failed(format!("{path} = {value}"), error))?,
                    }
                }
                tap::create(DEVICE)
            })?;
            taps.push(tap);
            namespaces.configure(host, settings, is_restricted)?;
        }
        Ok((namespaces, taps))
    }

    /// Takes the names of the namespaces of `hosts` hosts, which are not made yet. Namespaces that an earlier run has
    /// left behind are removed before.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn claim(hosts: u32) -> io::Result<Namespaces> {
        if hosts > HOSTS_MAX {
            return Err(io::Error::other(format!("{hosts} hosts; at most {HOSTS_MAX} have addresses")));
        }
        // A namespace that cannot be removed does not keep others from being made.
        let _ = sweep()?.1;
        let state = Folder::make(Path::new(STATE)).map_err(|error| failed(STATE, error))?;
        let process = std::process::id().to_string();
        let lock = loop {
            // A process that can open a file can lock it, and only root can open this one.
            let lock = state.file(&process, OFlags::WRONLY | OFlags::CREATE)?;
            let lock = lock.ok_or_else(|| io::Error::other(format!("{STATE} has gone")))?;
            flock(&lock, FlockOperation::LockExclusive)?;
            // Another start may have found it without its lock, and removed it.
            if state.has(&process)? {
                break lock;
            }
        };
        // Known from the first moment on, so that a failure half way leaves none behind.
        let names = (0..hosts).map(|host| format!("{PREFIX}{process}-h{host}")).collect();
        Ok(Namespaces { names, state, lock })
    }

    /// Makes the namespaces.
    ///
    /// # Errors
    /// If the system refuses.
    pub(crate) fn add(&self) -> io::Result<()> {
        let add: String = self.names.iter().map(|name| format!("netns add {name}\n")).collect();
        ip(&["-batch", "-"], &add, Some(&self.lock))
    }

    /// Makes namespaces with their own tables of connections: a namespace has one if it was made in a namespace with
    /// that setting, which `mould` gets for the time. Kernels before 6.1 cannot.
    fn add_with_own_tables(&self, mould: &str) -> io::Result<()> {
        ip(&["-batch", "-"], &format!("netns add {mould}\n"), Some(&self.lock))?;
        let added = inside(mould, || {
            let _ = fs::write(OWN_TABLES, OWN_TABLE_SIZE.to_string());
            self.add()
        });
        let _ = remove(&[mould.to_owned()]);
        added
    }

    fn configure(&self, host: u32, settings: &HostSettings, is_restricted: bool) -> io::Result<()> {
        let id = HostId(host);
        let [a, b, c, d, e, f] = mac(id);
        let gso = if settings.single_segments { " gso_max_segs 1" } else { "" };
        let (v4, v6) = (ipv4(id), ipv6(id));
        let mut batch = format!(
            "link set lo up\n\
             link set {DEVICE} address {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} mtu {} \
             txqueuelen {HELD_MAX}{gso}\n\
             link set {DEVICE} up\n\
             addr add {v4}/8 dev {DEVICE} noprefixroute\n",
            settings.mtu
        );
        let route = format!("route add 10.0.0.0/8 dev {DEVICE} src {v4}");
        batch += &format!("{route}{}\n", settings.words(&settings.route, is_restricted));
        let mut tables: Vec<&RouteSettings> = Vec::new();
        for (port, own) in &settings.ports {
            let table = tables.iter().position(|known| *known == own).unwrap_or_else(|| {
                tables.push(own);
                let table = TABLES + tables.len() - 1;
                batch += &format!("{route}{} table {table}\n", settings.words(own, false));
                tables.len() - 1
            });
            for end in ["sport", "dport"] {
                batch += &format!("rule add ipproto tcp {end} {port} lookup {}\n", TABLES + table);
            }
        }
        self.ip(host, &batch)?;
        if let Some(subflows) = settings.subflows {
            self.ip(host, &endpoints(id, subflows, settings.one_active))?;
        }
        // A kernel without IPv6 has hosts without it.
        let v6 = format!("addr add {v6}/64 dev {DEVICE} nodad\n");
        let _ = self.ip(host, &v6);
        Ok(())
    }

    /// Runs iproute2 with a batch in the namespace of `host`.
    ///
    /// # Errors
    /// If it fails, with its message.
    pub(crate) fn ip(&self, host: u32, batch: &str) -> io::Result<()> {
        ip(&["-n", self.name(host), "-batch", "-"], batch, Some(&self.lock))
    }

    /// Starts iproute2 in the namespace of `host`, for commands that come later.
    ///
    /// # Errors
    /// If it cannot be started.
    pub(crate) fn ip_batch(&self, host: u32) -> io::Result<IpBatch> {
        IpBatch::start(&["-n", self.name(host), "-batch", "-"], Some(&self.lock))
    }

    /// The name of the namespace of `host`, for `ip netns exec`.
    pub fn name(&self, host: u32) -> &str {
        &self.names[host as usize]
    }

    /// Runs `work` in a thread inside the namespace of `host`, and waits for it.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or an error of `work`.
    pub fn inside<T: Send>(&self, host: u32, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        inside(self.name(host), work)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        empty(&self.names);
        // Namespaces that cannot be removed now are left to the next start.
        let _ = remove(&self.names);
        let _ = self.state.remove(&std::process::id().to_string());
    }
}

/// Runs `work` in a thread inside the namespace `name`, and waits for it.
fn inside<T: Send>(name: &str, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let work = || {
            enter(name)?;
            work()
        };
        let worker = std::thread::Builder::new().spawn_scoped(scope, work);
        let worker = worker
            .map_err(|error| failed(format_args!("cannot start a thread in the namespace {name}"), error))?;
        worker.join().unwrap_or_else(|_| Err(io::Error::other("the worker panicked")))
    })
}

/// The size of the tables of connections that namespaces have that are made in this one (Linux 6.1), and the size that
/// emulated hosts get.
const OWN_TABLES: &str = "/proc/sys/net/ipv4/tcp_child_ehash_entries";
const OWN_TABLE_SIZE: u32 = 4_096;

/// The smallest buffer of a connection, and the limit of its automatic growth: the kernel's defaults.
const BUFFER_MIN: u64 = 4_096;
const SEND_BUFFER_MAX: u64 = 4 << 20;
const RECEIVE_BUFFER_MAX: u64 = 32 << 20;

/// The number of duplicate acknowledgements to which Linux raises its tolerance by itself: its default.
const REORDERING_LEARNT: u32 = 300;
/// More duplicate acknowledgements than any window has packets.
const REORDERING_MAX: u32 = 1 << 16;

/// The routing table of the first port's settings; the tables of other ports follow.
const TABLES: usize = 1_000;

/// The batch that gives a host an address for each further subflow, and has connections that it opens use them.
/// Where `one_active` subflow is to send, the first address is an endpoint as well, so that it can become a backup.
fn endpoints(host: HostId, subflows: u8, one_active: bool) -> String {
    let more = subflows.saturating_sub(1);
    let limits = format!("mptcp limits set subflows {more} add_addr_accepted 0\n");
    let (first, backup) = match one_active {
        true => (format!("mptcp endpoint add {} dev {DEVICE}\n", ipv4(host)), " backup"),
        false => (String::new(), ""),
    };
    let endpoint = |number| {
        let address = alias(host, number);
        format!(
            "addr add {address}/8 dev {DEVICE} noprefixroute\n\
             mptcp endpoint add {address} dev {DEVICE} subflow{backup}\n"
        )
    };
    limits + &first + &(1..=more).map(endpoint).collect::<String>()
}

/// Packets that a device holds while it is not read; it loses further ones, and TCP does not wait for room in it.
const HELD_MAX: u32 = 10_000;

/// The device of every host.
pub(crate) const DEVICE: &str = "eth0";

/// Moves this thread into the namespace `name`, for the rest of its life.
///
/// # Errors
/// If the namespace cannot be entered.
pub fn enter(name: &str) -> io::Result<()> {
    let path = Path::new(NETNS).join(name);
    let file = File::open(&path).map_err(|error| failed(path.display(), error))?;
    Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Removes the namespaces that ended runs have left behind, and returns their number.
///
/// # Errors
/// If the folder of locks cannot be read, or a namespace cannot be removed.
pub fn clean() -> io::Result<usize> {
    let (left, removed) = sweep()?;
    removed.map(|()| left)
}

/// Removes what [`clean`] does. Returns how many namespaces were left behind, and whether they could be removed.
fn sweep() -> io::Result<(usize, io::Result<()>)> {
    let state = Folder::open(Path::new(STATE)).map_err(|error| failed(STATE, error))?;
    if let Some(state) = &state {
        await_orphans(state)?;
    }
    let lives = |owner: &str| state.as_ref().is_some_and(|state| lives(state, owner));
    let mut left = Vec::new();
    for name in listed(NETNS)? {
        if owner_of(&name).is_some_and(|owner| !lives(owner)) {
            left.push(name);
        }
    }
    empty(&left);
    let removed = remove(&left);
    crate::agents::cgroups::clean(lives);
    let Some(state) = &state else { return Ok((left.len(), removed)) };
    for owner in state.names()?.iter().filter(|name| is_number(name)) {
        let Ok(Some(lock)) = state.file(owner, OFlags::RDONLY) else { continue };
        // Removed under its lock: a start that waits for it then finds it removed, and makes another.
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            let _ = state.remove(owner);
        }
    }
    Ok((left.len(), removed))
}

/// Ends everything that would keep the namespaces alive before they are removed: programs of their hosts, also programs
/// that have left their process group, and then connections that these and this process have left.
fn empty(names: &[String]) {
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let namespaces: Vec<_> = names.iter().filter_map(|name| identity(&Path::new(NETNS).join(name))).collect();
    let begun = Instant::now();
    loop {
        let processes = listed("/proc").unwrap_or_default().into_iter().filter(|name| is_number(name));
        let is_inside = |process: &String| {
            identity(&Path::new("/proc").join(process).join("ns/net"))
                .is_some_and(|namespace| namespaces.contains(&namespace))
        };
        let inside: Vec<Pid> =
            processes.filter(is_inside).filter_map(|process| Pid::from_raw(process.parse().ok()?)).collect();
        for process in &inside {
            // It may have ended by itself.
            let _ = kill_process(*process, Signal::KILL);
        }
        // Their sockets are closed as they end.
        if inside.is_empty() || begun.elapsed() > PATIENCE {
            break;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    for name in names {
        // Connections that cannot be ended now are given up by the kernel later.
        let _ = inside(name, end_connections);
    }
}

/// Ends all connections of the namespace that this thread is in at once. A kernel that cannot (without
/// CONFIG_INET_DIAG_DESTROY; before 6.11 not the connections whose program has ended) gives them up after some tries,
/// of which they get the fewest.
fn end_connections() -> io::Result<()> {
    for (name, value) in [("tcp_orphan_retries", "1"), ("tcp_fin_timeout", "1")] {
        let _ = fs::write(format!("/proc/sys/net/ipv4/{name}"), value);
    }
    let mut ss = Command::new("ss");
    ss.args(["--kill", "--tcp", "--all"]);
    ss.process_group(0).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status().map(drop)
}

/// Time limit for killed programs, and for programs that a killed one has left running, to end.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The process in a name that is ours: `plimsoll-<process>-h<host>`, and no other that only begins like it.
fn owner_of(name: &str) -> Option<&str> {
    let (owner, host) = name.strip_prefix(PREFIX)?.split_once("-h")?;
    (is_number(owner) && is_number(host)).then_some(owner)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn listed(folder: &str) -> io::Result<Vec<String>> {
    match fs::read_dir(folder) {
        Ok(entries) => {
            Ok(entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(failed(folder, error)),
    }
}

/// Waits for processes that killed owners have left running: an `ip`, or a program that was about to start. Each holds
/// the lock, and may still make a namespace.
fn await_orphans(state: &Folder) -> io::Result<()> {
    let begun = Instant::now();
    for owner in state.names()?.iter().filter(|name| is_number(name)) {
        let is_gone = !Path::new("/proc").join(owner).exists();
        while is_gone && lives(state, owner) && begun.elapsed() < PATIENCE {
            std::thread::sleep(LOOK_AGAIN);
        }
    }
    Ok(())
}

/// Returns whether the owner of a lock holds it. An owner whose lock this process cannot test counts as alive.
fn lives(state: &Folder, owner: &str) -> bool {
    match state.file(owner, OFlags::RDONLY) {
        Ok(Some(lock)) => flock(&lock, FlockOperation::NonBlockingLockShared).is_err(),
        Ok(None) => false,
        Err(_) => true,
    }
}

/// Removes the existing ones of the namespaces, as `ip netns del` does; a signal to a program of that name could leave
/// some behind, which cannot happen here.
///
/// # Errors
/// If one cannot be removed; the others are.
fn remove(names: &[String]) -> io::Result<()> {
    let remove = |name: &String| {
        let path = Path::new(NETNS).join(name);
        match unmount(&path, UnmountFlags::DETACH) {
            // The name was made, and the namespace not yet.
            Ok(()) | Err(Errno::INVAL) => fs::remove_file(&path),
            Err(error) => Err(error.into()),
        }
    };
    // Another process may have removed some.
    let failure = |name| remove(name).err().filter(|error| error.kind() != io::ErrorKind::NotFound);
    let mut failures = names.iter().filter_map(failure);
    let Some(error) = failures.next() else { return Ok(()) };
    let left = 1 + failures.count();
    Err(failed(format_args!("cannot remove {left} of {} namespaces", names.len()), error))
}

/// Number of the host's device, in the namespace that this thread is in.
///
/// # Errors
/// If there is none.
#[cfg(feature = "kernel")]
pub(crate) fn device() -> io::Result<i32> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    let number = rustix::net::netdevice::name_to_index(&socket, DEVICE)?;
    i32::try_from(number).map_err(io::Error::other)
}

/// Runs iproute2 with a batch. It holds `lock` with this process, in place of an output that it does not have: if it
/// outlives this process, another does not take the namespaces that it makes for left behind. It is outside this
/// process's group, so that Ctrl-C in a terminal ends it neither while it makes namespaces nor while it removes them.
fn ip(arguments: &[&str], batch: &str, lock: Option<&File>) -> io::Result<()> {
    let mut ip = IpBatch::start(arguments, lock)?;
    ip.run(batch)?;
    ip.finish()
}

/// iproute2, which carries out commands as they come.
#[derive(Debug)]
pub(crate) struct IpBatch {
    child: Child,
    arguments: String,
}

impl IpBatch {
    /// Starts iproute2 with `arguments`, which have it read commands from standard input.
    fn start(arguments: &[&str], lock: Option<&File>) -> io::Result<IpBatch> {
        let held = lock.map(File::try_clone).transpose()?;
        let child = Command::new("ip")
            .args(arguments)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(held.map_or_else(Stdio::null, Stdio::from))
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed("cannot run `ip` of iproute2", error))?;
        Ok(IpBatch { child, arguments: arguments.join(" ") })
    }

    /// Has the commands of `batch`, a line each, carried out soon.
    ///
    /// # Errors
    /// If iproute2 has ended.
    pub(crate) fn run(&mut self, batch: &str) -> io::Result<()> {
        self.child.stdin.as_mut().map_or(Ok(()), |stdin| stdin.write_all(batch.as_bytes()))
    }

    /// Waits until all commands have been carried out.
    ///
    /// # Errors
    /// If one has failed, with its message.
    pub(crate) fn finish(self) -> io::Result<()> {
        let output = self.child.wait_with_output()?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(io::Error::other(format!("ip {}: {}", self.arguments, said.trim())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_emulated_hosts_are_ours() {
        assert_eq!(owner_of("plimsoll-4711-h0"), Some("4711"));
        assert_eq!(owner_of("plimsoll-1-h31"), Some("1"));
        for other in
            ["plimsoll-lab", "plimsoll-ql-4711", "plimsoll-4711-db", "plimsoll-4711-h", "plimsoll--h1", "h0"]
        {
            assert_eq!(owner_of(other), None, "{other}");
        }
    }

    /// An emulation may be killed while its `ip` makes namespaces, which is not killed with it.
    #[test]
    fn what_a_killed_owner_has_left_running_is_awaited() {
        if !rustix::process::geteuid().is_root() {
            return plimsoll_testing::skipped!("a folder of locks is root's");
        }
        let folder = std::env::temp_dir().join(format!("plimsoll-locks-{}", std::process::id()));
        let state = Folder::make(&folder).expect("a folder of root's");
        // More than any process's number.
        let owner = "4194305";
        let lock = state
            .file(owner, OFlags::WRONLY | OFlags::CREATE)
            .expect("no error")
            .expect("the folder is there");
        flock(&lock, FlockOperation::LockExclusive).expect("nobody else knows it");
        let mut ip = Command::new("sleep").arg("0.2").stdout(lock).spawn().expect("sleep runs");
        assert!(lives(&state, owner), "its child holds the lock");
        await_orphans(&state).expect("the folder can be read");
        assert!(!lives(&state, owner));
        ip.wait().expect("it has ended");
        fs::remove_dir_all(&folder).expect("it is there");
    }
}
