//! Random scenarios of the transports that NICs carry: whatever the ports, the losses and the faults, each message
//! ends, each packet has an owner, and any number of threads gives the same.

use proptest::prelude::*;
use proptest::sample::select;

use crate::truth::arbitrary::{config, workloads};
use crate::truth::roce_reliability::ends_on_any_threads;

/// A transport with some of its keys, and the keys of the switches' ports that it needs.
pub fn transport() -> impl Strategy<Value = (String, String)> {
    // Headers that always go first leave a slow link no time for data.
    let trim = || {
        select(vec![
            "trim = { service = '10:1' }",
            "trim = { service = '10:1', queue = '4KB' }",
            "trim = { service = '10:1', victim = 'coin-tail', bounce = true }",
            "",
        ])
    };
    let paths = || {
        (select(vec!["flow", "oblivious", "bitmap", "reps", "mixed"]), select(vec![2, 16, 64]))
            .prop_map(|(choice, values)| format!("paths = {{ choice = '{choice}', values = {values} }}"))
    };
    let uet = (select(vec!["uet-nscc", "uet-rccc", "uet"]), trim(), paths(), any::<[bool; 3]>()).prop_map(
        |(kind, trim, paths, [each, overtaken, marks])| {
            let trim = trim.replace(", bounce = true", "");
            let (after, red) = (if each { "1B" } else { "16384B" }, "min = '8KB', max = '30KB', at = 'dequeue'");
            let marks = if marks { format!("red = {{ {red}, marks = 'independent' }}") } else { String::new() };
            (
                format!(
                    "kind = '{kind}'\nuet = {{ {paths}, ack_after = '{after}', overtaken_is_lost = {overtaken}, \
                     trimming = {} }}",
                    !trim.is_empty()
                ),
                format!("{trim}\n{marks}"),
            )
        },
    );
    let ndp_paths = select(vec!["permutation", "random", "penalties"]);
    let ndp = (trim(), ndp_paths, select(vec![1, 8, 23]), any::<[bool; 2]>()).prop_map(
        |(trim, choice, window, [keeps, by_number])| {
            let order = if by_number { "number" } else { "arrival" };
            (
                format!(
                    "kind = 'ndp'\nndp = {{ initial_window = {window}, keeps_pulls = {keeps}, min_rto = '1ms', \
                     repeat_order = '{order}', paths = {{ choice = '{choice}' }} }}"
                ),
                trim.to_owned(),
            )
        },
    );
    let homa = (1u32..8, 1u32..9, select(vec!["3KB", "10KB", "60KB"])).prop_map(|(levels, degree, rtt)| {
        (
            format!(
                "kind = 'homa'\nconnections = 'per-message'\nhoma = {{ scheduled_levels = {levels}, \
                 degree = {degree}, rtt_bytes = '{rtt}', resend_after = '500us' }}"
            ),
            "order = 'priorities'".to_owned(),
        )
    });
    let roce = (
        select(vec![
            ("dcqcn", "ecn = { threshold = '20KB' }"),
            ("hpcc", "int = {}"),
            ("hpcc", "int = { digest = {} }"),
            ("powertcp", "int = {}"),
            ("timely", ""),
            ("roce-swift", ""),
        ]),
        any::<[bool; 3]>(),
    )
        .prop_map(|((kind, port), [window, selective, lossless])| {
            let (window, repair) =
                (if window { "bdp" } else { "off" }, if selective { "selective" } else { "go-back-n" });
            let lossless = if lossless { "lossless = { memory = '2MB', reserve = '2KB' }" } else { "" };
            (
                format!(
                    "kind = '{kind}'\nroce = {{ window = '{window}', repair = '{repair}', timeout = '1ms' }}"
                ),
                format!("{port}\n{lossless}"),
            )
        });
    prop_oneof![2 => uet, 2 => ndp, 1 => homa, 1 => roce]
}

/// A leaf-spine network or a rack, with some trouble.
pub fn network() -> impl Strategy<Value = String> {
    let rate = || select(vec!["10Gbps", "25Gbps", "3Gbps"]);
    let trouble = select(vec![
        "",
        "[host]\nloss = 0.01\n",
        "[[fault]]\nfrom = 'leaf0'\nto = 'spine0'\nat = '50us'\nuntil = '900us'\ndown = true\n",
        "[[fault]]\nfrom = 'spine0'\nto = 'leaf1'\nat = '20us'\nrate = '300Mbps'\n",
        "[[fault]]\nfrom = 'leaf1'\nto = 'h5'\nat = '80us'\nuntil = '3ms'\ndown = true\n",
    ]);
    let fabric = (1u32..4, rate(), rate(), trouble).prop_map(|(spines, rate, fabric, trouble)| {
        format!(
            "[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = {spines}\nhosts_per_leaf = 3\nrate = '{rate}'\n\
             fabric_rate = '{fabric}'\ndelay = '1us'\n{trouble}"
        )
    });
    let rack = (3u32..7, rate()).prop_map(|(hosts, rate)| {
        format!("[topology]\nkind = 'rack'\nhosts = {hosts}\nrate = '{rate}'\ndelay = '1us'\n")
    });
    prop_oneof![3 => fabric, 1 => rack]
}

proptest! {
    #![proptest_config(config(48))]
    #[test]
    fn every_message_ends_and_every_packet_has_an_owner(
        seed in any::<u32>(),
        network in network(),
        (transport, port) in transport(),
        workloads in workloads(),
        buffer in select(vec!["20KB", "60KB", "200KB"]),
        connections in select(vec!["long-lived", "per-message"]),
    ) {
        let connections = if transport.contains("connections") { String::new() } else {
            format!("connections = '{connections}'\n")
        };
        let buffer = if port.contains("lossless") { String::new() } else { format!("buffer = '{buffer}'\n") };
        // Packets without a transport are lost in full queues, and are of no family.
        let workloads = if workloads.contains("'packets'") {
            "[workload.incast]\nkind = 'incast'\nsize = '9KB'\nevery = '300us'\nrounds = 6\n".to_owned()
        } else {
            workloads
        };
        let text = format!(
            "version = 1\ntitle = 'random'\n[run]\nseed = {seed}\nduration = '1s'\ndrain = '60s'\n{network}\
             [port.switch]\n{buffer}{port}\n[transport]\nsegment = '1000B'\nheader = '64B'\n{connections}{transport}\n\
             {workloads}"
        );
        ends_on_any_threads(&text, &text, None);
    }
}
