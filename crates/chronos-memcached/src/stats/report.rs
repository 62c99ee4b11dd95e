//! The lines of each report. Names are memcached's; a line whose number this server does not have is left out, and
//! the documentation lists those.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};

use plimsoll_chronos::TlsFiles;
use zerocopy::{FromBytes, IntoBytes};

use super::{Counters, Gauges, Prefixes, ReportSink, Shared, VERSION, add};
use crate::clock::Clock;
use crate::session::Protocol;
use crate::settings::MemcachedSettings;
use crate::store::ClassReport;

/// Writes the report of `stats`.
pub fn general(
    parts: &[Vec<u8>],
    settings: &MemcachedSettings,
    shared: &Shared,
    memory_limit: u64,
    clock: Clock,
    sink: &mut dyn ReportSink,
) {
    let (mut counters, mut gauges) = (Counters::default(), Gauges::default());
    for part in parts {
        let (ours, theirs) = part.split_at(size_of::<Counters>());
        add(&mut counters, ours);
        add(&mut gauges, theirs);
    }
    let counts = gauges.counts;
    counters.get_expired += counts.replaced_expired;
    counters.get_flushed += counts.replaced_flushed;
    process(settings, shared, clock, sink);
    let is_sweeping = gauges.sweeping > 0 && shared.crawler.load(Ordering::Relaxed);
    let lines = [
        ("bytes_read", shared.bytes_read.load(Ordering::Relaxed)),
        ("bytes_written", counters.bytes_written),
        ("limit_maxbytes", memory_limit),
        ("accepting_conns", 1),
        ("threads", u64::from(settings.threads)),
        ("hash_power_level", (gauges.index_bytes / 8).max(1).ilog2().into()),
        ("hash_bytes", gauges.index_bytes),
        ("slab_reassign_running", 0),
        ("slabs_moved", gauges.pages_moved),
        ("lru_crawler_running", is_sweeping.into()),
        ("lru_crawler_starts", gauges.sweeps),
        ("malloc_fails", 0),
        ("log_watchers", 0),
        ("bytes", gauges.bytes),
        ("curr_items", gauges.items),
        ("total_items", gauges.items_total),
        ("slab_global_page_pool", 0),
        ("expired_unfetched", counts.expired_unfetched),
        ("evicted_unfetched", counts.evicted_unfetched),
        ("evicted_active", counts.evicted_active),
        ("evictions", counts.evicted),
        ("reclaimed", counts.reclaimed),
        ("crawler_reclaimed", counts.swept),
        ("crawler_items_checked", counts.looked_at),
        ("lrutail_reflocked", 0),
        ("moves_to_cold", 0),
        ("moves_to_warm", 0),
        ("moves_within_lru", 0),
        ("direct_reclaims", 0),
        ("store_too_large", shared.too_large.load(Ordering::Relaxed)),
        ("store_no_memory", counters.no_memory),
        ("auth_cmds", shared.auth_commands.load(Ordering::Relaxed)),
        ("auth_errors", shared.auth_errors.load(Ordering::Relaxed)),
        ("chronos_partitions", parts.len() as u64),
    ];
    for (name, value) in counters.lines().into_iter().chain(lines) {
        sink.line(name, &value);
    }
}

fn process(settings: &MemcachedSettings, shared: &Shared, clock: Clock, sink: &mut dyn ReportSink) {
    sink.line("pid", &std::process::id());
    sink.line("uptime", &clock.uptime());
    sink.line("time", &clock.unix_seconds);
    sink.line("version", &VERSION);
    sink.line("pointer_size", &usize::BITS);
    if let Some([user, system]) = processor_seconds() {
        sink.line("rusage_user", &format_args!("{user:.6}"));
        sink.line("rusage_system", &format_args!("{system:.6}"));
    }
    sink.line("max_connections", &settings.connections_max);
    sink.line("curr_connections", &shared.connections.load(Ordering::Relaxed));
    sink.line("total_connections", &shared.connections_total.load(Ordering::Relaxed));
    let runtime = shared.runtime.get().map(|runtime| runtime.total()).unwrap_or_default();
    sink.line("rejected_connections", &runtime.refused);
    if settings.idle_timeout > 0 {
        sink.line("idle_kicks", &runtime.timed_out);
    }
    sink.line("listen_disabled_num", &runtime.accept_errors);
    sink.line("conn_yields", &runtime.yields);
    if let Some(certificates) = shared.certificates.get() {
        let seconds = clock.uptime().saturating_sub(certificates.read_at.load(Ordering::Relaxed));
        sink.line("time_since_server_cert_refresh", &seconds);
    }
    sink.line("chronos_memory_kicks", &runtime.shed);
    sink.line("chronos_requests_own", &runtime.own);
    sink.line("chronos_requests_foreign", &runtime.foreign);
    sink.line("chronos_partitions_moved", &runtime.adopted);
    let balance = shared.runtime.get().map(|runtime| runtime.balance()).unwrap_or_default();
    sink.line("chronos_groups_split", &balance.splits);
    sink.line("chronos_groups_joined", &balance.joins);
    sink.line("chronos_partitions_across_nodes", &balance.crossings);
    sink.line("chronos_datagrams", &runtime.datagrams);
    sink.line("chronos_datagrams_dropped", &runtime.dropped);
    if shared.runtime.get().is_some_and(|runtime| !runtime.devices().is_empty()) {
        sink.line("chronos_xdp_bad_checksums", &runtime.bad_checksums);
        sink.line("chronos_xdp_malformed", &runtime.malformed);
        sink.line("chronos_xdp_overruns", &runtime.overruns);
    }
}

/// Returns the processor seconds of this process in user and system mode, which the kernel counts in hundredths.
fn processor_seconds() -> Option<[f64; 2]> {
    const TICKS_PER_SECOND: f64 = 100.0;
    let line = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name, which may hold anything but ends with the last parenthesis.
    let mut fields = line[line.rfind(')')? + 1..].split_whitespace().skip(11);
    let mut seconds = || Some(fields.next()?.parse::<f64>().ok()? / TICKS_PER_SECOND);
    Some([seconds()?, seconds()?])
}

/// Adds up the reports of partitions by class; ages are the largest.
fn classes(parts: &[Vec<u8>]) -> BTreeMap<u64, ClassReport> {
    let mut classes: BTreeMap<u64, ClassReport> = BTreeMap::new();
    for row in parts.iter().flat_map(|part| part.chunks_exact(size_of::<ClassReport>())) {
        let row = ClassReport::read_from_bytes(row).expect("a report of a class");
        let sum = classes.entry(row.number).or_default();
        add(&mut sum.counts, row.counts.as_bytes());
        *sum = ClassReport {
            pages: sum.pages + row.pages,
            used: sum.used + row.used,
            requested: sum.requested + row.requested,
            age: sum.age.max(row.age),
            evicted_age: sum.evicted_age.max(row.evicted_age),
            counts: sum.counts,
            ..row
        };
    }
    classes
}

/// Writes `stats items`: the classes with items, or with counts.
pub fn items(parts: &[Vec<u8>], sink: &mut dyn ReportSink) {
    for (number, class) in classes(parts) {
        let counts = class.counts;
        // One list has items of all ages, like memcached's cold list when its LRU is flat.
        for (name, value) in [
            ("number", class.used),
            ("number_hot", 0),
            ("number_warm", 0),
            ("number_cold", class.used),
            ("age_hot", 0),
            ("age_warm", 0),
            ("age", class.age),
            ("mem_requested", class.requested),
            ("evicted", counts.evicted),
            ("evicted_nonzero", counts.evicted_nonzero),
            ("evicted_time", class.evicted_age),
            ("outofmemory", counts.out_of_memory),
            ("tailrepairs", 0),
            ("reclaimed", counts.reclaimed),
            ("expired_unfetched", counts.expired_unfetched),
            ("evicted_unfetched", counts.evicted_unfetched),
            ("evicted_active", counts.evicted_active),
            ("crawler_reclaimed", counts.swept),
            ("crawler_items_checked", counts.looked_at),
            ("lrutail_reflocked", 0),
            ("moves_to_cold", 0),
            ("moves_to_warm", 0),
            ("moves_within_lru", 0),
            ("direct_reclaims", 0),
            ("hits_to_hot", 0),
            ("hits_to_warm", 0),
            ("hits_to_cold", counts.get_hits),
            ("hits_to_temp", 0),
        ] {
            sink.line(&format!("items:{}:{name}", number + 1), &value);
        }
    }
}

/// Writes the report of `stats slabs`.
pub fn slabs(parts: &[Vec<u8>], bytes_held: u64, sink: &mut dyn ReportSink) {
    let classes = classes(parts);
    for (number, class) in &classes {
        let chunks = class.pages * class.chunks_per_page;
        let lines = [
            ("chunk_size", class.chunk_bytes),
            ("chunks_per_page", class.chunks_per_page),
            ("total_pages", class.pages),
            ("total_chunks", chunks),
            ("used_chunks", class.used),
            ("free_chunks", chunks - class.used),
            ("free_chunks_end", 0),
        ];
        for (name, value) in lines.into_iter().chain(class.counts.lines()) {
            sink.line(&format!("{}:{name}", number + 1), &value);
        }
    }
    sink.line("active_slabs", &classes.values().filter(|class| class.pages > 0).count());
    sink.line("total_malloced", &bytes_held);
}

/// Returns the report of `stats detail dump`.
pub fn detail(parts: &[Vec<u8>]) -> Vec<u8> {
    let mut sums = Prefixes::default();
    for part in parts {
        sums.add(part);
    }
    let mut text = Vec::new();
    for (prefix, [gets, hits, sets, deletions]) in sums.iter() {
        text.extend_from_slice(b"PREFIX ");
        text.extend_from_slice(prefix);
        text.extend_from_slice(format!(" get {gets} hit {hits} set {sets} del {deletions}\r\n").as_bytes());
    }
    text.extend_from_slice(b"END\r\n");
    text
}

/// Writes the report of `stats settings`.
pub fn settings(settings: &MemcachedSettings, shared: &Shared, memory_limit: u64, sink: &mut dyn ReportSink) {
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let number = |place: &AtomicU32| place.load(Ordering::Relaxed);
    sink.line("maxbytes", &memory_limit);
    sink.line("maxconns", &settings.connections_max);
    sink.line("tcpport", &settings.tcp_port);
    sink.line("udpport", &settings.udp_port);
    sink.line("inter", &settings.listen.as_deref().unwrap_or("NULL"));
    sink.line("verbosity", &number(&shared.verbosity));
    sink.line("evictions", &if settings.evict { "on" } else { "off" });
    match &settings.unix_socket {
        Some(path) => sink.line("domain_socket", &path.display()),
        None => sink.line("domain_socket", &"NULL"),
    }
    sink.line("umask", &format_args!("{:o}", settings.unix_mask));
    sink.line("shutdown_command", &yes_no(settings.shutdown));
    sink.line("growth_factor", &format_args!("{:.2}", settings.growth_factor));
    sink.line("chunk_size", &settings.chunk_size);
    sink.line("num_threads", &settings.threads);
    sink.line("num_threads_per_udp", &settings.threads);
    sink.line("stat_key_prefix", &char::from(settings.prefix_delimiter));
    sink.line("detail_enabled", &yes_no(shared.detail.load(Ordering::Relaxed)));
    sink.line("reqs_per_event", &settings.requests_per_turn);
    sink.line("cas_enabled", &yes_no(settings.cas));
    sink.line("tcp_backlog", &settings.backlog);
    let protocol = match settings.protocol {
        Protocol::Unknown => "auto-negotiate",
        Protocol::Text => "ascii",
        Protocol::Binary => "binary",
    };
    sink.line("binding_protocol", &protocol);
    sink.line("auth_enabled_sasl", &yes_no(settings.sasl));
    sink.line("auth_enabled_ascii", &yes_no(settings.credentials.is_some() && !settings.sasl));
    sink.line("item_size_max", &settings.item_size_max);
    sink.line("maxconns_fast", &"yes");
    // Pages move from class to class by themselves, and no command moves them.
    sink.line("slab_reassign", &"no");
    sink.line("slab_automove", &number(&shared.automove));
    sink.line("lru_crawler", &yes_no(shared.crawler.load(Ordering::Relaxed)));
    sink.line("lru_crawler_sleep", &number(&shared.crawler_sleep));
    sink.line("lru_crawler_tocrawl", &number(&shared.crawler_items));
    sink.line("tail_repair_time", &0);
    sink.line("flush_enabled", &yes_no(settings.flush));
    sink.line("dump_enabled", &yes_no(settings.dump));
    sink.line("lru_maintainer_thread", &"no");
    sink.line("lru_segmented", &"no");
    // memcached's defaults, which change nothing here.
    sink.line("hot_lru_pct", &20);
    sink.line("warm_lru_pct", &40);
    sink.line("hot_max_factor", &"0.20");
    sink.line("warm_max_factor", &"2.00");
    sink.line("temp_lru", &"no");
    sink.line("idle_timeout", &settings.idle_timeout);
    sink.line("track_sizes", &"no");
    sink.line("inline_ascii_response", &"no");
    sink.line("ssl_enabled", &yes_no(settings.tls.is_some()));
    match &settings.tls {
        Some(TlsFiles { chain, key, .. }) => {
            sink.line("ssl_chain_cert", &chain.display());
            sink.line("ssl_key", &key.display());
        }
        None => ["ssl_chain_cert", "ssl_key"].iter().for_each(|name| sink.line(name, &"(null)")),
    }
    // memcached shows the bits of OpenSSL that a mode sets: verify, refuse without a certificate, verify once.
    let bits = [0, 1, 3, 7];
    sink.line("ssl_verify_mode", &bits[settings.tls_verification as usize]);
    sink.line("ssl_keyformat", &1);
    sink.line("ssl_ciphers", &"NULL");
    match &settings.tls_authority {
        Some(path) => sink.line("ssl_ca_cert", &path.display()),
        None => sink.line("ssl_ca_cert", &"NULL"),
    }
    sink.line("ssl_wbuf_size", &settings.tls_write_bytes);
    sink.line("ssl_session_cache", &"no");
    sink.line("ssl_kernel_tls", &"no");
    sink.line("ssl_min_version", &"tlsv1.2");
    sink.line("num_napi_ids", &"(null)");
    match &settings.memory_file {
        Some(path) => sink.line("memory_file", &path.display()),
        None => sink.line("memory_file", &"(null)"),
    }
    sink.line("chronos_partitions", &settings.partitions);
    for device in shared.runtime.get().map(|runtime| runtime.devices()).unwrap_or_default() {
        // A line such as "chronos_xdp:eth0 native XDP, zero copy, ..."
        sink.line(&format!("chronos_xdp:{}", device.name), &device.mode);
    }
}
