//! [`UnfinishedMessages`]: why messages that NICs carry had not completed when a run ended.

use std::collections::BTreeMap;
use std::fmt;

use plimsoll_fabric::net::{Flags, Packet};
use plimsoll_fabric::{number_name, port_name};
use plimsoll_traffic::ConnectionEnd as End;

use super::Hosts;
use crate::sim_hooks::SimFabric;

/// The unfinished messages that NICs carry, by what they wait for. A message that waits for several counts for the
/// first.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct UnfinishedMessages {
    /// A port on its path holds packets of its priority and is paused; by the port's name.
    paused: BTreeMap<String, u64>,
    /// None of its bytes was sent.
    never_started: u64,
    /// Nothing more may be sent before an answer comes, or the timeout: its last packets were lost, or are on the way.
    await_answer: u64,
    /// More of it may be sent.
    sending: u64,
}

impl UnfinishedMessages {
    pub(crate) fn count(&self) -> u64 {
        self.paused.values().sum::<u64>() + self.never_started + self.await_answer + self.sending
    }
}

impl fmt::Display for UnfinishedMessages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paused = self.paused.iter().map(|(port, count)| (*count, format!("paused at port {port}")));
        let others = [
            (self.await_answer, "lost tail (all that may be sent is, and no answer or credit has come)"),
            (self.never_started, "never started"),
            (self.sending, "still sending"),
        ];
        let all = paused.chain(others.map(|(count, reason)| (count, reason.to_owned())));
        let parts: Vec<_> =
            all.filter(|(count, _)| *count > 0).map(|(count, reason)| format!("{count} {reason}")).collect();
        f.write_str(&parts.join(", "))
    }
}

impl Hosts {
    /// Returns whether NICs carry the messages of a workload.
    pub(crate) fn is_carried_by_nics(&self, workload: u16) -> bool {
        self.transports.of_workload(workload).carrier().is_nic()
    }

    /// Returns whether the transport of `packet`, whose payload was trimmed, has a use for its header.
    #[cold]
    pub(crate) fn takes_trimmed(&self, packet: &Packet) -> bool {
        let transport = self.connections.get(packet.flow).map(|open| self.transports.get(open.transport));
        transport.is_some_and(|transport| match packet.is_bounced() {
            true => transport.carrier().takes_bounced(),
            false => transport.carrier().takes_trimmed(),
        })
    }

    /// Returns what the messages that NICs carry wait for, of those that are not complete.
    pub(crate) fn unfinished(&self, fabric: &SimFabric) -> UnfinishedMessages {
        let mut unfinished = UnfinishedMessages::default();
        for (number, connection) in (0..).zip(self.connections.iter()) {
            let Some(connection) = connection else { continue };
            let config = self.transports.get(connection.transport);
            for end in [End::Client, End::Server] {
                let (half, peer) = (connection.half_of(end), connection.half_of(end.other()));
                let Some(awaits_answer) = half.endpoint.awaits_answer(config) else { continue };
                let starts: Vec<u64> = half.messages.unfinished_starts(&peer.messages).collect();
                if starts.is_empty() {
                    continue;
                }
                let mut packet = Packet::new(connection.host(end), connection.host(end.other()), number, 0);
                packet.priority = half.priority;
                if end == End::Server {
                    packet.flags = Flags::FROM_SERVER;
                }
                let paused = fabric.paused_port(&packet);
                for start in starts {
                    if let Some(port) = paused {
                        let name = port_name(fabric.network(), port, &number_name);
                        *unfinished.paused.entry(name).or_default() += 1;
                    } else if half.endpoint.sent() <= start {
                        unfinished.never_started += 1;
                    } else if awaits_answer {
                        unfinished.await_answer += 1;
                    } else {
                        unfinished.sending += 1;
                    }
                }
            }
        }
        unfinished
    }
}
