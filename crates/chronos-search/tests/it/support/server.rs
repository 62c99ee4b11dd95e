//! `chronos-search` as a process, and a conversation that it must pass in every mode.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

/// The program of the crate whose tests these are.
const PROGRAM: Option<&str> = match option_env!("CARGO_BIN_EXE_chronos-search") {
    Some(program) => Some(program),
    None => option_env!("CARGO_BIN_EXE_chronos-search-locked"),
};

/// A server process, which is killed when this is dropped.
pub struct Server {
    pub child: Child,
    pub address: SocketAddr,
}

impl Server {
    /// Returns once it listens.
    pub fn start(arguments: &[&str]) -> Server {
        Server::try_start(arguments).unwrap()
    }

    /// Returns the error if it ends before it listens.
    pub fn try_start(arguments: &[&str]) -> Result<Server, String> {
        let mut command = Command::new(PROGRAM.expect("a program of this crate"));
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

    /// Returns the answer to `input` up to the connection's end, which `input` must ask for.
    pub fn ask(&self, input: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.write_all(input.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub fn search(&self, query: &str) -> String {
        self.ask(&format!("GET /search?q={query} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Speaks both protocols to a server with the options `mode`.
pub fn both_protocols(mode: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("more.jsonl"), "{\"id\": 1, \"text\": \"sun moon stars\"}\n").unwrap();
    let server = match Server::try_start(&[mode, &[folder.path().to_str().unwrap()]].concat()) {
        Err(error) if mode.contains(&"--io=io-uring") => {
            plimsoll_testing::skipped!("{mode:?}: {error}");
            return;
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
