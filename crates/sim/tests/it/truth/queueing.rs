//! Waits that queueing theory knows, with raw packets in front of one link.
//!
//! The sample sizes make the standard error of a mean wait below 0.7 %, which the tests check on the
//! spread between their replicates; the tolerance of 2 % is then about three of them.

use plimsoll_units::{Span, Time};

use crate::truth::lab::{run, run_with_seed};

/// One sender whose own link is the queue. `S` is a thousand bytes' time: 0.8 us.
fn one_sender(size: &str, load: f64, arrivals: &str, packets: u64) -> String {
    // The warm-up is a twentieth of the run at any load, for packets of about 1000 B.
    let warmup_us = (packets as f64 / 20.0 * 0.8 / load) as u64;
    format!(
        "version = 1\ntitle = 'a queue'\n[run]\nwarmup = '{warmup_us}us'\n\
         [topology]\nkind = 'rack'\nhosts = 2\nrate = '10Gbps'\ndelay = '0s'\n\
         [workload.w]\nkind = 'packets'\nfrom = ['h1']\nto = 'client'\nsize = {size}\nload = {load}\n\
         arrivals = '{arrivals}'\ncount = {packets}\n"
    )
}

/// Mean wait in the NIC over replicates with different seeds, and the standard error of that mean.
fn mean_nic_wait(text: &str, replicates: u64) -> (f64, f64) {
    let means: Vec<f64> = (1..=replicates)
        .map(|seed| {
            let run = run_with_seed(text, seed);
            let total: Span = run.messages.iter().map(|message| message.split.nic).sum();
            total.as_us_f64() / run.messages.len() as f64
        })
        .collect();
    let n = replicates as f64;
    let mean = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|m| (m - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// A mean size, the mean of its square over the square of its mean, and how a scenario writes it.
struct Sizes {
    name: &'static str,
    written: &'static str,
    mean: f64,
    square_ratio: f64,
}

const CONSTANT: Sizes = Sizes { name: "M/D/1", written: "'1000B'", mean: 1000.0, square_ratio: 1.0 };
/// Rounding to whole bytes adds 1/12 to a second moment of two million.
const EXPONENTIAL: Sizes = Sizes {
    name: "M/M/1",
    written: "{ kind = 'exponential', mean = '1000B' }",
    mean: 1000.0,
    square_ratio: 2.0,
};
/// From 0 to 2000 B; half a byte becomes one.
const UNIFORM: Sizes = Sizes {
    name: "M/U/1",
    written: "{ kind = 'uniform', min = '1B', max = '1999B' }",
    mean: 1000.0,
    square_ratio: 1.0 + 1998.0 * 1998.0 / 12.0 / 1e6,
};
const LOGNORMAL: Sizes = Sizes {
    name: "M/LN/1",
    written: "{ kind = 'lognormal', mean = '1000B', sd = '1200B' }",
    mean: 1000.0,
    square_ratio: 1.0 + 1.44,
};
/// Nine in ten of 64 B and one in ten of 9424 B.
const BIMODAL: Sizes = Sizes {
    name: "M/B/1",
    written: "{ kind = 'cdf', cdf = 'bimodal.csv', interpolate = 'step' }",
    mean: 1000.0,
    square_ratio: (0.9 * 64.0 * 64.0 + 0.1 * 9424.0 * 9424.0) / 1e6,
};

/// Pollaczek and Khinchine: W = load / (1 - load) x E[S^2] / (2 E[S]).
#[track_caller]
fn assert_waits(rows: &[(&Sizes, f64, u64, u64)]) {
    for &(sizes, load, packets, replicates) in rows {
        let (got, error) = mean_nic_wait(&one_sender(sizes.written, load, "poisson", packets), replicates);
        let service = sizes.mean * 8.0 / 10_000.0;
        let expected = load / (1.0 - load) * service * sizes.square_ratio / 2.0;
        let name = sizes.name;
        let said = format!("{name} at {load}: {got:.4} us, theory {expected:.4}, standard error {error:.4}");
        assert!(error < 0.007 * expected, "{said}: too few packets");
        assert!((got - expected).abs() < 0.02 * expected, "{said}");
    }
}

#[test]
fn waits_with_constant_sizes() {
    assert_waits(&[
        (&CONSTANT, 0.3, 100_000, 8),
        (&CONSTANT, 0.5, 100_000, 8),
        (&CONSTANT, 0.7, 200_000, 8),
        (&CONSTANT, 0.9, 400_000, 20),
    ]);
}

#[test]
fn waits_with_exponential_sizes() {
    assert_waits(&[
        (&EXPONENTIAL, 0.3, 200_000, 8),
        (&EXPONENTIAL, 0.5, 250_000, 8),
        (&EXPONENTIAL, 0.8, 300_000, 16),
    ]);
}

#[test]
fn waits_with_other_sizes() {
    assert_waits(&[(&UNIFORM, 0.6, 200_000, 8), (&LOGNORMAL, 0.5, 330_000, 8), (&BIMODAL, 0.4, 200_000, 8)]);
}

/// Many senders at one port: eight links of 100 Gb/s into one of 1 Gb/s are nearly Poisson.
#[test]
fn waits_where_senders_meet() {
    let (load, count) = (0.7, 100_000);
    let run = run(&format!(
        "version = 1\ntitle = 'a port'\n[run]\nwarmup = '100ms'\n\
         [topology]\nkind = 'dumbbell'\nleft = 8\nright = 1\nrate = '100Gbps'\ndelay = '1us'\n\
         bottleneck_rate = '1Gbps'\n\
         [workload.w]\nkind = 'packets'\nfrom = 'h0..h7'\nto = 'h8'\nsize = '1000B'\nload = '{}bps'\n\
         count = {count}\n",
        load * 1e9 / 8.0
    ));
    let total: Span = run.messages.iter().map(|message| message.split.tier[0]).sum();
    let got = total.as_us_f64() / run.messages.len() as f64;
    let expected = load / (1.0 - load) * 8.0 / 2.0;
    assert!((got / expected - 1.0).abs() < 0.02, "{got:.3} us, theory {expected:.3} us");
}

/// Every single wait is the one that Lindley's recursion gives.
#[test]
fn each_packet_waits_for_those_before_it() {
    for sizes in [&CONSTANT, &EXPONENTIAL, &BIMODAL] {
        let run = run(&one_sender(sizes.written, 0.85, "poisson", 50_000).replace("warmup", "#"));
        let (mut free_at_nic, mut free_at_port) = (Time::ZERO, Time::ZERO);
        for message in run.of("w") {
            let service = Span::from_ps(message.bytes * 800);
            let start = message.created.max(free_at_nic);
            assert_eq!(message.split.nic, start - message.created, "at the NIC: {message:?}");
            free_at_nic = start + service;
            // The switch's port is as fast: it delays only a small packet behind a large one.
            let start = free_at_nic.max(free_at_port);
            assert_eq!(message.split.tier[0], start - free_at_nic, "at the switch: {message:?}");
            free_at_port = start + service;
            assert_eq!(message.completed, Some(free_at_port));
        }
        assert_eq!(run.messages.len(), 50_000);
    }
}

/// Little's law without an average: the waiting bytes over time and the packets' bytes times waits are
/// the same area. The last packet's flight is longer than an interval, so no waiting is cut off.
#[test]
fn the_queue_meter_sees_what_the_packets_waited() {
    for (port, place, engine) in [
        ("nic:h1", "nic", "auto"),
        ("nic:h1", "nic", "general"),
        ("client", "tier", "auto"),
        ("client", "tier", "general"),
    ] {
        let run = run(&format!(
            "version = 1\ntitle = 'a meter'\n[topology]\nkind = 'rack'\nhosts = 4\nrate = '10Gbps'\ndelay = '5us'\n\
             [port.host]\nengine = '{engine}'\n[port.switch]\nengine = '{engine}'\n\
             [workload.w]\nkind = 'packets'\nfrom = 'h1..h3'\nto = 'client'\nsize = {}\nload = 0.3\ncount = 20000\n\
             [observe]\nqueue.q = {{ port = '{port}', every = '2us' }}\n",
            EXPONENTIAL.written
        ));
        let queue = run.queue("q");
        let area: f64 = queue.mean_bytes.iter().map(|bytes| bytes * 2e6).sum();
        let waits: f64 = run
            .of("w")
            .filter(|message| place == "tier" || message.source == 1)
            .map(|message| {
                let wait = if place == "tier" { message.split.tier[0] } else { message.split.nic };
                message.bytes as f64 * wait.as_ps() as f64
            })
            .sum();
        assert!(
            (area / waits - 1.0).abs() < 1e-9,
            "{port}, {engine}: {area} byte ps over time, {waits} by packets"
        );
        let expected = if place == "tier" { 60_000 } else { 20_000 };
        assert_eq!((queue.packets, queue.drops), (expected, 0));
        let watched: u64 = queue.time_at.iter().sum();
        assert_eq!(Time::from_ps(watched), run.end, "the histogram covers the run");
        // As long as the histogram's bins hold whole packets' sizes, it gives the same mean: half a bin off.
        let binned: f64 =
            queue.time_at.iter().enumerate().map(|(bin, ps)| bin as f64 * 1000.0 * *ps as f64).sum();
        let busy = watched as f64 - queue.time_at[0] as f64;
        assert!((binned - area).abs() <= 1000.0 * busy, "a bin rounds up by less than its width");
    }
}

#[test]
fn equal_gaps_never_wait_below_full_load() {
    let run = run(&one_sender("'1000B'", 0.999, "constant", 1000));
    assert!(run.messages.iter().all(|message| message.split.nic.is_zero()));
    let gap = run.messages[1].created - run.messages[0].created;
    assert!(run.messages.windows(2).all(|pair| pair[1].created - pair[0].created == gap));
    // 1000 B at 0.999 x 10 Gb/s.
    assert_eq!(gap, Span::from_ps(800_801));
}

/// Packets that arrive at the same instant queue in an order that favours no host.
#[test]
fn ties_are_fair() {
    let (senders, rounds) = (5, 2000);
    let run = run(&format!(
        "version = 1\ntitle = 'ties'\n[topology]\nkind = 'rack'\nhosts = {}\nrate = '1Gbps'\ndelay = '5us'\n\
         [workload.w]\nkind = 'packets'\nfrom = 'others'\nto = 'client'\nsize = '1000B'\nload = 0.1\n\
         arrivals = 'constant'\ncount = {rounds}\n",
        senders + 1
    ));
    let mut by_sender = vec![Span::ZERO; senders + 1];
    let mut by_place = vec![0; senders];
    for message in run.of("w") {
        by_sender[message.source as usize] += message.split.tier[0];
        let place = message.split.tier[0].as_ps() / Span::from_us(8).as_ps();
        assert_eq!(message.split.tier[0], Span::from_us(8) * place, "whole packets wait in front");
        by_place[place as usize] += 1;
    }
    assert_eq!(by_place, vec![rounds; senders], "each round fills each place once");
    for (sender, waited) in by_sender.iter().enumerate().skip(1) {
        // Mean 2 services, standard deviation sqrt(2) services / sqrt(2000): 4 of them are 6 %.
        let mean = waited.as_us_f64() / rounds as f64;
        assert!((mean / 16.0 - 1.0).abs() < 0.07, "h{sender} waits {mean:.2} us on average, all 16 us");
    }
}
