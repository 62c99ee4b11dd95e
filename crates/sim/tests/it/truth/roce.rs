//! RoCE in whole runs: what HPCC and DCQCN do to one queue, that all queue pairs of a NIC have their turn, and that
//! nothing is lost for good.

use plimsoll_results::Digest;
use plimsoll_sim::run_in_parts;
use plimsoll_units::{Span, Time};

use crate::truth::lab::{Run, model, run};

/// `senders` queue pairs to one host over links of `rate`, endless, with `transport` and the switch port `port`.
fn incast(senders: u32, rate: &str, ms: u32, transport: &str, port: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'queue pairs to one host'\n[run]\nduration = '{ms}ms'\n\
         [topology]\nkind = 'rack'\nhosts = {}\nrate = '{rate}'\ndelay = '1us'\n\
         [port.switch]\nbuffer = '32MB'\n{port}\n\
         [transport]\nsegment = '1000B'\nheader = '48B'\n{transport}\n\
         [workload.w]\nkind = 'flows'\nfrom = 'others'\nto = 'client'\n\
         [observe]\nlinks = true\nflow_series = '50us'\nqueue.switch = {{ port = 'client', every = '1us' }}\n",
        senders + 1
    ))
}

/// Jain's index of what each flow had acknowledged in the second half of a run.
fn fairness(run: &Run, flows: u32, ms: u64) -> f64 {
    let mut rates = vec![0.0; flows as usize];
    let half = Time::ZERO + Span::from_us(500 * ms);
    for point in run.series.iter().filter(|point| point.time > half) {
        rates[point.connection as usize] += point.rate.as_bps() as f64;
    }
    let (sum, squares): (f64, f64) = (rates.iter().sum(), rates.iter().map(|rate| rate * rate).sum());
    sum * sum / squares / f64::from(flows)
}

/// The rate at which data was acknowledged in the second half of a run, in Gb/s.
fn used(run: &Run, flows: u32, ms: u64) -> f64 {
    let half = Time::ZERO + Span::from_us(500 * ms);
    let points = run.series.iter().filter(|point| point.time > half);
    let (sum, count) =
        points.fold((0.0, 0), |(sum, count), point| (sum + point.rate.as_bps() as f64, count + 1));
    sum / f64::from(count) * f64::from(flows) / 1e9
}

#[test]
fn hpcc_drains_the_queue_of_an_incast_and_holds_the_target() {
    let int = "int = { header = '42B', hop = '0B' }";
    let run = incast(16, "100Gbps", 2, "kind = 'hpcc'", int);
    let queue = run.queue("switch");
    // 16 flows send a bandwidth-delay product each at line rate, while the link drains one: the paper's Fig. 13 has a
    // peak of 853 KB at 6 us, whatever the controller.
    let peak = queue.max_bytes.iter().copied().max().unwrap();
    let at = queue.max_bytes.iter().position(|bytes| *bytes == peak).unwrap();
    assert!((780_000..=900_000).contains(&peak) && (5..=7).contains(&at), "{peak} at {at} us");
    // Then it drains at the line's rate, 12.5 KB a microsecond, and stays short.
    let mean = &queue.mean_bytes;
    let drained = (mean[10] - mean[50]) / 40.0;
    assert!((11_800.0..=12_500.0).contains(&drained), "{drained}");
    assert!(mean[200..].iter().all(|bytes| *bytes < 30_000.0), "{:?}", &mean[200..]);
    let settled = mean[1_000..].iter().sum::<f64>() / 1_000.0;
    assert!(settled < 5_000.0, "{settled}");
    let used = queue.bytes as f64 * 8.0 / 2e-3 / 100e9;
    assert!((0.9..=0.97).contains(&used), "{used}");
    assert!(fairness(&run, 16, 2) > 0.9, "{}", fairness(&run, 16, 2));
}

#[test]
fn dcqcn_shares_a_link_and_a_window_keeps_its_queue_short() {
    let nic = (100.0, "100Gbps", "roce.dcqcn = { gain = 0.00390625 }", "400KB", "1600KB", 0.2);
    let paper = "roce.dcqcn = { form = 'paper', gain = 0.00390625, alpha_period = '55us', timer = '55us', \
                 fast_recovery = 5, increase = '40Mbps', hyper_increase = '400Mbps' }";
    let paper = (40.0, "40Gbps", paper, "5KB", "200KB", 0.01);
    for (of_line, rate, rules, min, max, probability) in [nic, paper] {
        let marks = format!(
            "red = {{ min = '{min}', max = '{max}', probability = {probability}, marks = 'independent' }}"
        );
        let run = |window: &str| {
            let transport = format!("kind = 'dcqcn'\n{rules}\nroce.window = '{window}'");
            incast(4, rate, 20, &transport, &marks)
        };
        let [free, window] = ["off", "bdp"].map(run);
        let peak = |run: &Run| run.queue("switch").max_bytes.iter().copied().max().unwrap();
        for (run, name) in [(&free, "free"), (&window, "window")] {
            let (share, used) = (fairness(run, 4, 20), used(run, 4, 20));
            assert!(share > 0.97, "{rate}, {name}: {share}");
            assert!(used > 0.9 * of_line, "{rate}, {name}: {used} Gb/s");
            assert_eq!(run.counters.switch_drops + run.counters.timeouts, 0, "{rate}, {name}");
        }
        assert!(free.queue("switch").marks > 0, "{rate}");
        // Four bandwidth-delay products of 4.4 us, of which the link holds one, and a packet and its headers each.
        assert!(
            peak(&window) as f64 <= 3.0 * of_line / 8.0 * 4_400.0 * 1.048 + 8_384.0,
            "{rate}: {}",
            peak(&window)
        );
        assert!(peak(&window) < peak(&free), "{rate}: {} {}", peak(&window), peak(&free));
    }
}

/// The mean rate of each flow in the second half of a run, in Gb/s.
fn rates(run: &Run, flows: u32, ms: u64) -> Vec<f64> {
    let half = Time::ZERO + Span::from_us(500 * ms);
    let mut rates = vec![(0.0, 0); flows as usize];
    for point in run.series.iter().filter(|point| point.time > half) {
        let (sum, count) = &mut rates[point.connection as usize];
        (*sum, *count) = (*sum + point.rate.as_bps() as f64 / 1e9, *count + 1);
    }
    rates.into_iter().map(|(sum, count)| sum / f64::from(count)).collect()
}

/// One message between two hosts on idle links, with TIMELY's `high` at `high`. A packet of 1,048 B and its
/// acknowledgement of 60 B take 2 x 838.4 ns + 2 x 48 ns + 4 us = 5,772.8 ns.
fn timely_alone(high: &str) -> Run {
    incast(
        1,
        "10Gbps",
        1,
        &format!("kind = 'timely'\nroce.timely = {{ low = '1ns', high = '{high}', min_rate = '1Gbps' }}"),
        "",
    )
}

#[test]
fn an_idle_path_gives_exactly_the_base_round_trip_time() {
    // A sample above `high` cuts, if only by 0.014 % a nanosecond; one at it does not.
    let [at, below] = ["5772800ps", "5771800ps"].map(|high| rates(&timely_alone(high), 1, 1)[0]);
    let full = 10.0 * 1_000.0 / 1_048.0;
    assert!((at - full).abs() < 0.01 * full && below < 0.99 * at, "{at} {below}");
}

/// Eight flows of TIMELY over a link of 10 Gb/s, of which one starts when the others have settled.
fn timely(form: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'TIMELY'\n[run]\nduration = '400ms'\n\
         [topology]\nkind = 'rack'\nhosts = 9\nrate = '10Gbps'\ndelay = '1us'\n\
         [port.switch]\nbuffer = '32MB'\n\
         [transport]\nkind = 'timely'\nsegment = '1000B'\nheader = '48B'\nroce.timely = {{ {form} }}\n\
         [workload.w]\nkind = 'flows'\nfrom = 'others'\nto = 'client'\nstart_within = '20ms'\n\
         [observe]\nlinks = true\nflow_series = '1ms'\nqueue.switch = {{ port = 'client', every = '100us' }}\n",
    ))
}

/// The mean of a queue in the second half of a run that samples it each 100 us, and its deviation, both in bytes.
fn spread(run: &Run) -> (f64, f64) {
    let all = &run.queue("switch").mean_bytes;
    let settled = &all[all.len() / 2..];
    let mean = settled.iter().sum::<f64>() / settled.len() as f64;
    let squares: f64 = settled.iter().map(|bytes| (bytes - mean) * (bytes - mean)).sum();
    (mean, (squares / settled.len() as f64).sqrt())
}

#[test]
fn patched_timely_has_one_fixed_point_with_equal_rates_and_the_gradient_alone_has_none() {
    // rtt = low (1 + N increase / (patched_beta C)) = 20 us (1 + 8 x 10 / (0.008 x 10,000)) = 40 us, of which the idle
    // path takes 5.8 us.
    let patched = timely("form = 'patched', low = '20us'");
    let (mean, deviation) = spread(&patched);
    let rtt = 5.7728 + mean * 8.0 / 10e3;
    assert!((rtt / 40.0 - 1.0).abs() < 0.1 && deviation < 0.1 * mean, "{rtt} us, {deviation} B of {mean}");
    assert!(used(&patched, 8, 400) > 0.99 * 10.0 * 1_000.0 / 1_048.0, "{}", used(&patched, 8, 400));
    // The gradient's queue swings by more than half of its mean, and its shares are further apart.
    for low in ["20us", "50us"] {
        let gradient = timely(&format!("low = '{low}'"));
        let (mean, deviation) = spread(&gradient);
        assert!(deviation > 0.5 * mean, "{deviation} B of {mean}");
        let unfairness = [&patched, &gradient].map(|run| 1.0 - fairness(run, 8, 400));
        assert!(unfairness[0] < 1e-4 && unfairness[1] > 100.0 * unfairness[0], "{unfairness:?}");
    }
}

/// `senders` flows with `transport` over a link of 25 Gb/s, and the mean queue in the second half of 20 ms, in
/// bandwidth-delay products of `base_us`.
fn settled_queue(senders: u32, transport: &str, base_us: f64, port: &str) -> f64 {
    let run = run(&format!(
        "version = 1\ntitle = 'PowerTCP'\n[run]\nduration = '20ms'\n\
         [topology]\nkind = 'rack'\nhosts = {}\nrate = '25Gbps'\ndelay = '25us'\n\
         [port.switch]\nbuffer = '32MB'\n{port}\n\
         [transport]\nsegment = '1000B'\nheader = '48B'\n{transport}\n\
         [workload.w]\nkind = 'flows'\nfrom = 'others'\nto = 'client'\nstart_within = '100us'\n\
         [observe]\nlinks = true\nflow_series = '100us'\nqueue.switch = {{ port = 'client', every = '10us' }}\n",
        senders + 1
    ));
    let fair = fairness(&run, senders, 20);
    assert!(fair > 0.98, "{transport}, {senders} senders: {fair}");
    let mean = run.queue("switch").mean_bytes[1_000..].iter().sum::<f64>() / 1_000.0;
    mean / (25e9 / 8.0 * base_us * 1e-6)
}

#[test]
fn powertcp_settles_where_its_equations_say() {
    // U = 0.95 / (1 - N 150 Mb/s / 25 Gb/s), and the queue is U - 1 bandwidth-delay products: 1.06 % and 15.9 %. T is
    // half as much again as the idle path takes, so that the window does not bind. Stamps take no bytes, which the
    // rates of senders would not count.
    for senders in [10, 30] {
        let power = 0.95 / (1.0 - f64::from(senders) * 0.15 / 25.0);
        let (transport, port) =
            ("kind = 'powertcp'\nroce.base_rtt = '150us'", "int = { header = '0B', hop = '0B' }");
        let queue = settled_queue(senders, transport, 150.0, port);
        assert!((queue - (power - 1.0)).abs() < 0.005, "{senders}: {queue}, not {}", power - 1.0);
    }
}

#[test]
fn theta_powertcp_holds_the_round_trip_time_of_its_equation() {
    // rtt / T = 1.05 / (1 - 10 x 150 Mb/s / 25 Gb/s) = 1.117, and the idle path takes T = 100.7 us.
    let queue = settled_queue(10, "kind = 'theta-powertcp'", 100.7, "");
    assert!((queue - 0.117).abs() < 0.02, "{queue}");
}

/// All controllers, with what they need of a switch.
const CONTROLLERS: [(&str, &str); 7] = [
    ("kind = 'dcqcn'", MARKS),
    ("kind = 'hpcc'", "int = {}"),
    ("kind = 'timely'", ""),
    ("kind = 'powertcp'", "int = {}"),
    ("kind = 'theta-powertcp'", ""),
    ("kind = 'roce-dctcp'\nroce.window = 'bdp'", MARKS),
    ("kind = 'roce-swift'", ""),
];
const MARKS: &str = "ecn = { threshold = '20KB' }";

#[test]
fn every_controller_ends_an_incast_and_a_run_that_loses_a_packet_in_a_hundred() {
    for (transport, port) in CONTROLLERS {
        for loss in ["0.0", "0.01"] {
            let run = run(&format!(
                "version = 1\ntitle = 'sixteen to one'\n[run]\nduration = '2ms'\ndrain = '2s'\n\
                 [topology]\nkind = 'rack'\nhosts = 17\nrate = '25Gbps'\ndelay = '1us'\n\
                 [host]\nloss = {loss}\n[port.switch]\nbuffer = '4MB'\n{port}\n\
                 [transport]\nsegment = '1000B'\nheader = '48B'\n{transport}\n\
                 [workload.incast]\nkind = 'incast'\nsize = '200KB'\nevery = '1ms'\nrounds = 2\n"
            ));
            let late: Vec<_> = run.messages.iter().filter(|message| message.completed.is_none()).collect();
            assert!(late.is_empty() && !run.messages.is_empty(), "{transport}, loss of {loss}: {late:?}");
            let repeated = run.counters.retransmissions;
            assert_eq!(repeated > 0, loss != "0.0", "{transport}: {repeated}");
        }
    }
}

/// Messages that lose packets in short buffers, on links between logical processes.
fn lossy(transport: &str, port: &str) -> String {
    format!(
        "version = 1\ntitle = 'queue pairs that lose packets'\n[run]\nduration = '2ms'\ndrain = '2s'\n\
         [topology]\nkind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\nrate = '25Gbps'\n\
         delay = '1us'\n[port.switch]\nbuffer = '40KB'\n{port}\n\
         [transport]\nsegment = '1000B'\nheader = '48B'\nroce.timeout = '500us'\n{transport}\n\
         [workload.incast]\nkind = 'incast'\nsize = '100KB'\nevery = '500us'\nrounds = 3\n\
         [workload.pairs]\nkind = 'permutation'\nsize = '300KB'\nstart_within = '1ms'\n"
    )
}

#[test]
fn everything_arrives_however_much_is_lost_on_any_number_of_threads() {
    let lossless = format!("{MARKS}\nlossless = {{ memory = '1MB', reserve = '2KB' }}");
    let others = [
        ("kind = 'dcqcn'\nroce.ack_every = 4", MARKS),
        ("kind = 'dcqcn'\nroce.window = 'bdp'\nroce.dcqcn.form = 'paper'", MARKS),
        ("kind = 'dcqcn'", &lossless),
    ];
    for (transport, port) in CONTROLLERS.into_iter().chain(others) {
        let text = lossy(transport, port);
        let alone = run(&text);
        let late: Vec<_> = alone.messages.iter().filter(|message| message.completed.is_none()).collect();
        assert!(late.is_empty(), "{transport}: {late:?}");
        let has_lost = alone.counters.switch_drops > 0 && alone.counters.retransmissions > 0;
        assert_eq!(has_lost, !port.contains("lossless"), "{transport} {:?}", alone.counters);
        let model = model(&text, None, None);
        for threads in [1, 2, 4] {
            let parts = run_in_parts(&model, threads, &mut |_| true).unwrap();
            assert_eq!(Digest::of(&parts), alone.digest(), "{transport}, {threads} threads");
        }
    }
}

#[test]
fn a_nic_takes_the_packets_of_its_queue_pairs_in_turn() {
    let flows: String = (1..9)
        .map(|number| format!("[workload.w{number}]\nkind = 'flows'\nfrom = 'client'\nto = 'h{number}'\n"))
        .collect();
    let run = run(&format!(
        "version = 1\ntitle = 'queue pairs of one host'\n[run]\nduration = '1ms'\n\
         [topology]\nkind = 'rack'\nhosts = 9\nrate = '10Gbps'\ndelay = '1us'\n\
         [transport]\nkind = 'dcqcn'\nsegment = '1000B'\nheader = '48B'\n[port.switch]\necn = {{}}\n{flows}\
         [observe]\nlinks = true\nflow_series = '50us'\nqueue.nic = {{ port = 'nic:client', every = '10us' }}\n"
    ));
    let nic = run.queue("nic");
    assert!(*nic.max_bytes.iter().max().unwrap() <= 2 * 1_048, "one packet waits: {:?}", nic.max_bytes);
    assert!(nic.bytes as f64 * 8.0 > 0.99 * 10e9 * 1e-3, "the link is never idle: {}", nic.bytes);
    assert!(fairness(&run, 8, 1) > 0.999, "{}", fairness(&run, 8, 1));
}

#[test]
fn selective_repeat_sends_again_what_was_lost_and_go_back_n_the_rest_as_well() {
    // 16 MB in packets of 1,000 B: of 16,000 about 160 are lost.
    let lossy = |repair: &str| {
        run(&format!(
            "version = 1\ntitle = 'queue pairs that lose one packet in a hundred'\n\
             [run]\nduration = '20ms'\ndrain = '1s'\n\
             [topology]\nkind = 'rack'\nhosts = 8\nrate = '25Gbps'\ndelay = '5us'\n[host]\nloss = 0.01\n\
             [transport]\nkind = 'dcqcn'\nsegment = '1000B'\nheader = '48B'\nroce.repair = '{repair}'\n\
             [port.switch]\necn = {{}}\n\
             [workload.pairs]\nkind = 'permutation'\nsize = '2MB'\nstart_within = '1ms'\n"
        ))
    };
    let [back, selective] = ["go-back-n", "selective"].map(lossy);
    for run in [&back, &selective] {
        let late = run.messages.iter().filter(|message| message.completed.is_none()).count();
        assert_eq!((run.messages.len(), late), (8, 0));
        assert_eq!(run.counters.switch_drops + run.counters.nic_drops, 0);
    }
    // A repeat stands for a lost packet, or for a NAK that was lost: half of what was lost was data, at the least.
    let (lost, repeats) = (selective.counters.host_drops, selective.counters.retransmissions);
    assert!((lost / 2..=lost).contains(&repeats) && selective.counters.timeouts == 0, "{repeats} of {lost}");
    let (lost, repeats) = (back.counters.host_drops, back.counters.retransmissions);
    assert!(repeats > 20 * lost, "{repeats} for {lost}");
    let last = |run: &Run| run.messages.iter().filter_map(|message| message.completed).max();
    assert!(last(&selective) < last(&back), "{:?} {:?}", last(&selective), last(&back));
}

/// Two messages from one host of 10 Gb/s to two others, with the keys `nic` of its NIC: when each is complete, in
/// microseconds.
fn two_messages(nic: &str) -> [f64; 2] {
    let run = run(&format!(
        "version = 1\ntitle = 'two messages of one host'\n[run]\nduration = '10ms'\n\
         [topology]\nkind = 'rack'\nhosts = 3\nrate = '10Gbps'\ndelay = '1us'\n\
         [transport]\nkind = 'dcqcn'\nsegment = '1000B'\nheader = '48B'\n{nic}\n[port.switch]\necn = {{}}\n\
         [workload.a]\nkind = 'flows'\nfrom = 'client'\nto = 'h1'\nsize = '100KB'\n\
         [workload.b]\nkind = 'flows'\nfrom = 'client'\nto = 'h2'\nsize = '100KB'\n"
    ));
    ["a", "b"].map(|name| {
        let message = run.of(name).next().unwrap();
        (message.completed.expect("it ends") - message.created).as_us_f64()
    })
}

#[test]
fn a_nics_limits_delay_the_start_and_part_the_messages() {
    // 100 packets of 1,048 B take 83.84 us; then there are 2 us of propagation and a packet's time at the switch.
    let (alone, packet) = (83.84 + 2.0 + 0.8384, 0.8384);
    let near = |time: f64, expected: f64| (time - expected).abs() < 2.0 * packet;
    let [a, b] = two_messages("");
    assert!(near(a, alone + 83.84) && near(b, alone + 83.84), "in turn: {a} {b}");
    let [a, b] = two_messages("roce.nic.active = 1");
    let (first, second) = (a.min(b), a.max(b));
    assert!(near(first, alone) && near(second, alone + 83.84), "one after the other: {a} {b}");
    let [a, b] = two_messages("roce.nic.active = 2");
    assert!(near(a, alone + 83.84) && near(b, alone + 83.84), "both have a place: {a} {b}");
    let sorted = |[a, b]: [f64; 2], more: f64| [a.min(b), a.max(b)].map(|time| ((time + more) * 1e3).round());
    let started = two_messages("roce.nic.message_start = '3us'");
    assert_eq!(sorted(started, 0.0), sorted(two_messages(""), 3.0));
}

#[test]
fn few_active_queue_pairs_finish_everything_on_any_number_of_threads() {
    for keys in
        ["roce.repair = 'selective'", "roce.nic.active = 1", "roce.nic.active = 1\nroce.repair = 'selective'"]
    {
        let text = lossy(&format!("kind = 'dcqcn'\n{keys}"), "ecn = { threshold = '20KB' }");
        let alone = run(&text);
        assert!(alone.messages.iter().all(|message| message.completed.is_some()));
        assert!(
            alone.counters.switch_drops > 0 && alone.counters.retransmissions > 0,
            "{:?}",
            alone.counters
        );
        let model = model(&text, None, None);
        for threads in [1, 2, 4] {
            let parts = run_in_parts(&model, threads, &mut |_| true).unwrap();
            assert_eq!(Digest::of(&parts), alone.digest(), "{keys}, {threads} threads");
        }
    }
}

#[test]
fn flows_without_an_end_take_turns_at_a_nic_with_one_active_queue_pair() {
    let run = run("version = 1\ntitle = 'two flows of one host'\n[run]\nduration = '10ms'\n\
         [topology]\nkind = 'rack'\nhosts = 3\nrate = '10Gbps'\ndelay = '1us'\n\
         [transport]\nkind = 'dcqcn'\nsegment = '1000B'\nheader = '48B'\n\
         roce.nic = { active = 1, turn = '16KB' }\n[port.switch]\necn = {}\n\
         [workload.a]\nkind = 'flows'\nfrom = 'client'\nto = 'h1'\n\
         [workload.b]\nkind = 'flows'\nfrom = 'client'\nto = 'h2'\n");
    // Half of 10 Gb/s for 10 ms, by payload, within a turn and what is on the way.
    let half = 10e9 / 8.0 * 10e-3 * 1_000.0 / 1_048.0 / 2.0;
    let delivered: Vec<_> = run.connections.iter().map(|connection| connection.delivered as f64).collect();
    assert!(delivered.iter().all(|bytes| (bytes - half).abs() < 25_000.0), "{delivered:?}, not {half}");
}

/// Host `client` sends at one priority to a host that others overload as well, whose switch pauses that priority, and
/// at another to an idle host, with NICs that serve by `order`: the bytes that the idle host has received, in MB.
fn beside_a_paused_priority(order: &str) -> f64 {
    let run = run(&format!(
        "version = 1\ntitle = 'a paused priority and another'\n[run]\nduration = '2ms'\n\
         [topology]\nkind = 'rack'\nhosts = 6\nrate = '10Gbps'\ndelay = '1us'\n\
         [transport]\nkind = 'dcqcn'\nsegment = '1000B'\nheader = '48B'\necn = 'off'\n\
         [host]\npriority = {{ incast = 1, free = 0 }}\n[port.host]\n{order}\n\
         [port.switch]\norder = 'priorities'\nlossless = {{ memory = '1MB', reserve = '2KB' }}\n\
         [workload.incast]\nkind = 'flows'\nfrom = 'others'\nto = 'client'\n\
         [workload.free]\nkind = 'flows'\nfrom = 'h1'\nto = 'h2'\n\
         [observe]\nlinks = true\n"
    ));
    assert!(run.links.iter().any(|link| link.pauses > 0), "the incast is paused");
    let free = run.connections.iter().find(|connection| connection.workload == 1).unwrap();
    free.delivered as f64 / 1e6
}

#[test]
fn a_paused_priority_holds_no_other_back() {
    let free = beside_a_paused_priority("order = 'priorities'");
    let classes = beside_a_paused_priority("classes = { priority = { '0' = {}, '1' = {} } }");
    let one_queue = beside_a_paused_priority("order = 'fifo'");
    // The incast leaves h1 a fifth of the link, and h2 four: 2 MB in 2 ms, with headers.
    assert!((1.8..2.0).contains(&free) && (1.8..2.0).contains(&classes), "{free} {classes}");
    assert!(one_queue < 0.6, "one queue holds back all behind a paused packet: {one_queue}");
}

#[test]
fn messages_that_do_not_end_are_counted_by_their_reasons() {
    let text = "version = 1\ntitle = 'messages that do not end'\n[run]\nduration = '1ms'\ndrain = '1ms'\n\
         [topology]\nkind = 'rack'\nhosts = 3\nrate = '10Gbps'\ndelay = '1us'\n[host]\nloss = 1.0\n\
         [transport]\nkind = 'dcqcn'\nsegment = '1000B'\nheader = '48B'\nroce = { window = 'bdp', timeout = '1s' }\n\
         [port.switch]\necn = {}\n\
         [workload.a]\nkind = 'flows'\nfrom = 'client'\nto = 'h1'\nsize = '2KB'\n\
         [workload.b]\nkind = 'flows'\nfrom = 'client'\nto = 'h2'\nsize = '2KB'\n";
    let said = |text: &str| run(text).warnings.join("\n");
    let lost = said(text);
    assert!(
        lost.ends_with(
            "2 of 2 messages that NICs carry did not finish: 2 lost tail (all that may be sent is, and no answer or \
             credit has come)"
        ),
        "{lost}"
    );
    let late = said(&text.replace("roce = {", "roce = { nic.message_start = '1s',"));
    assert!(late.ends_with("2 of 2 messages that NICs carry did not finish: 2 never started"), "{late}");
    let whole = said(&text.replace("loss = 1.0", ""));
    assert!(!whole.contains("RoCE"), "{whole}");
    // Two hosts overload a third, whose switch pauses one of them at the run's end.
    let paused = said(
        "version = 1\ntitle = 'messages that a pause holds'\n[run]\nduration = '300us'\ndrain = '0s'\n\
         [topology]\nkind = 'rack'\nhosts = 5\nrate = '10Gbps'\ndelay = '1us'\n\
         [transport]\nkind = 'dcqcn'\nsegment = '1000B'\nheader = '48B'\necn = 'off'\n\
         [port.switch]\nlossless = { memory = '1MB', reserve = '2KB' }\n\
         [workload.incast]\nkind = 'flows'\nfrom = 'others'\nto = 'client'\nsize = '1MB'\n",
    );
    assert!(paused.contains("4 of 4 messages that NICs carry did not finish: 1 paused at port "), "{paused}");
}
