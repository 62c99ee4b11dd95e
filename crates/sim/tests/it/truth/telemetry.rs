//! Telemetry in whole runs: senders see the queues of their paths, whatever the threads and the port engine.

use plimsoll_results::Digest;
use plimsoll_sim::run_in_parts;

use crate::truth::lab::{Run, model, run};

fn scenario(switch: &str) -> String {
    format!(
        "version = 1\ntitle = 'telemetry'\n[run]\nduration = '5ms'\ndrain = '1s'\n[topology]\nkind = 'leaf-spine'\n\
         leaves = 3\nspines = 2\nhosts_per_leaf = 4\nrate = '10Gbps'\ndelay = '1us'\n[port.host]\nENGINE\n\
         [port.switch]\nbuffer = '60KB'\nENGINE\n{switch}\n[transport]\nkind = 'tcp'\nmin_rto = '1ms'\n\
         [workload.incast]\nkind = 'incast'\nsize = '60KB'\nevery = '2ms'\nrounds = 2\n"
    )
}

#[test]
fn every_thread_and_engine_sees_the_same_queues() {
    let text = scenario("int = {}");
    let general = run(&text.replace("ENGINE", "engine = 'general'"));
    let counters = general.counters;
    // Leaf, spine, leaf: three stamps between leaves, one within a leaf.
    assert!(counters.echoes > 100 && counters.echoed_stamps > counters.echoes, "{counters:?}");
    assert!(counters.echoed_stamps <= 3 * counters.echoes, "{counters:?}");
    assert!(
        counters.echoed_queue_bytes > 1_000 * counters.echoes && counters.echoed_delay_ns > 0,
        "{counters:?}"
    );
    assert!(general.messages.iter().all(|message| message.completed.is_some()));
    let explicit = run(&text.replace("ENGINE", "engine = 'explicit'"));
    assert_eq!(explicit.digest(), general.digest());
    let model = model(&text.replace("ENGINE", ""), None, None);
    for threads in [1, 2, 4] {
        let parts = run_in_parts(&model, threads, &mut |_| true).unwrap();
        assert_eq!(Digest::of(&parts), general.digest(), "{threads} threads");
    }
}

/// A NIC that gathers packets, and a processor that takes its time, handle acknowledgements later than they arrive.
#[test]
fn acknowledgements_that_wait_at_their_host_keep_their_stamps() {
    let text = scenario("int = {}").replace("ENGINE", "");
    let host = "[host]\nbursts = { coalesce_time = '20us' }\n[host.processor]\n[transport]";
    let waiting = run(&text.replace("[transport]", host));
    let counters = waiting.counters;
    assert!(counters.echoes > 100 && counters.echoed_delay_ns > 0, "{counters:?}");
    assert!((1..=3).contains(&(counters.echoed_stamps / counters.echoes)), "{counters:?}");
    assert!(waiting.messages.iter().all(|message| message.completed.is_some()));
}

#[test]
fn stamps_are_on_the_wire_and_not_in_the_ideal_time() {
    let [without, with] =
        ["", "int = { header = '256B', hop = '0B' }"].map(|int| run(&scenario(int).replace("ENGINE", "")));
    assert_eq!(without.counters.echoes, 0);
    let ideal = |of: &Run| of.messages.iter().map(|message| message.ideal).collect::<Vec<_>>();
    assert_eq!(ideal(&with), ideal(&without));
    let first = |of: &Run| of.messages.iter().filter_map(|message| message.completed).min().unwrap();
    assert!(first(&with) > first(&without));
}
