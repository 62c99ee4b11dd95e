//! [`VethNetwork`]: a veth pair for each server, between a namespace of its own and one of the clients, for the figures
//! over UDP and that of the index server.
//!
//! ```text
//! processor 0: server ─ near device ═ veth ═ far device ─ socket ─ generator: processor 1
//! ```
//!
//! A network card interrupts the host that receives. veth does not: what one side sends, its own processor receives for
//! the other side, by default. So that each processor pays for its own side:
//!
//! * the generator's side has its packets received on the generator's processor, by RPS;
//! * so has the server's side where the kernel's stack receives. Soft interrupts run within the server's time, as long
//!   as the server has work; soft interrupts of an idle processor are not counted, to memcached's advantage;
//! * an XDP program runs before RPS, in NAPI. It is given a thread of the kernel on the server's processor (threaded
//!   NAPI), which preempts as an interrupt would. Its time is counted as the server's.

use std::fs::{self, File};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::plan::RequestPath;

/// The namespaces and veth pairs of a point's servers, which are removed when this is dropped.
pub(crate) struct VethNetwork {
    id: String,
    servers: usize,
}

impl VethNetwork {
    /// Creates a namespace for the clients and one for each server, joined by veth pairs with a number of queues.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses a namespace, a device or an address.
    pub(crate) fn new(servers: usize, queues: u32) -> anyhow::Result<VethNetwork> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        // Names of devices have 15 letters at most.
        let id = format!("p{:x}{:x}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let network = VethNetwork { id, servers };
        let clients = network.clients();
        ip(&format!("netns add {clients}"))?;
        ip(&format!("-n {clients} link set lo up"))?;
        let queues = format!("numrxqueues {queues} numtxqueues {queues}");
        for server in 0..servers {
            let (own, near, far) = (network.server(server), network.near(server), network.far(server));
            ip(&format!("netns add {own}"))?;
            ip(&format!(
                "-n {own} link add {near} {queues} type veth peer name {far} {queues} netns {clients}"
            ))?;
            for (namespace, device, host) in [(&own, &near, 1), (&clients, &far, 2)] {
                ip(&format!("-n {namespace} addr add 10.231.{server}.{host}/24 dev {device}"))?;
                ip(&format!("-n {namespace} link set {device} up"))?;
            }
            ip(&format!("-n {own} link set lo up"))?;
        }
        Ok(network)
    }

    /// Runs something in the clients' namespace, on the calling thread; threads and programs that it starts are there
    /// too.
    ///
    /// # Errors
    /// Returns the error of `run`, or that of the kernel.
    pub(crate) fn at_clients<T>(&self, run: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let home = File::open("/proc/thread-self/ns/net").context("cannot open the network namespace")?;
        let enter = |namespace: &File| {
            move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))
                .context("cannot enter a network namespace")
        };
        enter(&File::open(format!("/run/netns/{}", self.clients()))?)?;
        let result = run();
        enter(&home)?;
        result
    }

    /// Returns the address of a server.
    pub(crate) fn address(&self, server: usize) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 231, server as u8, 1))
    }

    /// Returns the name of a server's device.
    pub(crate) fn near(&self, server: usize) -> String {
        format!("{}n{server}", self.id)
    }

    /// Returns the words that start a program at a server's end.
    pub(crate) fn prefix(&self, server: usize) -> [String; 2] {
        ["nsenter".to_owned(), format!("--net=/run/netns/{}", self.server(server))]
    }

    /// Has the processors of the server and of the generator each receive for their own side. Returns the threads of
    /// the kernel that receive for the server, which must run already.
    ///
    /// # Errors
    /// Returns an error if the kernel does not allow it.
    pub(crate) fn settle(
        &self,
        server: usize,
        stack: RequestPath,
        [server_cpu, generator_cpu]: [usize; 2],
    ) -> anyhow::Result<Vec<u32>> {
        let (own, near) = (self.server(server), self.near(server));
        steer(&self.clients(), &self.far(server), generator_cpu)?;
        if stack != RequestPath::Bypassed {
            steer(&own, &near, server_cpu)?;
            return Ok(Vec::new());
        }
        at(&own, &format!("echo 1 > /sys/class/net/{near}/threaded"))?;
        let tasks = receivers(&near)?;
        for task in &tasks {
            run("taskset", &["-cp", &server_cpu.to_string(), &task.to_string()])?;
            run("chrt", &["-f", "-p", "1", &task.to_string()])?;
        }
        Ok(tasks)
    }

    fn clients(&self) -> String {
        format!("plimsoll-{}-clients", self.id)
    }

    fn server(&self, server: usize) -> String {
        format!("plimsoll-{}-server-{server}", self.id)
    }

    fn far(&self, server: usize) -> String {
        format!("{}f{server}", self.id)
    }
}

impl Drop for VethNetwork {
    fn drop(&mut self) {
        // The pairs disappear with the namespaces; missing ones were never made.
        let servers = (0..self.servers).map(|server| self.server(server));
        for namespace in servers.chain([self.clients()]) {
            let mut command = Command::new("ip");
            let _ = command.args(["netns", "del", &namespace]).stderr(Stdio::null()).status();
        }
    }
}

/// Has a processor do the receiving of a device, by RPS.
fn steer(namespace: &str, device: &str, cpu: usize) -> anyhow::Result<()> {
    let write = format!(
        "for queue in /sys/class/net/{device}/queues/rx-*; do echo {} > $queue/rps_cpus; done",
        mask(cpu)
    );
    at(namespace, &write)
}

/// Returns a set of one processor as the kernel reads it: hexadecimal numbers of 32 bits, the highest first.
fn mask(cpu: usize) -> String {
    format!("{:x}{}", 1_u32 << (cpu % 32), ",00000000".repeat(cpu / 32))
}

/// Returns the kernel's threads that receive for a device, of which there is one a queue.
fn receivers(device: &str) -> anyhow::Result<Vec<u32>> {
    let begin = Instant::now();
    let name = format!("napi/{device}-");
    loop {
        let mut tasks = Vec::new();
        for entry in fs::read_dir("/proc").context("cannot list /proc")? {
            let Some(task) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            // It may have ended since it was listed.
            let comm = fs::read_to_string(format!("/proc/{task}/comm")).unwrap_or_default();
            if comm.starts_with(&name) {
                tasks.push(task);
            }
        }
        if !tasks.is_empty() {
            return Ok(tasks);
        }
        ensure!(begin.elapsed() < PATIENCE, "the kernel has no thread that receives for {device}");
        std::thread::sleep(PAUSE);
    }
}

/// Runs a line of a shell in a namespace, whose devices `/sys` then has.
fn at(namespace: &str, line: &str) -> anyhow::Result<()> {
    run("ip", &["netns", "exec", namespace, "sh", "-c", line])
}

fn ip(words: &str) -> anyhow::Result<()> {
    run("ip", &words.split_whitespace().collect::<Vec<_>>())
}

fn run(program: &str, words: &[&str]) -> anyhow::Result<()> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("`{program} {}` failed: {}", words.join(" "), said.trim());
    }
    Ok(())
}

/// The time within which the kernel's threads are there.
const PATIENCE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_sets_as_the_kernel_reads_them() {
        for (cpu, text) in
            [(0, "1"), (1, "2"), (31, "80000000"), (32, "1,00000000"), (69, "20,00000000,00000000")]
        {
            assert_eq!(mask(cpu), text);
        }
    }
}
