use std::io::Cursor;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

use super::*;

const LIMITS: Limits = Limits { body: 16, connections: 4, patience: PATIENCE };

fn status(request: &str) -> &'static str {
    match read(&mut Cursor::new(request.as_bytes()), LIMITS).unwrap() {
        Ok(_) => "read",
        Err(answer) => answer.status.split(' ').next().unwrap(),
    }
}

#[test]
fn a_request_is_read_or_refused_by_its_head() {
    for (request, expected) in [
        ("GET /x HTTP/1.1\r\n\r\n", "read"),
        ("POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "read"),
        ("POST /x HTTP/1.1\r\nContent-Length: 16\r\n\r\nabc", "400"),
        ("POST /x HTTP/1.1\r\nContent-Length: 17\r\n\r\nabc", "413"),
        // The server allocates nothing for an announced length.
        ("POST /x HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\n", "413"),
        ("POST /x HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n\r\n", "400"),
        ("POST /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "400"),
        ("POST /x HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "411"),
        ("POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "411"),
        ("GET /x\r\n\r\n", "400"),
        ("GET  /x HTTP/1.1\r\n\r\n", "400"),
        ("GET /x HTTP/1.1\r\nno header\r\n\r\n", "400"),
        ("GET /x HTTP/1.1\r\nX : y\r\n\r\n", "400"),
        ("GET /x HTTP/2.0\r\n\r\n", "400"),
        // A prefix that cannot become a request is refused before its end.
        ("\x16\x03\x01", "400"),
        ("GET /x HTTP/1.1\r\n", "400"),
        ("", "400"),
    ] {
        assert_eq!(status(request), expected, "{request:?}");
    }
}

#[test]
fn parts_of_a_request() {
    let text = "POST /x?a=1&b=2 HTTP/1.1\r\nhost:\there \r\nX: 1\r\nx: 2\r\nContent-Length: 2\r\n\r\nabc";
    let request = read(&mut Cursor::new(text.as_bytes()), LIMITS).unwrap().unwrap();
    assert_eq!((request.method(), request.path(), request.body()), ("POST", "/x", &b"ab"[..]));
    assert_eq!((request.parameter("b"), request.parameter("c")), (Some("2"), None));
    assert_eq!((request.header("Host"), request.header("X")), (Some("here"), None));
}

/// The host of an absolute target counts, not the header (RFC 9112, section 3.2.2).
#[test]
fn an_absolute_target_has_its_own_host() {
    for (target, host, path, parameter) in [
        ("/x?a=1", "here", "/x", Some("1")),
        ("http://there:80/x?a=1", "there:80", "/x", Some("1")),
        ("HTTP://there", "there", "/", None),
        ("http://there?a=1", "there", "", Some("1")),
        ("https://there/x", "here", "https://there/x", None),
        ("*", "here", "*", None),
    ] {
        let text = format!("GET {target} HTTP/1.1\r\nHost: here\r\n\r\n");
        let request = read(&mut Cursor::new(text.as_bytes()), LIMITS).unwrap().unwrap();
        let found = (request.host(), request.path(), request.parameter("a"));
        assert_eq!(found, (Some(host), path, parameter), "{target}");
    }
}

/// A request has one deadline, however many bytes a client sends before it.
#[test]
fn a_request_is_not_read_beyond_its_deadline() {
    let (mut client, server) = UnixStream::pair().unwrap();
    client.write_all(b"GET /metrics HTTP/1.1\r\n").unwrap();
    let mut until = Until::new(Arc::new(Stream::Unix(server)), PATIENCE);
    let mut byte = [0];
    assert_eq!(until.read(&mut byte).unwrap(), 1);
    until.deadline = Instant::now();
    assert_eq!(until.read(&mut byte).expect_err("too late").kind(), io::ErrorKind::TimedOut);
    assert_eq!(until.write(&byte).expect_err("too late").kind(), io::ErrorKind::TimedOut);
}

/// No other connection arrives that would have the server check the expired ones.
#[test]
fn a_silent_client_is_closed_at_its_deadline() {
    let listener = Listener::bind("127.0.0.1:0", crate::ListenerReach::Loopback).unwrap();
    let address = listener.address();
    let limits = Limits { patience: Duration::from_millis(50), ..LIMITS };
    thread::spawn(move || serve(&listener, limits, &|_| HttpAnswer::text("200 OK", "")));
    for request in ["", "GET / HTTP/1.1\r\n"] {
        let mut client = TcpStream::connect(&address).unwrap();
        client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "{request:?}");
    }
}

/// A server whose threads would need larger stacks than there are addresses can start none: this test runs itself as
/// one.
#[test]
fn a_connection_without_a_thread_is_answered() {
    const NAME: &str = "server::tests::a_connection_without_a_thread_is_answered";
    const PLACE: &str = "PLIMSOLL_TEST_SOCKET";
    if let Some(place) = std::env::var_os(PLACE) {
        let listener = Listener::bind(place.to_str().unwrap(), crate::ListenerReach::Loopback).unwrap();
        serve(&listener, LIMITS, &|_| HttpAnswer::text("200 OK", "")).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut server = std::process::Command::new(std::env::current_exe().unwrap());
    server.args(["--exact", NAME, "--test-threads", "1", "--nocapture"]);
    server.env("RUST_MIN_STACK", (1u64 << 46).to_string());
    server.env(PLACE, format!("unix:{}", socket.display()));
    server.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
    let mut server = server.spawn().unwrap();
    for _ in 0..2 {
        let deadline = Instant::now() + Duration::from_secs(60);
        let mut client = loop {
            match UnixStream::connect(&socket) {
                Ok(client) => break client,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
        };
        client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
    }
    server.kill().unwrap();
    let said = String::from_utf8(server.wait_with_output().unwrap().stderr).unwrap();
    assert_eq!(said.matches("warning: a connection is answered with 503").count(), 1, "{said}");
}
