use std::thread;

use super::*;

#[test]
fn only_sockets_of_this_machine_are_bound() {
    for (text, part) in [
        ("0.0.0.0:9464", "not a local address"),
        ("[::]:9464", "not a local address"),
        ("192.0.2.1:9464", "not a local address"),
        ("localhost:9464", "not an address; expected unix:/PATH"),
        ("unix:/nowhere/at/all", "--listen unix:/nowhere/at/all"),
    ] {
        let error = Listener::bind(text).expect_err("it must not").to_string();
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
}

fn asked(listener: &str, request: &str) -> String {
    let mut answer = String::new();
    match listener.strip_prefix("unix:") {
        Some(path) => {
            let mut stream = UnixStream::connect(path).expect("it listens");
            stream.write_all(request.as_bytes()).expect("it reads");
            stream.read_to_string(&mut answer).expect("it answers");
        }
        None => {
            let mut stream = TcpStream::connect(listener).expect("it listens");
            stream.write_all(request.as_bytes()).expect("it reads");
            stream.read_to_string(&mut answer).expect("it answers");
        }
    }
    answer
}

#[test]
fn both_sockets_answer_and_a_stale_one_is_taken_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("metrics");
    drop(UnixListener::bind(&path).expect("it binds"));
    assert!(path.exists(), "left behind");
    for address in [format!("unix:{}", path.display()), "127.0.0.1:0".to_owned()] {
        let listener = Listener::bind(&address).expect("it binds");
        let address = listener.address();
        // The server ends with the test's process.
        thread::spawn(move || serve(&listener, &mut || Ok(open_metrics(&[]))));
        let answer = asked(&address, "GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{answer}");
        assert!(answer.contains("application/openmetrics-text"), "{answer}");
        assert!(asked(&address, "GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    }
}

/// A request has one deadline, however many bytes a client sends before it.
#[test]
fn a_request_is_not_read_beyond_its_deadline() {
    let (mut client, server) = UnixStream::pair().expect("sockets");
    client.write_all(b"GET /metrics HTTP/1.1\r\n").expect("it has room");
    let mut until = Until::patience(server);
    let mut byte = [0];
    assert_eq!(until.read(&mut byte).expect("it is there"), 1);
    until.deadline = Instant::now();
    assert_eq!(until.read(&mut byte).expect_err("too late").kind(), io::ErrorKind::TimedOut);
    assert_eq!(until.write(&byte).expect_err("too late").kind(), io::ErrorKind::TimedOut);
}

#[test]
fn a_label_with_quotes_does_not_end() {
    assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
}
