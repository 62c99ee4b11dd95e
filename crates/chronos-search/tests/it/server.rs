//! `chronos-search` as a process: both protocols on one address, every access mode, signals.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Killed when dropped.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Returns once it listens.
    fn start(arguments: &[&str]) -> Server {
        Server::try_start(arguments).unwrap()
    }

    /// The error if it ends before it listens.
    fn try_start(arguments: &[&str]) -> Result<Server, String> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_chronos-search"));
        command
            .args(["--listen", "127.0.0.1:0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(address) = line.trim().strip_prefix("listening on ") else {
            let output = child.wait_with_output().unwrap();
            return Err(String::from_utf8(output.stderr).unwrap());
        };
        Ok(Server { address: address.parse().unwrap(), child })
    }

    /// The answer to `input` up to the connection's end, which `input` must ask for.
    fn ask(&self, input: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(input.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn search(&self, query: &str) -> String {
        self.ask(&format!("GET /search?q={query} HTTP/1.1\r\nConnection: close\r\n\r\n"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn both_protocols_in_every_mode() {
    let modes: [&[&str]; 8] = [
        &[],
        &["--threads=2"],
        &["--threads=2", "--access=global-lock"],
        &["--threads=2", "--access=reader-writer-lock"],
        &["--threads=2", "--access=partition-locks"],
        &["--threads=2", "--snapshots"],
        &["--threads=2", "--io=epoll"],
        &["--threads=2", "--io=io-uring"],
    ];
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("more.jsonl"), "{\"id\": 1, \"text\": \"sun moon stars\"}\n").unwrap();
    for mode in modes {
        let server = match Server::try_start(&[mode, &[folder.path().to_str().unwrap()]].concat()) {
            Err(error) if mode.contains(&"--io=io-uring") => {
                plimsoll_testing::skipped!("{mode:?}: {error}");
                continue;
            }
            started => started.unwrap(),
        };
        let mut input = String::new();
        for document in 0..200 {
            let text = format!("number n{document} sun {}", ["moon", "stars"][document % 2]);
            input += &format!("set d{document} 0 0 {}\r\n{text}\r\n", text.len());
        }
        input += "get n7\r\nget none\r\ndelete d7\r\nget n7 n8\r\nquit\r\n";
        let expected = "STORED\r\n".repeat(200)
            + "VALUE n7 0 7\r\nd7 1 4\n\r\nEND\r\nEND\r\nDELETED\r\nVALUE n8 0 7\r\nd8 1 4\n\r\nEND\r\n";
        assert_eq!(server.ask(&input), expected, "{mode:?}");
        // Words of several partitions.
        let answer = server.search("number+sun+moon");
        assert!(answer.contains("\"matches\":100"), "{mode:?}: {answer}");
        let answer = server.search("sun+moon+stars");
        assert!(answer.contains("\"matches\":1,\"results\":[{\"id\":\"1\""), "{mode:?}: {answer}");
        let stats = server.ask("stats\r\nquit\r\n");
        assert!(stats.contains("STAT documents 200\r\n") && stats.ends_with("END\r\n"), "{mode:?}: {stats}");
    }
}

#[test]
fn the_paper_experiment() {
    let server = Server::start(&["--preset=paper", "--threads=2"]);
    let value = "v".repeat(1400);
    let mut input = String::new();
    for key in 0..100 {
        input += &format!("set key{key:07} 0 0 1400\r\n{value}\r\n");
    }
    for key in 0..100 {
        input += &format!("get key{key:07}\r\n");
    }
    let mut expected = "STORED\r\n".repeat(100);
    for key in 0..100 {
        expected += &format!("VALUE key{key:07} 0 1400\r\n{value}\r\nEND\r\n");
    }
    assert_eq!(server.ask(&(input + "quit\r\n")), expected);
}

/// A query over TLS, by the machine's own client.
#[test]
fn queries_come_by_tls() {
    if Command::new("curl").arg("--version").output().is_err() {
        return plimsoll_testing::skipped!("no curl (Debian package curl)");
    }
    let folder = tempfile::tempdir().unwrap();
    let [chain, both] = ["chain.pem", "both.pem"].map(|name| folder.path().join(name));
    let certify = || {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        std::fs::write(&chain, made.cert.pem()).unwrap();
        std::fs::write(&both, made.cert.pem() + &made.signing_key.serialize_pem()).unwrap();
    };
    certify();
    let server = Server::start(&["--tls-certificate", both.to_str().unwrap()]);
    let address = format!("https://localhost:{}/stats", server.address.port());
    let ask = || {
        let mut command = Command::new("curl");
        command.args(["--silent", "--show-error", "--ipv4", "--noproxy", "*", "--cacert"]);
        let output = command.args([chain.to_str().unwrap(), &address]).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    assert!(ask().contains("\"documents\""), "{}", ask());
    certify();
    assert!(!ask().contains("\"documents\""), "the new certificate is shown before it is read");
    let status = Command::new("kill").args(["-HUP", &server.child.id().to_string()]).status().unwrap();
    assert!(status.success());
    let begin = Instant::now();
    while !ask().contains("\"documents\"") {
        assert!(begin.elapsed() < Duration::from_secs(30), "{}", ask());
    }
}

#[test]
fn a_signal_ends_it_in_order() {
    let mut server = Server::start(&[]);
    let status = Command::new("kill").arg(server.child.id().to_string()).status().unwrap();
    assert!(status.success());
    assert!(server.child.wait().unwrap().success());
}

#[test]
fn what_is_wrong_is_told() {
    for (arguments, reason) in [
        (&["--snapshots", "--access=global-lock"][..], "choose one"),
        (&["--preset=paper", "/dev/null"], "nothing to index"),
        (&["/nowhere"], "/nowhere"),
        (&["--threads=2", "--partitions=1"], "partitions: 1"),
        (&["--listen=80"], "not an address"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_chronos-search")).args(arguments).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && error.contains(reason), "{arguments:?}: {error}");
        assert!(!error.contains("Error:") && !error.contains("Caused by"), "{arguments:?}: {error}");
    }
}

/// Clients that fetch nothing of what they ask for are closed when others wait for the memory that it takes.
#[test]
fn clients_that_read_nothing_make_room_for_others() {
    const BYTES: usize = 1_000_000;
    for io in ["--io=epoll", "--io=fastest"] {
        let options = ["--threads=2", "--sets=postings", "--connection-memory=8000000", io];
        let server = Server::start(&options);
        let value = "v".repeat(BYTES);
        assert_eq!(server.ask(&format!("set word 0 0 {BYTES}\r\n{value}\r\nquit\r\n")), "STORED\r\n");
        let silent: Vec<TcpStream> = (0..30)
            .map(|_| {
                let mut stream = TcpStream::connect(server.address).unwrap();
                stream.write_all("get word\r\n".repeat(20).as_bytes()).unwrap();
                stream
            })
            .collect();
        let begin = Instant::now();
        while server.ask("stats\r\nquit\r\n").contains("STAT connections_shed 0\r\n") {
            assert!(begin.elapsed() < Duration::from_secs(60), "{io}: none is closed");
        }
        let found = server.ask("get word\r\nquit\r\n");
        assert!(found == format!("VALUE word 0 {BYTES}\r\n{value}\r\nEND\r\n"), "{io}");
        drop(silent);
    }
}
