use plimsoll_breakdown::{
    Cost, Flow, ListeningPort, PARTS, Part, PartSpan, Request, RequestRecorder, SlowRequest, Target,
    Unmatched,
};

use super::*;

/// A trace of requests with 1 us in the kernel and a growing time in the application.
fn traced(requests: u64) -> Traced {
    let mut recorder = RequestRecorder::new(10);
    for number in 0..requests {
        let (received, application) = (1_000_000 * number, 10_000 * (number + 1));
        let at = received + 1_000;
        let mut parts = [0; PARTS];
        (parts[Part::Receive as usize], parts[Part::Application as usize]) = (1_000, application);
        recorder.add(Request {
            flow: Flow::from_bits(number << 16),
            reader: 7,
            sender: 8,
            bytes_in: 40,
            bytes_out: 1_000,
            packets_in: 1,
            packets_out: 1,
            spans: vec![
                PartSpan { part: Part::Receive, from: received, to: at },
                PartSpan { part: Part::Application, from: at, to: at + application },
            ],
            parts,
            received,
            latency: 1_000 + application,
        });
    }
    let target = Target {
        ports: vec![ListeningPort { number: 11_211, is_udp: false }],
        processes: vec![42],
        name: "server".to_owned(),
        network: 1,
    };
    Traced {
        report: recorder.report(&Unmatched::default(), 2.0),
        target,
        link_bps: Some(1_000_000_000),
        sample: 1,
        duty: 0.25,
        lost_records: 3,
        records: 97,
        locks: Vec::new(),
        profile: Err("no clock".to_owned()),
        cost: None,
        first: Vec::new(),
        ended: None,
    }
}

#[test]
fn findings_have_parts_layers_and_the_slowest_requests() {
    let findings = findings(&traced(4), 2);
    let titles: Vec<&str> = findings.grids.iter().map(|grid| grid.title.as_str()).collect();
    assert_eq!(titles, ["Parts of a request", "Layers", "Slowest requests"]);
    assert_eq!(findings.grids[2].rows.len(), 2);
    assert_eq!(findings.grids[2].rows[0].cells[3].value, "application 40.0 us");
    for grid in &findings.grids {
        assert!(grid.rows.iter().all(|row| row.cells.len() == grid.columns.len()), "{}", grid.title);
    }
    assert!(findings.sentence.starts_with("4 requests in 2.00 s of tracing"), "{}", findings.sentence);
    let said = findings.warnings.join("\n");
    for part in
        ["3 of 100 records were lost", "needs at least 1000 requests (has 4)", "not sampled: no clock"]
    {
        assert!(said.contains(part), "{said}");
    }
    let markdown = findings.to_markdown();
    assert!(markdown.contains("\n**Warning:** 3 of 100"), "{markdown}");
}

#[test]
fn json_has_the_report_between_the_server_and_the_locks() {
    let whole: Value = serde_json::from_str(&json(&traced(4))).expect("it is JSON");
    let keys: Vec<&str> = whole.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(&keys[..3], ["server", "processes", "ports"]);
    assert_eq!(&keys[keys.len() - 2..], ["locks", "profile"]);
    assert_eq!((&whole["requests"], &whole["cost"]), (&json!(4), &Value::Null));
    assert!(whole["serialisation_ns"].as_f64() > Some(0.0), "{whole}");
}

#[test]
fn the_timeline_has_each_request_once() {
    let mut traced = traced(3);
    let slow: Vec<SlowRequest> = traced.report.slowest.clone();
    traced.first = slow;
    let whole: Value = serde_json::from_str(&timeline(&traced)).expect("it is JSON");
    let events = whole["traceEvents"].as_array().expect("events");
    let named = |name: &str| events.iter().filter(|event| event["name"] == name).count();
    assert_eq!((named("request"), named("thread_name"), events.len()), (3, 3, 1 + 3 + 3 * 3));
}

#[test]
fn a_page_has_the_cost_of_tracing() {
    let cost = Cost {
        requests: 4,
        runs: 9.0,
        kernel_ns: 4_000.0,
        scheduler_processors: 0.01,
        server_ns: 12_000.0,
        own_processors: 0.02,
    };
    let traced = Traced { cost: Some(cost), ..traced(4) };
    let page = page(&traced, 2, "plimsoll breakdown --port 11211", "0.1.0", None);
    assert!(page.contains("50.0 % of the 8.00 us that the server takes without it"), "{page}");
    assert!(findings(&traced, 2).warnings.iter().any(|warning| warning.contains("`--duty 10%`")));
}
