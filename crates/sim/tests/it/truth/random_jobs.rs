//! Random jobs beside other load, over every transport and topology, with faults: each iteration ends or has a message
//! that does not, its critical path is all of its time, and any number of threads gives the same.

use std::fmt::Write;

use plimsoll_results::Digest;
use plimsoll_sim::run_in_parts;
use proptest::prelude::*;
use proptest::sample::select;

use crate::truth::arbitrary::{self, config, workloads};
use crate::truth::lab::{model, run};
use crate::truth::random_nics;

/// A collective operation of all hosts; of a power of two where the schedule needs one.
fn collective() -> impl Strategy<Value = String> {
    let which = select(vec![
        ("all-reduce", "ring"),
        ("all-reduce", "halving-doubling"),
        ("all-reduce", "recursive-doubling"),
        ("all-reduce", "tree"),
        ("all-reduce", "double-tree"),
        ("all-reduce", "hierarchical"),
        ("reduce-scatter", "ring"),
        ("all-gather", "halving-doubling"),
        ("all-to-all", "shift"),
        ("all-to-all", "xor"),
        ("all-to-all", "direct"),
        ("broadcast", "tree"),
        ("broadcast", "ring"),
        ("reduce", "tree"),
        ("barrier", "dissemination"),
    ]);
    (which, 1u32..60_000, 1u32..4, select(vec!["0s", "1ns"]))
        .prop_map(|((operation, algorithm), bytes, chunks, add)| {
            let in_pairs = ["halving-doubling", "recursive-doubling", "xor", "hierarchical"].contains(&algorithm);
            let hosts = if in_pairs { "run.hosts = 'h0..h3'\n" } else { "" };
            let servers = "run.scale_up = { ranks = 2, rate = '40Gbps', delay = '300ns' }\n";
            let servers = if algorithm == "hierarchical" { servers } else { "" };
            format!(
                "kind = 'collective'\noperation = '{operation}'\nalgorithm = '{algorithm}'\nsize = '{bytes}B'\n\
                 chunks = {chunks}\nreduce_per_byte = '{add}'\n{hosts}{servers}"
            )
        })
}

/// An all-to-all of four ranks with a random matrix.
fn blocks() -> impl Strategy<Value = String> {
    (select(vec!["shift", "xor", "direct"]), proptest::array::uniform16(select(vec![0, 0, 1, 900, 20_000])))
        .prop_map(|(algorithm, sizes)| {
            let rows: Vec<String> =
                sizes.chunks(4).map(|row| format!("{row:?}").replace(['[', ']'], "")).collect();
            // Some rank sends something.
            let rows = rows.join("\n").replacen(&rows[0], "0, 1, 2, 3", 1);
            format!(
                "kind = 'collective'\noperation = 'all-to-all'\nalgorithm = '{algorithm}'\nmatrix = 'job'\n\
                 run.hosts = 'h0..h3'\n[files.job]\ntext = \"\"\"\n{rows}\n\"\"\"\n"
            )
        })
}

fn training() -> impl Strategy<Value = String> {
    (1u32..4, 1u32..4, select(vec![(2, 2), (1, 2), (4, 1), (1, 1)]), 1u32..40, any::<bool>()).prop_map(
        |(layers, batches, (tensor, pipeline), kilobytes, overlap)| {
            let layers = layers * pipeline;
            format!(
                "kind = 'training'\nlayers = {layers}\ntensor = {tensor}\npipeline = {pipeline}\n\
                 micro_batches = {batches}\nforward = '7us'\nactivations = '3KB'\ngradients = '{kilobytes}KB'\n\
                 overlap = {overlap}\nrun.hosts = 'h0..h3'\n"
            )
        },
    )
}

/// Computations and messages of three ranks, each after the end or the beginning of some earlier operation there.
fn goal() -> impl Strategy<Value = String> {
    let message = (0u32..3, 1u32..3, 1u32..30_000, 0u32..2, 0u32..3, any::<[u8; 2]>());
    proptest::collection::vec(message, 1..20).prop_map(|messages| {
        let mut ranks = [const { (String::new(), 0u32) }; 3];
        for (from, by, bytes, tag, stream, after) in messages {
            let to = (from + by) % 3;
            let send = format!("send {bytes}b to {to} tag {tag} cpu {stream}");
            let receive = format!("recv {bytes}b from {from} tag {tag} nic {stream}");
            let compute = format!("calc {} cpu {stream}", bytes / 9);
            for (rank, operation, after) in
                [(from, compute, after[0]), (from, send, after[1]), (to, receive, after[0])]
            {
                let (text, count) = &mut ranks[rank as usize];
                let _ = writeln!(text, "l{count}: {operation}");
                let word = if after % 3 == 0 { "irequires" } else { "requires" };
                if let Some(earlier) = count.checked_sub(1 + u32::from(after) % 4) {
                    let _ = writeln!(text, "l{count} {word} l{earlier}");
                }
                *count += 1;
            }
        }
        let ranks: String = (0..)
            .zip(ranks)
            .map(|(rank, (text, _)): (u32, _)| format!("rank {rank} {{\n{text}}}\n"))
            .collect();
        format!("kind = 'job'\npath = 'job'\n[files.job]\ntext = \"\"\"\nnum_ranks 3\n{ranks}\"\"\"\n")
    })
}

/// A dragonfly, or hosts with two NICs, each on a plane of leaves and spines of its own; with some trouble.
fn groups_or_planes() -> impl Strategy<Value = String> {
    let rate = || select(vec!["10Gbps", "25Gbps", "3Gbps"]);
    let fault = |from: &str, to: &str| {
        let link = format!("[[fault]]\nfrom = '{from}'\nto = '{to}'\n");
        let keys = ["at = '50us'\nuntil = '900us'\ndown = true\n", "at = '20us'\nrate = '300Mbps'\n"];
        let faults = keys.map(|keys| format!("{link}{keys}"));
        select([vec![String::new(), "[host]\nloss = 0.01\n".to_owned()], faults.to_vec()].concat())
    };
    let dragonfly = (2u32..4, 1u32..3, rate(), rate(), fault("router0", "router1")).prop_map(
        |(groups, hosts, rate, between, trouble)| {
            format!(
                "[topology]\nkind = 'dragonfly'\ngroups = {groups}\nrouters = 2\nhosts_per_router = {hosts}\n\
                 global_links = 1\nrate = '{rate}'\nglobal_rate = '{between}'\ndelay = '1us'\n{trouble}"
            )
        },
    );
    let planes = (1u32..3, 1u32..3, rate(), rate(), fault("leaf0", "spine0")).prop_map(
        |(leaves, spines, rate, fabric, trouble)| {
            format!(
                "[topology]\nkind = 'leaf-spine'\nleaves = {}\nspines = {}\nhosts_per_leaf = 4\nnics = 2\n\
                 planes = true\nrate = '{rate}'\nfabric_rate = '{fabric}'\ndelay = '1us'\n{trouble}",
                2 * leaves,
                2 * spines
            )
        },
    );
    prop_oneof![dragonfly, planes]
}

/// A transport with the keys of its ports, and whether every message ends.
fn transport() -> impl Strategy<Value = (String, String, bool)> {
    let tcp = (
        arbitrary::transport(),
        select(vec!["buffer = '9KB'", "buffer = '60KB'\necn = { threshold = '9KB' }"]),
    )
        .prop_map(|(transport, port)| (transport, port.to_owned(), true));
    let nics =
        (random_nics::transport(), select(vec!["20KB", "60KB"])).prop_map(|((transport, port), buffer)| {
            let buffer =
                if port.contains("lossless") { String::new() } else { format!("buffer = '{buffer}'\n") };
            (format!("segment = '1000B'\nheader = '64B'\n{transport}"), format!("{buffer}{port}"), true)
        });
    let datagrams =
        Just(("kind = 'datagram'\nsegment = '1000B'\nheader = '64B'".to_owned(), String::new(), false));
    prop_oneof![2 => tcp, 4 => nics, 1 => datagrams]
}

proptest! {
    #![proptest_config(config(40))]
    #[test]
    fn iterations_end_and_their_critical_paths_are_all_of_their_time(
        seed in any::<u32>(),
        network in prop_oneof![2 => random_nics::network(), 1 => groups_or_planes()],
        (transport, port, ends) in transport(),
        job in prop_oneof![collective(), blocks(), training(), goal()],
        others in prop_oneof![Just(String::new()), workloads()],
        (iterations, placement, loggops) in (1u64..4, select(vec!["packed", "random"]), proptest::bool::weighted(0.1)),
    ) {
        // Four hosts or more.
        let network = network.replace("hosts = 3\n", "hosts = 5\n");
        let carrier = if loggops { "loggops" } else { "packets" };
        // A larger send waits for its receive, so that operations in a random order may wait for each other for ever.
        let eager = if job.contains("kind = 'job'") { "40KB" } else { "4KB" };
        let costs = format!(
            "{{ latency = '3us', overhead = '200ns', gap = '50ns', gap_per_byte = '90ps', eager = '{eager}' }}"
        );
        let costs = if loggops { format!("run.costs = {costs}\n") } else { String::new() };
        // Keys of the workload come before its file.
        let job = job.replacen("kind =", &format!(
            "run.iterations = {iterations}\nrun.placement = '{placement}'\nrun.network = '{carrier}'\n{costs}kind ="
        ), 1);
        let text = format!(
            "version = 1\ntitle = 'random'\n[run]\nseed = {seed}\nduration = '1s'\ndrain = '60s'\n{network}\
             [port.switch]\n{port}\n[transport]\n{transport}\n{others}[workload.job]\n{job}"
        );
        check(&text, iterations, ends || loggops);
    }
}

fn check(text: &str, iterations: u64, ends: bool) {
    let alone = run(text);
    let number = alone.workloads.iter().position(|info| info.name == "job").expect("the job") as u16;
    let of_job = |workload: u16| workload == number;
    let queries: Vec<_> = alone.queries.iter().filter(|query| of_job(query.workload)).collect();
    let open = queries.iter().filter(|query| query.completed.is_none()).count();
    let messages = alone.messages.iter().filter(|message| of_job(message.workload));
    let late = messages.filter(|message| message.completed.is_none()).count();
    assert_eq!(open > 0, late > 0, "an iteration is open as long as a message is");
    if ends {
        assert_eq!(
            (queries.len() as u64, open),
            (iterations, 0),
            "each iteration ends: {:?}",
            alone.warnings
        );
    }
    assert!(open <= 1 && alone.iterations.len() == queries.len() - open);
    for (iteration, query) in alone.iterations.iter().zip(&queries) {
        assert_eq!(query.completed.map(|at| at - query.created), Some(iteration.took));
        assert_eq!(iteration.split.total(), iteration.took, "{iteration:?}");
    }
    for rank in &alone.ranks {
        assert!(rank.exposed <= rank.waited && rank.computed + rank.exposed <= rank.took, "{rank:?}");
    }
    let model = model(text, None, None);
    for threads in [1, 2, 4] {
        let parts = run_in_parts(&model, threads, &mut |_| true).expect("the scenario can be run");
        assert_eq!(Digest::of(&parts), alone.digest(), "{threads} threads");
    }
}
