//! Running the program: in the background, behind TLS, with each I/O backend, stopped and killed under load, at its
//! limits.

use crate::common::server;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use plimsoll_testing::eventually;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use server::Server;

const PATIENCE: Duration = plimsoll_testing::PATIENCE;

fn connect(port: u16) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    stream
}

/// Sends `request`, and asserts that the answer is `expected`.
#[track_caller]
fn converse(stream: &mut (impl Read + Write), request: &str, expected: &str) {
    stream.write_all(request.as_bytes()).expect("it takes requests");
    let mut reply = vec![0; expected.len()];
    stream.read_exact(&mut reply).expect("it answers");
    assert_eq!(String::from_utf8_lossy(&reply), expected, "{request}");
}

/// A counter of `stats`.
fn stat(port: u16, name: &str) -> u64 {
    let mut stream = connect(port);
    stream.write_all(b"stats\r\n").expect("it takes requests");
    let mut lines = BufReader::new(stream).lines().map(|line| line.expect("it answers"));
    let found = lines.find_map(|line| {
        assert_ne!(line, "END", "there is a counter {name}");
        line.strip_prefix("STAT ")?.strip_prefix(name)?.strip_prefix(' ')?.parse().ok()
    });
    found.expect("a number")
}

/// Reports whether a process has ended, even if its parent has not waited for it.
fn has_ended(process: u32) -> bool {
    let Ok(text) = std::fs::read_to_string(format!("/proc/{process}/stat")) else { return true };
    text.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
}

#[test]
fn in_the_background_with_a_pid_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let pid_file = directory.path().join("pid");
    let path = pid_file.to_str().expect("a path");
    let options = ["-d", "-P", path, "-l", "127.0.0.1", "-p", "-1"];
    // The command returns when the server listens, and the server keeps running.
    let status =
        server::command(&options, directory.path()).stdout(Stdio::null()).status().expect("it starts");
    assert!(status.success());
    let pid: u32 = std::fs::read_to_string(&pid_file).expect("a pid file").trim().parse().expect("a number");
    let (port, _) = server::ports(directory.path());
    let mut stream = connect(port);
    converse(&mut stream, "version\r\n", "VERSION 1.6.18\r\n");
    assert_eq!(stat(port, "pid"), u64::from(pid));
    server::signal(pid, "TERM");
    eventually("it ends at SIGTERM", || has_ended(pid));
    assert!(!pid_file.exists(), "the pid file is left behind");
}

/// A caller that reads the output until its end, as `$(...)` does, has it when the server listens. The server holds no
/// folder either, and it serves even if the pid file cannot be written.
#[test]
fn in_the_background_it_lets_go_of_its_parent() {
    for (verbose, stays) in [(false, false), (true, false), (false, true)] {
        let directory = tempfile::tempdir().expect("a directory");
        let mut options = vec!["-d", "-l", "127.0.0.1", "-p", "-1", "-P", "/nonexistent/folder/pid"];
        options.extend(verbose.then_some("-v"));
        options.extend(stays.then_some("-r"));
        let mut command = server::command(&options, directory.path());
        if !verbose {
            command.stderr(Stdio::piped());
        }
        // The output ends when no process holds it any more.
        let output = command.current_dir(directory.path()).output().expect("it starts");
        assert!(output.status.success());
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(verbose || said.contains("cannot write the pid file /nonexistent/folder/pid"), "{said}");
        let (port, _) = server::ports(directory.path());
        let pid = u32::try_from(stat(port, "pid")).expect("a process");
        let link = |name: &str| std::fs::read_link(format!("/proc/{pid}/{name}")).expect("a running process");
        let nothing = Path::new("/dev/null");
        assert_eq!([link("fd/0"), link("fd/1")], [nothing, nothing]);
        assert_eq!(link("fd/2") == nothing, !verbose);
        assert_eq!(link("cwd") == Path::new("/"), !stays);
        server::signal(pid, "TERM");
        eventually("it ends at SIGTERM", || has_ended(pid));
    }
}

#[test]
fn what_does_not_start_in_the_background_is_told() {
    let first = Server::start(&[], &[]);
    let directory = tempfile::tempdir().expect("a directory");
    let port = first.tcp.to_string();
    let options = ["-d", "-l", "127.0.0.1", "-p", &port, "-o", "lru_maintainer"];
    let status =
        server::command(&options, directory.path()).stdout(Stdio::null()).status().expect("it starts");
    let errors = std::fs::read_to_string(directory.path().join("errors")).expect("a file");
    assert!(!status.success());
    assert!(errors.contains("cannot listen on") && errors.contains(&port), "{errors}");
    assert!(errors.contains("did not start in the background"), "{errors}");
    assert_eq!(errors.matches("-o lru_maintainer has no effect").count(), 1, "{errors}");
}

#[test]
fn tls_and_a_place_without() {
    let folder = tempfile::tempdir().expect("a directory");
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).expect("a certificate");
    let (certificate, key) = (folder.path().join("certificate.pem"), folder.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).expect("a file");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("a file");
    let files = format!("ssl_chain_cert={},ssl_key={}", certificate.display(), key.display());
    for io in backends() {
        let server = Server::start(&["-Z", "-o", &files, "-o", &format!("chronos_io={io}")], &[]);
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from("localhost").expect("a name");
        let connection = ClientConnection::new(Arc::new(config), name).expect("a configuration");
        let mut stream = StreamOwned::new(connection, connect(server.tcp));
        let value = "v".repeat(100_000);
        converse(&mut stream, &format!("set a 0 0 {}\r\n{value}\r\n", value.len()), "STORED\r\n");
        converse(&mut stream, "get a\r\n", &format!("VALUE a 0 {}\r\n{value}\r\nEND\r\n", value.len()));
        // A request in the clear gets an alert and no answer.
        let mut stream = connect(server.tcp);
        stream.write_all(b"get a\r\nget a\r\n").expect("it takes bytes");
        let mut reply = Vec::new();
        stream.read_to_end(&mut reply).expect("it ends the connection");
        assert!(reply.first() == Some(&21), "{}", reply.escape_ascii());
    }
}

/// Returns the I/O backends that exist here.
fn backends() -> Vec<&'static str> {
    let is_here = |io: &&str| match Server::try_start(&["-o", &format!("chronos_io={io}")], &[]) {
        Ok(_) => true,
        Err(errors) => {
            assert!(*io == "uring" && errors.contains("io_uring"), "chronos_io={io}: {errors}");
            plimsoll_testing::skipped!("chronos_io={io}: {errors}");
            false
        }
    };
    ["epoll", "uring"].into_iter().filter(is_here).collect()
}

#[test]
fn the_way_to_the_kernel_is_the_one_that_was_asked_for() {
    for io in backends() {
        let server = Server::start(&["-t", "2", "-o", &format!("chronos_io={io}")], &[]);
        converse(&mut connect(server.tcp), "mn\r\n", "MN\r\n");
        let folder = format!("/proc/{}/fd", server.id());
        let rings = std::fs::read_dir(folder).expect("a running process").filter(|entry| {
            let target = entry.as_ref().ok().and_then(|entry| std::fs::read_link(entry.path()).ok());
            target.is_some_and(|target| target == Path::new("anon_inode:[io_uring]"))
        });
        assert_eq!(rings.count(), if io == "uring" { 2 } else { 0 }, "{io}");
    }
}

/// With the kernel's help every datagram is delivered to the thread that owns its key; without, every second one is
/// not.
#[test]
fn datagrams_that_the_kernel_steers() {
    for steering in ["off", "on"] {
        let option = format!("chronos_steering={steering},chronos_balance=off");
        let server = match Server::try_start(&["-t", "2", "-o", &option], &[]) {
            Ok(server) => server,
            Err(errors) => {
                assert!(steering == "on" && errors.contains("datagram_steering: "), "{errors}");
                plimsoll_testing::skipped!("chronos_steering=on: {errors}");
                return;
            }
        };
        // The statistics themselves ask all partitions, the other thread's included.
        let foreign = || stat(server.tcp, "chronos_requests_foreign");
        let (first, before) = (foreign(), foreign());
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(("127.0.0.1", server.udp)).expect("an address");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        for number in 0..100_u16 {
            for request in [format!("set key-{number} 0 0 1\r\nx\r\n"), format!("mg key-{number} v\r\n")] {
                let header = [&number.to_be_bytes()[..], &[0, 0, 0, 1, 0, 0]].concat();
                socket.send(&[&header[..], request.as_bytes()].concat()).expect("it takes datagrams");
                let mut reply = [0; 100];
                let bytes = socket.recv(&mut reply).expect("it answers");
                let expected = if request.starts_with("set") { &b"STORED\r\n"[..] } else { b"VA 1\r\nx\r\n" };
                assert_eq!(reply[8..bytes].escape_ascii().to_string(), expected.escape_ascii().to_string());
            }
        }
        // Without steering, all datagrams of one client are delivered to one thread, whatever the key.
        let foreign = foreign() - before - (before - first);
        assert!(if steering == "on" { foreign == 0 } else { foreign > 20 }, "{steering}: {foreign} of 200");
    }
}

/// The group of a hot key is split, and the key keeps its value.
#[test]
fn the_group_of_a_hot_key_is_split() {
    let server = Server::start(&["-t", "2", "-o", "chronos_balance=split:4,chronos_numa=strict"], &[]);
    assert_eq!(stat(server.tcp, "chronos_groups_split"), 0);
    let mut stream = connect(server.tcp);
    converse(&mut stream, "set hot 0 0 1\r\nx\r\n", "STORED\r\n");
    let (requests, expected) = ("get hot\r\n".repeat(64), "VALUE hot 0 1\r\nx\r\nEND\r\n".repeat(64));
    eventually("its group is split", || {
        (0..50).for_each(|_| converse(&mut stream, &requests, &expected));
        stat(server.tcp, "chronos_groups_split") > 0
    });
    assert_eq!(stat(server.tcp, "chronos_partitions_across_nodes"), 0);
}

/// Requests from four clients without an end, until the connection ends; the answers that came, and those due. Returns
/// when each of them has had an answer.
fn load(port: u16) -> Vec<std::thread::JoinHandle<(Vec<u8>, Vec<u8>)>> {
    const ROUND: &[u8] = b"set a 0 0 1\r\nx\r\nmn\r\nget nothing\r\n";
    const ANSWER: &[u8] = b"STORED\r\nMN\r\nEND\r\n";
    let client = |mut stream: TcpStream, answered: mpsc::Sender<()>| {
        let (mut came, mut due, mut buffer) = (Vec::new(), Vec::new(), [0; 4096]);
        while stream.write_all(&ROUND.repeat(8)).is_ok() {
            due.extend_from_slice(&ANSWER.repeat(8));
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(bytes) => came.extend_from_slice(&buffer[..bytes]),
            }
            // The test waits for the first answer only.
            let _ = answered.send(());
        }
        (came, due)
    };
    let start = |_| {
        let (stream, (answered, is_answered)) = (connect(port), mpsc::channel());
        let client = std::thread::spawn(move || client(stream, answered));
        is_answered.recv_timeout(PATIENCE).expect("an answer");
        client
    };
    (0..4).map(start).collect()
}

#[test]
fn stopped_under_load_it_ends_well() {
    for io in backends() {
        for threads in ["1", "2"] {
            let mut server = Server::start(&["-t", threads, "-o", &format!("chronos_io={io}")], &[]);
            let clients = load(server.tcp);
            eventually("there is load", || stat(server.tcp, "cmd_set") > 1000);
            assert!(server.stop().success(), "{io}, {threads} threads: {}", server.errors());
            for client in clients {
                let (came, due) = client.join().expect("a client");
                assert!(!came.is_empty(), "{io}, {threads} threads: no answer");
                assert!(due.starts_with(&came), "{io}, {threads} threads: a wrong answer");
            }
        }
    }
}

/// A stop ends the accepts that wait, and must not report them as connections that were not accepted.
#[test]
fn a_stop_says_nothing_else() {
    for io in backends() {
        for _ in 0..4 {
            let mut server = Server::start(&["-t", "4", "-v", "-o", &format!("chronos_io={io}")], &[]);
            assert!(server.stop().success());
            let errors = server.errors();
            let said: Vec<&str> = errors.lines().filter(|line| !line.starts_with("listening on ")).collect();
            assert_eq!(said, ["stopped"], "{io}");
        }
    }
}

#[test]
fn killed_under_load_it_starts_again_at_once_in_the_same_place() {
    for io in backends() {
        let option = format!("chronos_io={io}");
        let mut server = Server::start(&["-o", &option], &[]);
        let (tcp, udp) = (server.tcp.to_string(), server.udp.to_string());
        converse(&mut connect(server.tcp), "set kept 0 0 1\r\nx\r\n", "STORED\r\n");
        let clients = load(server.tcp);
        eventually("there is load", || stat(server.tcp, "cmd_set") > 1000);
        server.signal("KILL");
        assert!(!server.wait().success());
        let again = Server::start(&["-p", &tcp, "-U", &udp, "-o", &option], &[]);
        assert_eq!((again.tcp, again.udp), (server.tcp, server.udp));
        converse(&mut connect(again.tcp), "get kept\r\n", "END\r\n");
        for client in clients {
            let (came, due) = client.join().expect("a client");
            assert!(due.starts_with(&came), "{io}: a wrong answer");
        }
    }
}

#[test]
fn killed_it_takes_its_old_unix_socket_over() {
    let (mut server, path) = Server::start_unix(&[]);
    server.signal("KILL");
    server.wait();
    assert!(path.exists());
    let again = Server::start_unix_at(&[], &path);
    converse(&mut UnixStream::connect(&path).expect("it listens"), "mn\r\n", "MN\r\n");
    drop(again);
}

#[test]
fn connections_over_the_limit_are_told_and_their_place_can_be_had_again() {
    for io in backends() {
        let server = Server::start(&["-c", "2", "-o", &format!("chronos_io={io}")], &[]);
        let mut kept: Vec<TcpStream> = (0..2).map(|_| connect(server.tcp)).collect();
        for stream in &mut kept {
            converse(stream, "mn\r\n", "MN\r\n");
        }
        let mut reply = String::new();
        connect(server.tcp).read_to_string(&mut reply).expect("it closes");
        assert_eq!(reply, "ERROR Too many open connections\r\n");
        // The other connections are not affected.
        converse(&mut kept[1], "mn\r\n", "MN\r\n");
        kept.swap_remove(0);
        let mut reply = [0; 4];
        eventually("another is let in", || {
            let mut stream = connect(server.tcp);
            // A refused client may get a reset for its bytes.
            let is_answered =
                stream.write_all(b"mn\r\n").and_then(|()| stream.read_exact(&mut reply)).is_ok();
            is_answered && reply == *b"MN\r\n"
        });
        drop(kept);
        let mut reply = Vec::new();
        eventually("there is room for statistics", || {
            let mut stream = connect(server.tcp);
            reply.clear();
            stream.write_all(b"stats\r\nquit\r\n").is_ok()
                && stream.read_to_end(&mut reply).is_ok()
                && reply.starts_with(b"STAT")
        });
        let text = String::from_utf8_lossy(&reply);
        let refused = text.lines().find_map(|line| line.strip_prefix("STAT rejected_connections "));
        assert!(refused.and_then(|count| count.parse().ok()).is_some_and(|count: u64| count > 0), "{text}");
    }
}

#[test]
fn who_says_nothing_is_sent_away_and_nobody_else() {
    for io in backends() {
        let server =
            Server::start(&["-t", "2", "-o", "idle_timeout=2", "-o", &format!("chronos_io={io}")], &[]);
        let mut idle: Vec<TcpStream> = (0..4).map(|_| connect(server.tcp)).collect();
        converse(&mut idle[0], "mn\r\n", "MN\r\n");
        // Half a request does not count as activity, once it is there.
        idle[1].write_all(b"set half 0 0 100\r\nx").expect("it takes requests");
        let mut busy = connect(server.tcp);
        for stream in &idle {
            stream.set_read_timeout(Some(Duration::from_millis(20))).expect("a timeout");
        }
        eventually("idle connections are ended", || {
            converse(&mut busy, "mn\r\n", "MN\r\n");
            let mut byte = [0];
            idle.retain_mut(|stream| !matches!(stream.read(&mut byte), Ok(0)));
            idle.is_empty()
        });
        converse(&mut busy, "mn\r\n", "MN\r\n");
        assert_eq!(stat(server.tcp, "idle_kicks"), 4, "{io}");
    }
}
