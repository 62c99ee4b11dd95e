//! Hybrid networks: packets wait exactly for their circuit, circuits carry the scheduled data, and nothing
//! is lost in the circuit switch unless the pause comes too late.

use plimsoll_fabric::CircuitUse;
use plimsoll_results::outcome::Counters;
use plimsoll_results::summary::Options;
use plimsoll_results::{PointKey, PointOutcome, Summary};
use plimsoll_units::{Span, Time};

use crate::truth::lab::{Run, run, run_with_seed};

/// REACToR's prototype: eight hosts, weeks of 1.5 ms, of which the demand is read 0.4 ms ahead.
const PROTOTYPE: &str = "
    version = 1
    title = 'hybrid'
    [run]
    drain = '200ms'
    [topology]
    kind = 'hybrid'
    racks = 8
    rate = '10Gbps'
    packet_rate = '1Gbps'
    delay = '1us'
    [host]
    backpressure = true
    [port.host]
    buffer = '256KB'
    [transport]
    kind = 'cubic'
    segment = '1448B'
    header = '52B'
    handshake = false
    ";

fn flows(name: &str, from: &str, to: &str, size: &str) -> String {
    format!("[workload.{name}]\nkind = 'flows'\nfrom = ['{from}']\nto = '{to}'\nsize = '{size}'\n")
}

/// The bytes that circuits of week `week` carried from `sender` to `receiver`.
fn carried(run: &Run, week: u64, sender: u32, receiver: u32) -> u64 {
    let of_pair = |circuit: &&CircuitUse| {
        (circuit.week, circuit.sender.0, circuit.receiver.0) == (week, sender, receiver)
    };
    run.circuits.iter().filter(of_pair).map(|circuit| circuit.bytes).sum()
}

#[test]
fn a_request_takes_the_packet_switch_before_there_is_a_circuit() {
    let run = run(&format!("{PROTOTYPE}{}", flows("small", "h0", "h5", "1448B")));
    let message = run.of("small").next().unwrap();
    // 1500 B at 10, 1, 1 and 10 Gb/s: 1.2, 12, 12 and 1.2 us, and four links of 1 us.
    let expected = Span::from_ns(30_400);
    assert_eq!((message.latency(), message.ideal), (Some(expected), expected));
    assert_eq!(run.counters.circuit_drops, 0);
}

#[test]
fn what_goes_by_circuits_only_waits_for_the_first_one() {
    let text =
        format!("{PROTOTYPE}{}[circuits]\ncircuit_only = ['small']\n", flows("small", "h0", "h5", "1448B"));
    let run = run(&text);
    let message = run.of("small").next().unwrap();
    // Demand is read at 1.1 ms, the week begins at 1.5 ms, and the circuit switch needs 30 us. Then 1500 B take 1.2 us
    // on three links, as the circuit switch has no store, and four links take 1 us.
    assert_eq!(message.split.tier[2], Span::from_us(1_530));
    assert_eq!(message.latency(), Some(Span::from_us(1_530) + Span::from_ns(7_600)));
    assert!(run.outcome.warnings.is_empty(), "{:?}", run.outcome.warnings);
}

/// Fig. 7.9 in small: one flow has the circuit to itself, two equal ones share it.
#[test]
fn equal_demand_shares_the_circuits_equally() {
    let alone = run(&format!("{PROTOTYPE}{}", flows("a", "h0", "h1", "20MB")));
    // 1.5 ms at 9 Gb/s, the rest of the receiver's link beside the packet switch: 1,687,500 B.
    assert_eq!(carried(&alone, 4, 0, 1) / 1_500, 1_687_500 / 1_500, "one flow has all of week 4");
    let shared =
        run(&format!("{PROTOTYPE}{}{}", flows("a", "h0", "h1", "20MB"), flows("b", "h0", "h2", "20MB")));
    let (a, b) = (carried(&shared, 5, 0, 1), carried(&shared, 5, 0, 2));
    assert!(a.abs_diff(b) * 50 < a + b, "two flows have {a} and {b} bytes of week 5");
    // Two nights of 30 us and a drain of 4.4 us each; the circuits are full otherwise.
    let days = (1_500.0 - 2.0 * 34.4) * 9_000.0 / 8.0;
    let share = (a + b) as f64 / days;
    assert!((0.99..=1.01).contains(&share), "the circuits were filled to {share:.3}");
}

#[test]
fn a_pause_in_time_loses_nothing_and_a_late_one_is_told() {
    let shuffle = |drain: &str| {
        format!(
            "{PROTOTYPE}[circuits]\n{drain}\n[workload.all]\nkind = 'all-to-all'\nload = 0.5\nsize = '400KB'\n\
             count = 40\n"
        )
    };
    let in_time = run(&shuffle(""));
    assert_eq!((in_time.counters.circuit_drops, in_time.outcome.warnings.len()), (0, 0));
    assert!(in_time.circuits.iter().map(|circuit| circuit.bytes).sum::<u64>() > 1_000_000);
    let late = run(&shuffle("drain = '0ns'"));
    assert!(late.counters.circuit_drops > 0);
    assert!(late.outcome.warnings.iter().any(|warning| warning.contains("circuit switch lost")));
}

#[test]
fn a_receiver_has_one_circuit_at_a_time_and_no_two_overlap() {
    for seed in 1..=3 {
        let run = run_with_seed(
            &format!(
                "{PROTOTYPE}[workload.all]\nkind = 'all-to-all'\nload = 0.6\nsize = '300KB'\ncount = 40\n"
            ),
            seed,
        );
        for end in [|circuit: &CircuitUse| circuit.sender, |circuit: &CircuitUse| circuit.receiver] {
            let mut free = [Time::ZERO; 8];
            for circuit in &run.circuits {
                let port = end(circuit).0 as usize;
                assert!(free[port] <= circuit.from, "port {port} has two circuits at {}", circuit.from);
                free[port] = circuit.until;
            }
        }
    }
}

/// The residue's scheduled rates keep the packet switch's queue short where circuits end (Kapoor's thesis, section
/// 7.3.4).
#[test]
fn scheduled_residues_do_not_overload_a_receiver() {
    let incast = |residue: &str| {
        let senders: String =
            (1..8).map(|host| flows(&format!("from{host}"), &format!("h{host}"), "h0", "2MB")).collect();
        run(&format!(
            "{PROTOTYPE}[circuits]\nscheduler = 'rotor'\nresidue = '{residue}'\n\
             [port.tor]\nbuffer = '10MB'\n[port.eps]\nbuffer = '10MB'\n\
             [observe.queue.eps]\nport = 'tier:eps'\nevery = '100us'\n{senders}"
        ))
    };
    let deepest = |run: &Run| {
        let after_four_weeks = |queue: &plimsoll_results::outcome::QueueObservation| {
            queue.max_bytes.iter().skip(60).copied().max().unwrap_or(0)
        };
        run.queues.iter().map(after_four_weeks).max().unwrap()
    };
    let (free, scheduled) = (deepest(&incast("free")), deepest(&incast("scheduled")));
    assert!(scheduled * 4 < free, "{scheduled} bytes wait with rates, {free} without");
}

/// The moments of the loop are the keys' moments, and the weeks have all bytes that passed the packet switch.
#[test]
fn weeks_have_the_moments_of_the_loop_and_the_bytes_beside_the_circuits() {
    let run = run(&format!("{PROTOTYPE}{}", flows("a", "h0", "h1", "3MB")));
    let weeks = &run.circuit_weeks;
    assert_eq!((weeks[0].week, weeks[0].made, weeks[0].begins), (0, None, Time::ZERO));
    let made = weeks[1].made.unwrap();
    let at = |us: u64| Time::ZERO + Span::from_us(us);
    assert_eq!((made.read, weeks[1].begins), (at(1_100), at(1_500)));
    assert_eq!(made.gathered, at(1_100) + Span::from_ns(5_400));
    assert_eq!(made.ready, at(1_200) + Span::from_ns(5_400));
    for (week, next) in weeks.iter().zip(&weeks[1..]) {
        assert_eq!((week.ends, week.week + 1), (next.begins, next.week));
    }
    assert_eq!(weeks.last().unwrap().ends, run.end);
    // Data and acknowledgements, by one switch or the other.
    let by_circuits: u64 = run.circuits.iter().map(|circuit| circuit.packets).sum();
    let by_packets: u64 = weeks.iter().map(|week| week.packet_packets).sum();
    // Data that has passed a switch has arrived, unless it is in flight when the run ends.
    let Counters { packets_delivered, packets_in_flight, .. } = run.counters;
    let passed = by_circuits + by_packets;
    let known = packets_delivered..=packets_delivered + packets_in_flight;
    assert!(known.contains(&passed) && packets_in_flight < 5, "{passed} of {known:?}");
    assert!(by_circuits > 0 && by_packets > 0, "{by_circuits} and {by_packets}");
    for circuit in &run.circuits {
        // A circuit that lasts into the next week has the rest of a frame that began in the last one.
        assert!(circuit.bytes as f64 <= circuit.capacity() + 1_500.0, "{circuit:?}");
    }
}

/// A message's time has a part that waits for a circuit, and the parts sum to the whole.
#[test]
fn the_wait_for_a_circuit_has_its_name_and_the_parts_sum() {
    let text =
        format!("{PROTOTYPE}{}[circuits]\ncircuit_only = ['small']\n", flows("small", "h0", "h5", "1448B"));
    let outcome = run(&text).outcome.clone();
    let digest = plimsoll_results::Digest::of(&outcome);
    let key = PointKey { variant: "one".to_owned(), sweep: Vec::new(), replicate: 0 };
    let summary = Summary::of(&[PointOutcome { key, seed: 1, digest, outcome }], &Options::default());
    let small = summary.cells[0].workload("small").unwrap();
    let time = small.time.as_ref().unwrap();
    let waits = time.parts.iter().position(|part| part == "waiting for a circuit").unwrap();
    assert_eq!(time.mean_us[waits], 1_530.0);
    let total: f64 = time.mean_us.iter().sum();
    assert!((total - small.completion_us.as_ref().unwrap().mean.value).abs() < 1e-6, "{total}");
}

/// A reducer that fetches from one mapper at a time has hinted at the others' data; a schedule for socket buffers
/// does not know of it. Both shuffles are whole, and the readings with hints are the larger ones.
#[test]
fn hints_know_of_transfers_that_have_not_begun() {
    let shuffle = |estimator: &str| {
        run(&format!(
            "{PROTOTYPE}[circuits]\nestimator = '{estimator}'\n\
             [workload.job]\nkind = 'shuffle'\nmappers = ['h0', 'h1', 'h2']\nreducers = ['h0', 'h1', 'h2']\n\
             waves = 1\nparallel = 1\nsize = '1MB'\n"
        ))
    };
    let (hints, buffers) = (shuffle("hints"), shuffle("socket_buffers"));
    let known = |run: &Run| run.outcome.circuit_weeks[1].known_bytes;
    // Each of three reducers knows of two transfers and has begun one, of which the packet switch has carried a little.
    assert!((5_500_000..=6_000_000).contains(&known(&hints)), "{}", known(&hints));
    assert!((2_500_000..=3_000_000).contains(&known(&buffers)), "{}", known(&buffers));
    for run in [&hints, &buffers] {
        assert_eq!(run.of("job").count(), 6);
        assert!(run.outcome.circuit_weeks.iter().all(|week| week.known_sent_bytes <= week.known_bytes));
    }
}

/// Returns a shuffle among three hosts, which fetch from one mapper at a time.
fn timed_shuffle(waves: &str) -> Run {
    run(&format!(
        "{PROTOTYPE}[circuits]\nestimator = 'timed_hints'\n\
         [workload.job]\nkind = 'shuffle'\nmappers = ['h0', 'h1', 'h2']\nreducers = ['h0', 'h1', 'h2']\n\
         parallel = 1\nsize = '1MB'\n{waves}\n"
    ))
}

/// A flow that is to begin in 40 ms, in the week of 39 ms, is announced from the first reading on. With its time only
/// the schedule of that week knows of it, so its circuit is there when it begins; without a time, all schedules up to
/// it have a circuit, which is empty; send calls show it to a later week.
#[test]
fn a_flow_that_is_announced_with_its_time_has_a_circuit_in_its_first_week() {
    let weeks = |estimator: &str| {
        let text = format!(
            "{PROTOTYPE}{}start = '40ms'\n[circuits]\nestimator = '{estimator}'\n",
            flows("later", "h0", "h5", "1MB")
        );
        let run = run(&text);
        assert_eq!(run.of("later").count(), 1);
        let known = run.outcome.circuit_weeks.iter().filter(|week| week.known_bytes > 0);
        let known: Vec<u64> = known.map(|week| week.week).collect();
        (known[0], carried(&run, known[0], 0, 5), carried(&run, 26, 0, 5))
    };
    let (first, bytes, _) = weeks("timed_hints");
    assert!(first == 26 && bytes > 300_000, "{first} {bytes}");
    let (first, bytes, later) = weeks("hints");
    assert!(first == 1 && bytes == 0 && later > 300_000, "{first} {bytes} {later}");
    let (first, bytes, none) = weeks("send_calls");
    assert!(first == 27 && bytes > 300_000 && none == 0, "{first} {bytes} {none}");
}

/// Before a transfer has completed, a job cannot say when the next one begins; a wave that begins after a pause is
/// known to the schedule of its week: its first three transfers, one of each reducer.
#[test]
fn a_job_announces_its_next_wave_to_the_week_in_which_it_begins() {
    let run = timed_shuffle("waves = 2\npause = '10ms'");
    let weeks = &run.outcome.circuit_weeks;
    assert!((2_500_000..=3_000_000).contains(&weeks[1].known_bytes), "{}", weeks[1].known_bytes);
    let mut begins: Vec<Time> = run.of("job").map(|message| message.created).collect();
    begins.sort();
    let second = weeks.iter().rposition(|week| week.begins <= begins[6]).unwrap();
    assert_eq!((weeks[second - 1].known_bytes, weeks[second].known_bytes), (0, 3_000_000));
}

/// The two directions of the link between two nodes fail from 3 ms until 12 ms; routing learns it half a millisecond
/// later.
fn fault(from: &str, to: &str) -> String {
    format!(
        "[[fault]]\nfrom = '{from}'\nto = '{to}'\ndown = true\nat = '3ms'\nuntil = '12ms'\n\
         [paths]\nconvergence_delay = '500us'\n"
    )
}

/// The link of a rack to the circuit switch fails: until routing knows, packets are lost with it; from then on its
/// hosts get no circuits, and their data goes by the packet switch; when the link is back they get circuits again.
/// Other hosts have theirs all the time.
#[test]
fn hosts_whose_link_to_the_circuit_switch_has_failed_get_no_circuits() {
    for scheduler in ["solstice", "rotor"] {
        let run = run(&format!(
            "{PROTOTYPE}{}{}start = '5ms'\n{}{}[circuits]\nscheduler = '{scheduler}'\n",
            flows("cut", "h0", "h5", "12MB"),
            flows("beside", "h0", "h6", "300KB"),
            flows("whole", "h2", "h3", "12MB"),
            fault("tor0", "ocs0")
        ));
        assert!(run.messages.iter().all(|message| message.completed.is_some()), "{scheduler}");
        assert!(run.counters.link_drops > 0 && run.counters.no_route_drops == 0, "{:?}", run.counters);
        let circuits = |sender, week: &dyn Fn(u64) -> bool| {
            // A circuit that is established when a week begins counts in it, however soon it ends.
            let of_pair =
                |circuit: &&CircuitUse| circuit.sender.0 == sender && circuit.bytes > 0 && week(circuit.week);
            run.circuits.iter().filter(of_pair).count()
        };
        // Week 2 begins at 3 ms and was scheduled before; the demand of week 8 is read at 11.6 ms.
        let down = |week| (3..=8).contains(&week);
        assert!(circuits(0, &|week| week <= 2) > 0 && circuits(0, &|week| week > 8) > 0, "{scheduler}");
        assert_eq!(circuits(0, &down), 0, "{scheduler}");
        assert!(circuits(2, &down) > 0, "{scheduler}");
        let beside = run.of("beside").next().and_then(|message| message.completed).unwrap();
        assert!(beside < Time::ZERO + Span::from_ms(12), "{scheduler}: {beside:?}");
    }
}

/// Without its links to the packet switch a rack has circuits, and what needs the packet switch waits for its return.
/// Without its own link a host has neither.
#[test]
fn hosts_cut_off_from_a_switch_wait_for_it() {
    let done = |from: &str, to: &str| {
        let run = run(&format!(
            "{PROTOTYPE}{}{}{}[circuits]\npacket_only = ['request']\n",
            flows("bulk", "h0", "h5", "6MB"),
            flows("request", "h0", "h5", "100KB").replace("'100KB'", "'100KB'\nstart = '4ms'"),
            fault(from, to)
        ));
        let latest = |name| run.of(name).map(|message| message.completed.unwrap()).max().unwrap();
        (latest("bulk"), latest("request"))
    };
    let at = |ms| Time::ZERO + Span::from_ms(ms);
    let (_, request) = done("tor0", "eps0");
    assert!(request > at(12), "{request:?}");
    let (bulk, request) = done("h0", "tor0");
    assert!(bulk > at(12) && request > at(12), "{bulk:?} {request:?}");
}

/// A link of a rack to the packet switch that becomes slow, and one to the circuit switch: what a packet's way took is
/// still counted exactly, and everything arrives.
#[test]
fn slow_links_of_a_hybrid_network_are_counted_with_their_rate() {
    for to in ["eps0", "ocs0"] {
        let fault = fault("tor0", to).replace("down = true", "rate = '500Mbps'");
        let run = run(&format!("{PROTOTYPE}{}{fault}", flows("bulk", "h0", "h5", "3MB")));
        assert!(run.messages.iter().all(|message| message.completed.is_some()), "{to}");
    }
}
