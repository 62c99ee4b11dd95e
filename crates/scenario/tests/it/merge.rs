//! Variants, sweeps, `--set`, replicates, includes and tiers: which value wins, and what `show` says.

use std::path::Path;

use plimsoll_fabric::net::topology::FatTree;
use plimsoll_scenario::model::{HostSet, Model, Topology, Workload};
use plimsoll_scenario::quantity::{Load, QueueLimit};
use plimsoll_scenario::{Overrides, Point, Scenario};
use plimsoll_units::{Bytes, Rate, Span};

const BASE: &str = r#"
version = 1
title = "t"
[run]
duration = "1s"
[topology]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 4
rate = "1Gbps"
delay = "5us"
[port.switch]
buffer = "500 packets"
ecn = { threshold = "30KB", at = "dequeue" }
[port.spine]
buffer = "1MB"
[transport]
kind = "dctcp"
segment = "950B"
min_rto = "10ms"
[workload.small]
kind = "rpc"
request = "100B"
response = { kind = "uniform", min = "100B", max = "900B" }
load = 0.1
[workload.big]
kind = "transfer"
size = "10MB"
load = 0.2
"#;

fn load(more: &str, overrides: &Overrides) -> Scenario {
    let text = format!("{BASE}{more}");
    Scenario::parse_with("test.toml", &text, Path::new("."), overrides).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(|error| format!("{error}\n")).collect::<String>())
    })
}

fn points(more: &str) -> Vec<Point> {
    load(more, &Overrides::default()).points().to_vec()
}

fn set(settings: &[&str]) -> Overrides {
    Overrides { set: settings.iter().map(|text| (*text).to_owned()).collect(), ..Overrides::default() }
}

fn big_load(model: &Model) -> Load {
    match &model.workload["big"] {
        Workload::Transfer(transfer) => transfer.load,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_variants_there_is_one_named_base() {
    let points = points("");
    assert_eq!(points.len(), 1);
    let Point { variant, sweep, replicate, seed, id, model, .. } = &points[0];
    assert_eq!((variant.as_str(), sweep.len(), *replicate, *seed, id.as_str()), ("base", 0, 0, 1, "base"));
    assert_eq!(model.workload.keys().collect::<Vec<_>>(), ["small", "big"]);
    assert_eq!(model.run.drain, Span::from_secs(10));
}

#[test]
fn every_tier_has_a_complete_table() {
    let model = &points("")[0].model;
    assert_eq!(model.port.tier.keys().collect::<Vec<_>>(), ["leaf", "spine"]);
    assert_eq!(model.port.of_tier("leaf").buffer, QueueLimit::Packets(500));
    assert_eq!(model.port.of_tier("spine").buffer, QueueLimit::Bytes(Bytes::new(1_000_000)));
    assert!(model.port.of_tier("leaf").ecn().is_some() && model.port.of_tier("spine").ecn().is_some());
    assert!(model.port.host.ecn().is_none());
}

#[test]
fn a_variant_merges_tables_and_replaces_mechanisms() {
    let points = points(
        r#"
        [variant.A]
        port.switch.ecn = { threshold = "6KB" }
        transport.kind = "tcp"
        transport.ecn = "on"
        [variant.B]
        port.leaf.ecn = "off"
        workload.small.response = { kind = "exponential", mean = "1KB" }
        "#,
    );
    let ecn = points[0].model.port.of_tier("leaf").ecn().unwrap();
    assert_eq!(ecn.threshold.to_string(), "6KB");
    // The base's `at` went with its table.
    assert_eq!(ecn.at, plimsoll_mechanisms::ecn::MarkAt::Enqueue);
    assert_eq!(points[0].model.transport.segment, Bytes::new(950));
    assert!(points[1].model.port.of_tier("leaf").ecn().is_none());
    assert!(points[1].model.port.of_tier("spine").ecn().is_some());
}

#[test]
fn another_kind_replaces_the_whole_table() {
    let points = points(
        r#"
        [variant.A]
        workload.small = { kind = "incast", size = "1KB", every = "1ms" }
        topology = { kind = "fat-tree", k = 4, rate = "10Gbps", delay = "1us" }
        "#,
    );
    assert!(matches!(points[0].model.workload["small"], Workload::Incast(_)));
    // The base's `port.spine` is of no use in a fat-tree.
    assert_eq!(points[0].model.port.tier.keys().collect::<Vec<_>>(), ["edge", "aggregation", "core"]);
    assert!(matches!(points[0].model.topology, Topology::FatTree(FatTree { k: 4, .. })));
}

#[test]
fn a_phantom_queue_turns_off_the_marking_below_it() {
    let points = points("[variant.HULL]\nport.switch.phantom_queue = {}\n");
    let leaf = points[0].model.port.of_tier("leaf");
    assert!(leaf.phantom_queue().is_some() && leaf.ecn().is_none());
    assert!(points[0].model.port.switch.ecn().is_none());
    let shown = points[0].show();
    assert!(shown.contains("ecn = \"off\"") && shown.contains("# variant HULL, test.toml:"), "{shown}");
}

#[test]
fn sweeps_multiply_in_file_order() {
    let sweep = "[variant.A]\n[variant.B]\n[sweep]\n\"workload.big.load\" = [0.2, \"400Mbps\"]\nrun.seed = [1, 2, 3]\n";
    let points = points(sweep);
    assert_eq!(points.len(), 12);
    let ids: Vec<&str> = points.iter().take(4).map(|point| point.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "A_big.load-0.2_run.seed-1",
            "A_big.load-0.2_run.seed-2",
            "A_big.load-0.2_run.seed-3",
            "A_big.load-400Mbps_run.seed-1"
        ]
    );
    assert_eq!(big_load(&points[3].model), Load::Rate(Rate::from_mbps(400)));
    assert_eq!(points[4].seed, 2);
    assert_eq!(points[3].sweep[0], ("workload.big.load".to_owned(), "400Mbps".to_owned()));
    assert_eq!(points[11].label(), "B, workload.big.load = 400Mbps, run.seed = 3");
}

#[test]
fn set_comes_last() {
    let more = "[variant.A]\nworkload.big.load = 0.3\n[sweep]\n\"workload.big.load\" = [0.2]\n";
    let scenario =
        load(more, &set(&["workload.big.load=0.7", "transport.recovery=newreno", "title=other words"]));
    let point = &scenario.points()[0];
    assert_eq!(big_load(&point.model), Load::Share(0.7));
    assert_eq!(point.model.transport.recovery, plimsoll_mechanisms::tcp::Recovery::NewReno);
    assert_eq!(scenario.title(), "other words");
    assert!(point.show().contains("load = 0.7            # --set"), "{}", point.show());
}

#[test]
fn set_reaches_into_variants_and_the_sweep() {
    let more =
        "[variant.A]\nworkload.big.load = 0.3\n[variant.B]\n[sweep]\n\"workload.small.load\" = [0.1]\n";
    let scenario =
        load(more, &set(&["variant.A.workload.big.load=0.4", "sweep.\"workload.small.load\"=[0.1, 0.2]"]));
    assert_eq!(scenario.points().len(), 4);
    assert_eq!(big_load(&scenario.points()[0].model), Load::Share(0.4));
    assert_eq!(big_load(&scenario.points()[2].model), Load::Share(0.2));
}

/// Points of a sweep have the values that their labels name, so a key that is set is not swept.
#[test]
fn a_setting_of_a_swept_key_ends_its_sweep() {
    let sweep = |keys: &str| format!("[variant.A]\n[variant.B]\n[sweep]\n{keys}\n");
    let loads = "\"workload.big.load\" = [0.2, 0.4]\nrun.seed = [1, 2]";
    let ids = |keys: &str, set_: &[&str]| -> Vec<String> {
        load(&sweep(keys), &set(set_)).points().iter().map(|point| point.id.clone()).collect()
    };
    for (setting, expected) in [
        ("workload.big.load=0.7", &["A_run.seed-1", "A_run.seed-2", "B_run.seed-1", "B_run.seed-2"][..]),
        // A table that names the key ends its sweep, as does one that replaces the table whole.
        ("workload.big={load=0.7}", &["A_run.seed-1", "A_run.seed-2", "B_run.seed-1", "B_run.seed-2"]),
        (
            "workload.big={kind='flows',from=['h1'],to='h0'}",
            &["A_run.seed-1", "A_run.seed-2", "B_run.seed-1", "B_run.seed-2"],
        ),
    ] {
        assert_eq!(ids(loads, &[setting]), expected, "{setting}");
    }
    // Without an axis there is no sweep, and the run has the value alone.
    let both = load(&sweep(loads), &set(&["workload.big.load=0.7", "run.seed=3"]));
    assert_eq!(both.points().iter().map(|point| point.id.as_str()).collect::<Vec<_>>(), ["A", "B"]);
    let alone = load("[variant.A]\n", &set(&["workload.big.load=0.7", "run.seed=3"]));
    assert_eq!(both.points()[0].digest, alone.points()[0].digest);
    let seeded = load(&sweep(loads), &Overrides { seed: Some(3), ..Overrides::default() });
    assert_eq!(seeded.points().len(), 4);
    assert_eq!(
        (seeded.points()[1].label().as_str(), seeded.points()[1].seed),
        ("A, workload.big.load = 0.4", 3)
    );
    // Other keys of the table, and keys within swept tables, leave the sweep.
    assert_eq!(ids(loads, &["workload.big={size='9KB'}"]).len(), 8);
    let tables =
        "\"port.switch.ecn\" = [{ threshold = \"9KB\" }, { threshold = \"12KB\", at = \"dequeue\" }]";
    let within = load(&sweep(tables), &set(&["port.switch.ecn.threshold='6KB'"]));
    let labels: Vec<String> = within.points().iter().take(2).map(Point::label).collect();
    assert_eq!(
        labels,
        [
            "A, port.switch.ecn = { threshold = \"6KB\" }",
            "A, port.switch.ecn = { threshold = \"6KB\", at = \"dequeue\" }"
        ]
    );
}

#[test]
fn replicates_have_seeds_of_their_own() {
    let overrides = Overrides { seed: Some(7), replicates: 3, ..Overrides::default() };
    let scenario = load("", &overrides);
    let seeds: Vec<u64> = scenario.points().iter().map(|point| point.seed).collect();
    assert_eq!(seeds[0], 7);
    assert!(seeds[1] != seeds[2] && seeds[1] != 7 && seeds[1] < 1 << 53);
    let ids: Vec<&str> = scenario.points().iter().map(|point| point.id.as_str()).collect();
    assert_eq!(ids, ["base", "base_r1", "base_r2"]);
    for point in scenario.points() {
        assert_eq!(point.seed, point.model.run.seed);
        assert_eq!(point.seed, plimsoll_scenario::replicate_seed(7, point.replicate));
    }
    // A replicate can be repeated by its seed alone.
    let again = load("", &Overrides { seed: Some(seeds[2]), ..Overrides::default() });
    assert_eq!(again.points()[0].digest, scenario.points()[2].digest);
}

#[test]
fn the_digest_is_of_what_counts() {
    let digest = |more: &str| points(more)[0].digest;
    assert_eq!(digest(""), digest("# a comment\n"));
    assert_eq!(digest(""), digest("[variant.base]\nrun.seed = 1\n"));
    assert_ne!(digest(""), digest("[variant.base]\nrun.seed = 2\n"));
    assert_ne!(digest(""), digest("[variant.base]\nport.leaf.buffer = \"499 packets\"\n"));
}

#[test]
fn includes_lie_below() {
    let directory = tempfile::tempdir().unwrap();
    let base = BASE.replace("title = \"t\"", "title = \"base\"");
    std::fs::create_dir(directory.path().join("shared")).unwrap();
    std::fs::write(directory.path().join("shared/base.toml"), base + "[variant.X]\nrun.seed = 5\n").unwrap();
    let text = "include = \"shared/base.toml\"\ntitle = \"mine\"\n[port.switch]\necn = \"off\"\n\
                [variant.X]\nrun.warmup = \"1ms\"\n";
    let text = format!("{text}transport.kind = \"tcp\"\n");
    std::fs::write(directory.path().join("mine.toml"), &text).unwrap();
    let scenario = Scenario::load(directory.path().join("mine.toml")).unwrap();
    let model = &scenario.points()[0].model;
    assert_eq!((model.title.as_str(), model.run.seed, model.run.warmup), ("mine", 5, Span::from_ms(1)));
    assert!(model.port.of_tier("leaf").ecn().is_none());
    assert!(scenario.points()[0].show().contains("shared/base.toml:"));
}

#[test]
fn what_is_shown_parses_back() {
    let more = "[variant.HULL]\nport.switch.phantom_queue = {}\nhost.pacer = {}\n[variant.B]\n\
                workload.small.servers = [\"h1\", \"h2\"]\n[observe.queue]\n\
                \"two words\" = { port = \"client\", every = \"1ms\" }\n";
    for point in points(more) {
        for text in [point.show(), point.canonical()] {
            let again = Scenario::parse("shown", &text, Path::new("."))
                .unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
            assert_eq!(again.points()[0].model, point.model);
            assert_eq!(again.points()[0].digest, point.digest);
            assert_eq!(again.points()[0].canonical(), point.canonical());
        }
    }
}

#[test]
fn hosts_resolve() {
    let model = &points("")[0].model;
    let topology = &model.topology;
    assert_eq!(topology.host_count(), 8);
    assert_eq!(HostSet::Others.resolve(topology, Some(0)).unwrap(), [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(HostSet::Selector("h2..h4".to_owned()).resolve(topology, None).unwrap(), [2, 3, 4]);
    assert_eq!(HostSet::Selector("h7".to_owned()).resolve(topology, None).unwrap(), [7]);
    assert_eq!(topology.host("client"), Some(0));
    for name in ["h8", "h08", "h+1", "h", "", "server"] {
        assert_eq!(topology.host(name), None, "{name}");
    }
}

#[test]
fn settings_are_what_a_point_sets_without_defaults_or_words() {
    let text = "[host]\npacer = {}\n[variant.A]\nworkload.small.load = 0.3\n";
    let scenario = load(text, &set(&["transport.min_rto=10000us"]));
    let point = &scenario.points()[0];
    let settings = point.settings();
    for line in [
        "run.seed = 1",
        "transport.min_rto = \"10ms\"",
        "[host.pacer]",
        "workload.small.response.max = \"900B\"",
    ] {
        assert!(settings.lines().any(|known| known == line), "no {line} in\n{settings}");
    }
    for word in ["title", "drain", "beta"] {
        assert!(!settings.contains(word), "{word} in\n{settings}");
    }
    let digest = |more: &str, set_: &[&str]| load(more, &set(set_)).points()[0].settings_digest();
    assert_eq!(digest("", &[]), digest("", &["transport.min_rto=10000us"]));
    assert_ne!(digest("", &[]), digest("", &["transport.min_rto=11ms"]));
    assert_ne!(digest("", &[]), digest("", &["run.seed=2"]));
}

/// A variant's table of a mechanism takes the base's place with all its keys, in every section that has mechanisms.
#[test]
fn a_variant_replaces_a_mechanism_whole_wherever_it_is_named() {
    let with = |variant: &str| {
        let base =
            "[host]\nqjump = { packet = \"512B\" }\n[paths]\nflowlet = { gap = \"7us\", entries = 512 }\n";
        points(&format!("{base}[variant.A]\n{variant}\n"))[0].model.clone()
    };
    let kept = with("run.seed = 1");
    assert_eq!(kept.host.qjump().unwrap().packet, Bytes::new(512));
    let qjump = with("host.qjump = { epsilon = \"9us\" }");
    let qjump = qjump.host.qjump().unwrap();
    assert_eq!((qjump.epsilon, qjump.packet), (Span::from_us(9), Bytes::new(256)));
    let flowlet = with("paths.flowlet = { gap = \"3us\" }");
    let flowlet = flowlet.paths.flowlet().unwrap();
    assert_eq!(flowlet.gap, Span::from_us(3));
    assert_ne!(flowlet.entries, kept.paths.flowlet().unwrap().entries);
    let pfabric = points(
        "[variant.A]\nport.leaf.pfabric = { limit = \"9KB\" }\n[variant.B]\nport.leaf.pfabric = {}\n\
         port.switch.pfabric = { limit = \"9KB\" }\n",
    );
    let of_leaf = |index: usize| *pfabric[index].model.port.of_tier("leaf").pfabric().unwrap();
    assert_ne!(of_leaf(0), of_leaf(1));
    assert_eq!(of_leaf(1), plimsoll_mechanisms::pfabric::PfabricParams::default());
}

/// Of the keys of queue pairs a variant changes what it names, and the table of a controller as one.
#[test]
fn a_variant_changes_single_keys_of_queue_pairs() {
    let roce = |variant: &str| {
        let base = "[transport.roce]\nwindow = \"bdp\"\n\
                    dcqcn = { timer = \"55us\", gain = 0.5 }\n";
        points(&format!("{base}[variant.A]\ntransport.kind = \"dcqcn\"\n{variant}\n"))[0]
            .model
            .transport
            .roce
            .clone()
    };
    let kept = roce("transport.roce.timeout = \"9ms\"");
    assert_eq!((kept.timeout, kept.dcqcn.timer, kept.dcqcn.gain), (Span::from_ms(9), Span::from_us(55), 0.5));
    let replaced = roce("transport.roce = { dcqcn = { gain = 0.25 } }");
    assert_eq!((replaced.window, replaced.dcqcn.gain), (kept.window, 0.25));
    assert_ne!(replaced.dcqcn.timer, kept.dcqcn.timer);
}

/// `--set` of a parameter of a mechanism that one variant turns off is a warning there, for every mechanism.
#[test]
fn a_setting_of_a_mechanism_that_is_off_in_one_variant_is_a_warning() {
    let more = "[host]\nqjump = {}\npacer = {}\n[paths]\nspray = {}\n[port.host]\npfabric = {}\n\
                [variant.On]\n[variant.Off]\nhost.qjump = \"off\"\nhost.pacer = \"off\"\n\
                paths.spray = \"off\"\nport.host.pfabric = \"off\"\n";
    for setting in [
        "host.qjump.epsilon=2us",
        "host.pacer.bucket=4KB",
        "paths.spray.by=round-robin",
        "port.host.pfabric.limit=30KB",
    ] {
        let scenario = load(more, &set(&[setting]));
        let key = setting.split_once('=').unwrap().0;
        let warnings: Vec<String> =
            scenario.warnings().iter().map(|warning| warning.message.clone()).collect();
        let mechanism = key.rsplit_once('.').unwrap().0;
        let expected = format!("no effect in variant `Off`, where `{mechanism}` is off");
        assert!(warnings.contains(&expected), "{setting}: {warnings:?}");
        assert!(scenario.points()[0].canonical().contains(setting.split_once('=').unwrap().1), "{setting}");
    }
}

/// A variant may give a distribution another kind, whichever key of a workload it is.
#[test]
fn a_variant_replaces_a_distribution_whole_whatever_its_key() {
    let more = r#"
        [workload.rounds]
        kind = "barrier"
        workers = ["h1", "h2"]
        size = "1KB"
        rounds = 3
        compute = { kind = "exponential", mean = "1ms" }
        [workload.asked]
        kind = "closed-loop"
        clients = ["h3"]
        servers = ["h4"]
        request = { kind = "exponential", mean = "1KB" }
        response = "1KB"
        think = { kind = "exponential", mean = "1ms" }
        [variant.A]
        workload.rounds.compute = { kind = "uniform", min = "1ms", max = "2ms" }
        workload.asked.request = { kind = "uniform", min = "1KB", max = "2KB" }
        workload.asked.think = { kind = "uniform", min = "1ms", max = "2ms" }
        "#;
    let shown = points(more)[0].canonical();
    assert!(!shown.contains("exponential"), "{shown}");
    assert_eq!(shown.matches("kind = \"uniform\"").count(), 4, "{shown}");
}

/// A key of `[transport]` that has moved is read at its former place, and the digests of runs do not depend on the
/// place.
#[test]
fn a_moved_key_gives_the_same_run_at_either_place() {
    for (former, present) in [
        ("dctcp_gain=0.125", "dctcp.gain=0.125"),
        ("initial_alpha=0.5", "dctcp.initial_alpha=0.5"),
        ("cubic_c=0.5", "cubic.c=0.5"),
        ("cubic_beta=0.8", "cubic.beta=0.8"),
        ("fast_convergence=false", "cubic.fast_convergence=false"),
    ] {
        let [former, present] = [former, present].map(|key| load("", &set(&[&format!("transport.{key}")])));
        let (old, new) = (&former.points()[0], &present.points()[0]);
        assert_eq!(old.model, new.model);
        assert_eq!((old.digest, old.settings_digest()), (new.digest, new.settings_digest()));
        assert_ne!(old.digest, points("")[0].digest);
        assert_eq!(former.warnings().len(), present.warnings().len() + 1);
        assert!(new.canonical().contains("[transport.dctcp]"), "{}", new.canonical());
    }
    // The key of the higher layer counts, whatever its place.
    let gain = |file: &str, setting| load(file, &set(&[setting])).points()[0].model.transport.dctcp.gain;
    assert_eq!(gain("[transport.dctcp]\ngain = 0.25\n", "transport.dctcp_gain=0.125"), 0.125);
    let variant = "[variant.V]\ntransport.dctcp_gain = 0.25\n";
    assert_eq!(gain(variant, "transport.dctcp.gain=0.125"), 0.125);
}

/// A transport with a name is laid over `[transport]`; variants, the sweep and `--set` reach its keys and its users.
#[test]
fn a_named_transport_is_laid_over_the_one_of_all() {
    let more = "[transports.bulk]\nkind = \"cubic\"\ncubic.beta = 0.8\n\
                [workload.backup]\nkind = \"transfer\"\nsize = \"1MB\"\nload = 0.1\ntransport = \"bulk\"\n\
                [variant.A]\n[variant.B]\ntransports.bulk = { kind = \"tcp\", segment = \"1400B\", priority = 3 }\n\
                workload.backup.transport = \"bulk\"\nworkload.big.transport = \"bulk\"\n";
    let scenario = load(more, &set(&["transport.ack_every=1", "transports.bulk.min_rto=20ms"]));
    let [a, b] = [0, 1].map(|point| &scenario.points()[point].model);
    let (backup, small) = (a.transport_of("backup"), a.transport_of("small"));
    assert_eq!((backup.kind.name(), small.kind.name()), ("cubic", "dctcp"));
    assert_eq!((backup.segment, backup.ack_every, backup.cubic.beta), (small.segment, 1, 0.8));
    assert_eq!((backup.min_rto, small.min_rto), (Span::from_ms(20), Span::from_ms(10)));
    assert!(a.transport_config("small").unwrap().ecn && !a.transport_config("backup").unwrap().ecn);
    assert_eq!((b.transport_of("big").kind.name(), b.transport_of("backup").cubic.beta), ("tcp", 0.8));
    assert_eq!((b.packet_bytes(), a.packet_bytes()), (1440, 990));
    assert_eq!((b.priority_of("big"), b.priority_of("small"), b.priorities_in_use()), (Some(3), None, 2));
    // The canonical form parses back to the same model.
    for point in scenario.points() {
        let again = Scenario::parse("again.toml", &point.canonical(), Path::new(".")).unwrap();
        assert_eq!(again.points()[0].model, point.model, "{}", point.canonical());
        assert_eq!(again.points()[0].digest, point.digest);
    }
    let moved = load(more, &set(&["workload.backup.transport=bulk", "transport.ack_every=1"]));
    assert_ne!(moved.points()[0].digest, moved.points()[1].digest);
}
