//! [`Counts`]: the counters of a host's kernel.

use std::fs;
use std::io;

use crate::net::namespaces::DEVICE;

/// The counters of a host's kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// Segments that TCP retransmitted.
    pub(crate) retransmissions: u64,
    /// Retransmission timeouts of TCP.
    pub(crate) timeouts: u64,
    /// Frames that its device dropped because they were not read in time.
    pub(crate) lost: u64,
    /// Datagrams that its sockets dropped because they were not read in time.
    pub(crate) unread: u64,
}

impl Counts {
    /// Reads the counters of the namespace that this thread is in.
    ///
    /// # Errors
    /// Fails if the kernel does not report them.
    pub(crate) fn read() -> io::Result<Counts> {
        let value = |path: &str, table: &str, column: &str| -> io::Result<u64> {
            let text = fs::read_to_string(path)?;
            let mut lines = text.lines().filter(|line| line.starts_with(table));
            let (names, values) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
            let at = names.split_whitespace().position(|name| name == column);
            let value = at.and_then(|at| values.split_whitespace().nth(at)?.parse().ok());
            value.ok_or_else(|| io::Error::other(format!("{path} has no {column}")))
        };
        Ok(Counts {
            retransmissions: value("/proc/thread-self/net/snmp", "Tcp:", "RetransSegs")?,
            timeouts: value("/proc/thread-self/net/netstat", "TcpExt:", "TCPTimeouts")?,
            unread: value("/proc/thread-self/net/snmp", "Udp:", "RcvbufErrors")?,
            lost: lost(&fs::read_to_string("/proc/thread-self/net/dev")?)
                .ok_or_else(|| io::Error::other("/proc/net/dev does not have the host's device"))?,
        })
    }
}

/// Returns the number of packets that a host's device did not send, from `/proc/net/dev`.
fn lost(devices: &str) -> Option<u64> {
    let device = devices.lines().find_map(|line| line.trim().strip_prefix(DEVICE)?.strip_prefix(':'))?;
    device.split_whitespace().nth(SENT_DROPPED)?.parse().ok()
}

/// The column of packets dropped in sending, after eight columns of receiving.
const SENT_DROPPED: usize = 11;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_devices_losses_are_read() {
        let text = "Inter-| Receive | Transmit\n face |bytes\n    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  \
                    eth0: 1 2 3 4 5 6 7 8 9 10 11 99 13 14 15 16\n";
        assert_eq!(lost(text), Some(99));
        assert_eq!(lost("    lo: 1 2 3"), None);
    }
}
