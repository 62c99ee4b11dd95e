//! Dumps of items one by one, and operators' commands that control memcached's own threads.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plimsoll_chronos_memcached::MemcachedSettings;

use crate::common::server::Server;
use crate::common::{Ours, Theirs, ask, finish, have_memcached};
use crate::differential::conversation::{Steps, compare};

const PATIENCE: Duration = Duration::from_secs(30);
/// memcached without a thread that crawls by itself, during which it refuses dumps; its LRU is then flat, too.
const QUIET: [&str; 2] = ["-o", "no_lru_maintainer"];
/// memcached's own, where Debian's package has it.
const TOOL: &str = "/usr/share/memcached/scripts/memcached-tool";

#[test]
fn commands_of_operators() {
    let cases: &[(&str, Steps<'_>)] = &[
        (
            "lru_crawler",
            &[
                b"lru_crawler\r\n",
                b"lru_crawler bogus\r\n",
                b"lru_crawler enable\r\n",
                b"lru_crawler sleep\r\n",
                b"lru_crawler sleep x\r\n",
                b"lru_crawler sleep 1000001\r\n",
                b"lru_crawler sleep 1000000\r\n",
                b"lru_crawler tocrawl x\r\n",
                b"lru_crawler tocrawl 7\r\n",
                b"lru_crawler crawl\r\n",
                b"lru_crawler crawl x\r\n",
                b"lru_crawler crawl 0\r\n",
                b"lru_crawler crawl hash\r\n",
                b"lru_crawler crawl 1 2\r\n",
                b"lru_crawler metadump\r\n",
                b"lru_crawler metadump 0\r\n",
                b"lru_crawler metadump x\r\n",
                b"lru_crawler metadump 1,x\r\n",
                b"lru_crawler metadump all all\r\n",
                b"mg a v\r\nlru_crawler metadump all\r\n",
                b"set a 0 0 1 noreply\r\nx\r\nlru_crawler metadump all\r\n",
                b"lru_crawler crawl all\r\n",
            ],
        ),
        ("a dump of nothing", &[b"lru_crawler metadump all\r\n"]),
        ("a dump of nothing by the table", &[b"lru_crawler metadump hash\r\n"]),
        (
            "slabs",
            &[
                b"slabs\r\n",
                b"slabs bogus\r\n",
                b"slabs reassign\r\n",
                b"slabs reassign 1\r\n",
                b"slabs automove\r\n",
                b"slabs automove invalid\r\n",
                b"slabs automove 0\r\n",
                b"slabs automove 2\r\n",
                b"slabs automove 3\r\n",
                b"slabs automove -1\r\n",
                b"slabs automove 1 noreply\r\n",
                b"slabs automove ratio\r\n",
                b"slabs automove ratio x\r\n",
                b"slabs automove ratio 0.5\r\n",
            ],
        ),
        (
            "cachedump",
            &[
                b"stats cachedump\r\n",
                b"stats cachedump 1\r\n",
                b"stats cachedump x 1\r\n",
                b"stats cachedump 1 x\r\n",
                b"stats cachedump 1 0\r\n",
                b"stats cachedump 0 0\r\n",
                b"stats cachedump 1000 0\r\n",
                b"set a 5 0 3\r\nabc\r\n",
                b"stats cachedump 1 10\r\n",
                b"ms YWJj 1 b\r\nx\r\n",
                b"stats cachedump 1 0\r\n",
            ],
        ),
        (
            "verbosity",
            &[
                b"verbosity\r\n",
                b"verbosity invalid\r\n",
                b"verbosity 0 noreply\r\n",
                b"verbosity 1 2\r\n",
                b"verbosity 1 2 3\r\n",
                b"verbosity 0\r\n",
            ],
        ),
    ];
    compare(&QUIET, &MemcachedSettings::default(), cases);
    let dump: Steps<'_> =
        &[b"lru_crawler metadump all\r\n", b"stats cachedump 1 1\r\n", b"stats cachedump\r\n"];
    compare(
        &["-X"],
        &MemcachedSettings { dump: false, ..MemcachedSettings::default() },
        &[("no dumps", dump)],
    );
    let watch: Steps<'_> = &[b"watch\r\n", b"watch fetchers\r\n", b"watch bogus\r\n", b"watch noreply\r\n"];
    compare(&["-W"], &MemcachedSettings::default(), &[("no watch", watch)]);
    let slabs: Steps<'_> = &[b"slabs reassign 1 2\r\n", b"slabs reassign x y\r\n"];
    compare(&["-o", "no_slab_reassign"], &MemcachedSettings::default(), &[("no reassignment", slabs)]);
}

/// The lines of a metadump by their keys, each with the parts on which both servers must agree: whether it expires, and
/// whether it was fetched.
fn metadump(bytes: &[u8]) -> BTreeMap<String, (bool, String)> {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.strip_suffix("END\r\n").unwrap_or_else(|| panic!("no end: {text}"));
    let line = |line: &str| {
        let field = |name: &str| {
            let found = line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            found.unwrap_or_else(|| panic!("no {name} in {line}")).to_owned()
        };
        let date = |name: &str| field(name).parse::<i64>().expect("a date");
        assert!(date("la") > 1_000_000_000 && (date("exp") == -1 || date("exp") > date("la")), "{line}");
        for number in ["cas", "cls", "size"] {
            field(number).parse::<u64>().expect(number);
        }
        (field("key"), (date("exp") == -1, field("fetch")))
    };
    lines.lines().map(line).collect()
}

#[test]
fn a_dump_has_every_item_that_lives() {
    if !have_memcached() {
        return;
    }
    let big = [&b"set large 0 0 300000\r\n"[..], &vec![b'x'; 300_000], b"\r\n"].concat();
    let steps: &[&[u8]] = &[
        b"set gone 0 0 1\r\nx\r\nset old 0 -1 1\r\nx\r\ndelete gone\r\n",
        b"set a 0 0 1\r\nx\r\nget a\r\nset b 7 1000 2\r\nxy\r\n",
        b"set %-._~/\xff\x01\" 0 0 0\r\n\r\nms YWIgYw== 1 b\r\nx\r\n",
        &big,
    ];
    let theirs = Theirs::start(&QUIET);
    let mut ours = Ours::new(MemcachedSettings::default(), 4);
    let mut stream = theirs.connect();
    for step in steps {
        assert_eq!(ours.send(step), ask(&mut stream, step, b"mn\r\n", b"MN\r\n"));
    }
    for what in ["all", "hash"] {
        let command = format!("lru_crawler metadump {what}\r\n");
        let expected = metadump(&finish(theirs.connect(), command.as_bytes()));
        assert_eq!(expected.len(), 5, "{expected:?}");
        assert_eq!(metadump(&ours.send(command.as_bytes())), expected);
    }
    // By class: each item in one, and all classes together.
    let of_class = |ours: &mut Ours, class: &str| {
        metadump(&ours.send(format!("lru_crawler metadump {class}\r\n").as_bytes()))
    };
    let alone: Vec<usize> = (1..=200).map(|class| of_class(&mut ours, &class.to_string()).len()).collect();
    assert_eq!((alone.iter().sum::<usize>(), alone[0]), (5, 4), "{alone:?}");
    let all: Vec<String> = (1..=200).rev().map(|class| class.to_string()).collect();
    assert_eq!(of_class(&mut ours, &all.join(",")).len(), 5);
    // memcached 1.6.18 has no mgdump; later ones have.
    let dumped = ours.send(b"lru_crawler mgdump all\r\n");
    let lines: BTreeSet<&[u8]> = dumped.split_inclusive(|&byte| byte == b'\n').collect();
    let expected: [&[u8]; 6] = [
        b"EN\r\n",
        b"mg %-._~/\xff\x01\"\r\n",
        b"mg YWIgYw== b\r\n",
        b"mg a\r\n",
        b"mg b\r\n",
        b"mg large\r\n",
    ];
    assert_eq!(lines, BTreeSet::from(expected));
}

/// A dump has no end that fits a datagram: it is refused, and the server continues.
#[test]
fn a_datagram_gets_no_dump() {
    let server = Server::start(&["-t", "2"], &[]);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(("127.0.0.1", server.udp)).expect("an address");
    socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    for (request, expected) in [
        ("set a 0 0 1\r\nx\r\n", "STORED\r\n"),
        ("lru_crawler metadump all\r\n", "ERROR\r\n"),
        ("lru_crawler mgdump all\r\n", "ERROR\r\n"),
        ("get a\r\n", "VALUE a 0 1\r\nx\r\nEND\r\n"),
    ] {
        socket.send(&[b"\0\x01\0\0\0\x01\0\0", request.as_bytes()].concat()).expect("it takes datagrams");
        let mut reply = [0; 2000];
        let bytes = socket.recv(&mut reply).expect("it answers");
        assert_eq!(String::from_utf8_lossy(&reply[8..bytes]), expected, "{request}");
    }
}

/// Many items, with the program's threads, over both I/O backends: each is reported once, and the connection continues.
#[test]
fn a_dump_of_many_pages_has_each_item_once() {
    const KEYS: usize = 30_000;
    for backend in ["epoll", "fastest"] {
        let io = format!("chronos_io={backend}");
        let server = Server::start(&["-t", "3", "-o", &io], &[]);
        let mut stream = TcpStream::connect(("127.0.0.1", server.tcp)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        // In small parts with an answer each.
        for first in (0..KEYS).step_by(50) {
            let sets: String =
                (first..first + 50).map(|key| format!("set key{key} 0 0 5 noreply\r\nvalue\r\n")).collect();
            let got = ask(&mut stream, sets.as_bytes(), b"version\r\n", b"VERSION 1.6.18\r\n");
            assert_eq!(got.escape_ascii().to_string(), "", "{backend}, {first}");
        }
        stream.write_all(b"lru_crawler metadump all\r\nversion\r\n").expect("it listens");
        let mut lines = BufReader::new(stream).lines().map(|line| line.expect("it answers"));
        let keys: Vec<String> = lines.by_ref().take_while(|line| line != "END").collect();
        let keys: Vec<&str> = keys.iter().map(|line| line.split(' ').next().expect("a word")).collect();
        assert_eq!((keys.len(), keys.iter().collect::<BTreeSet<_>>().len()), (KEYS, KEYS), "{backend}");
        assert_eq!(lines.next().as_deref(), Some("VERSION 1.6.18"), "{backend}");
    }
}

/// Returns the output of `memcached-tool` for a server, sorted; the tool must end.
fn tool(address: &str, mode: &str) -> Vec<String> {
    let mut command = Command::new("perl");
    command.args([TOOL, address, mode]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("perl");
    let mut output = child.stdout.take().expect("a pipe");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        output.read_to_string(&mut text).map(|_| text)
    });
    let begin = Instant::now();
    while child.try_wait().expect("a child").is_none() {
        if begin.elapsed() > PATIENCE {
            // It fails only if it has ended meanwhile.
            drop(child.kill());
            panic!("memcached-tool {address} {mode} does not end");
        }
        std::thread::yield_now();
    }
    let text = reader.join().expect("a thread").expect("text");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn memcached_tool_ends_and_prints_the_same() {
    if !have_memcached() {
        return;
    }
    if !Path::new(TOOL).exists() || Command::new("perl").arg("-v").output().is_err() {
        return plimsoll_testing::missing("memcached-tool is not installed (apt-get install memcached perl)");
    }
    let (theirs, ours) = (Theirs::start(&QUIET), Server::start(&["-t", "2"], &[]));
    let mut stream = TcpStream::connect(("127.0.0.1", ours.tcp)).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    let stores = b"set a 0 0 1\r\nx\r\nset b 7 0 5\r\nhello\r\nset c%20d 0 0 0\r\n\r\n";
    assert_eq!(
        ask(&mut stream, stores, b"mn\r\n", b"MN\r\n"),
        ask(&mut theirs.connect(), stores, b"mn\r\n", b"MN\r\n")
    );
    let address = format!("127.0.0.1:{}", ours.tcp);
    let path = theirs.path().to_str().expect("a path");
    let dumped = tool(&address, "dump");
    assert_eq!(dumped, tool(path, "dump"));
    assert!(dumped.contains(&"add b 7 0 5".to_owned()), "{dumped:?}");
    assert_eq!(tool(&address, "keys").len(), 3);
    for (mode, least) in [("display", 2), ("stats", 60), ("settings", 50), ("sizes", 2)] {
        assert!(tool(&address, mode).len() >= least, "{mode}");
    }
}
