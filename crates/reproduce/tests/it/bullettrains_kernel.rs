//! BulletTrains' bursts on this kernel: what TCP hands over, and the committed page.

use std::sync::{Mutex, PoisonError};

use plimsoll_reproduce::{Journal, Options, StudyRow, reproduce, study};

use crate::common;

/// The namespaces of a measurement have the number of their process, which has one at a time.
static MACHINE: Mutex<()> = Mutex::new(());

/// Measures points for a short time; none where this system lacks what they need.
fn measured(parts: &[&str]) -> Option<Vec<StudyRow>> {
    let _alone = MACHINE.lock().unwrap_or_else(PoisonError::into_inner);
    let only = parts.iter().map(|part| part.parse().expect("any text is a part")).collect();
    let servers = std::path::PathBuf::new();
    let options = Options { quick: true, threads: 2, seed: 1, servers, only, commit: None };
    match reproduce(study("bullettrains-kernel"), &options, &mut Journal::in_memory(), &|_, _, _| true) {
        Err(error) => {
            let lacks = ["this system lacks", "is not installed"];
            assert!(lacks.iter().any(|why| error.to_string().contains(why)), "{error}");
            plimsoll_testing::skipped!("{error}");
            None
        }
        Ok(made) => Some(made.rows),
    }
}

#[test]
fn tcp_hands_over_segments_as_large_as_the_device_allows() {
    let Some(rows) = measured(&["fig3.7@16384,65536,151552", "fig3.6"]) else { return };
    let most = |figure: &str, series: &str, x: &str| {
        let is = |row: &&StudyRow| {
            (row.figure.as_str(), row.base.as_str(), row.metric.as_str()) == (figure, "kernel", "segment_p90")
                && (row.series.as_str(), row.x.as_str()) == (series, x)
        };
        rows.iter().find(is).map(|row| row.measured)
    };
    // 16, 64 and 148 KB less the room that the kernel keeps for headers are 11, 44 and 103 packets of 1460 B.
    for (x, packets) in [("16384", 11.0), ("65536", 44.0), ("151552", 103.0)] {
        assert_eq!(most("fig3.7", "no rate", x), Some(packets), "{x}");
    }
    let most = |series: &str| most("fig3.6", series, "links of 500 Mb/s");
    for (series, packets) in [("tso-gro", 44.0), ("gro", 1.0), ("none", 1.0), ("one-by-one", 1.0)] {
        assert_eq!(most(series), Some(packets), "{series}");
    }
    // Without GRO a receiver acknowledges every second packet, and a busy machine hands over after each
    // acknowledgement.
    assert!(most("tso").is_some_and(|packets| packets > 1.0 && packets <= 44.0), "{:?}", most("tso"));
}

#[test]
fn a_servers_bursts_are_what_it_hands_over_and_memcached_has_none() {
    let Some(rows) = measured(&["fig3.3@32,64", "fig3.4@32,64", "fig3.5@links of 500 Mb/s", "memcached"])
    else {
        return;
    };
    let of = |figure: &str, series: &str, x: &str, metric: &str| {
        let is = |row: &&StudyRow| {
            (row.figure.as_str(), row.base.as_str(), row.metric.as_str()) == (figure, "kernel", metric)
                && (row.series.as_str(), row.x.as_str()) == (series, x)
        };
        rows.iter().find(is).map_or(f64::NAN, |row| row.measured)
    };
    // 32 and 64 KB are 22 and 44 packets of 1460 B.
    for (x, packets) in [("32", 22.0), ("64", 44.0)] {
        for (figure, series) in [("fig3.3", "nfs"), ("fig3.4", "hdfs")] {
            let segment = |percentile: &str| of(figure, series, x, &format!("segment_{percentile}"));
            // A disk that is late, for want of a processor, hands over two batches at once.
            assert!(
                segment("p10") <= packets && packets <= segment("p90"),
                "{series} at {x}: {} to {}",
                segment("p10"),
                segment("p90")
            );
        }
    }
    assert!(of("fig3.5", "20 MB", "links of 500 Mb/s", "segment_p90") >= 40.0);
    for x in ["no rate", "links of 500 Mb/s"] {
        let longest = of("memcached", "memcached", x, "segment_p90");
        assert!(longest <= 2.0, "{x}: {longest}");
    }
}

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("bullettrains-kernel"));
}

#[test]
fn every_committed_row_that_is_off_is_told() {
    assert!(!common::committed(study("bullettrains-kernel")).1.quick, "the committed page is of a full run");
    common::rows_that_are_off_are_told(study("bullettrains-kernel"));
}
