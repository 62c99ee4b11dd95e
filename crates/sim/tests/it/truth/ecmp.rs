//! Paths: a network is the same however it is written, and equal-cost paths share the load without
//! reordering anybody.

use plimsoll_units::Span;

use crate::truth::lab::{Run, run};

const GENERATED: &str = "kind = 'leaf-spine'\nleaves = 3\nspines = 1\nhosts_per_leaf = 2\nrate = '10Gbps'\n\
                         delay = '1us'\nfabric_delay = '2us'";
const FROM_FILE: &str = "kind = 'file'\npath = 'leaf-spine.toml'";

#[test]
fn a_graph_from_a_file_is_the_generated_network() {
    for workload in [
        "kind = 'permutation'\nsize = '300KB'\nstart_within = '3ms'",
        "kind = 'all-to-all'\nsize = { cdf = 'homa-w3' }\nload = 0.15\ncount = 300",
        "kind = 'packets'\nfrom = 'h1..h5'\nto = 'h0'\nsize = { kind = 'exponential', mean = '700B' }\n\
         load = 0.1\ncount = 500",
    ] {
        let [generated, file] = [GENERATED, FROM_FILE].map(|topology| {
            run(&format!(
                "version = 1\ntitle = 'the same network'\n[topology]\n{topology}\n\
                 [port.switch]\nbuffer = '50 packets'\n[transport]\nmin_rto = '1ms'\n[workload.w]\n{workload}\n"
            ))
        });
        assert_eq!(generated.messages.len(), file.messages.len());
        for (one, other) in generated.messages.iter().zip(&file.messages) {
            let waited = |message: &plimsoll_results::outcome::MessageRecord| -> Span {
                message.split.tier.iter().copied().sum()
            };
            assert_eq!((one.completed, waited(one)), (other.completed, waited(other)), "{one:?}\n{other:?}");
        }
        assert_eq!(generated.counters.switch_drops, file.counters.switch_drops);
    }
}

fn all_to_all(topology: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'many paths'\n[topology]\n{topology}\n\
         [transport]\nconnections = 'per-message'\nmin_rto = '1s'\n\
         [workload.w]\nkind = 'all-to-all'\nsize = '30KB'\nload = 0.4\ncount = 4000\n\
         [observe]\nqueue.up = {{ port = 'tier:{}', every = '1ms' }}\n",
        if topology.contains("fat-tree") { "edge" } else { "leaf" }
    ))
}

#[test]
fn equal_cost_paths_share_the_load_and_reorder_nobody() {
    for topology in [
        "kind = 'fat-tree'\nk = 4\nrate = '10Gbps'\ndelay = '1us'",
        "kind = 'leaf-spine'\nleaves = 4\nspines = 4\nhosts_per_leaf = 4\nrate = '10Gbps'\ndelay = '1us'",
    ] {
        let run = all_to_all(topology);
        assert!(run.messages.iter().all(|message| message.completed.is_some()));
        // Packets that overtook each other would look like losses.
        let counters = run.counters;
        assert_eq!(
            (counters.retransmissions, counters.timeouts, counters.switch_drops),
            (0, 0, 0),
            "{topology}"
        );
        let up: Vec<f64> = run
            .queues
            .iter()
            .filter(|queue| queue.port.contains("-> switch"))
            .map(|queue| queue.bytes as f64)
            .collect();
        let mean = up.iter().sum::<f64>() / up.len() as f64;
        // 16 ports and about 200 data flows of a fixed size on each: a standard deviation of 7 %.
        for (port, bytes) in up.iter().enumerate() {
            assert!(
                (bytes / mean - 1.0).abs() < 0.3,
                "{topology}: uplink {port} carries {:.2} of the mean",
                bytes / mean
            );
        }
        assert!(up.len() >= 16, "{}", up.len());
    }
}

/// With one flow a host nothing is oversubscribed: whatever slows a flow is a collision of hashes.
#[test]
fn a_permutation_on_a_fat_tree_loses_only_to_collisions() {
    let run = run(
        "version = 1\ntitle = 'a permutation'\n[topology]\nkind = 'fat-tree'\nk = 4\nrate = '10Gbps'\ndelay = '1us'\n\
         [port.switch]\necn = { threshold = '65 packets' }\n[transport]\nkind = 'dctcp'\nmin_rto = '10ms'\n\
         [workload.w]\nkind = 'permutation'\nsize = '5MB'\nstart_within = '100us'\n",
    );
    assert_eq!(run.messages.len(), 16);
    let slowdowns: Vec<f64> = run
        .messages
        .iter()
        .map(|message| message.latency().unwrap().as_secs_f64() / message.ideal.as_secs_f64())
        .collect();
    // At most four flows meet on a link (two on each uplink of an edge, then of an aggregation switch).
    assert!(slowdowns.iter().all(|slowdown| (1.0..4.5).contains(slowdown)), "{slowdowns:?}");
    assert!(slowdowns.iter().any(|slowdown| *slowdown < 1.5), "{slowdowns:?}");
    let mean = slowdowns.iter().sum::<f64>() / 16.0;
    assert!((1.0..2.5).contains(&mean), "{slowdowns:?}");
}
