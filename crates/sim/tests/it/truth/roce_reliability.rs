//! RoCE under every kind of trouble, for each controller: all messages end, packets are conserved, and any number of
//! threads gives the same.

use plimsoll_results::Digest;
use plimsoll_sim::run_in_parts;

use crate::truth::lab::{model, run};
use crate::truth::roce_acceptance::{assert_conserved, in_flight, types};

/// The transports of the matrix: a name, keys of `[transport]`, and of `[port.switch]`. A new controller is a line.
const KINDS: &[(&str, &str, &str)] = &[
    ("DCQCN of the NICs", "kind = 'dcqcn'", "ecn = { threshold = '50KB' }"),
    ("DCQCN of the paper", "kind = 'dcqcn'\nroce.dcqcn.form = 'paper'", "ecn = { threshold = '50KB' }"),
    ("DCQCN with a window", "kind = 'dcqcn'\nroce.window = 'bdp'", "ecn = { threshold = '50KB' }"),
    (
        "DCQCN with selective repeat",
        "kind = 'dcqcn'\nconnections = 'per-message'\nroce.repair = 'selective'",
        "ecn = { threshold = '50KB' }",
    ),
    ("READ", "kind = 'dcqcn'\nroce.operation = 'read'", "ecn = { threshold = '50KB' }"),
    (
        "READ with selective repeat",
        "kind = 'hpcc'\nconnections = 'per-message'\nroce.operation = 'read'\nroce.repair = 'selective'",
        "int = {}",
    ),
    ("HPCC, a connection for each message", "kind = 'hpcc'\nconnections = 'per-message'", "int = {}"),
    (
        "HPCC by rates, a reference for each link, and quantised stamps",
        "kind = 'hpcc'\nroce.hpcc = { form = 'rate', references = 'per-link' }",
        "int = { nic_rate = '25Gbps' }",
    ),
    ("TIMELY", "kind = 'timely'", ""),
    ("patched TIMELY", "kind = 'timely'\nroce.timely.form = 'patched'", ""),
    ("PowerTCP", "kind = 'powertcp'", "int = {}"),
    ("PowerTCP by delay", "kind = 'theta-powertcp'", ""),
    ("DCTCP", "kind = 'roce-dctcp'", "ecn = { threshold = '50KB' }"),
    ("Swift", "kind = 'roce-swift'", ""),
];

const LOSSLESS: &str = "lossless = { memory = '4MB', reserve = '2KB' }";

/// Eight hosts in two racks: each sends 100 KB to another, and all of them 50 KB to the first.
pub const RACKS: &str = "[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 4\nrate = '25Gbps'\n\
                     delay = '1us'\n[workload.pairs]\nkind = 'permutation'\nsize = '100KB'\n\
                     [workload.incast]\nkind = 'incast'\nsize = '50KB'\nevery = '100us'\nrounds = 3\n";

/// 1,000 hosts send 3 KB to one at the same time.
pub const INCAST: &str = "[topology]\nkind = 'leaf-spine'\nleaves = 7\nspines = 2\nhosts_per_leaf = 143\n\
                          rate = '25Gbps'\nfabric_rate = '100Gbps'\ndelay = '1us'\n\
                          [workload.incast]\nkind = 'incast'\nsize = '3KB'\nevery = '1s'\n";

/// Has `all_end`, which runs a network with further tables of a scenario, meet trouble of every kind: losses at random,
/// a link that fails and comes back, the other one that fails soon after it, while paths chosen after a timeout are
/// kept, packets that overtake each other, a receiver that is slow, and one that stops for a while, and 1,000 senders
/// to one.
pub fn meet_trouble(all_end: impl Fn(&str, &str, &str)) {
    for loss in ["1e-4", "1e-2"] {
        all_end(&format!("a loss of {loss}"), RACKS, &format!("[host]\nloss = {loss}\n"));
    }
    let faults = [
        ("a link fails", "from = 'leaf0'\nto = 'spine0'\nat = '30us'\nuntil = '300us'\ndown = true"),
        (
            "one path fails, then the other",
            "from = 'leaf0'\nto = 'spine0'\nat = '30us'\nuntil = '300us'\ndown = true\n\
             [[fault]]\nfrom = 'leaf0'\nto = 'spine1'\nat = '350us'\nuntil = '900us'\ndown = true",
        ),
        (
            "one path is slow, and packets overtake",
            "from = 'leaf1'\nto = 'spine0'\nat = '0s'\nrate = '1Gbps'",
        ),
        ("a slow receiver", "from = 'leaf0'\nto = 'h0'\nat = '20us'\nrate = '5Gbps'"),
        ("a receiver stops", "from = 'leaf0'\nto = 'h0'\nat = '20us'\nuntil = '2ms'\ndown = true"),
    ];
    for (case, fault) in faults {
        let others = format!("[[fault]]\n{fault}\n[paths]\nconvergence_delay = '100us'\n");
        all_end(case, RACKS, &others);
    }
    all_end("1,000:1", INCAST, "");
}

/// Runs `network` with each of [`KINDS`] on one, two and four threads. `port` is added to the switches' ports, and
/// `others` to the scenario. `expect` says whether packets were lost.
fn all_end(case: &str, network: &str, port: &str, others: &str, expect: Option<bool>) {
    for (name, transport, own) in KINDS {
        let text = format!(
            "version = 1\ntitle = '{case}, {name}'\n[run]\ndrain = '5s'\n{network}\
             [port.switch]\n{own}\n{port}\n[transport]\nsegment = '1000B'\nheader = '48B'\n\
             roce.timeout = '500us'\n{transport}\n{others}"
        );
        ends_on_any_threads(&format!("{case}, {name}"), &text, expect);
    }
}

/// Runs a scenario alone and on one, two and four threads: all messages end, every packet is accounted for by type, and
/// all runs have one digest. `expect` says whether packets were lost.
pub fn ends_on_any_threads(case: &str, text: &str, expect: Option<bool>) {
    let alone = run(text);
    let late: Vec<_> = alone.messages.iter().filter(|message| message.completed.is_none()).collect();
    assert!(!alone.messages.is_empty() && late.is_empty(), "{case}: {late:?}");
    let counters = &alone.counters;
    // Every end stays open.
    assert_conserved(&alone, case);
    if let Some(expect) = expect {
        assert_eq!(counters.packets_lost() > 0, expect, "{case}: {counters:?}");
    }
    let model = model(text, None, None);
    for threads in [1, 2, 4] {
        let parts = run_in_parts(&model, threads, &mut |_| true).expect("the scenario can be run");
        assert_eq!(Digest::of(&parts), alone.digest(), "{case}, {threads} threads");
        assert_eq!(types(&parts), types(&alone), "{case}, {threads} threads");
    }
}

#[test]
fn random_losses() {
    for (loss, expect) in [("1e-6", None), ("1e-4", None), ("1e-2", Some(true))] {
        all_end(&format!("a loss of {loss}"), RACKS, LOSSLESS, &format!("[host]\nloss = {loss}\n"), expect);
    }
}

#[test]
fn a_link_that_fails_and_comes_back() {
    let others = "[[fault]]\nfrom = 'leaf0'\nto = 'spine0'\nat = '30us'\nuntil = '300us'\ndown = true\n\
                  [paths]\nconvergence_delay = '100us'\n";
    all_end("a link fails", RACKS, LOSSLESS, others, Some(true));
}

#[test]
fn a_slow_receiver() {
    let others = "[[fault]]\nfrom = 'leaf0'\nto = 'h0'\nat = '20us'\nrate = '5Gbps'\n";
    all_end("a slow receiver, lossless", RACKS, LOSSLESS, others, Some(false));
    all_end("a slow receiver, lossy", RACKS, "buffer = '60KB'", others, Some(true));
}

#[test]
fn a_thousand_senders_to_one() {
    let lossless = "lossless = { memory = '32MB', reserve = '2KB' }";
    all_end("1,000:1, lossless", INCAST, lossless, "", Some(false));
    all_end("1,000:1, lossy", INCAST, "buffer = '200KB'", "", Some(true));
}

#[test]
fn thousands_of_queue_pairs_at_one_host_have_their_turn() {
    let run = run("version = 1\ntitle = 'queue pairs of one host'\n\
         [topology]\nkind = 'rack'\nhosts = 3\nrate = '100Gbps'\ndelay = '1us'\n\
         [port.switch]\necn = { threshold = '400KB' }\n\
         [transport]\nkind = 'dcqcn'\nsegment = '1000B'\nheader = '48B'\n\
         [workload.write]\nkind = 'closed-loop'\nclients = 'h0'\nservers = 'h1'\noutstanding = 2000\n\
         request = '10KB'\nresponse = '64B'\ncount = 4000\n");
    assert_eq!((run.connections.len(), run.messages.len()), (2_000, 4_000));
    assert!(run.messages.iter().all(|message| message.completed.is_some()));
    assert!(run.connections.iter().all(|connection| connection.segments >= 10), "each has had its turn");
    assert_conserved(&run, "thousands of queue pairs");
}

/// TCP and queue pairs lose packets at the same hosts: only those of queue pairs are counted by type.
#[test]
fn losses_of_tcp_are_of_no_type() {
    let run = run(&format!(
        "version = 1\ntitle = 'losses of two transports'\n[run]\ndrain = '5s'\n{RACKS}\
         [workload.stream]\nkind = 'permutation'\nsize = '1MB'\ntransport = 'pairs'\n\
         [transports.pairs]\nkind = 'dcqcn'\nsegment = '1000B'\nheader = '48B'\nroce.timeout = '500us'\n\
         [port.switch]\necn = {{ threshold = '50KB' }}\n[host]\nloss = 0.01\n"
    ));
    assert!(run.messages.iter().all(|message| message.completed.is_some()));
    let (types, counters) = (types(&run), &run.counters);
    let lost = types.data.lost + types.acks.lost + types.naks.lost + types.cnps.lost;
    assert!(types.data.lost > 0 && types.acks.lost > 0, "{types:?}");
    assert!(lost < counters.packets_lost(), "TCP has lost some as well: {types:?} {counters:?}");
    assert!(in_flight(&types).iter().sum::<u64>() <= counters.packets_in_flight, "{types:?} {counters:?}");
}
