//! The datagram family: paced messages that nothing acknowledges or repairs.

use plimsoll_results::Digest;
use plimsoll_sim::run_in_parts;

use crate::truth::lab::{model, run};

const UDP: &str = "kind = 'datagram'\nsegment = '1472B'\nheader = '28B'\n";

fn rack(transport: &str, rest: &str) -> String {
    format!(
        "version = 1\ntitle = 'datagrams'\n[topology]\nkind = 'rack'\nhosts = 4\nrate = '1Gbps'\ndelay = '5us'\n\
         [transport]\n{transport}{rest}"
    )
}

#[test]
fn a_message_takes_the_time_of_its_links() {
    let rpc = "[workload.rpc]\nkind = 'rpc'\nrequest = '100B'\nresponse = '10KB'\nload = 0.01\ncount = 20\n";
    let run = run(&rack(UDP, rpc));
    // 128 B and then 7 packets for 10,000 B, of which the last has 1,168 B of payload: each crosses two links of 5 us.
    let ns = |bytes: u64| bytes * 8;
    let request = 2 * (ns(128) + 5_000);
    let response = 6 * ns(1_500) + 2 * (ns(1_196) + 5_000) + ns(1_500) - ns(1_196);
    assert_eq!(run.of("rpc").count(), 20);
    for message in run.of("rpc") {
        let took = message.completed.unwrap() - message.created;
        // The last packet, which is shorter, waits at the switch for the one before.
        assert_eq!(took.as_ps() / 1_000, request + response, "{message:?}");
        assert_eq!(run.counters.retransmissions, 0);
    }
}

#[test]
fn a_flow_keeps_to_its_pace() {
    let flow = "[workload.flow]\nkind = 'flows'\nfrom = 'h1'\nto = 'client'\n[run]\nduration = '10ms'\n";
    let delivered = |keys: &str| run(&rack(&format!("{UDP}{keys}"), flow)).connections[0].delivered as f64;
    let at = |gbps: f64| gbps * 1e9 / 8.0 * 0.01 * 1_472.0 / 1_500.0;
    let near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 0.01;
    assert!(near(delivered("pacing_rate = '250Mbps'\n"), at(0.25)));
    assert!(near(delivered(""), at(1.0)), "the rate of the NIC");
}

/// Flows that collide in short queues: lost packets stay lost, and no message arrives twice or in part.
#[test]
fn a_message_is_lost_with_any_of_its_packets() {
    let load = "[workload.all]\nkind = 'all-to-all'\nsize = '20KB'\nload = 0.7\ncount = 150\n\
                [port.switch]\nbuffer = '12 packets'\n";
    let run = run(&rack(UDP, load));
    let all = run.of("all").count();
    let done = run.of("all").filter(|message| message.completed.is_some()).count();
    assert_eq!(all, 150);
    assert!((50..140).contains(&done), "{done} done");
    // Of a message that is whole, everything has arrived; of the others, some has.
    let delivered: u64 = run.connections.iter().map(|connection| connection.delivered).sum();
    assert!(delivered >= done as u64 * 20_000 && delivered < 150 * 20_000, "{delivered}");
    let sent: u64 = run.connections.iter().map(|connection| connection.segments).sum();
    assert_eq!(sent, 150 * 14);
    assert_eq!(run.counters.retransmissions, 0);
}

/// TCP repairs what datagrams do not, in the same queues.
#[test]
fn datagrams_go_beside_tcp() {
    let load = "[transports.udp]\nkind = 'datagram'\npacing_rate = '300Mbps'\n\
                [workload.video]\nkind = 'flows'\nfrom = 'h1'\nto = 'client'\ntransport = 'udp'\n\
                [workload.bulk]\nkind = 'flows'\nfrom = 'h2'\nto = 'client'\n\
                [run]\nduration = '50ms'\n[port.switch]\nbuffer = '60 packets'\necn = { threshold = '20 packets' }\n";
    let run = run(&rack("kind = 'dctcp'\nmin_rto = '10ms'\nack_delay = '1ms'\n", load));
    let delivered = |name: &str| {
        let number = run.workloads.iter().position(|info| info.name == name).unwrap();
        let of = run.connections.iter().filter(|connection| usize::from(connection.workload) == number);
        of.map(|connection| connection.delivered).sum::<u64>() as f64 * 8.0 / 0.05
    };
    assert!((0.25e9..0.3e9).contains(&delivered("video")), "{}", delivered("video"));
    assert!((0.5e9..0.75e9).contains(&delivered("bulk")), "{}", delivered("bulk"));
}

#[test]
fn a_connection_for_each_message_is_closed_after_it() {
    let rpc = "connections = 'per-message'\n\
               [workload.rpc]\nkind = 'rpc'\nrequest = '3KB'\nresponse = '10KB'\nload = 0.3\ncount = 200\n";
    let run = run(&rack(UDP, rpc));
    assert_eq!(run.connections.len(), 200);
    assert!(
        run.connections.iter().all(|connection| (connection.delivered, connection.segments) == (13_000, 10))
    );
}

#[test]
fn any_number_of_threads_gives_the_same_run() {
    let text = format!(
        "version = 1\ntitle = 'threads'\n[run]\nduration = '3ms'\n[topology]\nkind = 'leaf-spine'\nleaves = 4\n\
         spines = 2\nhosts_per_leaf = 3\nrate = '1Gbps'\ndelay = '2us'\n[port.switch]\nbuffer = '10 packets'\n\
         [transport]\n{UDP}[workload.all]\nkind = 'all-to-all'\nsize = {{ cdf = 'websearch' }}\nload = 0.6\n\
         [workload.round]\nkind = 'permutation'\nsize = '50KB'\nstart_within = '1ms'\n"
    );
    let model = model(&text, None, None);
    let outcome = |threads| run_in_parts(&model, threads, &mut |_| true).expect("it runs");
    let one = outcome(1);
    assert!(one.counters.drops() > 0 && one.messages.iter().any(|message| message.completed.is_some()));
    assert_eq!([2, 3, 4].map(|threads| Digest::of(&outcome(threads))), [Digest::of(&one); 3]);
}
