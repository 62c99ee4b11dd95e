//! [`ImportedNetwork`]: the topology of an imported scenario.

use std::fmt::Write as _;

use plimsoll_text::counted;
use plimsoll_units::{Rate, Span};

use super::parts::{NamedText, assumed};
use crate::found::{ClassTraffic, ImportFound, Note, Remark};

/// The network of a scenario.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ImportedNetwork {
    /// The table `[topology]`, as text.
    pub table: String,
    /// The files that the table names.
    pub files: Vec<NamedText>,
    /// The names of the hosts in the scenario, by the numbers of the import.
    pub hosts: Vec<String>,
    /// The properties that were assumed.
    pub notes: Vec<Note>,
}

/// Rates of links in use, in Gb/s.
const RATES: [u64; 7] = [10, 25, 40, 50, 100, 200, 400];
/// The share of a link that the busiest host may use on average.
const BUSY: f64 = 0.3;
/// The delay of a link within a rack, with a switch's latency.
const DELAY: Span = Span::from_us(1);

impl ImportedNetwork {
    /// Makes a rack of the hosts found, with links that carry the busiest of them; hosts have their own names if
    /// `keep_names`, and are `h0` and so on if not.
    pub fn rack(found: &ImportFound, keep_names: bool) -> ImportedNetwork {
        let busiest = busiest_bps(found);
        let fits = |gbps: &&u64| busiest <= BUSY * 1e9 * **gbps as f64;
        let rate = Rate::from_gbps(*RATES.iter().find(fits).unwrap_or(&RATES[RATES.len() - 1]));
        let hosts = found.hosts.len();
        let mut text = format!(
            "a rack of {} with links of {rate} and {DELAY} (--topology names your own)",
            counted(hosts as u64, "host")
        );
        if !found.duration.is_zero() {
            let share = busiest / rate.as_bps() as f64;
            let _ = write!(text, "; on average the busiest host sends or receives {share:.3} of its link");
        }
        let notes = vec![assumed(text)];
        if keep_names {
            let files = vec![NamedText { name: GRAPH.to_owned(), text: graph(&found.hosts, rate) }];
            let table = format!("[topology]\nkind = \"file\"\npath = \"{GRAPH}\"\n");
            return ImportedNetwork { table, files, hosts: found.hosts.clone(), notes };
        }
        let table = format!(
            "[topology]\nkind = \"rack\"\nhosts = {}\nrate = \"{rate}\"\ndelay = \"{DELAY}\"\n",
            hosts.max(2)
        );
        let hosts = (0..hosts.max(2)).map(|number| format!("h{number}")).collect();
        ImportedNetwork { table, files: Vec::new(), hosts, notes }
    }
}

/// Returns the warning that the load is above that of any link, which is a defect of the files or of their units.
pub(super) fn overload(found: &ImportFound) -> Option<Note> {
    let fastest = Rate::from_gbps(RATES[RATES.len() - 1]);
    let busiest = busiest_bps(found);
    let text = if found.duration.is_zero() {
        "all traffic is of one instant, so it has no load, and a replay sends all of it at once".to_owned()
    } else if busiest > fastest.as_bps() as f64 {
        format!(
            "within the {} of the files the busiest host sends or receives {:.0} Gb/s on average, more than a link of \
             {fastest} carries: check the units of times and sizes, and the time that the files cover",
            found.duration,
            busiest / 1e9
        )
    } else {
        return None;
    };
    Some(Note { remark: Remark::Warning, text })
}

/// The name of the graph file.
const GRAPH: &str = "network.toml";

/// Writes a graph file of one switch.
fn graph(hosts: &[String], rate: Rate) -> String {
    let name = |host: &String| toml::Value::String(host.clone()).to_string();
    let names: Vec<String> = hosts.iter().map(name).collect();
    let mut text = format!("hosts = [{}]\nswitches = [\"switch\"]\n", names.join(", "));
    for host in names {
        let _ = write!(
            text,
            "\n[[link]]\nfrom = {host}\nto = \"switch\"\nrate = \"{rate}\"\ndelay = \"{DELAY}\"\n"
        );
    }
    text
}

/// Returns the mean payload in bits per second that the busiest host sends or receives.
fn busiest_bps(found: &ImportFound) -> f64 {
    let seconds = found.duration.as_secs_f64().max(1e-9);
    let mut bits = vec![[0.0; 2]; found.hosts.len()];
    let mut add = |from: u32, to: u32, amount: f64| {
        bits[from as usize][0] += amount;
        bits[to as usize][1] += amount;
    };
    let mut rates = vec![[0.0; 2]; found.hosts.len()];
    for class in &found.classes {
        match &class.traffic {
            ClassTraffic::Flows(flows) => {
                flows.iter().for_each(|flow| add(flow.source, flow.destination, flow.bytes as f64 * 8.0));
            }
            ClassTraffic::Exchanges(exchanges) => exchanges.iter().for_each(|exchange| {
                add(exchange.client, exchange.server, exchange.request as f64 * 8.0);
                add(exchange.server, exchange.client, exchange.response as f64 * 8.0);
            }),
            ClassTraffic::Rates(all) => all.iter().for_each(|of| {
                for (sum, rate) in rates[of.host as usize].iter_mut().zip([of.sent, of.received]) {
                    *sum += rate.unwrap_or(0.0);
                }
            }),
        }
    }
    let sums = bits
        .iter()
        .zip(&rates)
        .flat_map(|(bits, rates)| [0, 1].map(|side| bits[side] / seconds + rates[side]));
    sums.fold(0.0, f64::max)
}
