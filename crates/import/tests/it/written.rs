//! The folder of an import: its files, and that they are a scenario.

use std::fs;
use std::path::Path;

use plimsoll_import::capture::{CaptureFound, CaptureOptions, StartBy};
use plimsoll_import::out::{Form, Network, Writing, Written, files, write_folder};
use plimsoll_import::{Class, Found, Rate, Traffic};
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

fn written(found: &Found, form: Form, keep_names: bool) -> Written {
    let writing = Writing {
        sources: "a \"b\".pcap",
        form,
        network: Network::rack(found, keep_names),
        compared: &[],
        command: "plimsoll import capture x",
        version: "0",
        commit: None,
    };
    files(found, &writing).unwrap()
}

/// Writes the folder and reads its scenario.
fn scenario(folder: &Path, written: &Written) -> Scenario {
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
        let written = written(&found.found, Form::Replay, keep_names);
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
    let written = written(&found.found, Form::Model, false);
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
    let closed = self::written(&found.found, Form::Model, false);
    let scenario = self::scenario(&place.path().join("closed"), &closed);
    let Workload::ClosedLoop(closed) = &scenario.points()[0].model.workload["port-80-h1"] else {
        panic!("a closed loop");
    };
    assert_eq!(closed.outstanding, 1);
}

#[test]
fn rates_become_workloads_of_their_mean() {
    let place = tempfile::tempdir().unwrap();
    let rate = |source, destination, bits_per_second| Rate { source, destination, bits_per_second };
    let of = |name: &str, rates| Class { name: name.to_owned(), traffic: Traffic::Rates(rates) };
    let found = Found {
        hosts: (0..4).map(|number| format!("node{number}")).collect(),
        classes: vec![
            of("sent", vec![rate(Some(0), None, 4e8), rate(Some(1), None, 0.0)]),
            of("received", vec![rate(None, Some(2), 1e8)]),
            of("both", vec![rate(Some(0), Some(3), 2e8)]),
        ],
        duration: Span::from_secs(60),
        notes: Vec::new(),
    };
    let written = written(&found, Form::Replay, false);
    let scenario = scenario(&place.path().join("rates"), &written);
    let model = &scenario.points()[0].model;
    let names: Vec<&str> = model.workload.keys().map(String::as_str).collect();
    assert_eq!(names, ["sent", "received-h2", "both-h3"]);
    let Workload::AllToAll(sent) = &model.workload["sent"] else { panic!("all to all") };
    let link = plimsoll_units::Rate::from_gbps(10);
    assert_eq!(sent.load.bits_per_second(link), 1e8);
}

#[test]
fn a_folder_is_written_whole_or_not_at_all() {
    let place = tempfile::tempdir().unwrap();
    let found = imported(StartBy::Time);
    let written = written(&found.found, Form::Replay, false);
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
