//! Presets: which value wins, where it comes from, and which presets exclude each other.

use std::path::Path;

use plimsoll_mechanisms::transports::Kind;
use plimsoll_scenario::model::{Model, QueueOrder};
use plimsoll_scenario::quantity::QueueLimit;
use plimsoll_scenario::{Overrides, Registry, Scenario, ScenarioError, presets};
use plimsoll_units::{Bytes, Span};

const BASE: &str = "version = 1\ntitle = 't'\n";
const RACK: &str = "[topology]\nkind = 'rack'\nhosts = 4\nrate = '10Gbps'\ndelay = '5us'\n\
    [workload.a]\nkind = 'rpc'\nrequest = '100B'\nresponse = '900B'\nload = 0.1\n[run]\nduration = '1s'\n";

fn parsed(head: &str, more: &str, set: &[&str]) -> Result<Scenario, Vec<ScenarioError>> {
    let set = set.iter().map(|text| (*text).to_owned()).collect();
    let overrides = Overrides { set, ..Overrides::default() };
    Scenario::parse_with("t.toml", &format!("{BASE}{head}{RACK}{more}"), Path::new("."), &overrides)
}

fn scenario(head: &str, more: &str, set: &[&str]) -> Scenario {
    parsed(head, more, set).unwrap_or_else(|errors| {
        panic!("{}", errors.iter().map(|error| format!("{error}\n")).collect::<String>())
    })
}

fn model(head: &str, more: &str, set: &[&str]) -> Model {
    scenario(head, more, set).points()[0].model.clone()
}

fn said(head: &str, more: &str, set: &[&str]) -> String {
    let errors = parsed(head, more, set).expect_err("it is wrong");
    errors.iter().map(|error| format!("{error}\n")).collect()
}

#[test]
fn every_preset_makes_a_scenario_without_an_error() {
    for (name, _) in presets() {
        let model = model(&format!("preset = '{name}'\n"), "[transport]\nsegment = '950B'\n", &[]);
        assert_eq!(model.transport.segment, Bytes::new(950), "{name}: a key beside a preset counts");
    }
}

/// The keys that three of the shipped schemes have by hand.
#[test]
fn presets_set_what_the_schemes_need() {
    let pfabric = model("preset = 'pfabric'\n", "", &[]);
    assert_eq!(pfabric.port.of_tier("tor").pfabric().map(|queue| queue.limit), Some(Bytes::new(36_000)));
    assert_eq!((pfabric.transport.min_rto, pfabric.transport.max_window), (Span::from_us(45), 23));
    let dctcp = model("preset = 'dctcp'\n", "", &[]);
    assert_eq!(dctcp.transport.kind, Kind::Dctcp);
    let linux = model("preset = 'linux'\n", "", &[]);
    assert_eq!((linux.transport.kind, linux.port.host.order), (Kind::Cubic, QueueOrder::FairPerFlow));
}

/// A threshold follows `topology.rate`, also where a sweep or `--set` changes it; other keys of its table can be set.
#[test]
fn thresholds_follow_the_rate() {
    let threshold = |set: &[&str]| {
        let shown = scenario("preset = 'dctcp'\n", "", set).points()[0].show();
        let line = shown.lines().find(|line| line.starts_with("threshold")).expect("a threshold").to_owned();
        let (value, place) = line.split_once("  # ").expect("a place");
        (value.trim().to_owned(), place.to_owned())
    };
    let rule =
        "preset dctcp:10, by topology.rate: { \"1Gbps\" = \"20 packets\", \"10Gbps\" = \"65 packets\" }";
    assert_eq!(threshold(&[]), ("threshold = \"65 packets\"".to_owned(), rule.to_owned()));
    assert_eq!(threshold(&["topology.rate=25Gbps"]).0, "threshold = \"163 packets\"");
    let own = threshold(&["port.switch.ecn.threshold=40KB", "port.switch.ecn.at=dequeue"]);
    assert_eq!(own, ("threshold = \"40KB\"".to_owned(), "--set".to_owned()));
    let swept = scenario("preset = 'dctcp'\n", "[sweep]\n'topology.rate' = ['1Gbps', '10Gbps']\n", &[]);
    let [slow, fast] = [0, 1].map(|point: usize| swept.points()[point].show());
    assert!(slow.contains("threshold = \"20 packets\"") && fast.contains("threshold = \"65 packets\""));
}

/// A variant's preset takes the place of the file's, and counts before the keys of the file, but not before its own.
#[test]
fn a_variant_may_be_a_preset() {
    let more = "[transport]\nkind = 'cubic'\n[port.switch]\nbuffer = '500 packets'\n\
                [variant.today]\n[variant.HULL]\npreset = 'hull'\nport.switch.phantom_queue.threshold = '3KB'\n\
                [variant.DCTCP]\npreset = 'dctcp'\n";
    let scenario = scenario("preset = 'linux'\n", more, &[]);
    let models: Vec<&Model> = scenario.points().iter().map(|point| &point.model).collect();
    let kinds: Vec<Kind> = models.iter().map(|model| model.transport.kind).collect();
    assert_eq!(kinds, [Kind::Cubic, Kind::Dctcp, Kind::Dctcp]);
    assert_eq!(models[0].transport.segment, Bytes::new(1448), "of linux");
    assert_eq!(models[1].transport.segment, Bytes::new(1460), "without linux");
    let queue = models[1].port.of_tier("tor").phantom_queue().expect("HULL has one");
    assert_eq!((queue.drain, queue.threshold), (0.95, Bytes::new(3_000)));
    assert!(models[1].host.pacer().is_some() && models[2].host.pacer().is_none());
    let shown = scenario.points()[1].show();
    assert!(shown.contains("# variant HULL, preset hull:"), "{shown}");
    assert_eq!(models[2].port.of_tier("tor").buffer, QueueLimit::Packets(500));
}

#[test]
fn a_setting_may_choose_a_preset() {
    let model = |set: &[&str]| model("preset = 'linux'\n", "[variant.v]\n", set);
    assert_eq!(model(&["preset=swift"]).transport.kind, Kind::Swift);
    assert_eq!(model(&["variant.v.preset=dctcp"]).transport.kind, Kind::Dctcp);
    let text = said("", "[sweep]\npreset = ['hull', 'dctcp']\n", &[]);
    assert!(text.contains("`preset` cannot be swept"), "{text}");
}

#[test]
fn a_transport_may_be_a_preset() {
    let more = "[transports.bulk]\npreset = 'linux'\npriority = 1\n\
                [workload.b]\nkind = 'transfer'\nsize = '1MB'\nload = 0.1\ntransport = 'bulk'\n";
    let model = model("preset = 'dctcp'\n", more, &[]);
    let (query, bulk) = (model.transport_of("a"), model.transport_of("b"));
    assert_eq!((query.kind, bulk.kind, bulk.priority), (Kind::Dctcp, Kind::Cubic, Some(1)));
    assert_eq!((query.min_rto, bulk.min_rto), (Span::from_secs(1), Span::from_ms(200)));
    assert_eq!(model.port.host.order, QueueOrder::FairPerFlow);
    assert!(model.port.of_tier("tor").ecn().is_some());
}

#[test]
fn presets_that_set_a_port_differently_are_named() {
    let more = "[transports.bulk]\npreset = 'linux'\n\
                [workload.b]\nkind = 'transfer'\nsize = '1MB'\nload = 0.1\ntransport = 'bulk'\n";
    let text = said("preset = 'detail'\n", more, &[]);
    assert!(
        text.contains(
            "the presets `detail` and `linux` set `port.host.order` differently: to priorities and to \
                       fair-per-flow"
        ),
        "{text}"
    );
    assert!(text.contains("t.toml:17:"), "{text}");
    // The key itself settles it.
    let own = format!("[port.host]\norder = 'priorities'\n{more}");
    assert_eq!(model("preset = 'detail'\n", &own, &[]).port.host.order, QueueOrder::Priorities);
}

#[test]
fn wrong_presets_and_transports_name_the_nearest() {
    let text = said("preset = 'hul'\n", "", &[]);
    for part in [
        "t.toml:3:10",
        "there is no preset `hul`",
        "detail, eqds, homa, hpcc, hull, linux",
        "did you mean `hull`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = said("preset = 7\n", "", &[]);
    assert!(text.contains("7 does not fit"), "{text}");
    let text = said("", "[transport]\nkind = 'bbr'\n", &[]);
    assert!(text.contains("`bbr` is not modelled; nearest: `swift`"), "{text}");
    assert!(text.contains("docs/modelled.md"), "{text}");
}

/// A controller from outside has its table beside the key.
#[test]
fn no_controller_is_called_like_the_key() {
    assert!(!Registry::may_be_controller("preset") && Registry::may_be_controller("own"));
}

/// The links of a graph file have their own rates.
#[test]
fn a_topology_without_a_rate_needs_the_key_itself() {
    let graph = |more: &str| {
        let text = format!(
            "{BASE}preset = 'dctcp'\n{more}[topology]\nkind = 'file'\npath = 'g.toml'\n[files.'g.toml']\n\
             text = '''\nhosts = ['h0', 'h1']\nswitches = ['s']\n[[link]]\nfrom = 'h0'\nto = 's'\nrate = '1Gbps'\n\
             delay = '1us'\n[[link]]\nfrom = 'h1'\nto = 's'\nrate = '1Gbps'\ndelay = '1us'\n'''\n\
             [workload.a]\nkind = 'flows'\nfrom = 'h0'\nto = 'h1'\nsize = '1KB'\n"
        );
        Scenario::parse("t.toml", &text, Path::new("."))
    };
    let errors = graph("").expect_err("no rate");
    let text = errors[0].to_string();
    assert!(text.contains("by `topology.rate`, which this topology does not have"), "{text}");
    let own = graph("[port.switch.ecn]\nthreshold = '30KB'\n");
    assert!(own.is_ok(), "{:?}", own.map(|_| ()).map_err(|errors| errors[0].to_string()));
}

/// The run of a preset is that of its keys, so results that are kept stay valid.
#[test]
fn a_preset_is_its_keys_by_hand() {
    for (preset, keys) in [
        ("dctcp", "transport.kind = 'dctcp'\nport.switch.ecn = { threshold = '20 packets' }\n"),
        (
            "hull",
            "transport.kind = 'dctcp'\nport.switch.phantom_queue = { drain = 0.95, threshold = '1KB' }\n\
             host.pacer = {}\n",
        ),
    ] {
        let of = |keys: &str| {
            let scenario = scenario("", &format!("[variant.v]\n{keys}"), &["topology.rate=1Gbps"]);
            let point = &scenario.points()[0];
            (point.canonical(), point.settings(), point.digest, point.settings_digest())
        };
        assert_eq!(of(&format!("preset = '{preset}'\n")), of(keys), "{preset}");
    }
}
