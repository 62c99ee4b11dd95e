//! `--metrics`: the sizes of the index are shown.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use crate::support::server::Server;

#[test]
fn what_the_index_holds_is_shown() {
    let mut server =
        Server::start(&["--metrics", "127.0.0.1:0", "--memory-max", "100000000", "--load", "time"]);
    let mut line = String::new();
    BufReader::new(server.child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("metrics at ").unwrap().trim_end_matches(", path /metrics");
    assert_eq!(server.ask("set d1 0 0 8\r\nsun moon\r\nquit\r\n"), "STORED\r\n");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    for line in [
        "chronos_info{server=\"chronos-search\",version=\"0.1.0\"} 1",
        "chronos_search_documents 1",
        "chronos_search_document_words 2",
        "chronos_search_memory_limit_bytes 100000000",
        "chronos_connections_opened_total{thread=\"0\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} is not in {text}");
    }
    assert!(
        text.contains("chronos_search_memory_bytes ") && text.contains("chronos_execution_seconds_total "),
        "{text}"
    );
    // Every metric of the index is in a panel of the dashboard, and every panel has one.
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/grafana/chronos.json");
    let asked = plimsoll_testing::metrics::asked(&std::fs::read_to_string(path).unwrap(), "chronos_search_");
    let mut shown = plimsoll_testing::metrics::shown(&text);
    shown.retain(|name| name.starts_with("chronos_search_"));
    assert_eq!(asked, shown);
}
