//! Flow control on several threads, and deadlocks beside traffic that moves.

use plimsoll_results::Digest;
use plimsoll_results::outcome::Outcome;
use plimsoll_sim::{RunError, run_in_parts};
use plimsoll_units::{Span, Time};
use proptest::prelude::*;
use proptest::sample::select;

use crate::truth::arbitrary::config;
use crate::truth::lab::{Shown, model};

const FAT_TREE: &str = "kind = 'fat-tree'\nk = 4\nrate = '10Gbps'\ndelay = '1us'\n";

const LEAF_SPINE: &str = "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 4\nrate = '10Gbps'\n\
                          delay = '500ns'\nfabric_delay = '2us'\n";

/// Flows without answers, so that hosts are divided as well.
const FLOWS: &str = "[workload.all]\nkind = 'all-to-all'\nsize = { kind = 'exponential', mean = '60KB' }\nload = 0.6\n\
                     count = 150\n[workload.burst]\nkind = 'incast'\nsize = '100KB'\nevery = '1ms'\nrounds = 3\n";

/// Responses, so that all hosts are in one process.
const ANSWERED: &str = "[workload.rpc]\nkind = 'rpc'\nrequest = '100B'\nresponse = '100KB'\nload = 0.6\n\
                        pick = 'random'\n\
                        [workload.burst]\nkind = 'incast'\nsize = '100KB'\nevery = '1ms'\nrounds = 3\n";

fn paused(topology: &str, port: &str, rest: &str, workloads: &str) -> String {
    format!(
        "version = 1\ntitle = 'pauses'\n[run]\nduration = '3ms'\ndrain = '1s'\n[topology]\n{topology}\n\
         [port.switch]\nbuffer = '240KB'\n{port}\n[transport]\nack_every = 1\nhandshake = false\nmin_rto = '10ms'\n\
         initial_rto = '10ms'\ninitial_window = 60\n{rest}\n{workloads}[observe]\nlinks = true\n"
    )
}

fn outcome(text: &str, threads: usize) -> Result<Outcome, RunError> {
    run_in_parts(&model(text, None, None), threads, &mut |_| true)
}

#[test]
fn flow_control_is_the_same_on_any_number_of_threads() {
    let dead = "[[fault]]\nfrom = 'edge0'\nto = 'aggregation0'\nat = '300us'\nuntil = '900us'\ndown = true\n\
                [[fault]]\nfrom = 'h1'\nto = 'edge0'\nat = '150us'\nuntil = '400us'\nrate = '2Gbps'\n\
                [paths]\nconvergence_delay = '100us'\n";
    let by_size = "[host]\npriority_by_size = ['20KB', '60KB']\n[port.host]\norder = 'priorities'\n";
    let classes =
        "classes = { priority = { '7' = {}, '0..3' = { rate = '5Gbps', burst = '9KB' }, '5' = {} } }";
    for (topology, port, rest, workloads) in [
        (FAT_TREE, "pfc = {}", "", FLOWS),
        (FAT_TREE, "pfc = { scope = 'link', xoff = '9KB' }", dead, FLOWS),
        (FAT_TREE, "order = 'priorities'\npfc = { xoff = '20KB', response = '1us' }", by_size, FLOWS),
        (LEAF_SPINE, "pfc = { scope = 'link', xoff = '9KB' }", "[paths]\nadaptive = {}\n", FLOWS),
        (LEAF_SPINE, "order = 'priorities'\npfc = { xoff = '6KB' }", by_size, ANSWERED),
        (LEAF_SPINE, &format!("{classes}\npfc = {{ xoff = '12KB' }}"), by_size, FLOWS),
        (
            LEAF_SPINE,
            "pfc = { xoff = '1B', xon = '0B' }",
            "[host]\ntdma = { day = '90us', night = '9us' }\n",
            FLOWS,
        ),
    ] {
        let text = paused(topology, port, rest, workloads);
        let _shown = Shown::new(&text);
        let model = model(&text, None, None);
        assert_eq!(plimsoll_sim::obstacle(&model).unwrap(), None);
        let alone = plimsoll_sim::run(&model, &mut |_| true).unwrap();
        let between = alone.links.iter().filter(|link| !link.from.starts_with('h'));
        assert!(between.map(|link| link.pauses).sum::<u64>() > 10, "switches pause each other");
        for threads in [1, 2, 4] {
            let outcome = outcome(&text, threads).unwrap();
            assert_eq!(outcome.counters, alone.counters, "{threads} threads");
            assert_eq!(outcome.links, alone.links, "{threads} threads");
            assert_eq!(outcome.blocked, alone.blocked, "{threads} threads");
            assert_eq!(
                (outcome.end, Digest::of(&outcome)),
                (alone.end, Digest::of(&alone)),
                "{threads} threads"
            );
        }
    }
}

/// Five switches in a ring, each with two hosts, and a switch with four hosts at the first one. The shortest way to the
/// switch after next is clockwise.
fn ring(port: &str, rest: &str, workloads: &str) -> String {
    let mut text =
        paused("kind = 'file'\npath = 'ring.toml'", &format!("buffer = '100KB'\n{port}"), rest, workloads);
    text = text.replacen("buffer = '240KB'\n", "", 1).replace("60\n", "200\n").replace("10ms", "200ms");
    let link = |from: String, to: String| {
        format!("[[link]]\nfrom = '{from}'\nto = '{to}'\nrate = '10Gbps'\ndelay = '1us'\n")
    };
    let around = (0..5).map(|n| link(format!("s{n}"), format!("s{}", (n + 1) % 5)));
    let hosts = (0..14).map(|n: u32| link(format!("h{n}"), format!("s{}", 5.min(n / 2))));
    let links: String = around.chain(hosts).chain([link("s5".to_owned(), "s0".to_owned())]).collect();
    let hosts: Vec<String> = (0..14).map(|n| format!("'h{n}'")).collect();
    format!(
        "{text}[files.'ring.toml']\ntext = \"\"\"\nhosts = [{}]\n\
         switches = ['s0', 's1', 's2', 's3', 's4', 's5']\n{links}\"\"\"\n",
        hosts.join(", ")
    )
}

fn flow(name: &str, from: u32, to: u32) -> String {
    format!("[workload.{name}]\nkind = 'flows'\nfrom = 'h{from}'\nto = 'h{to}'\n")
}

/// Flows of the first `count` switches of the ring, each to the switch after next.
fn clockwise(count: u32) -> String {
    (0..count).map(|n| flow(&format!("ring{n}"), 2 * n, (2 * n + 4) % 10)).collect()
}

fn deadlock(text: &str, threads: usize) -> (Time, Vec<String>) {
    match outcome(text, threads) {
        Err(RunError::Deadlock { at, links }) => (at, links),
        Err(error) => panic!("{error}\n{text}"),
        Ok(outcome) => panic!("no deadlock on {threads} threads: {:?}\n{text}", outcome.counters),
    }
}

const CIRCLE: [&str; 5] = ["s0 -> s1", "s1 -> s2", "s2 -> s3", "s3 -> s4", "s4 -> s0"];

/// Traffic behind the circle is stuck as well, and traffic beside it moves until the end: between hosts of a switch,
/// and at another priority also on the circle's links.
#[test]
fn a_circle_of_pauses_is_found_beside_other_traffic() {
    let steps = "[workload.beside]\nkind = 'incast'\nfrom = ['h1']\nto = 'h3'\nsize = '20KB'\nevery = '100us'\n\
                 rounds = 25\n";
    let beside = flow("behind", 10, 2) + &flow("local", 12, 13) + steps;
    let priorities = "[host]\npriority = { local = 6, beside = 5 }\n[port.host]\norder = 'priorities'\n";
    let open = outcome(&ring("pfc = {}", "", &(clockwise(4) + &beside)), 1).unwrap();
    assert_eq!(open.counters.packets_lost(), 0, "without a flow of the ring there is no circle");
    for (port, rest) in [
        ("pfc = {}", ""),
        ("pfc = { scope = 'link' }", ""),
        ("order = 'priorities'\npfc = {}", priorities),
        ("classes = { priority = { '5' = {}, '0' = {}, '6' = { rate = '1Gbps' } } }\npfc = {}", priorities),
        ("pfc = {}", "[host]\ntdma = { day = '50us', night = '20us' }\n"),
        // The link behind the circle dies for ever, which takes nothing from it.
        ("pfc = {}", "[[fault]]\nfrom = 's5'\nto = 's0'\nat = '400us'\ndown = true\n"),
    ] {
        let text = ring(port, rest, &(clockwise(5) + &beside));
        let found = deadlock(&text, 1);
        assert_eq!(found.1, CIRCLE, "{text}");
        assert!(found.0 < Time::ZERO + Span::from_ms(1), "{} {text}", found.0);
        for threads in [2, 4] {
            assert_eq!(deadlock(&text, threads), found, "{threads} threads: {text}");
        }
    }
}

/// A circle in which a link fails later is not permanent: packets that wait for the link are lost, and the others
/// resume.
#[test]
fn a_circle_that_a_failure_opens_is_no_deadlock() {
    let sized = clockwise(5).replace("to = ", "size = '600KB'\nto = ");
    let fault = "[[fault]]\nfrom = 's2'\nto = 's3'\nat = '2ms'\nuntil = '2500us'\ndown = true\n";
    assert_eq!(deadlock(&ring("pfc = {}", "", &sized), 1).1, CIRCLE);
    let opened = ring("pfc = {}", fault, &sized);
    let alone = outcome(&opened, 1).unwrap();
    assert!(
        alone.counters.link_drops > 0 && alone.messages.iter().all(|message| message.completed.is_some())
    );
    let divided = outcome(&opened, 4).unwrap();
    assert_eq!(Digest::of(&divided), Digest::of(&alone));
    // Behind the last failure it is one.
    let late = ring("pfc = {}", fault, &sized.replace("to = ", "start = '3ms'\nto = "))
        .replace("'3ms'\ndrain", "'4ms'\ndrain");
    let found = deadlock(&late, 1);
    assert!(found.0 > Time::ZERO + Span::from_ms(3) && found.1 == CIRCLE, "{found:?}");
    assert_eq!(deadlock(&late, 3), found);
}

proptest! {
    #![proptest_config(config(24))]

    /// Packets to one host, and their acknowledgements, wait for each other in no circle, whatever loops there are.
    #[test]
    fn an_incast_is_no_deadlock(
        to in 0u32..12,
        scope in select(vec!["priority", "link"]),
        xoff in select(vec!["1B", "1500B", "9KB", "20KB"]),
        xon in select(vec!["0B", "1B", "xoff"]),
        order in select(vec!["order = 'priorities'", "order = 'fifo'"]),
        kilobytes in 10u32..400,
        seed in any::<u32>(),
    ) {
        let xon = if xon == "xoff" { xoff } else { xon };
        let pfc = format!("{order}\npfc = {{ scope = '{scope}', xoff = '{xoff}', xon = '{xon}' }}");
        let incast = format!(
            "[workload.incast]\nkind = 'incast'\nto = 'h{to}'\nsize = '{kilobytes}KB'\nevery = '700us'\nrounds = 3\n"
        );
        let text = ring(&pfc, "[host]\npriority_by_size = ['20KB', '90KB']\n", &incast)
            .replace("duration = '3ms'", &format!("duration = '3ms'\nseed = {seed}"));
        let alone = outcome(&text, 1).unwrap();
        prop_assert!(alone.messages.iter().all(|message| message.completed.is_some()), "{}", text);
        prop_assert_eq!(alone.counters.packets_lost(), 0);
        prop_assert_eq!(Digest::of(&outcome(&text, 3).unwrap()), Digest::of(&alone));
    }
}
