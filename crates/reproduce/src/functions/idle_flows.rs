//! Values that theory settles exactly: completion times on idle links, mean sizes.

use std::path::Path;

use plimsoll_scenario::distribution::{Distribution, SizeDistribution};

use super::SCHEMES;
use crate::error::ReproduceError;
use crate::row::StudyRow;
use crate::single_run::run_once;
use crate::study::Study;
use plimsoll_experiment::measure::SEGMENT_BYTES;

/// Measures all of them, with the scenarios in a folder.
pub(crate) fn theory(study: &Study, seed: u64, folder: &Path) -> Result<Vec<StudyRow>, ReproduceError> {
    let mut rows = idle(study, seed, folder)?;
    rows.extend(means());
    Ok(rows)
}

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
fn idle(study: &Study, seed: u64, folder: &Path) -> Result<Vec<StudyRow>, ReproduceError> {
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
            let mut row = StudyRow::new("oracles", "source", series, place, &metric, "us");
            row.measured = message.latency().map_or(f64::NAN, |latency| latency.as_us_f64());
            rows.push(row.compare(Some(ideal(packets, path)), None, Some(EXACT)));
        }
    }
    Ok(rows)
}

/// Computes the mean of the sizes drawn: the exact mean, and half a packet more for all that is rounded up between
/// two sizes.
fn means() -> Vec<StudyRow> {
    let of = [("websearch-pfabric", 0.15, 1141.4), ("datamining-pfabric", 0.5, 5116.9)];
    let row = |(cdf, atom, packets): (&str, f64, f64)| {
        let mut row = StudyRow::new("oracles", "source", cdf, "sizes", "mean_packets", "packets");
        row.measured = mean_bytes(cdf) / SEGMENT_BYTES as f64 + 0.5 * (1.0 - atom);
        row.compare(Some(packets), None, Some(EXACT))
    };
    of.map(row).to_vec()
}
