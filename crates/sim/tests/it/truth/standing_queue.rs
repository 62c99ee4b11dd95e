//! What long flows settle at: DCTCP's queue around its threshold, and the shares of a bottleneck.
//!
//! Above K every packet is marked and every window stops growing one round trip later. In that round trip
//! each of N flows has added one packet, so a queue that marks as packets join, whose marks travel through
//! the queue first, peaks at K + N. Marks made as packets leave arrive a queueing delay earlier: the peak
//! is just above K, whatever N is. In both regimes the sawtooth has its mean near K and never empties the
//! queue (DCTCP, section 3.3).

use plimsoll_units::Time;

use crate::truth::lab::{Run, run};

const K: u64 = 30;

/// `flows` long DCTCP flows of 1000 B packets at one 1 Gb/s port, watched after the first third.
///
/// The floor of the window is RFC 8257's. Packets of flows on one bottleneck keep the phases that their first cuts
/// leave, and with a floor of 2 one of five flows keeps 1.18 of its share for the whole run.
fn dctcp(flows: u64, threshold: &str, at: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'long DCTCP flows'\n[run]\nduration = '600ms'\nwarmup = '200ms'\n\
         [topology]\nkind = 'rack'\nhosts = {}\nrate = '1Gbps'\ndelay = '5us'\n\
         [port.host]\norder = 'fifo'\n\
         [port.switch]\necn = {{ threshold = '{threshold}', at = '{at}' }}\n\
         [transport]\nkind = 'dctcp'\nsegment = '960B'\nmin_window = 1\nack_every = 1\nmin_rto = '10ms'\n\
         [workload.w]\nkind = 'flows'\nfrom = 'others'\nto = 'client'\nstagger = '137us'\n\
         [observe]\nqueue.q = {{ port = 'client', every = '1ms' }}\n",
        flows + 1
    ))
}

/// Bytes that the connection from host `client` delivered, as a share of all.
fn share(run: &Run, client: u32) -> f64 {
    let delivered = |wanted: Option<u32>| -> u64 {
        let of =
            run.connections.iter().filter(|connection| wanted.is_none_or(|host| connection.client == host));
        of.map(|connection| connection.delivered).sum()
    };
    delivered(Some(client)) as f64 / delivered(None) as f64
}

#[test]
fn dctcp_stands_at_its_threshold() {
    for at in ["enqueue", "dequeue"] {
        for flows in [2, 4, 8] {
            let run = dctcp(flows, "30 packets", at);
            let queue = run.queue("q");
            let peak = *queue.max_bytes.iter().max().unwrap() / 1000;
            // Two packets: the one that meets the threshold, and the one in service.
            let expected = if at == "enqueue" { K + flows..=K + flows + 3 } else { K + 1..=K + 5 };
            assert!(
                expected.contains(&peak),
                "{at}, {flows} flows: peak {peak} packets, expected {expected:?}"
            );
            let mean = queue.mean_bytes.iter().sum::<f64>() / queue.mean_bytes.len() as f64 / 1000.0;
            assert!((mean / K as f64 - 1.0).abs() < 0.1, "{at}, {flows} flows: mean {mean:.1} packets");
            assert_eq!(queue.time_at[0], 0, "{at}, {flows} flows: the queue ran empty");
            // 400 ms at line rate are 50 000 packets.
            assert!(
                (49_980..=50_020).contains(&queue.packets),
                "{at}, {flows} flows: {} packets",
                queue.packets
            );
            assert_eq!((run.counters.switch_drops, run.counters.retransmissions), (0, 0));
        }
    }
}

#[test]
fn a_threshold_in_packets_is_one_in_bytes_where_packets_are_equal() {
    for at in ["enqueue", "dequeue"] {
        let (packets, bytes) = (dctcp(3, "30 packets", at), dctcp(3, "30000B", at));
        assert_eq!(packets.digest(), bytes.digest());
    }
}

#[test]
fn equal_flows_get_equal_shares() {
    for (flows, tolerance) in [(2, 0.1), (3, 0.1), (5, 0.15)] {
        let dctcp = dctcp(flows, "30 packets", "enqueue");
        for client in 1..=flows as u32 {
            let share = share(&dctcp, client) * flows as f64;
            assert!((share - 1.0).abs() < tolerance, "DCTCP: h{client} has {share:.3} of its share");
        }
    }
    // Drop-tail's shares mean something only where the senders are faster than the bottleneck: a sender of
    // the same speed can hold the port full for ever, its own queue in its NIC.
    for recovery in ["newreno", "sack"] {
        let tcp = run(&format!(
            "version = 1\ntitle = 'two TCP flows'\n[run]\nduration = '4s'\n\
             [topology]\nkind = 'dumbbell'\nleft = 2\nright = 1\nrate = '10Gbps'\ndelay = '20us'\n\
             bottleneck_rate = '1Gbps'\n[port.switch]\nbuffer = '100 packets'\n\
             [transport]\nack_every = 1\nmin_rto = '10ms'\nrecovery = '{recovery}'\n\
             [workload.w]\nkind = 'flows'\nfrom = 'h0..h1'\nto = 'h2'\nstagger = '137us'\n"
        ));
        let share = share(&tcp, 1) * 2.0;
        assert!((share - 1.0).abs() < 0.1, "{recovery}: h1 has {share:.3} of its share");
        let delivered: u64 = tcp.connections.iter().map(|connection| connection.delivered).sum();
        let goodput = delivered as f64 * 8.0 / 4e9 * 1500.0 / 1460.0;
        assert!(goodput > 0.98, "{recovery}: {goodput:.3} of the link");
    }
}

/// One flow crosses both bottlenecks, each of which it shares with another: 1 Gb/s, then 2 Gb/s.
#[test]
fn a_parking_lot_is_shared_in_the_order_of_max_min() {
    let run = run("version = 1\ntitle = 'a parking lot'\n[run]\nduration = '400ms'\n\
         [topology]\nkind = 'file'\npath = 'parking-lot.toml'\n\
         [port.switch]\necn = { threshold = '40 packets' }\n\
         [transport]\nkind = 'dctcp'\nack_every = 1\nmin_rto = '10ms'\n\
         [workload.long]\nkind = 'flows'\nfrom = ['a']\nto = 'd'\n\
         [workload.first]\nkind = 'flows'\nfrom = ['a']\nto = 'c'\n\
         [workload.second]\nkind = 'flows'\nfrom = ['b']\nto = 'd'\n");
    assert_eq!(run.end, Time::from_ps(400_000_000_000));
    let gbps = |workload: usize| {
        let bytes: u64 = run
            .connections
            .iter()
            .filter(|connection| usize::from(connection.workload) == workload)
            .map(|connection| connection.delivered)
            .sum();
        bytes as f64 * 8.0 / 0.4e9 * 1500.0 / 1460.0
    };
    let (long, first, second) = (gbps(0), gbps(1), gbps(2));
    let said = format!("long {long:.3}, first {first:.3}, second {second:.3} Gb/s");
    assert!((long + first - 1.0).abs() < 0.02, "the first link is full: {said}");
    assert!((long + second - 2.0).abs() < 0.04, "the second link is full: {said}");
    // Max-min is 0.5, 0.5, 1.5. Two queues make the long flow's round trip one and a half times the first's and
    // three times the second's, and step marking is unfair to long round trips: the order stays.
    assert!(long < first && first < second && long > 0.05, "{said}");
}
