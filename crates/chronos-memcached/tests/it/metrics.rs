//! `--metrics`: the counters are shown, and the server serves without them too.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::common::server::Server;

/// The longest wait for an event that must occur.
const PATIENCE: Duration = plimsoll_testing::PATIENCE;

/// Returns the answer to a request at the metrics' address, which the server has printed.
fn ask(server: &Server, request: &str) -> String {
    let errors = server.errors();
    let line = errors.lines().find_map(|line| line.strip_prefix("metrics at ")).expect("it says where");
    let mut stream = TcpStream::connect(line.trim_end_matches(", path /metrics")).expect("it listens");
    stream.write_all(request.as_bytes()).expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

fn metrics(server: &Server) -> String {
    ask(server, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n")
}

fn value(text: &str, sample: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '))?.parse().ok()
}

#[test]
fn what_clients_did_is_shown_within_seconds() {
    let server = Server::start(&["-t", "2", "-m", "64", "--metrics", "127.0.0.1:0"], &[]);
    let mut client = TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens");
    let mut requests = String::new();
    for key in 0..100 {
        requests += &format!("set key{key} 0 0 5 noreply\r\nvalue\r\nget key{key}\r\nget none{key}\r\n");
    }
    client.write_all(format!("{requests}mn\r\n").as_bytes()).expect("it reads");
    let mut reply = Vec::new();
    while !reply.ends_with(b"MN\r\n") {
        let mut piece = [0; 4096];
        let length = client.read(&mut piece).expect("it answers");
        assert!(length > 0, "it closed");
        reply.extend_from_slice(&piece[..length]);
    }
    let began = Instant::now();
    let text = loop {
        let text = metrics(&server);
        if value(&text, "chronos_memcached_items") == Some(100.0) || began.elapsed() > PATIENCE {
            break text;
        }
        std::thread::yield_now();
    };
    for (sample, expected) in [
        ("chronos_memcached_items", 100.0),
        ("chronos_memcached_commands_total{command=\"set\"}", 100.0),
        ("chronos_memcached_commands_total{command=\"get\",result=\"hit\"}", 100.0),
        ("chronos_memcached_commands_total{command=\"get\",result=\"miss\"}", 100.0),
        ("chronos_memcached_memory_limit_bytes", f64::from(64 << 20)),
        ("chronos_threads", 2.0),
    ] {
        assert_eq!(value(&text, sample), Some(expected), "{sample} of {text}");
    }
    let of_threads = |name: &str, labels: &str| -> f64 {
        (0..2).filter_map(|thread| value(&text, &format!("{name}{{thread=\"{thread}\"{labels}}}"))).sum()
    };
    assert_eq!(of_threads("chronos_connections", ""), 1.0, "{text}");
    assert_eq!(of_threads("chronos_partitions", ""), 32.0, "{text}");
    let own = of_threads("chronos_requests_total", ",partition=\"own\"");
    assert_eq!(own + of_threads("chronos_requests_total", ",partition=\"foreign\""), 300.0, "{text}");
    assert!(text.ends_with("# EOF\n") && value(&text, "process_resident_memory_bytes").is_some(), "{text}");
    assert!(ask(&server, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask(&server, "POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
}

/// Silent and endless clients of the metrics hold neither them nor the server.
#[test]
fn hostile_clients_of_the_metrics_hold_nobody() {
    let server = Server::start(&["-t", "1", "--metrics", "127.0.0.1:0"], &[]);
    let errors = server.errors();
    let line = errors.lines().find_map(|line| line.strip_prefix("metrics at ")).expect("it says where");
    let address = line.trim_end_matches(", path /metrics");
    let silent: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(address).expect("it listens")).collect();
    let mut endless = TcpStream::connect(address).expect("it listens");
    // It may be closed before all of it is read.
    let _ = endless.write_all(&vec![b'x'; 1 << 20]);
    let mut client = TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens");
    client.write_all(b"set a 0 0 1\r\n1\r\n").expect("it reads");
    let mut reply = [0; 8];
    client.read_exact(&mut reply).expect("it answers");
    assert_eq!(&reply, b"STORED\r\n");
    assert!(metrics(&server).starts_with("HTTP/1.1 200"));
    drop(silent);
}

#[test]
fn an_address_that_cannot_be_bound_is_told() {
    for (address, part) in
        [("127.0.0.1", "expected unix:/PATH, or an address and port"), ("192.0.2.1:1", "requested")]
    {
        let Err(errors) = Server::try_start(&["--metrics", address], &[]) else {
            panic!("{address} was bound")
        };
        assert!(errors.contains(&format!("--metrics {address}: ")) && errors.contains(part), "{errors}");
    }
}

/// Every metric in a panel exists, and every metric of this server is in a panel.
#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/grafana/chronos.json");
    let dashboard = std::fs::read_to_string(path).expect("the dashboard");
    // Time is shown where it is measured.
    let server = Server::start(&["--metrics", "127.0.0.1:0", "-o", "chronos_metric=time"], &[]);
    let shown = plimsoll_testing::metrics::shown(&metrics(&server));
    let ours = |name: &String| name.starts_with("chronos_") && !name.starts_with("chronos_search_");
    let asked = plimsoll_testing::metrics::asked(&dashboard, "");
    let of_chronos = |names: &std::collections::BTreeSet<String>| -> Vec<String> {
        names.iter().filter(|name| ours(name)).cloned().collect()
    };
    assert_eq!(of_chronos(&asked), of_chronos(&shown));
    for name in asked.iter().filter(|name| name.starts_with("process_")) {
        assert!(shown.contains(name), "{name}");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/prometheus/plimsoll.rules.yml");
    let rules = std::fs::read_to_string(path).expect("the alert rules");
    let alerted = plimsoll_testing::metrics::alerted(&rules, "chronos_");
    assert!(alerted.len() >= 4 && alerted.is_subset(&shown), "{alerted:?}");
}
