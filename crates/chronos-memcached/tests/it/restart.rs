//! Servers that follow each other with the items of a file (`-e`), and options of a file (`--conf`).

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use plimsoll_testing::eventually;

use crate::common::server::Server;

/// Sends requests, and returns the replies up to the end of the connection.
fn ask(port: u16, requests: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    stream.set_read_timeout(Some(plimsoll_testing::PATIENCE)).expect("a timeout");
    let mut reply = String::new();
    stream.write_all(format!("{requests}quit\r\n").as_bytes()).expect("it takes requests");
    stream.read_to_string(&mut reply).expect("it answers");
    reply
}

fn start(path: &Path, options: &[&str]) -> Server {
    Server::start(&[&["-e", path.to_str().expect("a path")], options].concat(), &[])
}

const FOUND: &str = "VALUE kept 7 1\r\nx\r\nEND\r\n";

#[test]
fn items_are_kept_by_a_stop_that_is_to_keep_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items");
    let mut server = start(&path, &["-A"]);
    assert!(server.errors().contains("there is no such file yet; the cache is empty"), "{}", server.errors());
    ask(server.tcp, "set kept 7 0 1\r\nx\r\n");
    let settings = ask(server.tcp, "stats settings\r\n");
    assert!(settings.contains(&format!("STAT memory_file {}\r\n", path.display())), "{settings}");
    ask(server.tcp, "shutdown graceful\r\n");
    assert!(server.wait().success(), "{}", server.errors());
    assert!(server.errors().contains("1 items are kept for the next start"), "{}", server.errors());

    let mut server = start(&path, &["-t", "1", "-m", "16"]);
    assert!(
        server.errors().contains("1 items are back; 0 have expired, 0 have no room"),
        "{}",
        server.errors()
    );
    assert_eq!(ask(server.tcp, "get kept\r\n"), FOUND);
    server.signal("USR1");
    assert!(server.wait().success(), "{}", server.errors());

    // As with memcached, SIGTERM keeps nothing.
    let mut server = start(&path, &[]);
    assert_eq!(ask(server.tcp, "get kept\r\n"), FOUND);
    assert!(server.stop().success());
    assert!(!path.exists());
    assert_eq!(ask(start(&path, &[]).tcp, "get kept\r\n"), "END\r\n");
}

/// The file of a server that is killed does not exist, and one that it could not complete is not read.
#[test]
fn a_server_that_is_killed_leaves_nothing_to_believe() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items");
    let mut server = start(&path, &[]);
    ask(server.tcp, "set kept 7 0 1\r\nx\r\n");
    server.signal("USR1");
    assert!(server.wait().success());
    let half = std::fs::read(&path).expect("a file");
    let mut server = start(&path, &[]);
    assert_eq!(
        ask(server.tcp, "set kept 8 0 1\r\ny\r\nget kept\r\n"),
        "STORED\r\nVALUE kept 8 1\r\ny\r\nEND\r\n"
    );
    server.signal("KILL");
    server.wait();
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    std::fs::write(folder.path().join("items.tmp"), &half[..half.len() / 2]).expect("a file");
    assert_eq!(ask(start(&path, &[]).tcp, "get kept\r\n"), "END\r\n");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

#[test]
fn a_file_that_cannot_be_written_at_the_stop_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let inner = folder.path().join("inner");
    std::fs::create_dir(&inner).expect("a folder");
    let mut server = start(&inner.join("items"), &[]);
    std::fs::remove_dir(&inner).expect("an empty folder");
    server.signal("USR1");
    assert!(!server.wait().success());
    assert!(server.errors().contains("cannot keep the items: No such file"), "{}", server.errors());
    let refused = Server::try_start(&["-e", "/nonexistent/items"], &[]).err().expect("no folder");
    assert!(refused.contains("-e /nonexistent/items: cannot write there"), "{refused}");
    let refused = Server::try_start(&["-e", "x", "-o", "chronos_vbuckets=on"], &[]).err().expect("vBuckets");
    assert!(refused.contains("-e and -o chronos_vbuckets"), "{refused}");
}

/// Partitions that move between threads when the server stops are kept too.
#[test]
fn partitions_between_threads_are_kept() {
    const KEYS: u32 = 2000;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items");
    let options = ["-t", "4", "-o", "chronos_balance=paper,chronos_epoch=20us"];
    let mut server = start(&path, &options);
    let sets: String = (0..KEYS).map(|key| format!("set key-{key} 0 0 1 noreply\r\nx\r\n")).collect();
    ask(server.tcp, &sets);
    for _ in 0..4 {
        let port = server.tcp;
        let load = std::thread::spawn(move || {
            // One key is hot, so that partitions move away from its thread.
            let gets = "get key-1\r\n".repeat(200)
                + &(0..20).map(|key| format!("get key-{key}\r\n")).collect::<String>();
            let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else { return };
            let mut reply = [0; 65536];
            while stream.write_all(gets.as_bytes()).is_ok()
                && stream.read(&mut reply).is_ok_and(|bytes| bytes > 0)
            {}
        });
        eventually("partitions move", || {
            !ask(server.tcp, "stats\r\n").contains("STAT chronos_partitions_moved 0\r\n")
        });
        server.signal("USR1");
        assert!(server.wait().success(), "{}", server.errors());
        load.join().expect("a client");
        server = start(&path, &options);
        let gets: String = (0..KEYS).map(|key| format!("get key-{key}\r\n")).collect();
        let found = ask(server.tcp, &gets);
        let found: BTreeSet<&str> = found.lines().filter(|line| line.starts_with("VALUE")).collect();
        assert_eq!(found.len(), KEYS as usize, "{}", server.errors());
    }
}

#[test]
fn options_of_a_file_are_taken_and_overridden() {
    let folder = tempfile::tempdir().expect("a folder");
    let conf = folder.path().join("memcached.conf");
    std::fs::write(&conf, "# comment\n-d\nlogfile /var/log/memcached.log\n-m 32\n-c 77\n").expect("a file");
    let path = conf.to_str().expect("a path");
    let server = Server::start(&["--conf", path, "-m", "48"], &[]);
    let settings = ask(server.tcp, "stats settings\r\n");
    for line in ["STAT maxbytes 50331648", "STAT maxconns 77"] {
        assert!(settings.contains(line), "{line}: {settings}");
    }
    let said = server.errors();
    assert!(said.contains("memcached.conf:2: -d has no effect in a file"), "{said}");
    assert!(said.contains("memcached.conf:3: logfile has no effect"), "{said}");
    std::fs::write(&conf, "-m 32\n-L\n").expect("a file");
    let said = Server::try_start(&["--conf", path], &[]).err().expect("-L is refused");
    assert!(said.contains("memcached.conf:2: -L is not supported: large memory pages"), "{said}");
}
