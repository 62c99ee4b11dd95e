//! [`Target`] finds the sockets and processes of a server in /proc.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::Error;

/// A port on which a server receives requests.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ListeningPort {
    /// The number of the port.
    pub number: u16,
    /// Whether it is a UDP port; otherwise TCP.
    pub is_udp: bool,
}

impl std::fmt::Display for ListeningPort {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} port {}", if self.is_udp { "UDP" } else { "TCP" }, self.number)
    }
}

/// A server, by its ports and its processes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    /// The ports that are traced, in order.
    pub ports: Vec<ListeningPort>,
    /// The processes that have the sockets of these ports, in order.
    pub processes: Vec<u32>,
    /// The name of the first process (comm).
    pub name: String,
    /// The inode number of the network namespace.
    pub network: u64,
}

impl Target {
    /// Finds the server that listens on `port`: in this network namespace, or else in the only other that has one.
    ///
    /// # Errors
    /// Returns an error if nothing listens there, if it is in several other namespaces, or if its process is not
    /// visible.
    pub fn of_port(port: u16) -> Result<Target, Error> {
        let here = namespace_of(Path::new("/proc/self")).map_err(Error::reading("/proc/self/ns/net"))?;
        let mut found: BTreeMap<u64, Vec<Socket>> = BTreeMap::new();
        let mut all = BTreeSet::new();
        for (network, process) in namespaces()? {
            let sockets = listening(&PathBuf::from(format!("/proc/{process}")));
            all.extend(sockets.iter().filter(|_| network == here).map(|socket| socket.port.number));
            let matching: Vec<Socket> =
                sockets.into_iter().filter(|socket| socket.port.number == port).collect();
            if !matching.is_empty() {
                found.insert(network, matching);
            }
        }
        let network = match (found.contains_key(&here), found.len()) {
            (true, _) => here,
            (false, 1) => *found.keys().next().expect("one"),
            (false, 0) => return Err(Error::NothingListens { port, others: some_of(&all) }),
            (false, networks) => return Err(Error::SeveralNetworks { port, networks }),
        };
        let sockets = &found[&network];
        let processes = owners(sockets)?;
        if processes.is_empty() {
            return Err(Error::OwnerHidden { port });
        }
        Ok(Target::new(sockets, processes, network))
    }

    /// Finds the ports of `process`, and the other processes that have the same sockets.
    ///
    /// # Errors
    /// Returns an error if the process does not exist, if it is not accessible, or if it listens on no port.
    pub fn of_process(process: u32) -> Result<Target, Error> {
        let folder = PathBuf::from(format!("/proc/{process}"));
        if !folder.exists() {
            return Err(Error::NoProcess { process });
        }
        let network = namespace_of(&folder)
            .map_err(Error::reading(format!("/proc/{process}/ns/net (CAP_SYS_PTRACE is needed)")))?;
        let own = sockets_of(&folder)
            .map_err(Error::reading(format!("/proc/{process}/fd (CAP_SYS_PTRACE is needed)")))?;
        let sockets: Vec<Socket> =
            listening(&folder).into_iter().filter(|socket| own.contains(&socket.inode)).collect();
        if sockets.is_empty() {
            return Err(Error::ListensNowhere { process, name: name_of(process) });
        }
        let mut processes = owners(&sockets)?;
        processes.retain(|other| *other != process);
        processes.insert(0, process);
        Ok(Target::new(&sockets, processes, network))
    }

    fn new(sockets: &[Socket], processes: Vec<u32>, network: u64) -> Target {
        let ports: BTreeSet<ListeningPort> = sockets.iter().map(|socket| socket.port).collect();
        let name = processes.first().map_or_else(String::new, |process| name_of(*process));
        Target { ports: ports.into_iter().collect(), processes, name, network }
    }

    /// Keeps the ports of one number.
    ///
    /// # Errors
    /// Returns an error if the server does not have this port.
    pub fn only(mut self, port: u16) -> Result<Target, Error> {
        let others = self.ports.iter().map(|port| port.number).collect();
        self.ports.retain(|one| one.number == port);
        if self.ports.is_empty() {
            return Err(Error::NothingListens { port, others: some_of(&others) });
        }
        Ok(self)
    }

    /// Returns the rate in bits per second that the only device with a rate reports, in the server's network namespace.
    pub fn link_bps(&self) -> Option<u64> {
        let folder = format!("/proc/{}/root/sys/class/net", self.processes.first()?);
        let rates = fs::read_dir(folder).ok()?.filter_map(|entry| {
            let text = fs::read_to_string(entry.ok()?.path().join("speed")).ok()?;
            text.trim().parse::<u64>().ok().filter(|mbps| *mbps > 0)
        });
        match rates.collect::<Vec<u64>>()[..] {
            [mbps] => mbps.checked_mul(1_000_000),
            _ => None,
        }
    }

    /// Returns whether a process of the server still runs. A zombie does not.
    pub fn is_alive(&self) -> bool {
        self.processes.iter().any(|process| is_running(*process))
    }
}

impl Target {
    /// Returns the processor time of all threads of the server so far, in ns; 0 where the kernel does not count it.
    pub fn processor_ns(&self) -> u64 {
        self.processes.iter().map(|process| processor_ns(*process)).sum()
    }
}

/// Returns the processor time of the threads of a process that still run, in ns.
pub fn processor_ns(process: u32) -> u64 {
    let Ok(threads) = fs::read_dir(format!("/proc/{process}/task")) else { return 0 };
    let of = |entry: io::Result<fs::DirEntry>| {
        let text = fs::read_to_string(entry.ok()?.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse::<u64>().ok()
    };
    threads.filter_map(of).sum()
}

/// Returns whether the process runs, and is not a zombie.
pub fn is_running(process: u32) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{process}/stat")) else { return false };
    // The state follows the name, which may contain spaces and parentheses.
    let state = stat.rsplit_once(')').map_or("", |(_, rest)| rest).trim_start().chars().next();
    !matches!(state, Some('Z' | 'X') | None)
}

/// A socket that receives requests.
#[derive(Clone, Copy, Debug)]
struct Socket {
    port: ListeningPort,
    inode: u64,
}

/// Returns a process of each network namespace that is visible.
fn namespaces() -> Result<BTreeMap<u64, u32>, Error> {
    let mut found = BTreeMap::new();
    for process in processes()? {
        if let Ok(network) = namespace_of(&PathBuf::from(format!("/proc/{process}"))) {
            found.entry(network).or_insert(process);
        }
    }
    Ok(found)
}

fn processes() -> Result<Vec<u32>, Error> {
    let entries = fs::read_dir("/proc").map_err(Error::reading("/proc"))?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut all: Vec<u32> = names.collect();
    all.sort_unstable();
    Ok(all)
}

fn namespace_of(folder: &Path) -> io::Result<u64> {
    Ok(fs::metadata(folder.join("ns/net"))?.ino())
}

/// Returns the inodes of the sockets that a process has open.
fn sockets_of(folder: &Path) -> io::Result<BTreeSet<u64>> {
    let entries = fs::read_dir(folder.join("fd"))?;
    let inode = |entry: io::Result<fs::DirEntry>| {
        let link = fs::read_link(entry.ok()?.path()).ok()?;
        link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
    };
    Ok(entries.filter_map(inode).collect())
}

/// Returns the processes that have one of the sockets.
fn owners(sockets: &[Socket]) -> Result<Vec<u32>, Error> {
    let wanted: BTreeSet<u64> = sockets.iter().map(|socket| socket.inode).collect();
    let has_one = |process: &u32| {
        sockets_of(&PathBuf::from(format!("/proc/{process}")))
            .is_ok_and(|own| own.intersection(&wanted).next().is_some())
    };
    Ok(processes()?.into_iter().filter(has_one).collect())
}

/// Returns the listening TCP sockets and the unconnected UDP sockets of a process's network namespace.
fn listening(folder: &Path) -> Vec<Socket> {
    let mut found = Vec::new();
    for (file, is_udp) in [("tcp", false), ("tcp6", false), ("udp", true), ("udp6", true)] {
        let table = fs::read_to_string(folder.join("net").join(file)).unwrap_or_default();
        found.extend(table.lines().skip(1).filter_map(|line| socket_of(line, is_udp)));
    }
    found
}

/// Reads a line of /proc/net/tcp or its like (proc_pid_net(5)).
fn socket_of(line: &str, is_udp: bool) -> Option<Socket> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (local, remote, state, inode) = (fields.get(1)?, fields.get(2)?, fields.get(3)?, fields.get(9)?);
    let port = |address: &str| u16::from_str_radix(address.rsplit_once(':')?.1, 16).ok();
    let wanted = if is_udp { port(remote)? == 0 } else { *state == TCP_LISTEN };
    wanted.then_some(Socket {
        port: ListeningPort { number: port(local)?, is_udp },
        inode: inode.parse().ok()?,
    })
}

fn name_of(process: u32) -> String {
    fs::read_to_string(format!("/proc/{process}/comm"))
        .map_or_else(|_| String::new(), |name| name.trim().to_owned())
}

/// Lists the first few ports, for a message.
fn some_of(ports: &BTreeSet<u16>) -> String {
    if ports.is_empty() {
        return "none".to_owned();
    }
    let mut text: Vec<String> = ports.iter().take(12).map(u16::to_string).collect();
    if ports.len() > text.len() {
        text.push("...".to_owned());
    }
    text.join(", ")
}

const TCP_LISTEN: &str = "0A";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_read_from_the_table() {
        let listening =
            "   0: 0100007F:2BCB 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1";
        let connected =
            "   1: 0100007F:2BCB 0100007F:8F2A 01 00000000:00000000 00:00000000 00000000 0 0 4712 1";
        let socket = socket_of(listening, false).unwrap();
        assert_eq!((socket.port.number, socket.inode), (11_211, 4_711));
        assert!(socket_of(connected, false).is_none());
        assert!(socket_of(listening, true).is_some_and(|socket| socket.port.is_udp));
        assert!(socket_of("", false).is_none());
    }

    #[test]
    fn the_server_of_a_port_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let target = Target::of_port(port).unwrap();
        assert_eq!(target.ports, [ListeningPort { number: port, is_udp: false }]);
        assert_eq!(target.processes, [std::process::id()]);
        assert!(target.is_alive());
        let same = Target::of_process(std::process::id()).unwrap();
        assert!(same.ports.contains(&ListeningPort { number: port, is_udp: false }));
        drop(listener);
        let error = Target::of_port(port).unwrap_err().to_string();
        assert!(error.contains(&format!("nothing listens on TCP or UDP port {port}")), "{error}");
    }
}
