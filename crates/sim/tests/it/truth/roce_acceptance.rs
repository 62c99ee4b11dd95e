//! RoCE judged by counters and by order: the acceptance cases of SONiC's RoCEv2 suite, DCQCN's paper, and a run of
//! HPCC's simulator that was imported.

use plimsoll_mechanisms::transports::{PacketTypes, TypeCounts};
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::import::HpccConfig;

use crate::truth::lab::{Run, run, run_variant};

const ACCEPTANCE: &str = include_str!("../../../../../scenarios/roce/acceptance.toml");

/// The packets of all queue pairs by type.
pub fn types(run: &Outcome) -> PacketTypes {
    let counters = &run.counters;
    let of = |sent, received, lost| TypeCounts { sent, received, lost };
    PacketTypes {
        data: of(counters.roce_data_sent, counters.roce_data_received, counters.roce_data_lost),
        acks: of(counters.roce_acks_sent, counters.roce_acks_received, counters.roce_acks_lost),
        naks: of(counters.naks_sent, counters.naks_received, counters.naks_lost),
        cnps: of(counters.cnps_sent, counters.cnps_received, counters.cnps_lost),
        pulls: of(counters.pulls_sent, counters.pulls_received, counters.pulls_lost),
        requests: of(counters.requests_sent, counters.requests_received, counters.requests_lost),
    }
}

/// Sent, received and lost packets of every type, in one list.
fn all(types: &PacketTypes) -> [TypeCounts; 6] {
    [types.data, types.acks, types.naks, types.cnps, types.pulls, types.requests]
}

/// The packets that queue pairs have sent and that were neither received nor lost: those in flight, by type.
pub fn in_flight(types: &PacketTypes) -> [u64; 6] {
    all(types).map(|packets| {
        let known = packets.received + packets.lost;
        packets.sent.checked_sub(known).unwrap_or_else(|| panic!("more than were sent: {types:?}"))
    })
}

/// Checks that the packets of each type were received, lost, or are in flight: if all ends stay open.
pub fn assert_conserved(run: &Outcome, case: &str) {
    let (types, counters) = (types(run), &run.counters);
    let lost = all(&types).map(|packets| packets.lost);
    assert_eq!(lost.iter().sum::<u64>(), counters.packets_lost(), "{case}: {types:?} {counters:?}");
    let in_flight: u64 = in_flight(&types).iter().sum();
    assert_eq!(in_flight, counters.packets_in_flight, "{case}: {types:?} {counters:?}");
}

fn pauses(run: &Run) -> u64 {
    run.links.iter().map(|link| link.pauses).sum()
}

#[test]
fn sonics_acceptance_cases_pass_by_their_counters() {
    let run = |name: &str| run_variant(ACCEPTANCE, name);
    let [off, on] = ["lossless, without DCQCN", "lossless, DCQCN"].map(run);
    let lossy = ["lossy, without DCQCN", "lossy, DCQCN"].map(run);
    let [storage_off, storage_on] = ["storage, without DCQCN", "storage, DCQCN"].map(run);
    for (run, is_lossless) in [&off, &on, &storage_off, &storage_on]
        .map(|run| (run, true))
        .into_iter()
        .chain(lossy.each_ref().map(|run| (run, false)))
    {
        assert_conserved(run, "an acceptance case");
        let (types, counters) = (types(run), &run.counters);
        assert!(run.messages.iter().all(|message| message.completed.is_some()), "a message failed");
        if is_lossless {
            let repeats = [counters.drops(), types.naks.sent, counters.retransmissions, counters.timeouts];
            assert_eq!(repeats, [0; 4], "{types:?} {counters:?}");
            // Every packet has arrived, but for acknowledgements that are under way as the run ends.
            let ends = [types.data, types.cnps, types.naks].map(|packets| packets.sent - packets.received);
            assert_eq!(ends, [0; 3], "{types:?}");
        }
    }
    let lost = lossy.each_ref().map(|run| (run.counters.drops(), run.counters.naks_received));
    assert!(
        lost[0].0 > 0 && lost[0].1 > 0 && lost[1].0 < lost[0].0,
        "drops and NAKs in the lossy class: {lost:?}"
    );
    for (off, on) in [(&off, &on), (&storage_off, &storage_on)] {
        assert_eq!((off.counters.marks, types(off).cnps.sent), (0, 0));
        assert!(on.counters.marks > 0 && types(on).cnps.received > 0);
        let (many, few) = (pauses(off), pauses(on));
        assert!(many >= 100 && few * 20 <= many, "{many} pauses without DCQCN, {few} with it");
        let [slow, fast] = [on, off].map(|run| run.delivered.bytes[0]);
        assert!(slow > fast * 9 / 10, "{slow} of {fast}");
    }
}

/// The rates, in Gb/s, at which each workload's data was delivered. All links have 40 Gb/s, but for the trunk. Without
/// DCQCN packets carry no marks.
fn delivered(name: &str, workloads: &str, dcqcn: bool) -> Vec<f64> {
    let ecn = if dcqcn { "on" } else { "off" };
    let red = if dcqcn {
        "red = { min = '5KB', max = '200KB', probability = 0.01, marks = 'independent' }"
    } else {
        ""
    };
    let run = run(&format!(
        "version = 1\ntitle = '{name}'\n[run]\nduration = '30ms'\nwarmup = '10ms'\n\
         [topology]\nkind = 'dumbbell'\nleft = 5\nright = 3\nrate = '40Gbps'\nbottleneck_rate = '400Gbps'\n\
         delay = '1us'\n[port.switch]\n{red}\nlossless = {{ memory = '12MB' }}\n\
         [transport]\nkind = 'dcqcn'\nsegment = '1000B'\nheader = '48B'\necn = '{ecn}'\n\
         roce.dcqcn = {{ form = 'paper', gain = 0.00390625, alpha_period = '55us', timer = '55us', \
         fast_recovery = 5, increase = '40Mbps', hyper_increase = '400Mbps' }}\n{workloads}"
    ));
    assert_eq!(run.counters.drops(), 0, "{name}");
    let seconds = run.delivered.observed.as_secs_f64();
    run.delivered.bytes.iter().map(|bytes| *bytes as f64 * 8e-9 / seconds).collect()
}

fn flow(name: &str, from: &str, to: &str) -> String {
    format!("[workload.{name}]\nkind = 'flows'\nfrom = ['{from}']\nto = '{to}'\n")
}

/// DCQCN's section 2.2: a flow to a free host shares the trunk with an incast of four hosts, whose switch is paused.
#[test]
fn dcqcn_saves_the_victim_of_an_incast_and_pauses_alone_do_not() {
    let incast: String =
        (0..4).map(|number| flow(&format!("w{number}"), &format!("h{number}"), "h5")).collect();
    let workloads = format!("{incast}{}", flow("victim", "h4", "h6"));
    let [pauses, dcqcn] = [false, true].map(|dcqcn| delivered("the victim of an incast", &workloads, dcqcn));
    let payload = 40.0 * 1_000.0 / 1_048.0;
    // With pauses alone all five hosts send alike, as the link of the receiver carries four of them: 10 Gb/s each.
    for rate in &pauses {
        assert!((rate / (payload / 4.0) - 1.0).abs() < 0.15, "{pauses:?}");
    }
    assert!(dcqcn[4] > 0.9 * payload, "the victim has its whole link: {dcqcn:?}");
    let shared: f64 = dcqcn[..4].iter().sum();
    assert!(shared > 0.85 * payload, "{dcqcn:?}");
    assert!(
        dcqcn[..4].iter().all(|rate| (rate / (shared / 4.0) - 1.0).abs() < 0.2),
        "equal shares: {dcqcn:?}"
    );
}

/// DCQCN's section 2.2, the parking lot: three remote hosts come by one link, a local one by its own.
#[test]
fn dcqcn_shares_by_flow_where_pauses_share_by_link() {
    let senders = ["h0", "h1", "h2", "h6"];
    let workloads: String = senders.iter().map(|host| flow(&format!("from_{host}"), host, "h5")).collect();
    let [pauses, dcqcn] = [false, true].map(|dcqcn| delivered("a parking lot", &workloads, dcqcn));
    let payload = 40.0 * 1_000.0 / 1_048.0;
    // Each of the two links has half of what the receiver takes.
    assert!((pauses[3] / (payload / 2.0) - 1.0).abs() < 0.1, "the local host: {pauses:?}");
    assert!(pauses[..3].iter().all(|rate| (rate / (payload / 6.0) - 1.0).abs() < 0.1), "remote: {pauses:?}");
    assert!(dcqcn.iter().all(|rate| (rate / (payload / 4.0) - 1.0).abs() < 0.2), "{dcqcn:?}");
}

/// Settings of HPCC's simulator with the mode's controller, its topology and flows, as a run.
fn imported(settings: &str) -> Run {
    let text = format!(
        "ENABLE_QCN 1\nPACKET_PAYLOAD_SIZE 1000\nTOPOLOGY_FILE t\nFLOW_FILE f\nSIMULATOR_STOP_TIME 2.1\n\
         ALPHA_RESUME_INTERVAL 1\nRATE_DECREASE_INTERVAL 4\nRP_TIMER 300\nEWMA_GAIN 0.00390625\n\
         FAST_RECOVERY_TIMES 1\nRATE_AI 20Mb/s\nRATE_HAI 200Mb/s\nMIN_RATE 1000Mb/s\nL2_ACK_INTERVAL 1\n\
         U_TARGET 0.95\nMI_THRESH 0\nBUFFER_SIZE 16\nKMIN_MAP 1 100000000000 100\n\
         KMAX_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\n{settings}"
    );
    let links: String = (0..5).map(|host| format!("{host} 5 100Gbps 1000ns 0\n")).collect();
    let flows: String = (1..5).map(|host| format!("{host} 0 3 100 500000 2.0\n")).collect();
    let topology = format!("6 1 5\n5\n{links}");
    let config = HpccConfig::read("config.txt", &text).expect("settings");
    let made = config.scenario(("t", &topology), ("f", &format!("4\n{flows}"))).expect("a scenario");
    let file = |name: &str, text: &str| format!("\n[files.\"{name}\"]\ntext = '''\n{text}'''\n");
    let files = file("network.toml", &made.network.text) + &file("flows.csv", &made.flows.text);
    run(&(made.scenario.text + &files))
}

#[test]
fn imported_settings_run_with_their_controller() {
    // 2 MB on one link: 167.7 us with headers, and those of telemetry with HPCC.
    for (settings, cnps, stamps) in [
        ("CC_MODE 1\nHAS_WIN 0\n", true, false),
        ("CC_MODE 1\nHAS_WIN 1\nVAR_WIN 1\n", true, false),
        ("CC_MODE 3\nHAS_WIN 1\nVAR_WIN 1\n", false, true),
    ] {
        let run = imported(settings);
        let ends = run.messages.iter().map(|message| message.completed.expect("it ends").as_secs_f64() - 2.0);
        let last = ends.fold(0.0, f64::max) * 1e6;
        assert!((168.0..=600.0).contains(&last), "{settings}: {last} us");
        assert_eq!((types(&run).cnps.sent > 0, run.counters.echoes > 0), (cnps, stamps), "{settings}");
        assert_eq!(run.counters.drops(), 0, "{settings}");
    }
}
