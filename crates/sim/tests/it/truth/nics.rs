//! Hosts with several NICs: a connection has one at each end, by rail or by hash, and messages are those of hosts.

use plimsoll_results::Digest;
use plimsoll_results::outcome::MessageRecord;
use plimsoll_sim::run_in_parts;

use crate::truth::lab::{Run, model, run};

/// `count` flows of 10 MB from host 0 to host 3 at the same time, with two NICs of 10 Gb/s a host on four leaves.
fn flows(count: u32, more: &str) -> String {
    format!(
        "
version = 1
title = 'rails'
[topology]
kind = 'leaf-spine'
leaves = 4
spines = 2
hosts_per_leaf = 2
nics = 2
rate = '10Gbps'
fabric_rate = '40Gbps'
delay = '1us'
[transport]
handshake = false
max_window = 200
initial_ssthresh = 20
{more}
{}",
        transfers(count, "from = 'h0'\nto = 'h3'\nsize = '10MB'\n")
    )
}

/// `count` workloads of one flow each, which open their connections in this order.
fn transfers(count: u32, keys: &str) -> String {
    (0..count).map(|number| format!("[workload.flow{number}]\nkind = 'flows'\n{keys}")).collect()
}

fn slowest(run: &Run) -> f64 {
    let took = |message: &MessageRecord| (message.completed.unwrap() - message.created).as_secs_f64();
    run.messages.iter().map(took).fold(0.0, f64::max)
}

#[test]
fn connections_take_the_rails_in_turn() {
    let alone = slowest(&run(&flows(1, "")));
    let ideal = 10e6 * 8.0 / 10e9 * 1_500.0 / 1_460.0;
    assert!((ideal..1.01 * ideal).contains(&alone), "{alone} for {ideal}");
    // Two connections have a NIC each, and three share two.
    assert!((0.999..1.01).contains(&(slowest(&run(&flows(2, ""))) / alone)));
    assert!((1.9..2.01).contains(&(slowest(&run(&flows(3, ""))) / alone)));
}

#[test]
fn messages_and_connections_are_those_of_hosts() {
    let run = run(&flows(2, ""));
    assert!(run.messages.iter().all(|message| (message.source, message.destination) == (0, 3)));
    assert!(run.connections.iter().all(|connection| (connection.client, connection.server) == (0, 3)));
    assert!(run.connections.iter().map(|connection| connection.delivered).sum::<u64>() == 20_000_000);
}

#[test]
fn a_dead_nic_stops_the_connections_of_its_rail() {
    let dead = "[[fault]]\nfrom = 'h0.1'\nto = 'leaf1'\ndown = true\n";
    let run = run(&flows(2, &format!("[run]\nduration = '20ms'\n{dead}")));
    // Connection 1 has the dead NIC; which of the two workloads opens it is a matter of their order at one instant.
    let delivered: Vec<u64> = run.connections.iter().map(|connection| connection.delivered).collect();
    assert_eq!(delivered, [10_000_000, 0]);
}

#[test]
fn subflows_take_the_nics_in_turn() {
    let alone = slowest(&run(&flows(1, "")));
    let two = "mptcp = { coupling = 'uncoupled' }\n";
    let both = slowest(&run(&flows(1, two)));
    assert!((0.5..0.56).contains(&(both / alone)), "{both} for {alone}");
}

/// Responses come back to the NIC that asked, in a network of which every link carries something.
const BUSY: &str = "
version = 1
title = 'dual homing'
[run]
duration = '5ms'
drain = '1s'
[topology]
kind = 'leaf-spine'
leaves = 4
spines = 2
hosts_per_leaf = 3
nics = 2
rate = '1Gbps'
delay = '1us'
[paths]
nics = 'hash'
[port.switch]
buffer = '20 packets'
[transport]
min_rto = '1ms'
[workload.all]
kind = 'all-to-all'
size = '20KB'
load = 0.6
[workload.rpc]
kind = 'rpc'
request = '100B'
response = '20KB'
load = 0.3
[observe]
links = true
";

#[test]
fn both_nics_carry_what_a_hash_gives_them() {
    let run = run(BUSY);
    assert!(run.of("all").count() > 100 && run.of("rpc").count() > 5);
    for host in 0..6 {
        let sent = [0, 1].map(|nic| {
            let name = format!("h{host}.{nic}");
            let mut links = run.links.iter().filter(|link| link.from == name);
            let link = links.next().expect("each NIC has a link");
            assert!(links.next().is_none() && link.to == format!("leaf{}", host / 3 * 2 + nic));
            link.bytes
        });
        assert!(sent.iter().all(|bytes| *bytes > 20_000), "{sent:?} of host {host}");
    }
}

#[test]
fn any_number_of_threads_gives_the_same_run() {
    let model = model(BUSY, None, None);
    let digest = |threads| {
        let mut none = |_| true;
        Digest::of(&run_in_parts(&model, threads, &mut none).expect("it runs"))
    };
    assert_eq!([2, 3].map(digest), [digest(1); 2]);
}

#[test]
fn hosts_of_a_file_have_a_nic_for_each_link() {
    let text = |from: &str, to: &str, nics: &str| {
        format!(
            "version = 1\ntitle = 'graph'\n[topology]\nkind = 'file'\npath = 'two-nics.toml'\n\
             [paths]\nnics = '{nics}'\n\
             [transport]\nhandshake = false\n[observe]\nlinks = true\n{}",
            transfers(8, &format!("from = '{from}'\nto = '{to}'\nsize = '1KB'\n"))
        )
    };
    let bytes = |text: &str| {
        let run = run(text);
        let of = |name: &str| run.links.iter().find(|link| link.from == name).map(|link| link.packets);
        ["a.0", "a.1", "b.0", "c"].map(|name| of(name).expect("a link of that name"))
    };
    // Four connections on each rail from `a` to `b`; `c` has one NIC, so the rail to it is the first.
    let [a0, a1, ..] = bytes(&text("a", "b", "rail"));
    assert_eq!((a0, a1), (4, 4));
    assert_eq!(bytes(&text("a", "c", "rail"))[..2], [8, 0]);
    let [a0, a1, ..] = bytes(&text("a", "c", "hash"));
    assert!(a0 + a1 == 8 && a0 > 0 && a1 > 0, "{a0} and {a1}");
}
