//! BulletTrains' bursts on this kernel: what TCP hands over, and the committed page.

use plimsoll_reproduce::{Journal, Options, StudyRow, reproduce, study};

use crate::common;

#[test]
fn tcp_hands_over_segments_as_large_as_the_device_allows() {
    let only = vec![
        "fig3.7@16384,65536,151552".parse().expect("any text is a part"),
        "fig3.6".parse().expect("any text is a part"),
    ];
    let servers = std::path::PathBuf::new();
    let options = Options { quick: true, threads: 2, seed: 1, servers, only, commit: None };
    let made = reproduce(study("bullettrains-kernel"), &options, &mut Journal::in_memory(), &|_, _, _| true);
    let made = match made {
        Err(error) if error.to_string().contains("this system lacks") => {
            plimsoll_testing::skipped!("{error}");
            return;
        }
        made => made.expect("the hosts are joined"),
    };
    let most = |figure: &str, series: &str, x: &str| {
        let is = |row: &&StudyRow| {
            (row.figure.as_str(), row.base.as_str(), row.metric.as_str()) == (figure, "kernel", "segment_p90")
                && (row.series.as_str(), row.x.as_str()) == (series, x)
        };
        made.rows.iter().find(is).map(|row| row.measured)
    };
    // 16, 64 and 148 KB less the room that the kernel keeps for headers are 11, 44 and 103 packets of 1460 B.
    for (x, packets) in [("16384", 11.0), ("65536", 44.0), ("151552", 103.0)] {
        assert_eq!(most("fig3.7", "no rate", x), Some(packets), "{x}");
    }
    for (series, packets) in
        [("tso-gro", 44.0), ("tso", 44.0), ("gro", 1.0), ("none", 1.0), ("one-by-one", 1.0)]
    {
        assert_eq!(most("fig3.6", series, "links of 500 Mb/s"), Some(packets), "{series}");
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
