//! Servers that follow each other, without a network.

use std::path::Path;
use std::time::Duration;

use plimsoll_chronos::{Direct, Now, SessionTransport};

use super::*;
use crate::MemcachedSettings;

/// The date at which the first server starts.
const START: u64 = 1_800_000_000;

fn settings(partitions: u32) -> MemcachedSettings {
    let memory_limit = 16 << 20;
    MemcachedSettings {
        memory_limit,
        partitions,
        hash_secret: partitions.into(),
        ..MemcachedSettings::default()
    }
}

/// A server that runs, and the date at which it started.
struct RunningMemcached {
    direct: Direct<Memcached>,
    started: u64,
}

impl RunningMemcached {
    fn start(path: &Path, settings: &MemcachedSettings, started: u64) -> RunningMemcached {
        let server = Memcached::new(settings.clone()).expect("good settings");
        let server = MemoryFile::new(path.to_owned()).restore(server, started).expect("a file");
        RunningMemcached { direct: Direct::new(server, settings.partitions), started }
    }

    fn now(&self, date: u64) -> Now {
        Now { since_start: Duration::from_secs(date - self.started), unix_seconds: date }
    }

    fn ask(&mut self, date: u64, request: &str) -> String {
        let (now, mut reply) = (self.now(date), Vec::new());
        let mut session = self.direct.service().open(SessionTransport::Tcp);
        self.direct.serve(&mut session, now, request.as_bytes(), &mut reply);
        String::from_utf8(reply).expect("text")
    }

    /// Stops as SIGUSR1 does; returns the number of items that were kept.
    fn stop(self, date: u64) -> u64 {
        let file = self.direct.service().memory_file.clone().expect("a file");
        file.want();
        let now = self.now(date);
        self.direct.end(now);
        file.kept().expect("it is written").expect("it was wanted")
    }
}

fn cas_of(reply: &str) -> u64 {
    let line = reply.lines().next().expect("a line");
    line.rsplit(' ').next().and_then(|word| word.parse().ok()).expect("a cas value")
}

#[test]
fn items_come_back_with_their_cas_values_and_the_rest_of_their_time() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items");
    let mut first = RunningMemcached::start(&path, &settings(16), START);
    let large = "x".repeat(300_000);
    for (request, expected) in [
        ("set a 5 0 1\r\nx\r\n", "STORED\r\n"),
        ("set minute 0 60 1\r\nx\r\n", "STORED\r\n"),
        ("set ten 0 10 1\r\nx\r\n", "STORED\r\n"),
        ("set dead 0 1 1\r\nx\r\n", "STORED\r\n"),
        ("set gone 0 0 1\r\nx\r\ndelete gone\r\n", "STORED\r\nDELETED\r\n"),
        ("ms c3RhbGU= 1 b\r\nx\r\nmd c3RhbGU= b I\r\n", "HD\r\nHD\r\n"),
        (&format!("set large 0 0 300000\r\n{large}\r\n"), "STORED\r\n"),
    ] {
        assert_eq!(first.ask(START, request), expected, "{request:.40}");
    }
    let before = first.ask(START + 2, "gets a\r\n");
    let greatest =
        (0..64).map(|key| first.ask(START + 2, &format!("set z 0 0 1\r\n{}\r\ngets z\r\n", key % 10)));
    let greatest = greatest.map(|reply| cas_of(reply.split_once("\r\n").expect("two replies").1)).max();
    assert_eq!(first.stop(START + 2), 6);
    // The second has another number of partitions, so that keys are elsewhere.
    let mut second = RunningMemcached::start(&path, &settings(4), START + 20);
    assert!(!path.exists(), "a crash of the second would bring its items back");
    assert_eq!(second.ask(START + 20, "gets a\r\n"), before);
    assert_eq!(second.ask(START + 20, "get ten dead gone\r\n"), "END\r\n");
    assert_eq!(second.ask(START + 20, "mg minute t\r\n"), "HD t40\r\n");
    assert_eq!(
        second.ask(START + 20, "get large\r\n"),
        format!("VALUE large 0 300000\r\n{large}\r\nEND\r\n")
    );
    // It is won once, and is still stale.
    assert_eq!(second.ask(START + 20, "mg c3RhbGU= b v\r\n"), "VA 1 X W\r\nx\r\n");
    let stats = second.ask(START + 20, "stats\r\n");
    assert!(stats.contains("STAT curr_items 5\r\n") && stats.contains("STAT cmd_set 0\r\n"), "{stats}");
    for key in 0..16 {
        let set = second.ask(START + 20, &format!("set new{key} 0 0 1\r\nx\r\ngets new{key}\r\n"));
        assert!(Some(cas_of(set.split_once("\r\n").expect("two replies").1)) > greatest, "{set}");
    }
    let cas = cas_of(&before);
    assert_eq!(
        second.ask(START + 60, &format!("cas a 0 0 1 {cas}\r\ny\r\nget minute\r\n")),
        "STORED\r\nEND\r\n"
    );
}

#[test]
fn a_flush_to_come_comes_after_the_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items");
    for (restart, live) in [(5, "VALUE a 0 1\r\nx\r\nEND\r\n"), (40, "END\r\n")] {
        let mut first = RunningMemcached::start(&path, &settings(4), START);
        assert_eq!(first.ask(START, "set a 0 0 1\r\nx\r\nflush_all 30\r\n"), "STORED\r\nOK\r\n");
        first.stop(START + 1);
        let mut second = RunningMemcached::start(&path, &settings(4), START + restart);
        assert_eq!(second.ask(START + restart, "get a\r\n"), live);
        assert_eq!(second.ask(START + 50, "get a\r\n"), "END\r\n");
    }
}

#[test]
fn only_a_stop_that_keeps_writes_the_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items");
    let mut first = RunningMemcached::start(&path, &settings(4), START);
    first.ask(START, "set a 0 0 1\r\nx\r\n");
    let now = first.now(START);
    first.direct.end(now);
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

/// Every file that is cut short, and every file with a changed bit, gives an empty cache.
#[test]
fn a_damaged_file_gives_an_empty_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items");
    let mut first = RunningMemcached::start(&path, &settings(4), START);
    first.ask(START, "set a 0 0 3\r\nabc\r\nset b 0 90 1\r\nx\r\n");
    assert_eq!(first.stop(START), 2);
    let good = fs::read(&path).expect("a file");
    let cut = (0..good.len()).map(|length| good[..length].to_vec());
    let changed = (MAGIC.len()..good.len()).map(|place| {
        let mut bytes = good.clone();
        bytes[place] ^= 1 << (place % 8);
        bytes
    });
    let longer = [good.clone(), b"x".to_vec()].concat();
    let damaged: Vec<Vec<u8>> = cut.chain(changed).chain([longer]).collect();
    assert!(damaged.len() > 200, "{}", damaged.len());
    for bytes in damaged {
        fs::write(&path, &bytes).expect("a file");
        let mut server = RunningMemcached::start(&path, &settings(4), START);
        assert_eq!(server.ask(START, "get a b\r\n"), "END\r\n", "{}", bytes.escape_ascii());
        assert!(!path.exists(), "it would be read again");
    }
    fs::write(&path, &good).expect("a file");
    assert_eq!(
        RunningMemcached::start(&path, &settings(4), START).ask(START, "get b\r\n"),
        "VALUE b 0 1\r\nx\r\nEND\r\n"
    );
}

#[test]
fn a_server_without_cas_values_does_not_read_a_file_with_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items");
    let without = MemcachedSettings { cas: false, ..settings(4) };
    for (first, second, live) in
        [(&settings(4), &without, false), (&without, &settings(4), false), (&without, &without, true)]
    {
        let mut server = RunningMemcached::start(&path, first, START);
        server.ask(START, "set a 0 0 1\r\nx\r\n");
        server.stop(START);
        let reply = RunningMemcached::start(&path, second, START).ask(START, "get a\r\n");
        assert_eq!(reply.starts_with("VALUE"), live, "{reply}");
    }
}

/// Items that have no room, or are above a smaller `-I`, are left out.
#[test]
fn a_smaller_server_keeps_what_it_has_room_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items");
    let mut first = RunningMemcached::start(&path, &settings(4), START);
    for key in 0..200 {
        first.ask(START, &format!("set k{key} 0 0 50000\r\n{}\r\n", "x".repeat(50_000)));
    }
    first.ask(START, "set small 0 0 1\r\nx\r\n");
    assert_eq!(first.stop(START), 201);
    let file = MemoryFile::new(path);
    let small = MemcachedSettings { memory_limit: 4 << 20, evict: false, ..settings(4) };
    let restored = file.restore(Memcached::new(small).expect("good settings"), START).expect("a file");
    let items = |server: &Memcached| {
        let restored = server.restored.lock().expect("no thread panicked");
        restored.iter().flatten().map(|partition| partition.store.count_items()).sum::<u64>()
    };
    assert!((20..100).contains(&items(&restored)), "{}", items(&restored));
}

#[test]
fn files_of_others_are_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items");
    fs::write(&path, "a letter").expect("a file");
    let server = || Memcached::new(settings(4)).expect("good settings");
    let error = MemoryFile::new(path.clone()).restore(server(), START).expect_err("no file of ours");
    assert!(format!("{error:#}").contains("it is no file of chronos-memcached; remove it"), "{error:#}");
    assert_eq!(fs::read(&path).expect("a file"), b"a letter");
    let nowhere = folder.path().join("nowhere/items");
    let error = MemoryFile::new(nowhere).restore(server(), START).expect_err("no folder");
    assert!(format!("{error:#}").contains("cannot write there"), "{error:#}");
    let error = MemoryFile::new(folder.path().to_owned()).restore(server(), START).expect_err("a folder");
    assert!(format!("{error:#}").contains("a directory"), "{error:#}");
}

#[test]
fn a_file_that_cannot_be_completed_is_not_left() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("items");
    let mut server = RunningMemcached::start(&path, &settings(2), START);
    assert_eq!(server.ask(START, "set a 0 0 1\r\nx\r\n"), "STORED\r\n");
    // Nothing can be renamed to a folder with contents.
    fs::create_dir_all(path.join("more")).expect("a folder");
    let file = server.direct.service().memory_file.clone().expect("a file");
    file.want();
    let now = server.now(START + 1);
    server.direct.end(now);
    assert!(file.kept().is_err());
    assert!(!folder.path().join("items.tmp").exists());
}
