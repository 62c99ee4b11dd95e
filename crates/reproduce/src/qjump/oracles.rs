//! Values that theory settles exactly: completion times on idle links, mean sizes, the bound reached.

use std::path::Path;

use plimsoll_results::outcome::Message;
use plimsoll_scenario::distribution::{Distribution, SizeDistribution};

use super::SCHEMES;
use crate::error::ReproduceError;
use crate::row::Row;
use crate::single_run::run_once;
use crate::study::Study;
use plimsoll_experiment::measure::SEGMENT_BYTES;

/// Measures all of them, with the scenarios in a folder.
pub(crate) fn theory(study: &Study, seed: u64, folder: &Path) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = idle(study, seed, folder)?;
    rows.extend(means());
    rows.push(all_at_once(study, seed, folder)?);
    rows.extend(switch_model(study, seed, folder)?);
    rows.extend(testbed(study, seed, folder)?);
    Ok(rows)
}

/// The bound n P / R + eps of Fig. 11's 60 senders of 256 B at 0.8 ns a byte and 4 x 3 us of path: 24.288 us.
const BOUND_US: f64 = (60.0 * 256.0 * 0.8 + 4.0 * 3_000.0) / 1e3;

/// Returns the mean of a bundled distribution in bytes, as loads are shared out by it.
fn mean_bytes(cdf: &str) -> f64 {
    let mut sizes: SizeDistribution = Distribution::Cdf {
        cdf: cdf.to_owned(),
        tag: None,
        interpolate: None,
        in_multiples_of: None,
        table: None,
    };
    let no_file = |name: &str| Err(std::io::Error::other(format!("{name} is no file")));
    sizes.load(&no_file).expect("the distribution is bundled");
    sizes.sampler().mean()
}

const EXACT: f64 = 1.001;

/// Measures lone flows of n packets: 1.2 (n - 1) + 13.264 us in a rack, + 14.680 us between racks. The windows are
/// large enough for 12 packets not to wait.
fn idle(study: &Study, seed: u64, folder: &Path) -> Result<Vec<Row>, ReproduceError> {
    let ideal = |packets: u32, path: f64| 1.2 * f64::from(packets - 1) + path;
    let flows =
        [("h1", 1, 13.264), ("h1", 6, 13.264), ("h1", 12, 13.264), ("h143", 1, 14.680), ("h143", 12, 14.680)];
    let mut list = "start,source,destination,size,class\n".to_owned();
    for (index, (to, packets, _)) in flows.iter().enumerate() {
        list += &format!("{index}ms,h0,{to},{}B,\n", u64::from(*packets) * SEGMENT_BYTES);
    }
    std::fs::write(folder.join("idle.csv"), list)?;
    let set = ["workload.flows={kind=\"flow-list\",path=\"idle.csv\"}"];
    let mut rows = Vec::new();
    for series in SCHEMES {
        let outcome = run_once(study, "fig9.toml", series, &set, seed, folder)?;
        for (message, (to, packets, path)) in outcome.messages.iter().zip(flows) {
            let place = if to == "h1" { "same rack" } else { "other rack" };
            let metric = format!("fct_us_{packets}_packets");
            let mut row = Row::new("oracles", "source", series, place, &metric, "us");
            row.measured = message.latency().map_or(f64::NAN, |latency| latency.as_us_f64());
            rows.push(row.compare(Some(ideal(packets, path)), None, Some(EXACT)));
        }
    }
    Ok(rows)
}

/// Computes the mean of the sizes drawn: the exact mean, and half a packet more for all that is rounded up between
/// two sizes.
fn means() -> Vec<Row> {
    let of = [("websearch-pfabric", 0.15, 1141.4), ("datamining-pfabric", 0.5, 5116.9)];
    let row = |(cdf, atom, packets): (&str, f64, f64)| {
        let mut row = Row::new("oracles", "source", cdf, "sizes", "mean_packets", "packets");
        row.measured = mean_bytes(cdf) / SEGMENT_BYTES as f64 + 0.5 * (1.0 - atom);
        row.compare(Some(packets), None, Some(EXACT))
    };
    of.map(row).to_vec()
}

/// Measures Fig. 11's senders at the same instant: the last packet takes exactly the bound.
fn all_at_once(study: &Study, seed: u64, folder: &Path) -> Result<Row, ReproduceError> {
    let set = ["workload.probe.arrivals=\"constant\"", "workload.probe.count=1"];
    let outcome = run_once(study, "fig11.toml", "bucket", &set, seed, folder)?;
    let last = outcome.messages.iter().filter_map(Message::latency).max();
    let mut row = Row::new("oracles", "source", "60 senders", "at once", "one_way_us_max", "us");
    row.measured = last.map_or(f64::NAN, |latency| latency.as_us_f64());
    Ok(row.compare(Some(BOUND_US), None, Some(EXACT)))
}

/// Measures Eq. 1 for other senders and packets: n P / R behind the path, which takes 2 x 5.8976 us and P / R.
fn switch_model(study: &Study, seed: u64, folder: &Path) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = Vec::new();
    for (senders, bytes) in [(2, 256), (11, 64), (11, 1500), (60, 1500)] {
        let set = [
            format!("topology.hosts={}", senders + 1),
            format!("workload.probe.from=\"h1..h{senders}\""),
            format!("workload.probe.size=\"{bytes}B\""),
            format!("host.qjump.hosts={senders}"),
            format!("host.qjump.packet=\"{bytes}B\""),
            "workload.probe.arrivals=\"constant\"".to_owned(),
            "workload.probe.count=1".to_owned(),
        ];
        let set: Vec<&str> = set.iter().map(String::as_str).collect();
        let outcome = run_once(study, "fig11.toml", "even", &set, seed, folder)?;
        let last = outcome.messages.iter().filter_map(Message::latency).max();
        let x = format!("{senders} hosts, {bytes} B");
        let mut row = Row::new("switch-model", "source", "at once", &x, "one_way_us_max", "us");
        row.measured = last.map_or(f64::NAN, |latency| latency.as_us_f64());
        let bound = f64::from(senders + 1) * f64::from(bytes) * 0.8e-3 + 2.0 * 5.8976;
        rows.push(row.compare(Some(bound), None, Some(EXACT)));
    }
    Ok(rows)
}

/// Measures small versions of the testbed's figures that have one answer: links of 10 Gb/s take 0.8 ns a byte.
fn testbed(study: &Study, seed: u64, folder: &Path) -> Result<Vec<Row>, ReproduceError> {
    const US_PER_BYTE: f64 = 0.8e-3;
    let burst = ["workload.burst.size=\"3200B\"", "workload.burst.rounds=3"];
    // Two segments and one of 280 B from each of ten hosts; QJump sends one in each epoch of 28 us.
    let (all, last) = (10.0 * 3320.0 * US_PER_BYTE, 320.0 * US_PER_BYTE);
    let runs: [(_, _, &[&str], _); 4] = [
        ("table1.toml", "TCP", &["run.duration=\"10ms\"", "run.warmup=\"0s\""], {
            4.0 * 21.17 + 4.0 * 104.0 * US_PER_BYTE
        }),
        ("switch.toml", "alone", &["run.duration=\"10ms\"", "run.warmup=\"0s\""], {
            2.0 * 0.72 + 2.0 * 98.0 * US_PER_BYTE
        }),
        ("burst.toml", "TCP", &burst, 1500.0 * US_PER_BYTE + 1.0 + all + 1.0),
        ("burst.toml", "QJump", &burst, 2.0 * 28.0 + last + 1.0 + 10.0 * last + 1.0),
    ];
    let mut rows = Vec::new();
    for (file, series, set, expected) in runs {
        let outcome = run_once(study, file, series, set, seed, folder)?;
        // The first workload is what the figure measures; bulk flows have no end.
        let measured = outcome.messages.iter().filter(|message| message.workload == 0);
        let longest = measured.filter_map(Message::latency).max();
        let mut row = Row::new("oracles", "source", series, file, "completion_us_max", "us");
        row.measured = longest.map_or(f64::NAN, |latency| latency.as_us_f64());
        rows.push(row.compare(Some(expected), None, Some(EXACT)));
    }
    Ok(rows)
}
