//! The memcached exporter of the Prometheus project finds every statistic that it reads.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_chronos_memcached::MemcachedSettings;

use crate::common::server::Server;
use crate::common::{Ours, Theirs, have_memcached};

/// The fields that version 0.14 of the exporter reads, except the fields of extstore and of the proxy, which memcached
/// has only where it runs them.
const GENERAL: &str = "version uptime time get_hits get_misses delete_hits delete_misses incr_hits incr_misses \
    decr_hits decr_misses cas_hits cas_misses cas_badval touch_hits touch_misses cmd_flush cmd_set rusage_user \
    rusage_system bytes limit_maxbytes curr_items total_items bytes_read bytes_written curr_connections \
    total_connections rejected_connections conn_yields listen_disabled_num evictions reclaimed store_too_large \
    store_no_memory lru_crawler_starts direct_reclaims crawler_items_checked crawler_reclaimed moves_to_cold \
    moves_to_warm moves_within_lru accepting_conns";
const ITEMS: &str = "number age hits_to_hot hits_to_warm hits_to_cold hits_to_temp crawler_reclaimed evicted \
    evicted_nonzero evicted_time evicted_unfetched expired_unfetched outofmemory reclaimed tailrepairs mem_requested \
    moves_to_cold moves_to_warm moves_within_lru number_hot number_warm number_cold age_hot age_warm";
const SLABS: &str = "get_hits delete_hits incr_hits decr_hits cas_hits touch_hits cas_badval cmd_set chunk_size \
    chunks_per_page total_pages total_chunks used_chunks free_chunks free_chunks_end";
const SETTINGS: &str = "maxconns lru_crawler lru_crawler_sleep lru_crawler_tocrawl lru_maintainer_thread hot_lru_pct \
    warm_lru_pct hot_max_factor warm_max_factor";

#[test]
fn every_field_that_the_exporter_reads_is_there() {
    let mut ours = Ours::new(MemcachedSettings::default(), 1);
    ours.send(b"set a 0 0 1\r\nx\r\nget a\r\n");
    for (report, prefix, fields) in [
        ("stats", "", GENERAL),
        ("stats items", "items:1:", ITEMS),
        ("stats slabs", "1:", SLABS),
        ("stats slabs", "", "total_malloced"),
        ("stats settings", "", SETTINGS),
    ] {
        let text = String::from_utf8(ours.send(format!("{report}\r\n").as_bytes())).expect("text");
        for field in fields.split_whitespace() {
            let line = format!("STAT {prefix}{field} ");
            assert!(text.lines().any(|found| found.starts_with(&line)), "{report}: {line} is missing");
        }
    }
}

/// The exporter beside a server; it ends when this is dropped.
struct Exporter {
    child: Child,
    address: String,
}

impl Exporter {
    /// None where it is not installed.
    fn start(server: &Path) -> Option<Exporter> {
        let of_name = |name| {
            Command::new(name)
                .args([
                    &format!("--memcached.address={}", server.display()),
                    "--web.listen-address=127.0.0.1:0",
                ])
                .stderr(Stdio::piped())
                .spawn()
                .ok()
        };
        let mut child =
            ["memcached_exporter", "prometheus-memcached-exporter"].into_iter().find_map(of_name)?;
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let listening = lines.find_map(|line| {
            let line = line.ok()?;
            line.contains("Listening on").then(|| line.split("address=").nth(1).map(str::to_owned))?
        });
        // Its later output is discarded.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Exporter { child, address: listening.expect("it listens") })
    }

    /// The names of its metrics, with their labels.
    fn metrics(&self) -> BTreeSet<String> {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").expect("it reads");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("it answers");
        assert!(text.contains("\nmemcached_up 1\n"), "{text}");
        let samples = text.lines().filter(|line| line.starts_with("memcached_"));
        // The numbers of size classes differ.
        let is_class = |name: &str| name.contains("slab=");
        let names = samples.filter_map(|line| line.rsplit_once(' ')).map(|(name, _)| name.to_owned());
        names.map(|name| if is_class(&name) { without_number(&name) } else { name }).collect()
    }
}

fn without_number(name: &str) -> String {
    let Some((before, after)) = name.split_once("slab=\"") else { return name.to_owned() };
    format!("{before}slab=\"{}", after.trim_start_matches(|digit: char| digit.is_ascii_digit()))
}

impl Drop for Exporter {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Causes statistics of every kind.
fn store(path: &Path) {
    let mut stream = UnixStream::connect(path).expect("it listens");
    stream.write_all(b"set a 0 0 1\r\nx\r\nget a\r\nquit\r\n").expect("it reads");
    stream.read_to_string(&mut String::new()).expect("it answers");
}

#[test]
fn the_exporter_shows_what_it_shows_of_memcached() {
    if !have_memcached() {
        return;
    }
    let (theirs, (_server, path)) = (Theirs::start(&[]), Server::start_unix(&["-t", "2"]));
    let metrics = |path: &Path| {
        store(path);
        Some(Exporter::start(path)?.metrics())
    };
    let (Some(got), Some(expected)) = (metrics(&path), metrics(theirs.path())) else {
        plimsoll_testing::skipped!("memcached_exporter is not installed (make check-all builds it)");
        return;
    };
    assert!(expected.len() > 60, "{expected:?}");
    assert_eq!(got, expected);
}
