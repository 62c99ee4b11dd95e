//! [`HostCounters`]: counts of the whole host, in addition to its policies' counts: pause frames, and TCP's timeouts.
//!
//! Drivers name their counters of pauses as they like, and a driver may count one frame in several counters, so each
//! counter is shown by the driver's name and no sum is made.

use std::fs;
use std::path::Path;

use crate::commands::run;

/// Counts of a host since its boot; empty where the host has none.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct HostCounters {
    /// The counters of pause frames of physical devices.
    pub pauses: Vec<PauseCounter>,
    /// TCP segments that were sent, without retransmissions.
    pub segments: Option<u64>,
    /// TCP segments that were sent again.
    pub retransmissions: Option<u64>,
    /// Retransmission timeouts of TCP, each of which delays its connection by 200 ms or more.
    pub timeouts: Option<u64>,
}

/// A driver's counter of pause frames, by link or by priority.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PauseCounter {
    /// The name of the device.
    pub device: String,
    /// The name that the driver gives the counter.
    pub counter: String,
    /// Whether the neighbour sent the frames, which pause this host; else this host sent them.
    pub is_received: bool,
    /// The number of frames since the driver was loaded.
    pub frames: u64,
}

impl HostCounters {
    /// Reads the counters of the network namespace of this process. A file or a program that is missing leaves its
    /// counters out.
    pub fn read() -> HostCounters {
        let devices = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
        // Only devices of a bus have such counters; asking a virtual one costs a process for nothing.
        let devices = devices.filter(|entry| entry.path().join("device").exists());
        let names = devices.filter_map(|entry| entry.file_name().into_string().ok());
        let mut pauses: Vec<PauseCounter> = names
            .flat_map(|device| {
                run("ethtool", &["-S", &device]).map(|text| pauses(&device, &text)).unwrap_or_default()
            })
            .collect();
        pauses.sort_by(|one, other| (&one.device, &one.counter).cmp(&(&other.device, &other.counter)));
        let text = |name: &str| fs::read_to_string(Path::new("/proc/net").join(name)).unwrap_or_default();
        let (snmp, netstat) = (text("snmp"), text("netstat"));
        HostCounters {
            pauses,
            segments: named(&snmp, "Tcp", "OutSegs"),
            retransmissions: named(&snmp, "Tcp", "RetransSegs"),
            timeouts: named(&netstat, "TcpExt", "TCPTimeouts"),
        }
    }
}

/// Returns the counters of pause frames in the output of `ethtool -S`.
fn pauses(device: &str, text: &str) -> Vec<PauseCounter> {
    let counter = |line: &str| {
        let (name, value) = line.trim().rsplit_once(": ")?;
        let words: Vec<&str> = name.split(['_', '.']).collect();
        let is_frames = words.iter().any(|word| ["pause", "xoff", "pxoff", "pfc"].contains(word));
        let is_other = words.iter().any(|word| ["duration", "transition", "storm", "time"].contains(word));
        let is_received = words.contains(&"rx");
        let has_direction = is_received || words.contains(&"tx");
        let frames = value.parse().ok().filter(|_| is_frames && !is_other && has_direction)?;
        Some(PauseCounter { device: device.to_owned(), counter: name.to_owned(), is_received, frames })
    };
    text.lines().filter_map(counter).collect()
}

/// Returns a number of a file in which a line of names is followed by a line of values, both behind the same word.
fn named(text: &str, table: &str, name: &str) -> Option<u64> {
    let mut rows = text.lines().filter_map(|line| line.strip_prefix(table)?.strip_prefix(": "));
    let (names, values) = (rows.next()?, rows.next()?);
    let found = names.split(' ').zip(values.split(' ')).find(|(known, _)| *known == name)?;
    found.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pause_frames_are_found_by_the_names_of_several_drivers() {
        let text = "NIC statistics:\n     rx_packets: 9\n     rx_prio3_pause: 7\n     rx_prio3_pause_duration: 9\n     \
                    tx_pause_ctrl_phy: 2\n     link_xoff_rx: 4\n     rx_priority_3_xoff.nic: 5\n     \
                    rx_pause_frames: 6\n     tx_timeout_count: 1\n";
        let found = pauses("eth0", text);
        let brief: Vec<(&str, bool, u64)> =
            found.iter().map(|one| (one.counter.as_str(), one.is_received, one.frames)).collect();
        let expected = [
            ("rx_prio3_pause", true, 7),
            ("tx_pause_ctrl_phy", false, 2),
            ("link_xoff_rx", true, 4),
            ("rx_priority_3_xoff.nic", true, 5),
            ("rx_pause_frames", true, 6),
        ];
        assert_eq!(brief, expected);
        assert_eq!(pauses("lo", "no stats available\n"), []);
    }

    #[test]
    fn a_number_is_found_by_its_table_and_name() {
        let text = "Ip: Forwarding OutSegs\nIp: 1 3\nTcp: RtoMin OutSegs RetransSegs\nTcp: 200 1234 5\n";
        assert_eq!(named(text, "Tcp", "OutSegs"), Some(1_234));
        assert_eq!(named(text, "Tcp", "RetransSegs"), Some(5));
        assert_eq!((named(text, "Tcp", "TCPTimeouts"), named("", "Tcp", "OutSegs")), (None, None));
        // This kernel counts TCP's segments and timeouts.
        let here = HostCounters::read();
        assert!(
            here.segments.is_some() && here.retransmissions.is_some() && here.timeouts.is_some(),
            "{here:?}"
        );
    }
}
