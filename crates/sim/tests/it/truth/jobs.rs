//! Jobs in whole runs: times that sizes, rates and delays give by hand, critical paths that sum to the whole, and any
//! transport on any number of threads.

use plimsoll_results::Digest;
use plimsoll_results::outcome::{QueryRecord, Split};
use plimsoll_scenario::import::htsim_connections;
use plimsoll_sim::run_in_parts;
use plimsoll_units::{Span, Time};

use crate::truth::lab::{Run, model, run};
use crate::truth::roce_reliability::ends_on_any_threads;

fn collective(ranks: u32, gbps: u32, keys: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'a collective operation'\n\
         [topology]\nkind = 'rack'\nhosts = {ranks}\nrate = '{gbps}Gbps'\ndelay = '1us'\n\
         [port.switch]\nbuffer = 'unlimited'\n\
         [transport]\nkind = 'datagram'\nsegment = '4096B'\nheader = '64B'\n\
         [workload.w]\nkind = 'collective'\n{keys}\n"
    ))
}

#[test]
fn rounds_on_one_switch_take_the_time_of_their_packets() {
    // A round of full packets: each takes its time on the first link, the last one again on the second, and 2 us.
    let round = |packets: u64, gbps: u64| (packets + 1) * 4_160 * 8_000 / gbps + 2_000_000;
    for gbps in [100, 400] {
        for (keys, packets) in [
            // Eighths of 1 MiB are 32 packets.
            ("operation = 'all-reduce'\nsize = '1MiB'", vec![32; 14]),
            ("operation = 'all-gather'\nsize = '1MiB'", vec![32; 7]),
            ("operation = 'reduce-scatter'\nsize = '1MiB'", vec![32; 7]),
            ("operation = 'all-to-all'\nsize = '1MiB'", vec![32; 7]),
            ("operation = 'all-to-all'\nalgorithm = 'xor'\nsize = '1MiB'", vec![32; 7]),
            (
                "operation = 'all-reduce'\nalgorithm = 'halving-doubling'\nsize = '1MiB'",
                vec![128, 64, 32, 32, 64, 128],
            ),
            ("operation = 'all-reduce'\nalgorithm = 'recursive-doubling'\nsize = '1MiB'", vec![256; 3]),
            ("operation = 'broadcast'\nalgorithm = 'ring'\nsize = '1MiB'", vec![256; 7]),
        ] {
            let run = collective(8, gbps, keys);
            let expected: u64 = packets.iter().map(|packets| round(*packets, gbps.into())).sum();
            assert_eq!(run.iterations[0].took, Span::from_ps(expected), "{keys}");
            // The network was idle, so that was the ideal time.
            assert_eq!(run.iterations[0].ideal, run.iterations[0].took, "{keys}");
        }
    }
}

#[test]
fn replayed_rounds_and_iterations_take_the_time_of_simulated_ones() {
    let ring = "operation = 'all-gather'\nsize = '2MiB'\n[workload.w.run]\niterations = 9\nrepeat_every = 4";
    let whole = collective(64, 100, &ring.replace("\nrepeat_every = 4", ""));
    let replayed = collective(64, 100, &format!("{ring}\nrepeat = 'detect'"));
    // On one switch rounds are equal; on idle links, too, which is the same.
    assert_eq!(replayed.iterations.len(), 9);
    for (one, simulated) in replayed.iterations.iter().zip(&whole.iterations) {
        assert_eq!((one.index, one.took, one.ideal), (simulated.index, simulated.took, simulated.ideal));
        assert_eq!(one.split.total(), one.took, "the critical path is all of the time");
    }
    let times =
        |run: &Run| run.queries.iter().map(|query| (query.created, query.completed)).collect::<Vec<_>>();
    assert_eq!(times(&replayed), times(&whole));
    let [repeats] = replayed.repeats[..] else { panic!("{:?}", replayed.repeats) };
    // Two iterations agree, one is replayed, one simulated, three are replayed, one is simulated, and one replayed.
    assert_eq!((repeats.iterations, repeats.replayed_iterations), (9, 5));
    assert!(repeats.replayed_rounds > 0 && repeats.largest_difference == 0.0, "{repeats:?}");
    assert!(replayed.counters.packet_hops * 3 < whole.counters.packet_hops);
}

#[test]
fn rounds_are_replayed_alike_on_any_threads() {
    let text = "version = 1\ntitle = 't'\npreset = 'uet'\n[run]\nduration = '1s'\n\
        [topology]\nkind = 'leaf-spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\nrate = '100Gbps'\n\
        delay = '1us'\n\
        [workload.w]\nkind = 'collective'\noperation = 'all-reduce'\nsize = '1MiB'\n[workload.w.run]\n\
        placement = 'random'\niterations = 3\nrepeat = 'detect'";
    let model = model(text, None, None);
    let alone = run_in_parts(&model, 1, &mut |_| true).unwrap();
    assert!(alone.repeats[0].replayed_rounds > 0, "{:?}", alone.repeats);
    for threads in [2, 4] {
        let divided = run_in_parts(&model, threads, &mut |_| true).unwrap();
        assert_eq!(Digest::of(&divided), Digest::of(&alone), "{threads}");
        assert_eq!(divided.repeats, alone.repeats, "{threads}");
    }
}

#[test]
fn blocks_of_a_matrix_take_the_time_of_the_largest_row_or_column() {
    // All packets are full: those of the busiest link, once more the last one on the other link, and 2 us.
    let bound = |packets: u64| Span::from_ps((packets + 1) * 4_160 * 80 + 2_000_000);
    // One rank sends to all, all send to one, and all to all where rank 0 has four times as much to receive.
    let row = "1, 64KiB, 128KiB, 256KiB\n0, 0, 0, 0\n0, 0, 0, 0\n0, 0, 0, 0";
    let column = "0, 0, 0, 131072\n0, 0, 0, 131072\n0, 0, 0, 131072\n0, 0, 0, 0";
    let hot =
        "0, 32KiB, 32KiB, 32KiB\n128KiB, 0, 32KiB, 32KiB\n128KiB, 32KiB, 0, 32KiB\n128KiB, 32KiB, 32KiB, 0";
    for (algorithm, matrix, messages, packets) in [
        ("direct", row, 3, 16 + 32 + 64),
        ("shift", row, 3, 16 + 32 + 64),
        ("direct", column, 3, 3 * 32),
        ("shift", column, 3, 3 * 32),
        ("direct", hot, 12, 3 * 32),
    ] {
        let keys = format!(
            "operation = 'all-to-all'\nalgorithm = '{algorithm}'\nmatrix = 'm.csv'\n\
             [files.'m.csv']\ntext = \"\"\"{matrix}\"\"\""
        );
        let run = collective(4, 100, &keys);
        assert_eq!(run.iterations[0].took, bound(packets), "{keys}");
        assert_eq!((run.iterations[0].bus_bytes, run.messages.len()), (packets * 4_096, messages), "{keys}");
    }
}

#[test]
fn flows_of_htsim_start_when_their_triggers_have_been_activated() {
    // The bytes on the wire, once more the first packet, and 2 us.
    let message = |bytes: u64| {
        let first = bytes.min(4_096) + 64;
        Span::from_ps((bytes + bytes.div_ceil(4_096) * 64 + first) * 80 + 2_000_000)
    };
    let barrier = "Nodes 4\nConnections 3\nTriggers 1\n0->1 id 1 start 0 size 1000000 send_done_trigger 1\n\
                   2->1 id 2 start 0 size 1000000 send_done_trigger 1\n\
                   1->3 id 3 trigger 1 size 500000 prio 5 msg 7\ntrigger id 1 barrier count 2\n";
    // Both flows share the last link, as if they were one of which each half has a packet that is not full.
    let both = message(1_000_000) + Span::from_ps((1_000_000 + 245 * 64) * 80);
    let serial = "Nodes 4\nConnections 3\nTriggers 1\ntrigger id 9 multishot\n\
                  0->1 id 1 start 5000000 size 40960 recv_done_trigger 9\n\
                  0->2 id 2 trigger 9 size 8192 recv_done_trigger 9\n0->3 id 3 trigger 9 size 4096\n";
    let told = message(1);
    let chain = message(40_960) + told + message(8_192) + told + message(4_096);
    // At the destination itself no message tells of it.
    let relay = "Nodes 4\nConnections 4\nTriggers 2\ntrigger id 1 multishot\ntrigger id 2 oneshot\n\
                 0->1 start 0 size 40960 recv_done_trigger 1\n2->1 start 0 size 4096 recv_done_trigger 1\n\
                 1->3 trigger 1 size 8192\n1->0 trigger 1 size 8192 recv_done_trigger 2\n";
    let relay = relay.replace("Connections 4", "Connections 5") + "0->3 trigger 2 size 4096\n";
    // The flow of one packet arrives between others, and the one that starts last goes on.
    let last = message(40_960) + Span::from_ps(4_160 * 80) + message(8_192) + message(4_096);
    for (matrix, expected, notes) in [
        (barrier, both + message(500_000), 2),
        (serial, Span::from_us(5) + chain, 1),
        (relay.as_str(), last, 0),
    ] {
        let traffic = htsim_connections("c.cm", matrix, None).unwrap();
        assert_eq!((traffic.is_job, traffic.file.notes.len()), (true, notes), "{:?}", traffic.file.notes);
        let run = run(&format!(
            "version = 1\ntitle = 'triggers'\n[topology]\nkind = 'rack'\nhosts = 4\nrate = '100Gbps'\ndelay = '1us'\n\
             [port.switch]\nbuffer = 'unlimited'\n[transport]\nkind = 'datagram'\nsegment = '4096B'\nheader = '64B'\n\
             [workload.flows]\nkind = 'job'\npath = 'job.goal'\n[files.'job.goal']\ntext = \"\"\"\n{}\"\"\"\n",
            traffic.file.text
        ));
        assert_eq!(run.iterations[0].took, expected, "{matrix}");
    }
}

#[test]
fn the_critical_path_is_all_of_the_time_and_a_rank_that_computes_longer_is_on_it() {
    let run = run("version = 1\ntitle = 'training'\npreset = 'roce-nic'\n[run]\nduration = '1s'\n\
                   [topology]\nkind = 'leaf-spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
                   rate = '25Gbps'\nfabric_rate = '50Gbps'\ndelay = '1us'\n\
                   [workload.train]\nkind = 'training'\nlayers = 4\ntensor = 2\npipeline = 2\nmicro_batches = 3\n\
                   forward = '50us'\nactivations = '100KB'\ngradients = '400KB'\nrun = { iterations = 3 }\n");
    assert_eq!(run.iterations.len(), 3);
    for (iteration, query) in run.iterations.iter().zip(&run.queries) {
        assert_eq!(query.completed.unwrap() - query.created, iteration.took);
        assert_eq!(iteration.split.total(), iteration.took);
        assert!(iteration.ideal <= iteration.took && iteration.split.service >= Span::from_us(50 * 3 * 2));
    }
    for rank in run.ranks.iter().filter(|rank| rank.group == 0) {
        assert_eq!(rank.computed, Span::from_us(50 * 3 * 3 * 2), "{rank:?}");
        assert!(rank.exposed <= rank.waited && rank.computed + rank.exposed <= rank.took, "{rank:?}");
    }
}

/// The sum of all waiting in NICs and switches on the critical paths, by iteration.
fn queued(run: &Run) -> Vec<Span> {
    let of = |split: &Split| split.nic + split.tier.into_iter().sum();
    run.iterations.iter().map(|iteration| of(&iteration.split)).collect()
}

/// Where messages on the critical paths waited, by iteration.
fn waited(run: &Run) -> Vec<Vec<(&str, Span)>> {
    let of = |index: u64| run.path_waits.iter().filter(move |wait| wait.index == index);
    let iterations = run.iterations.iter().map(|iteration| iteration.index);
    iterations.map(|index| of(index).map(|wait| (wait.at.as_str(), wait.waited)).collect()).collect()
}

#[test]
fn messages_of_the_critical_path_wait_at_links_by_name() {
    // In the second round, two messages of 64 packets share the link to the spine, so the last packet waits for 64.
    let text = |more: &str, spines: u32| {
        format!(
            "version = 1\ntitle = 't'\n[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = {spines}\n\
             hosts_per_leaf = 2\nrate = '100Gbps'\nfabric_rate = '100Gbps'\ndelay = '1us'\n\
             [port.switch]\nbuffer = 'unlimited'\n\
             [transport]\nkind = 'datagram'\nsegment = '4096B'\nheader = '64B'\n{more}\n\
             [workload.w]\nkind = 'collective'\noperation = 'all-reduce'\nalgorithm = 'recursive-doubling'\n\
             size = '256KiB'\n"
        )
    };
    let wait = Span::from_ps(64 * 4_160 * 80);
    let alone = run(&text("", 1));
    let found = waited(&alone);
    assert_eq!(found[0].len(), 1, "{found:?}");
    assert!(found[0][0].0.starts_with("leaf") && found[0][0].0.ends_with(" -> spine0"), "{found:?}");
    assert_eq!((found[0][0].1, queued(&alone)[0]), (wait, wait));
    // A pacer has the account of ports upwards, and a sprayed packet does not know its path.
    let paced = run(&text("[host]\npacer = { bucket = '8KB' }", 1));
    let found = waited(&paced);
    assert!(found[0].iter().any(|(at, _)| at.contains(" -> spine0 or leaf")), "{found:?}");
    let sprayed = run(&text("[paths]\nspray = {}", 2));
    let found = waited(&sprayed);
    assert!(found[0].iter().any(|(at, _)| *at == "leaf switches"), "{found:?}");
    assert_eq!(found[0].iter().map(|(_, waited)| *waited).sum::<Span>(), queued(&sprayed)[0]);
}

#[test]
fn every_transport_carries_a_job_on_any_threads() {
    for (case, transport) in [
        ("RoCE", "preset = 'hpcc'\n"),
        ("Ultra Ethernet", "preset = 'uet'\n"),
        ("NDP", "preset = 'ndp'\n"),
        ("Homa", "preset = 'homa'\n"),
    ] {
        let text = format!(
            "version = 1\ntitle = 't'\n{transport}[run]\nduration = '1s'\n\
             [topology]\nkind = 'leaf-spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 2\nrate = '10Gbps'\n\
             fabric_rate = '10Gbps'\ndelay = '2us'\n\
             [workload.sum]\nkind = 'collective'\noperation = 'all-reduce'\nalgorithm = 'double-tree'\nsize = '200KB'\n\
             chunks = 2\nrun = {{ iterations = 2, placement = 'random' }}\n\
             [workload.others]\nkind = 'all-to-all'\nload = 0.2\nsize = '20KB'\ncount = 50\n"
        );
        ends_on_any_threads(case, &text, None);
    }
    // TCP has no count of packets by type.
    let text = "version = 1\ntitle = 't'\n[run]\nduration = '1s'\n\
                [topology]\nkind = 'leaf-spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 2\nrate = '10Gbps'\n\
                fabric_rate = '10Gbps'\ndelay = '2us'\n\
                [workload.sum]\nkind = 'collective'\noperation = 'all-to-all'\nsize = '200KB'\n\
                run = { iterations = 3 }\n";
    let (alone, model) = (run(text), model(text, None, None));
    let sums =
        waited(&alone).iter().map(|waits| waits.iter().map(|(_, waited)| *waited).sum()).collect::<Vec<_>>();
    assert_eq!((alone.iterations.len(), &sums), (3, &queued(&alone)));
    assert!(sums.iter().all(|sum| !sum.is_zero()), "{sums:?}");
    for threads in [2, 4] {
        let parts = run_in_parts(&model, threads, &mut |_| true).expect("the scenario can be run");
        assert_eq!(Digest::of(&parts), alone.digest(), "{threads} threads");
        assert_eq!(parts.path_waits, alone.path_waits, "{threads} threads");
    }
}

#[test]
fn a_dragonfly_takes_the_hops_of_its_minimal_paths() {
    // Links 0 and 1 of group 0 are at router 0 and lead to groups 1 and 2, links 2 and 3 at router 1 to groups 3 and 4.
    for (to, links) in [("h1", 3), ("h3", 3), ("h2", 4), ("h6", 4), ("h7", 5)] {
        let run = run(&format!(
            "version = 1\ntitle = 'a dragonfly'\n\
             [topology]\nkind = 'dragonfly'\ngroups = 5\nrouters = 2\nhosts_per_router = 1\nglobal_links = 2\n\
             rate = '100Gbps'\ndelay = '1us'\nglobal_delay = '5us'\n\
             [transport]\nkind = 'datagram'\nsegment = '4096B'\nheader = '64B'\n\
             [workload.w]\nkind = 'collective'\noperation = 'broadcast'\nsize = '4096B'\nrun.hosts = ['h0', '{to}']\n"
        ));
        let global = if to == "h1" { Span::ZERO } else { Span::from_us(4) };
        let expected = (Span::from_ps(4_160 * 80) + Span::from_us(1)) * links + global;
        assert_eq!(run.iterations[0].took, expected, "{to}");
    }
}

#[test]
fn jobs_run_on_dragonflies_and_planes() {
    for topology in [
        "kind = 'dragonfly'\ngroups = 4\nrouters = 3\nhosts_per_router = 1\nglobal_links = 1",
        "kind = 'leaf-spine'\nleaves = 8\nspines = 4\nhosts_per_leaf = 3\nnics = 4\nplanes = true",
    ] {
        let text = format!(
            "version = 1\ntitle = 't'\npreset = 'uet'\n[run]\nduration = '1s'\n\
             [topology]\n{topology}\nrate = '10Gbps'\ndelay = '2us'\n\
             [workload.sum]\nkind = 'collective'\noperation = 'all-to-all'\nsize = '200KB'\nrun.iterations = 2\n"
        );
        ends_on_any_threads(topology, &text, None);
    }
}

#[test]
fn a_message_that_is_lost_for_good_leaves_its_iteration_open() {
    let lossy = "operation = 'all-reduce'\nsize = '1MiB'\nrun = { iterations = 5 }\n[run]\nduration = '100ms'\n\
                 [host]\nloss = 0.01";
    let run = collective(8, 100, lossy);
    let open: Vec<_> = run.queries.iter().filter(|query| query.completed.is_none()).collect();
    assert_eq!((open.len(), run.iterations.len()), (1, run.queries.len() - 1));
    assert!(run.messages.iter().any(|message| message.completed.is_none()));
    // Nothing was left to happen.
    assert!(run.end < Time::ZERO + Span::from_ms(100));
}

/// A storage cluster of eight hosts whose operations are alone in the network.
fn storage(keys: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'storage'\n[run]\nduration = '2s'\n\
         [topology]\nkind = 'rack'\nhosts = 8\nrate = '10Gbps'\ndelay = '1us'\n\
         [transport]\nkind = 'datagram'\nsegment = '960B'\nheader = '40B'\n\
         [workload.objects]\nkind = 'storage'\nsize = '96KB'\nload = '5Mbps'\ncount = 40\nrequest = '960B'\n{keys}\n"
    ))
}

#[test]
fn operations_of_storage_take_the_time_of_their_messages() {
    // A message of n full packets takes n + 1 packet times of 0.8 us and 2 us of propagation.
    let message = |packets: u64| Span::from_ns((packets + 1) * 800 + 2_000);
    for (keys, messages, bytes, expected) in [
        // A request, then the object.
        ("reads = 1", 1, 96_000, message(1) + message(100)),
        // The object to the primary, to two others one after the other from one NIC, and two answers.
        ("reads = 0\nreplicas = 3", 1, 96_000, message(100) + message(200) + message(1) + message(1)),
        ("reads = 0\nreplicas = 1", 1, 96_000, message(100) + message(1)),
        // Requests leave one after the other, and the answers of a part each share the last link.
        ("reads = 1\ndata_parts = 4\nparity_parts = 2", 4, 24_000, message(1) + message(100)),
        // Six parts of a quarter leave one after the other.
        ("reads = 0\ndata_parts = 4\nparity_parts = 2", 6, 24_000, message(150) + message(1)),
    ] {
        let run = storage(keys);
        assert_eq!((run.queries.len(), run.messages.len()), (40, 40 * messages), "{keys}");
        for message in &run.messages {
            assert_eq!((message.bytes, message.split.total()), (bytes, message.latency().unwrap()), "{keys}");
        }
        let took = |query: &QueryRecord| query.completed.unwrap() - query.created;
        let least = run.queries.iter().map(took).min().unwrap();
        let about = least.as_us_f64() / expected.as_us_f64();
        assert!((0.97..1.03).contains(&about), "{keys}: {least} for {expected}");
    }
}
