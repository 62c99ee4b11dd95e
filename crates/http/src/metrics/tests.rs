use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use super::*;
use crate::ListenerReach;

/// Less than the deadline of a request.
const SOON: Duration = Duration::from_millis(2500);

/// Serves on any free port of the loopback, until the test's process ends.
fn start() -> String {
    let listener = Listener::bind("127.0.0.1:0", ListenerReach::Loopback).unwrap();
    let address = listener.address();
    spawn(listener, || Ok("# EOF\n".to_owned())).unwrap();
    address
}

fn asked(address: &str, request: &str) -> String {
    let mut answer = String::new();
    match address.strip_prefix("unix:") {
        Some(path) => {
            let mut stream = UnixStream::connect(path).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream.read_to_string(&mut answer).unwrap();
        }
        None => {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            stream.read_to_string(&mut answer).unwrap();
        }
    }
    answer
}

#[test]
fn only_allowed_addresses_are_bound() {
    for (text, part) in [
        ("0.0.0.0:9464", "not a local address"),
        ("[::]:9464", "not a local address"),
        ("192.0.2.1:9464", "not a local address"),
        ("localhost:9464", "not an address; expected unix:/PATH"),
        ("unix:/nowhere/at/all", "No such file"),
    ] {
        let error = Listener::bind(text, ListenerReach::Loopback).expect_err("it must not").to_string();
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
    assert!(Listener::bind("0.0.0.0:0", ListenerReach::Everywhere).is_ok());
}

#[test]
fn requests_get_their_status() {
    let address = start();
    for (request, status) in [
        ("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n", "200 OK"),
        ("GET /metrics?name=x HTTP/1.0\r\n\r\n", "200 OK"),
        ("GET http://here/metrics HTTP/1.1\r\nHost: here\r\n\r\n", "200 OK"),
        ("GET http://here HTTP/1.1\r\nHost: here\r\n\r\n", "404 Not Found"),
        ("GET / HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("POST / HTTP/1.1\r\n\r\n", "404 Not Found"),
        ("POST /metrics HTTP/1.1\r\n\r\n", "405 Method Not Allowed"),
        ("get x\r\n\r\n", "400 Bad Request"),
    ] {
        let answer = asked(&address, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{request:?}: {answer}");
        assert_eq!(answer.contains("application/openmetrics-text"), status == "200 OK", "{answer}");
        assert_eq!(answer.contains("Allow: GET, HEAD\r\n"), status.starts_with("405"), "{answer}");
    }
    let head = asked(&address, "HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.contains("Content-Length: 6\r\n") && head.ends_with("\r\n\r\n"), "{head}");
}

#[test]
fn a_stale_unix_socket_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics");
    drop(UnixListener::bind(&path).unwrap());
    let address = format!("unix:{}", path.display());
    let listener = Listener::bind(&address, ListenerReach::Loopback).unwrap();
    assert_eq!(listener.address(), address);
    spawn(listener, || Err("no counters".to_owned())).unwrap();
    let answer = asked(&address, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 500") && answer.ends_with("no counters\n"), "{answer}");
}

/// Clients that send nothing have their connections closed in favour of new ones, long before their deadline.
#[test]
fn silent_clients_keep_nobody_out() {
    let address = start();
    let silent: Vec<TcpStream> =
        (0..3 * LIMITS.connections).map(|_| TcpStream::connect(&address).unwrap()).collect();
    let began = Instant::now();
    assert!(asked(&address, "GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200"));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    // The oldest was closed without an answer.
    let mut oldest = &silent[0];
    oldest.set_read_timeout(Some(SOON)).unwrap();
    assert_eq!(oldest.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_request_without_an_end_is_refused() {
    let address = start();
    let answer = asked(&address, &format!("GET /metrics HTTP/1.1\r\n{}", "X: y\r\n".repeat(2_000)));
    assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
}
