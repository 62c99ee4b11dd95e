//! [`Star`]: hosts joined by a bridge of the kernel, whose ports cut segments into packets as a NIC does.
//!
//! ```text
//! h0: TCP ── eth0 ═ veth ═ p0 ┐         eth0: what TCP hands over: whole segments, or packets without TSO
//!                            bridge
//! h1: TCP ── eth0 ═ veth ═ p1 ┘         p1: cuts every segment, so that a host receives packets of the MTU
//! ```
//!
//! A bridge leaves segments whole, so the kernel does the same at a host as with a NIC, until the NIC has the segment.
//! A link is as fast as the processors are, or as a token bucket at the host's device permits.

use std::fs;
use std::io;
use std::net::Ipv6Addr;
use std::process::{Command, Stdio};

use plimsoll_fabric::net::HostId;
use plimsoll_units::Rate;

use crate::edge::frame::{ipv6, mac};
use crate::features;
use crate::net::namespaces::{DEVICE, Namespaces};
use crate::net::offloads::{self, Offload};

/// The settings of the hosts of a [`Star`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StarSettings {
    /// The number of hosts.
    pub hosts: u32,
    /// Bytes of an IP packet at most.
    pub mtu: u32,
    /// True if the hosts' devices take segments whole (TSO).
    pub segmentation_offload: bool,
    /// The most bytes of a segment, headers included (`gso_max_size`).
    pub segment_bytes: u32,
    /// The most packets of a segment (`gso_max_segs`); without it, as many as it has room for.
    pub segment_packets: Option<u32>,
    /// True if the hosts join received packets (GRO).
    pub receive_offload: bool,
    /// The bytes of a connection that may wait below TCP (`tcp_limit_output_bytes`).
    pub output_limit: u64,
    /// The most bytes of a connection's buffers.
    pub socket_buffer: u64,
    /// The rate at which a host's device sends; without it, as fast as the processors do.
    pub rate: Option<Rate>,
}

/// Hosts and their bridge; dropping them removes them.
#[derive(Debug)]
pub struct Star {
    namespaces: Namespaces,
}

impl Star {
    /// Returns the feature that the system lacks for a star.
    pub fn lacks() -> Option<String> {
        let missing = match features::missing() {
            Ok(missing) => missing.into_iter().map(|feature| feature.name),
            Err(error) => return Some(error.to_string()),
        };
        let ipv6 = fs::exists(IPV6).unwrap_or(false);
        let missing: Vec<&str> = missing.chain((!ipv6).then_some("IPv6")).collect();
        (!missing.is_empty()).then(|| format!("this system lacks {}", missing.join(", ")))
    }

    /// Creates the hosts `h0`, `h1`, ... and joins them by a bridge.
    ///
    /// # Errors
    /// If the system refuses. Hosts made until then are removed.
    pub fn create(settings: &StarSettings) -> io::Result<Star> {
        let StarSettings { hosts, mtu, segment_bytes, .. } = *settings;
        let star = Star { namespaces: Namespaces::claim(hosts + 1)? };
        star.namespaces.add()?;
        let switch = hosts;
        let mut batch = "link add br0 type bridge mcast_snooping 0\nlink set br0 up\n".to_owned();
        for host in 0..hosts {
            let [a, b, c, d, e, f] = mac(HostId(host));
            batch += &format!(
                "link add p{host} mtu {mtu} type veth peer name {DEVICE} mtu {mtu} \
                 address {a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x} netns {}\n\
                 link set p{host} master br0 up\n",
                star.namespaces.name(host)
            );
        }
        star.namespaces.ip(switch, &batch)?;
        star.namespaces.inside(switch, || {
            // Only a device without TSO hands its packets to the GRO of its peer.
            (0..hosts).try_for_each(|host| offloads::set(&format!("p{host}"), Offload::Segmentation, false))
        })?;
        let packets =
            settings.segment_packets.map_or_else(String::new, |most| format!(" gso_max_segs {most}"));
        let network = Ipv6Addr::from(u128::from(ipv6(HostId(0))) >> 64 << 64);
        for host in 0..hosts {
            let own = ipv6(HostId(host));
            star.namespaces.inside(host, || {
                offloads::set(DEVICE, Offload::Segmentation, settings.segmentation_offload)?;
                offloads::set(DEVICE, Offload::Receive, settings.receive_offload)?;
                sysctls(settings)
            })?;
            star.namespaces.ip(
                host,
                &format!(
                    "link set lo up\n\
                     link set {DEVICE} gso_max_size {segment_bytes}{packets}\n\
                     link set {DEVICE} up\n\
                     addr add {own}/64 dev {DEVICE} nodad noprefixroute\n\
                     route add {network}/64 dev {DEVICE} congctl {CONGESTION_CONTROL}\n"
                ),
            )?;
        }
        star.queue(switch)?;
        if let Some(rate) = settings.rate {
            star.shape(switch, rate, segment_bytes)?;
        }
        star.steer(switch)?;
        Ok(star)
    }

    /// Gives every port a queue, in which packets wait while the host at its other end has no room (Linux 6.16; older
    /// kernels lose them).
    fn queue(&self, switch: u32) -> io::Result<()> {
        let name = self.namespaces.name(switch);
        (0..switch).try_for_each(|host| {
            let port = format!("p{host}");
            run("tc", &["-n", name, "qdisc", "add", "dev", &port, "root", "bfifo", "limit", PORT_BYTES])
        })
    }

    /// Runs `work` in a thread inside the namespace of `host`, and waits for it.
    ///
    /// # Errors
    /// If the namespace cannot be entered, or an error of `work`.
    pub fn inside<T: Send>(&self, host: u32, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        self.namespaces.inside(host, work)
    }

    /// Makes every host's device send at a rate, and hold the packets that wait for it.
    fn shape(&self, hosts: u32, rate: Rate, segment_bytes: u32) -> io::Result<()> {
        // A segment must fit the bucket, else it is cut.
        let (rate, bucket) = (format!("{}bit", rate.as_bps()), (2 * segment_bytes).to_string());
        (0..hosts).try_for_each(|host| {
            let device = ["-n", self.namespaces.name(host), "qdisc", "add", "dev", DEVICE, "root"];
            let bucket = ["tbf", "rate", &rate, "burst", &bucket, "limit", HOST_BYTES];
            run("tc", &[&device[..], &bucket[..]].concat())
        })
    }

    /// Makes one processor receive all packets from a host and to it: else packets of a connection whose program moves
    /// to another processor overtake each other.
    fn steer(&self, switch: u32) -> io::Result<()> {
        let processors = std::thread::available_parallelism()?.get() as u32;
        // `/sys` has the devices of the namespace that it was mounted in, as `ip netns exec` does.
        let echo = |host: u32, device: &str| {
            let mask = 1_u64 << (host % processors.min(64));
            format!("echo {mask:x} > /sys/class/net/{device}/queues/rx-0/rps_cpus")
        };
        let at = |namespace, line: &str| {
            run("ip", &["netns", "exec", self.namespaces.name(namespace), "sh", "-e", "-c", line])
        };
        (0..switch).try_for_each(|host| at(host, &echo(host, DEVICE)))?;
        let ports: Vec<String> = (0..switch).map(|host| echo(host, &format!("p{host}"))).collect();
        at(switch, &ports.join("\n"))
    }
}

fn run(program: &str, words: &[&str]) -> io::Result<()> {
    let output = Command::new(program).args(words).stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("`{program} {}` failed: {}", words.join(" "), said.trim())))
}

/// The congestion control of all connections, which a route may have where a namespace may not.
const CONGESTION_CONTROL: &str = "cubic";
/// The bytes that wait at a host's device at most, where it has a rate.
const HOST_BYTES: &str = "33554432";
/// The bytes that wait at a port at most.
const PORT_BYTES: &str = "2097152";

/// The name of every host's device.
pub const HOST_DEVICE: &str = DEVICE;

/// Sets the parameters that each namespace has for itself.
fn sysctls(settings: &StarSettings) -> io::Result<()> {
    let buffer = format!("4096 131072 {}", settings.socket_buffer);
    for (name, value) in [
        ("tcp_timestamps", "0"),
        ("tcp_slow_start_after_idle", "0"),
        ("tcp_limit_output_bytes", &settings.output_limit.to_string()),
        ("tcp_wmem", &buffer),
        ("tcp_rmem", &buffer),
    ] {
        let path = format!("/proc/sys/net/ipv4/{name}");
        fs::write(&path, value)
            .map_err(|error| io::Error::new(error.kind(), format!("{path} = {value}: {error}")))?;
    }
    Ok(())
}

const IPV6: &str = "/proc/net/if_inet6";
