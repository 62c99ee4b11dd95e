//! The files of the HPCC simulator (alibaba-edu/High-Precision-Congestion-Control, `simulation/mix`).
//!
//! ```text
//! topology                             flows
//! NODES SWITCHES LINKS                 COUNT
//! the switches' numbers                SOURCE DESTINATION PRIORITY PORT BYTES SECONDS
//! A B RATE DELAY ERROR-RATE            ...
//! ```
//!
//! An older form of the flows has no port. Numbers, times and rates are spelled as ns-3 reads them: `1e-05`,
//! `+1000.0ns`, `12.5GB/s`.
//!
//! As there, what follows the last line that the first one announces is not read.

use std::collections::BTreeSet;

use plimsoll_text::counted;
use plimsoll_units::{Rate, Span};

use super::{GraphText, Imported, Lines, NODES_MAX, flow_list, known_host};
use crate::error::ScenarioError;

/// A topology as a graph file.
///
/// # Errors
/// At the first word that does not fit. A host with several links is one: Plimsoll's have one NIC.
pub fn hpcc_topology(name: &str, text: &str) -> Result<Imported, Box<ScenarioError>> {
    const HEAD: &str = "NODES SWITCHES LINKS";
    const LINK: &str = "A B RATE DELAY ERROR-RATE, such as `0 4 100Gbps 1000ns 0`";
    let mut lines = Lines::new(name, text);
    let head = lines.next().ok_or_else(|| lines.error("", "an empty file", HEAD))?;
    let &[nodes, switches, links] = head.as_slice() else {
        return Err(lines.error(lines.line, format!("{} words", head.len()), HEAD));
    };
    let word = nodes;
    let nodes: u32 = lines.number(word, "count of nodes")?;
    if nodes > NODES_MAX {
        return Err(lines.error(word, format!("{nodes} nodes"), format!("at most {NODES_MAX}")));
    }
    let switches: usize = lines.number(switches, "count of switches")?;
    let links: usize = lines.number(links, "count of links")?;
    let mut numbers = BTreeSet::new();
    while numbers.len() < switches {
        let Some(found) = lines.next() else {
            return Err(lines.error("", format!("{} of {switches} switches", numbers.len()), "all of them"));
        };
        for word in found {
            let switch: u32 = lines.number(word, "number of a switch")?;
            if switch >= nodes || !numbers.insert(switch) {
                let message = format!("switch {switch} of {nodes} nodes, or one named twice");
                return Err(lines.error(
                    word,
                    message,
                    format!("each once, 0 to {}", nodes.saturating_sub(1)),
                ));
            }
        }
    }
    let name_of = |node: u32| if numbers.contains(&node) { format!("s{node}") } else { format!("h{node}") };
    let mut graph = GraphText {
        hosts: (0..nodes).filter(|node| !numbers.contains(node)).map(name_of).collect(),
        switches: numbers.iter().map(|node| name_of(*node)).collect(),
        links: Vec::new(),
    };
    let mut lossy: u64 = 0;
    let mut linked = BTreeSet::new();
    for read in 0..links {
        let Some(words) = lines.next() else {
            return Err(lines.error("", format!("the file ends after {read} of {links} links"), LINK));
        };
        let &[a, b, rate, delay, ref rest @ ..] = words.as_slice() else {
            return Err(lines.error(lines.line, format!("{} words", words.len()), LINK));
        };
        let ends = [a, b].map(|word| (word, lines.number::<u32>(word, "number of a node")));
        let [mut from, mut to] = [0, 0];
        for ((word, node), end) in ends.into_iter().zip([&mut from, &mut to]) {
            *end = node?;
            if *end >= nodes {
                return Err(lines.error(
                    word,
                    format!("node {end} of {nodes}"),
                    format!("less than {nodes}"),
                ));
            }
            if !numbers.contains(end) && !linked.insert(*end) {
                let message = format!("host {end} has a second link");
                return Err(lines.error(word, message, "one link a host: Plimsoll's hosts have one NIC"));
            }
        }
        let rate = ns3_rate(rate).ok_or_else(|| {
            lines.error(rate, format!("`{rate}` is no rate"), "such as 100Gbps or 12.5GB/s")
        })?;
        let delay = ns3_time(delay)
            .ok_or_else(|| lines.error(delay, format!("`{delay}` is no time"), "such as 1000ns or 1e-06s"))?;
        let error_rate: f64 = rest.first().map_or(Ok(0.0), |word| lines.number(word, "error rate"))?;
        lossy += u64::from(error_rate > 0.0);
        graph.links.push((name_of(from), name_of(to), rate, delay));
    }
    let note = format!(
        "left out, since links here lose no packet by chance: the error rate of {}",
        counted(lossy, "link")
    );
    Ok(graph.finish(name, if lossy > 0 { vec![note] } else { Vec::new() }))
}

/// A list of flows. The priority becomes the class `pg3`; the port is left out. `hosts` are the hosts of the topology,
/// where one is imported with them.
///
/// # Errors
/// At the first word that does not fit, such as a host that the topology has not.
pub fn hpcc_flows(
    name: &str,
    text: &str,
    hosts: Option<&BTreeSet<u32>>,
) -> Result<Imported, Box<ScenarioError>> {
    const FLOW: &str = "SOURCE DESTINATION PRIORITY [PORT] BYTES SECONDS, such as `0 5 3 100 20000 2.000001`, with or \
                        without PORT in every line";
    let mut lines = Lines::new(name, text);
    let head = lines.next().ok_or_else(|| lines.error("", "an empty file", "the number of flows"))?;
    let &[count] = head.as_slice() else {
        return Err(lines.error(lines.line, format!("{} words", head.len()), "the number of flows"));
    };
    let count: usize = lines.number(count, "count of flows")?;
    let mut flows = Vec::new();
    let mut columns = None;
    while flows.len() < count {
        let Some(words) = lines.next() else {
            return Err(lines.error(
                "",
                format!("the file ends after {} of {count} flows", flows.len()),
                FLOW,
            ));
        };
        let (source, destination, priority, bytes, seconds) = match *words.as_slice() {
            [source, destination, priority, _, bytes, seconds] => {
                (source, destination, priority, bytes, seconds)
            }
            [source, destination, priority, bytes, seconds] => {
                (source, destination, priority, bytes, seconds)
            }
            _ => return Err(lines.error(lines.line, format!("{} words", words.len()), FLOW)),
        };
        if *columns.get_or_insert(words.len()) != words.len() {
            return Err(lines.error(
                lines.line,
                format!("{} words after lines of others", words.len()),
                FLOW,
            ));
        }
        let size: u64 = lines.number(bytes, "count of bytes")?;
        let start = ns3_time(seconds).ok_or_else(|| {
            lines.error(seconds, format!("`{seconds}` is no time"), "seconds from 0, such as 2.0001")
        })?;
        let from: u32 = lines.number(source, "number of a host")?;
        let to: u32 = lines.number(destination, "number of a host")?;
        known_host(&lines, source, from, hosts)?;
        known_host(&lines, destination, to, hosts)?;
        if from == to {
            return Err(lines.error(destination, "a flow from a host to itself", "another host"));
        }
        if size == 0 {
            return Err(lines.error(bytes, "a flow without bytes", "at least 1"));
        }
        let priority: u32 = lines.number(priority, "priority")?;
        flows.push((start.as_ps(), from, to, size, format!("pg{priority}")));
    }
    let mut notes = Vec::new();
    let more = std::iter::from_fn(|| lines.next()).filter(|words| Some(words.len()) == columns).count();
    if more > 0 {
        notes.push(format!("flows that the first line announces: {count}; not read that follow: {more}"));
    }
    Ok(flow_list(&flows, notes))
}

/// Splits a word into its number and its unit, which begins with the first letter that is not an exponent's.
fn ns3_parts(word: &str) -> Option<(f64, &str)> {
    let is_exponent = |at: usize| {
        let rest = word.get(at..).and_then(|rest| rest.strip_prefix(['e', 'E']));
        rest.is_some_and(|rest| rest.trim_start_matches(['+', '-']).starts_with(|c: char| c.is_ascii_digit()))
    };
    let unit =
        word.char_indices().find(|(at, c)| !matches!(c, '0'..='9' | '.' | '+' | '-') && !is_exponent(*at));
    let (number, unit) = word.split_at(unit.map_or(word.len(), |(at, _)| at));
    // Also leaves out what only Rust reads, such as `inf`.
    let value = number.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)?;
    Some((value, unit))
}

/// Reads a time as ns-3 does (`Time::Time(const std::string&)`): a number of seconds, or with a unit from `fs` to `y`.
/// Times that are no whole picoseconds are rounded. `None` for other texts and for times beyond a [`Span`].
fn ns3_time(word: &str) -> Option<Span> {
    let (value, unit) = ns3_parts(word)?;
    let ps = match unit {
        "" | "s" => 1e12,
        "ms" => 1e9,
        "us" => 1e6,
        "ns" => 1e3,
        "ps" => 1.0,
        "fs" => 1e-3,
        "min" => 60e12,
        "h" => 3_600e12,
        "d" => 86_400e12,
        "y" => 365.0 * 86_400e12,
        _ => return None,
    };
    let ps = (value * ps).round();
    (ps < u64::MAX as f64).then(|| Span::from_ps(ps as u64))
}

/// Reads a rate as ns-3 does (`DataRate::DoParse`): a number of bits a second, or with a unit: `b` for bits and `B` for
/// bytes, `ps` or `/s`, a decimal prefix (`k`, `K`, `M`, `G`) or a binary one (`Ki`, `Mi`, `Gi`). `None` for others,
/// for 0 and for rates beyond a [`Rate`].
fn ns3_rate(word: &str) -> Option<Rate> {
    let (value, unit) = ns3_parts(word)?;
    let (prefix, bits) = match unit.strip_suffix("ps").or_else(|| unit.strip_suffix("/s")) {
        None if unit.is_empty() => ("", 1.0),
        None => return None,
        Some(unit) => match unit.strip_suffix('b') {
            Some(prefix) => (prefix, 1.0),
            None => (unit.strip_suffix('B')?, 8.0),
        },
    };
    let factor = match prefix {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "ki" | "Ki" => 1_024.0,
        "Mi" => 1_048_576.0,
        "Gi" => 1_073_741_824.0,
        _ => return None,
    };
    let bps = (value * bits * factor).round();
    (bps >= 1.0 && bps < u64::MAX as f64).then(|| Rate::from_bps(bps as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_rates_are_read_as_ns_3_does() {
        for (word, ps) in [
            ("1e-05", 10_000_000),
            ("2.5e-05", 25_000_000),
            ("2.000000100", 2_000_000_100_000),
            ("+1000.0ns", 1_000_000),
            ("1e-06s", 1_000_000),
            ("1E3us", 1_000_000_000),
            ("0.5ms", 500_000_000),
            ("1500fs", 2),
            ("2min", 120_000_000_000_000),
            ("1h", 3_600_000_000_000_000),
            ("1d", 86_400_000_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(ns3_time(word), Some(Span::from_ps(ps)), "{word}");
        }
        for (word, bps) in [
            ("100Gb/s", 100_000_000_000),
            ("12.5GB/s", 100_000_000_000),
            ("100Gbps", 100_000_000_000),
            ("10Mbps", 10_000_000),
            ("1kb/s", 1_000),
            ("1KB/s", 8_000),
            ("1KiB/s", 8_192),
            ("1Mib/s", 1_048_576),
            ("1GiBps", 8_589_934_592),
            ("5000", 5_000),
            ("1e9bps", 1_000_000_000),
        ] {
            assert_eq!(ns3_rate(word), Some(Rate::from_bps(bps)), "{word}");
        }
        for word in ["", "s", "-1ns", "1xs", "nan", "inf", "1e", "1 ns", "0x10", "1e400", "\u{661}s"] {
            assert_eq!(ns3_time(word), None, "{word}");
        }
        for word in ["", "Gbps", "-1Gbps", "0bps", "1gbps", "1GBit", "1Tbps", "nan", "infbps", "1GB"] {
            assert_eq!(ns3_rate(word), None, "{word}");
        }
    }
}
