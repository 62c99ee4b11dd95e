//! Ports of switches between real hosts: trimming and lossless buffers under the kernel's TCP.

use plimsoll_linux::Emulated;
use plimsoll_results::outcome::MechanismUse;

use crate::world::{RACK, run};

/// Two hosts send 1 MB each to a third at the same time, through a switch with `port`.
fn incast(port: &str) -> Option<Emulated> {
    let text = format!(
        "{RACK}[port.switch]\n{port}\n[workload.bulk]\nkind = 'incast'\nto = 'h0'\nsize = '1MB'\nevery = '1s'\n\
         rounds = 2\n"
    );
    let emulated = run(&text, &[])?;
    let outcome = &emulated.outcome;
    assert_eq!(outcome.messages.len(), 4, "{port}");
    assert!(outcome.messages.iter().all(|message| message.completed.is_some()), "{port}");
    let delivered: u64 = outcome.connections.iter().map(|connection| connection.delivered).sum();
    let sent: u64 = outcome.messages.iter().map(|message| message.bytes).sum();
    assert_eq!((delivered, sent), (4_000_000, 4_000_000), "{port}");
    Some(emulated)
}

fn only(emulated: &Emulated) -> &MechanismUse {
    let [used] = &emulated.outcome.mechanisms[..] else { panic!("{:?}", emulated.outcome.mechanisms) };
    used
}

/// A memory of 160 KB pauses the hosts and loses nothing. Without lossless priorities as much memory drops packets.
#[test]
fn lossless_buffers_hold_real_hosts() {
    let Some(lossless) = incast("lossless = { memory = '160KB' }") else { return };
    let (counters, used) = (&lossless.outcome.counters, only(&lossless));
    assert_eq!((counters.switch_drops, counters.nic_drops, used.dropped), (0, 0, 0));
    assert_eq!((used.key.as_str(), used.action.as_str()), ("lossless", "paused a sender"));
    assert!(used.acted > 0 && used.peak.unwrap() >= 1.0 && used.headroom_peak > 0, "{used:?}");

    let Some(lossy) = incast("lossless = { memory = '160KB', priorities = '7' }") else { return };
    let (counters, used) = (&lossy.outcome.counters, only(&lossy));
    assert!(counters.switch_drops > 0 && counters.retransmissions > 0, "{counters:?}");
    assert_eq!((used.action.as_str(), used.acted), ("dropped a lossy packet", counters.switch_drops));
}

/// A report of an emulated run names the mechanism that never acted.
#[test]
fn a_mechanism_that_never_acted_is_known() {
    let Some(roomy) = incast("buffer = '30MB'\nlossless = { memory = '32MB' }") else { return };
    let used = only(&roomy);
    let peak = used.peak.unwrap();
    assert!(used.acted == 0 && peak > 0.0 && peak < 1.0, "{used:?}");
}

/// Switches cut what does not fit, and the kernel drops the headers for their checksum and sends the data again.
#[test]
fn trimmed_packets_are_lost_for_the_kernel() {
    let Some(trimmed) = incast("buffer = '10 packets'\ntrim = { queue = '1000 packets' }") else { return };
    let (counters, used) = (&trimmed.outcome.counters, only(&trimmed));
    assert!(counters.trimmed > 0 && counters.retransmissions > 0, "{counters:?}");
    assert_eq!((counters.switch_drops, counters.nic_drops), (0, 0), "headers and data have room");
    assert_eq!((used.key.as_str(), used.acted), ("trim", counters.trimmed));
    let of_priority = counters.by_priority.iter().next().unwrap();
    assert_eq!((of_priority.trimmed, of_priority.dropped), (counters.trimmed, 0));
    // Payloads of full segments, and of the last of a message.
    let payloads = of_priority.trimmed_bytes;
    assert!(payloads <= 1_460 * counters.trimmed && payloads > 1_000 * counters.trimmed, "{of_priority:?}");
}
