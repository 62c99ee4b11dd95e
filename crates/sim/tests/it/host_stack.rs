//! Hosts whose stacks cost time or are limited: work takes its cost, limits hold, and the parts still sum.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use plimsoll_results::Digest;
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::Scenario;
use plimsoll_scenario::model::Model;
use plimsoll_units::{Span, Time};

const RACK: &str = "version = 1\ntitle = 'stacks'\n[topology]\nkind = 'rack'\nhosts = 4\nrate = '10Gbps'\n\
                    delay = '5us'\n[transport]\nhandshake = false\nmin_rto = '10ms'\nack_delay = '1ms'\n";

/// Flows of 2 MB of two hosts to the client.
const FLOWS: &str = "[workload.bulk]\nkind = 'flows'\nfrom = 'h1..h2'\nto = 'client'\nsize = '2MB'\n";

const COSTS: &str = "interrupt = '1us'\nsend_call = '2us'\n\
                     send = { packet = '3us', segment = '100ns', byte = '1ns' }\n\
                     receive = { packet = '500ns', segment = '200ns', byte = '2ns' }\n";

fn model(more: &str) -> Model {
    let text = format!("{RACK}{more}");
    let scenario = Scenario::parse("inline", &text, Path::new("."));
    scenario.unwrap_or_else(|errors| panic!("{}\n{text}", errors[0])).points()[0].model.clone()
}

fn run(more: &str) -> Outcome {
    plimsoll_sim::run(&model(more), &mut |_| true).unwrap()
}

fn completed(outcome: &Outcome) -> Vec<Option<Time>> {
    outcome.messages.iter().map(|message| message.completed).collect()
}

#[test]
fn a_request_and_its_response_take_what_their_work_costs() {
    let requests =
        "[workload.w]\nkind = 'rpc'\nrequest = '100B'\nresponse = '900B'\nload = '1Mbps'\ncount = 20\n";
    for cores in [1, 2] {
        let outcome = run(&format!("{requests}[host.processor]\ncores = {cores}\n{COSTS}"));
        assert_eq!(outcome.messages.len(), 20);
        for message in &outcome.messages {
            // Two packets, each of its own call, segment and interrupt; 3 ns for each byte that is copied twice.
            let costs = Span::from_ns(2 * (2_000 + 3_000 + 100 + 1_000 + 500 + 200) + 3 * 1_000);
            assert_eq!(message.latency(), Some(message.ideal + costs), "{cores} {message:?}");
            assert_eq!(message.latency(), Some(message.split.total()));
        }
        let of_client = &outcome.processors[0];
        assert_eq!(of_client.busy.len(), cores);
        let busy: Span = of_client.busy.iter().copied().sum();
        // The last response needs no acknowledgement before the run ends; all that the client does is 20 of each.
        let done = Span::from_ns(20 * (2_000 + 3_000 + 100 + 100 + 1_000 + 500 + 200 + 2 * 900));
        assert!(busy >= done && busy < done + done, "{busy} {done}");
    }
}

#[test]
fn transmit_queues_that_nothing_waits_in_hardly_change_anything() {
    let plain = run(&format!("{FLOWS}[host]\nbursts = {{}}\n"));
    let queues = run(&format!("{FLOWS}[host]\nbursts = {{ queues = 4 }}\n"));
    for (one, other) in completed(&plain).into_iter().zip(completed(&queues)) {
        // Segments of a batch that arrive at an instant reach TCP in another order.
        let ratio = other.unwrap().as_secs_f64() / one.unwrap().as_secs_f64();
        assert!((0.99..1.01).contains(&ratio), "{ratio}");
    }
    assert!(queues.processors.is_empty());
}

#[test]
fn queues_send_in_turn_piece_by_piece() {
    // Two flows of one host that have all their data in the NIC at once.
    let flows = "[workload.a]\nkind = 'flows'\nfrom = ['h1']\nto = 'h2'\nsize = '300KB'\n\
                 [workload.b]\nkind = 'flows'\nfrom = ['h1']\nto = 'h3'\nsize = '300KB'\n\
                 [observe]\npackets = 10000\nqueue.nic = { port = 'nic:h1', every = '1ms' }\n";
    let turns = |queues: u32| {
        let host =
            format!("[host.bursts]\ncoalesce_time = '0s'\nsegmentation = '14600B'\nqueues = {queues}\n");
        // A limit on the output that nothing reaches has a stack in both.
        let host = format!("{host}output_limit = '1GB'\n");
        let mut model = model(&format!("{flows}{host}[port.host]\nbuffer = 'unlimited'\n"));
        model.transport.initial_window = 300;
        let outcome = plimsoll_sim::run(&model, &mut |_| true).unwrap();
        let data = outcome.capture.packets.iter().map(|packet| packet.record()).filter(|p| p.payload > 0);
        let destinations: Vec<u32> = data.filter(|p| p.source == 1).map(|p| p.destination).collect();
        destinations.windows(2).filter(|pair| pair[0] != pair[1]).count()
    };
    // 206 packets each, in pieces of ten: 21 pieces of each flow, in turn or one flow after the other.
    assert_eq!((turns(1), turns(2)), (1, 2 * 21 - 1));
}

#[test]
fn tcp_has_no_more_below_it_than_the_output_limit() {
    let most = |limit: &str| {
        let host = format!("[host.bursts]\nsegmentation = '14600B'\noutput_limit = '{limit}'\n");
        let flow = FLOWS.replace("2MB", "438KB");
        let mut model = model(&format!("{flow}{host}[port.host]\nbuffer = 'unlimited'\n"));
        model.transport.initial_window = 300;
        let outcome = plimsoll_sim::run(&model, &mut |_| true).unwrap();
        outcome.messages.iter().map(|message| message.split.nic).max().unwrap()
    };
    // All 300 segments are in the window. The wait ahead of the last is less than the limit and a piece, 36 us;
    // coalescing adds 30 us.
    assert!(most("30KB") <= Span::from_us(75), "{}", most("30KB"));
    assert!(most("1GB") > Span::from_us(300), "{}", most("1GB"));
}

#[test]
fn what_finds_no_room_in_the_ring_is_sent_again() {
    let outcome = run(&format!("{FLOWS}[host.processor]\nring = 8\n{COSTS}"));
    assert!(outcome.processors[0].ring_drops > 0);
    assert!(outcome.counters.retransmissions > 0);
    assert!(outcome.messages.iter().all(|message| message.completed.is_some()));
}

#[test]
fn a_saturated_processor_limits_throughput_and_lro_relieves_it() {
    let time = |host: &str| {
        let outcome = run(&format!("{FLOWS}{host}\n[host.processor]\nreceive = {{ packet = '5us' }}\n"));
        let end = outcome.messages.iter().filter_map(|message| message.completed).max().unwrap();
        (end - Time::ZERO).as_us_f64()
    };
    let without = time("[host.bursts]\nreceive_offload = '0B'");
    let gro = time("[host.bursts]");
    let lro = time("[host.bursts]\nlro = '64KB'");
    // 2740 packets at the client, 5 us each; GRO merges only after these.
    assert!(without > 13_700.0 && gro > 13_700.0, "{without} {gro}");
    assert!(lro < 7_000.0, "{lro}");
}

#[test]
fn a_socket_holds_no_more_than_its_buffer() {
    let time = |buffer: &str| {
        let host = format!("[host.bursts]\nsend_size = '10KB'\nsocket_buffer = '{buffer}'\n");
        let outcome = run(&format!("{FLOWS}{host}"));
        let end = outcome.messages.iter().filter_map(|message| message.completed).max().unwrap();
        (end - Time::ZERO).as_us_f64()
    };
    // With 20 kB in flight a round trip of some 50 us carries no more: both flows take a hundred of them.
    assert!(time("20KB") > 5_000.0, "{}", time("20KB"));
    assert!(time("10MB") < 4_200.0, "{}", time("10MB"));
}

/// Whatever keeps TCP from completing a piece, and whatever the NIC does not do, no connection stalls.
#[test]
fn everything_is_delivered_whatever_else_is_on() {
    let host = "[host.bursts]\nsend_size = '10KB'\nsocket_buffer = '50KB'\noutput_limit = '30KB'\n";
    for (transport, more) in [
        ("", "coalesce_time = '0s'\n"),
        ("", "max_burst = 4\n"),
        ("", "max_burst = 4\nsegmentation = '0B'\nlro = '64KB'\n"),
        ("nagle = true\n", ""),
        ("pacing_rate = '2Gbps'\n", ""),
        ("nagle = true\n", "segmentation = '14000B'\nqueues = 3\n"),
    ] {
        let text = RACK.replace("[transport]\n", &format!("[transport]\n{transport}"));
        let text = format!("{text}{FLOWS}{host}{more}");
        let scenario = Scenario::parse("inline", &text, Path::new("."));
        let scenario = scenario.unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
        let outcome = plimsoll_sim::run(&scenario.points()[0].model, &mut |_| true).unwrap();
        assert_eq!((outcome.messages.len(), outcome.counters.timeouts), (2, 0), "{transport}{more}");
        assert!(outcome.messages.iter().all(|message| message.completed.is_some()), "{transport}{more}");
    }
}

#[test]
fn segments_that_are_paced_are_pieces_of_their_own() {
    let sender = |transport: &str| {
        let text = RACK.replace("[transport]\n", &format!("[transport]\n{transport}"));
        let text = format!("{text}{FLOWS}[host]\nbursts = {{}}\n[host.processor]\n{COSTS}");
        let scenario = Scenario::parse("inline", &text, Path::new("."));
        let scenario = scenario.unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
        let outcome = plimsoll_sim::run(&scenario.points()[0].model, &mut |_| true).unwrap();
        assert_eq!(outcome.counters.retransmissions, 0, "{transport}");
        (outcome.processors[1].frames_sent, outcome.processors[1].busy[0])
    };
    let (unpaced, (paced, busy)) = (sender("").0, sender("pacing_rate = '500Mbps'\n"));
    // 2 MB are 1,370 segments, each with the costs of a call, a segment and a packet.
    assert_eq!(paced, 1_370);
    assert!(unpaced < 200, "{unpaced}");
    assert!(busy > Span::from_ns(1_370 * (2_000 + 3_000 + 100)), "{busy}");
}

#[test]
fn runs_repeat_and_stay_on_one_thread() {
    let model = model(&format!("{FLOWS}[host]\nbursts = {{ queues = 2 }}\n[host.processor]\n{COSTS}"));
    let digest = |threads| Digest::of(&plimsoll_sim::run_in_parts(&model, threads, &mut |_| true).unwrap());
    assert_eq!(digest(1), digest(1));
    assert_eq!(digest(1), digest(2));
}

#[test]
fn raw_packets_pass_the_stack_and_their_parts_sum() {
    let pings = "[workload.ping]\nkind = 'ping'\nfrom = 'h1'\nto = 'h2'\ninterval = '1ms'\ncount = 20\n";
    let outcome = run(&format!("{pings}[host.processor]\n{COSTS}"));
    assert_eq!(outcome.messages.len(), 20);
    for message in &outcome.messages {
        assert_eq!(message.latency(), Some(message.split.total()));
        assert!(message.latency().unwrap() > message.ideal, "{message:?}");
    }
}
