//! The folder of an import: its files, and that they are a scenario.

use std::fs;
use std::path::Path;

use plimsoll_import::capture::{CaptureFound, CaptureOptions, StartBy};
use plimsoll_import::out::{ImportWriting, ImportedNetwork, TrafficForm, WrittenImport, files, write_folder};
use plimsoll_import::{ClassTraffic, FoundFlow, HostRates, ImportFound, TrafficClass};
use plimsoll_scenario::Scenario;
use plimsoll_scenario::model::Workload;
use plimsoll_units::Span;

use crate::made::{ACK, Tape};

/// A hundred requests of two clients to a server, which wait for responses or not, and a flow.
fn imported(starts: StartBy) -> CaptureFound {
    let mut tape = Tape::new();
    for number in 0..100u32 {
        let client = (1 + number as u8 % 2, 40_000);
        let (to, back) = ((client, (9, 80)), ((9, 80), client));
        let (us, of) = (u64::from(number) * 1_000, number / 2);
        tape.tcp(us, to, ACK, (1 + of * 50, 1 + of * 1_000), 50);
        tape.tcp(us + 300, back, ACK, (1 + of * 1_000, 51 + of * 50), 1_000);
        tape.tcp(us + 301, to, ACK, (51 + of * 50, 1_001 + of * 1_000), 0);
    }
    tape.tcp(100_000, ((2, 50_000), (1, 22)), ACK, (1, 1), 1_234);
    tape.read_with(&CaptureOptions { starts, ..CaptureOptions::default() })
}

fn written(found: &ImportFound, form: TrafficForm, keep_names: bool) -> WrittenImport {
    files(found, &ImportWriting { form, network: ImportedNetwork::rack(found, keep_names), ..writing() })
        .unwrap()
}

fn writing() -> ImportWriting<'static> {
    ImportWriting {
        sources: "a \"b\".pcap",
        form: TrafficForm::Replay,
        network: ImportedNetwork::default(),
        compared: &[],
        command: "plimsoll import capture x",
        version: "0",
        commit: None,
    }
}

/// Writes the folder and reads its scenario.
fn scenario(folder: &Path, written: &WrittenImport) -> Scenario {
    write_folder(folder, &written.files).unwrap();
    let path = folder.join("scenario.toml");
    let text = fs::read_to_string(&path).unwrap();
    Scenario::parse("scenario.toml", &text, folder).unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]))
}

#[test]
fn a_replay_has_every_message() {
    let place = tempfile::tempdir().unwrap();
    for (name, keep_names) in [("plain", false), ("named", true)] {
        let found = imported(StartBy::Response);
        let written = written(&found.found, TrafficForm::Replay, keep_names);
        let scenario = scenario(&place.path().join(name), &written);
        let model = &scenario.points()[0].model;
        let Workload::RequestList(requests) = &model.workload["port-80"] else {
            panic!("a list of requests")
        };
        let Workload::FlowList(flows) = &model.workload["port-22"] else { panic!("a list of flows") };
        assert_eq!((requests.requests.len(), flows.flows.len()), (100, 1));
        let text = fs::read_to_string(place.path().join(name).join("port-80.csv")).unwrap();
        assert_eq!(text.contains("10.0.0.9"), keep_names, "addresses are kept only if asked for");
        let page = fs::read_to_string(place.path().join(name).join("import.html")).unwrap();
        for part in ["port-80", "Assumed", "a rack of 3 hosts", "plimsoll import capture x"] {
            assert!(page.contains(part), "no {part}");
        }
    }
}

#[test]
fn a_model_has_its_load_and_says_where_it_does_not_fit() {
    let place = tempfile::tempdir().unwrap();
    let found = imported(StartBy::Time);
    let written = written(&found.found, TrafficForm::Model, false);
    let scenario = scenario(&place.path().join("open"), &written);
    let model = &scenario.points()[0].model;
    assert_eq!(model.run.duration, Some(found.found.duration));
    let Workload::Rpc(rpc) = &model.workload["port-80-h0"] else { panic!("an open loop") };
    // 50 responses of 1,000 B in 100 ms.
    let mbps = rpc.load.bits_per_second(plimsoll_units::Rate::from_gbps(10)) / 1e6;
    assert!((mbps - 4.0).abs() < 0.01, "{mbps}");
    assert!(matches!(model.workload["port-22-h0"], Workload::Transfer(_)));
    // Requests every millisecond are no Poisson process.
    let warnings = written.findings.warnings.join("\n");
    assert!(
        warnings.contains("port-80: the model is no good fit") && warnings.contains("--as replay"),
        "{warnings}"
    );

    let found = imported(StartBy::Response);
    let closed = self::written(&found.found, TrafficForm::Model, false);
    let scenario = self::scenario(&place.path().join("closed"), &closed);
    let Workload::ClosedLoop(closed) = &scenario.points()[0].model.workload["port-80-h1"] else {
        panic!("a closed loop");
    };
    assert_eq!(closed.outstanding, 1);
}

#[test]
fn rates_become_flows_by_weights_of_hosts() {
    let place = tempfile::tempdir().unwrap();
    let rates = |host, sent, received| HostRates { host, sent, received };
    let of = |name: &str, rates| TrafficClass { name: name.to_owned(), traffic: ClassTraffic::Rates(rates) };
    let found = ImportFound {
        hosts: (0..4).map(|number| format!("node{number}")).collect(),
        classes: vec![
            of("sent", vec![rates(0, Some(4e8), None), rates(1, Some(1e8), None)]),
            of("both", vec![rates(0, Some(2e8), None), rates(3, None, Some(2e8))]),
        ],
        duration: Span::from_secs(60),
        notes: Vec::new(),
    };
    let written = written(&found, TrafficForm::Replay, false);
    let scenario = scenario(&place.path().join("rates"), &written);
    let model = &scenario.points()[0].model;
    let of = |name: &str| {
        let Workload::AllToAll(flows) = &model.workload[name] else { panic!("all to all") };
        let weights = flows.weighted.iter().map(|of| [of.send, of.receive].map(|rate| rate.as_bps()));
        (flows.load.bits_per_second(plimsoll_units::Rate::from_gbps(10)), weights.collect::<Vec<_>>())
    };
    let (load, weights) = of("sent");
    assert_eq!(load, 1.25e8);
    assert_eq!(weights.iter().map(|[send, _]| *send).collect::<Vec<_>>(), [400_000_000, 100_000_000, 0, 0]);
    assert!(weights.iter().all(|[_, receive]| *receive > 0));
    assert_eq!(of("both").1, [[200_000_000, 0], [0, 0], [0, 0], [0, 200_000_000]]);
    let closing = &written.findings.closing;
    assert!(
        closing.contains("assumed: both: a gravity model: hosts send and receive their own rates"),
        "{closing}"
    );
}

/// Flows of one instant have no load, and flows of a nanosecond have a load that no link carries.
#[test]
fn a_load_above_any_link_is_a_warning() {
    let flow = FoundFlow { start: Span::ZERO, end: Span::ZERO, source: 0, destination: 1, bytes: 1_000 };
    let found = |duration| ImportFound {
        hosts: vec!["a".to_owned(), "b".to_owned()],
        classes: vec![TrafficClass { name: "all".to_owned(), traffic: ClassTraffic::Flows(vec![flow]) }],
        duration,
        notes: Vec::new(),
    };
    let warnings =
        |duration| written(&found(duration), TrafficForm::Replay, false).findings.warnings.join("\n");
    assert_eq!(warnings(Span::from_ms(1)), "");
    assert!(warnings(Span::ZERO).starts_with("all traffic is of one instant, so it has no load"));
    let short = warnings(Span::from_ns(1));
    assert!(short.contains("8000 Gb/s on average, more than a link of 400Gbps carries"), "{short}");
    let network = ImportedNetwork::rack(&found(Span::ZERO), false);
    let writing = ImportWriting { form: TrafficForm::Model, network, ..writing() };
    let error = files(&found(Span::ZERO), &writing).unwrap_err().to_string();
    assert!(error.starts_with("all traffic is of one instant: a model needs a rate"), "{error}");
}

#[test]
fn a_folder_is_written_whole_or_not_at_all() {
    let place = tempfile::tempdir().unwrap();
    let found = imported(StartBy::Time);
    let written = written(&found.found, TrafficForm::Replay, false);
    let folder = place.path().join("a/b");
    fs::create_dir_all(&folder).unwrap();
    write_folder(&folder, &written.files).unwrap();
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 4);
    // The folder is not empty any more.
    let error = write_folder(&folder, &written.files).unwrap_err().to_string();
    assert!(error.contains("not empty"), "{error}");
    // A file that cannot be written.
    let mut bad = written.files;
    bad[0].name = "no/such/folder".to_owned();
    assert!(write_folder(&place.path().join("bad"), &bad).is_err());
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a"]);
}
