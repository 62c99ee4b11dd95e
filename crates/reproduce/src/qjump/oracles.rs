//! Values that theory settles exactly: completion times on idle links, mean sizes, the bound reached.

use std::path::Path;

use plimsoll_results::outcome::{Message, Outcome};
use plimsoll_scenario::Overrides;
use plimsoll_sim::{RunError, run};

use super::figures::{BOUND_US, SCHEMES, mean_bytes};
use super::scenario_text;
use crate::metric::SEGMENT_BYTES;
use crate::row::Row;
use crate::run::{ReproduceError, load};
use crate::study::Base;

pub(super) fn rows(seed: u64, folder: &Path) -> Result<Vec<Row>, ReproduceError> {
    let mut rows = idle(seed, folder)?;
    rows.extend(means());
    rows.push(all_at_once(seed, folder)?);
    Ok(rows)
}

const EXACT: f64 = 1.001;

/// Lone flows of n packets: 1.2 (n - 1) + 13.264 us in a rack, + 14.680 us between racks. The windows are
/// large enough for 12 packets not to wait.
fn idle(seed: u64, folder: &Path) -> Result<Vec<Row>, ReproduceError> {
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
        let outcome = outcome("fig9.toml", series, &set, seed, folder)?;
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

/// The sizes drawn: the exact mean, and half a packet more for all that is rounded up between two sizes.
fn means() -> Vec<Row> {
    let of = [("websearch-pfabric", 0.15, 1141.4), ("datamining-pfabric", 0.5, 5116.9)];
    let row = |(cdf, atom, packets): (&str, f64, f64)| {
        let mut row = Row::new("oracles", "source", cdf, "sizes", "mean_packets", "packets");
        row.measured = mean_bytes(cdf) / SEGMENT_BYTES as f64 + 0.5 * (1.0 - atom);
        row.compare(Some(packets), None, Some(EXACT))
    };
    of.map(row).to_vec()
}

/// Fig. 11's senders at the same instant: the last packet takes exactly the bound.
fn all_at_once(seed: u64, folder: &Path) -> Result<Row, ReproduceError> {
    let set = ["workload.probe.arrivals=\"constant\"", "workload.probe.count=1"];
    let outcome = outcome("fig11.toml", "bucket", &set, seed, folder)?;
    let last = outcome.messages.iter().filter_map(Message::latency).max();
    let mut row = Row::new("oracles", "source", "60 senders", "at once", "one_way_us_max", "us");
    row.measured = last.map_or(f64::NAN, |latency| latency.as_us_f64());
    Ok(row.compare(Some(BOUND_US), None, Some(EXACT)))
}

fn outcome(
    name: &str,
    series: &str,
    set: &[&str],
    seed: u64,
    folder: &Path,
) -> Result<Outcome, ReproduceError> {
    let set = set.iter().map(|&set| set.to_owned()).collect();
    let overrides = Overrides { set, seed: Some(seed), replicates: 1 };
    let scenario = load(name, &scenario_text(name, Base::Source), folder, &overrides)?;
    let point = scenario.points().iter().find(|point| point.variant == series);
    let point = point.expect("the scenario has a variant of that name");
    run(&point.model, &mut |_| true).map_err(|error: RunError| ReproduceError::Batch(error.into()))
}
