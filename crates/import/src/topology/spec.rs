//! [`Spec`]: a network in a word, `KIND:SIZE,RATES`.

use plimsoll_text::spelling::did_you_mean;
use plimsoll_units::{Rate, Span};

use super::shape::{Topology, TopologyShape};
use crate::found::{Note, Remark};
use crate::invalid::Invalid;

/// A spec, as the value of `--topology` has it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Spec<'a> {
    pub(super) kind: &'static str,
    /// The size of a generated network, or the path of an export.
    pub(super) what: &'a str,
    /// The rates of links: of hosts, then between switches.
    pub(super) rates: Vec<Rate>,
    /// The propagation delay of each link.
    pub(super) delay: Option<Span>,
    /// The pattern of the names of hosts in an export.
    pub(super) hosts: Option<&'a str>,
}

/// The kinds of a network with an example each, and the most rates that they have.
const KINDS: &[(&str, &str, usize)] = &[
    ("rack", "rack:40,25G", 1),
    ("leaf-spine", "leaf-spine:4x40x4,25G,100G (leaves x hosts of a leaf x spines)", 2),
    ("fat-tree", "fat-tree:8,10G", 1),
    ("lldp", "lldp:FOLDER,25G,100G", 2),
    ("containerlab", "containerlab:topology-data.json,25G,100G", 2),
    ("graphml", "graphml:FILE,25G,100G", 2),
    ("netbox", "netbox:cables.csv,25G,100G", 2),
];

/// The delay of links where the spec has none.
pub(super) const DELAY: Span = Span::from_us(1);

const PLACE: &str = "--topology";

impl<'a> Spec<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Spec<'a>, Invalid> {
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let Some((kind, example, rates_max)) = KINDS.iter().find(|(known, ..)| *known == kind) else {
            let names = KINDS.iter().map(|(name, ..)| *name);
            let meant =
                did_you_mean(kind, names.clone()).map_or_else(String::new, |meant| format!(" ({meant})"));
            let allowed = format!("one of {}, such as {}", names.collect::<Vec<_>>().join(", "), KINDS[1].1);
            return Err(Invalid::new(PLACE, format!("unknown kind \"{kind}\"{meant}"), allowed));
        };
        let mut parts = rest.split(',');
        let what = parts.next().unwrap_or("");
        if what.is_empty() {
            return Err(Invalid::new(PLACE, format!("\"{text}\" has no size or file"), *example));
        }
        let mut spec = Spec { kind, what, rates: Vec::new(), delay: None, hosts: None };
        for part in parts {
            if let Some(pattern) = part.strip_prefix("hosts=") {
                spec.hosts = Some(pattern);
            } else if let Some(rate) = rate(part) {
                spec.rates.push(rate);
            } else if let (None, Ok(delay)) = (spec.delay, part.parse()) {
                spec.delay = Some(delay);
            } else {
                let problem = format!("\"{part}\" is no rate and no delay");
                return Err(Invalid::new(PLACE, problem, format!("such as {example}, or 25G,100G,500ns")));
            }
        }
        if spec.rates.len() > *rates_max {
            let problem = format!("{} rates for {kind}", spec.rates.len());
            return Err(Invalid::new(PLACE, problem, format!("at most {rates_max}, such as {example}")));
        }
        Ok(spec)
    }

    /// Returns the generated network of a spec.
    pub(super) fn generated(&self) -> Result<Topology, Invalid> {
        let example =
            KINDS.iter().find(|(kind, ..)| *kind == self.kind).map_or("", |(_, example, _)| *example);
        let Some(rate) = self.rates.first() else {
            return Err(Invalid::new(PLACE, format!("no rate of the links of {}", self.kind), example));
        };
        let numbers: Option<Vec<u32>> = self.what.split('x').map(|number| number.parse().ok()).collect();
        let invalid =
            || Invalid::new(PLACE, format!("invalid size \"{}\" of {}", self.what, self.kind), example);
        let numbers =
            numbers.filter(|numbers| numbers.iter().all(|number| *number > 0)).ok_or_else(invalid)?;
        let (lines, hosts) = match (self.kind, numbers.as_slice()) {
            ("rack", &[hosts]) => (format!("hosts = {hosts}\n"), Some(hosts)),
            ("fat-tree", &[k]) if k % 2 == 0 => {
                (format!("k = {k}\n"), (k / 2).checked_pow(2).and_then(|quarter| quarter.checked_mul(k)))
            }
            ("leaf-spine", &[leaves, hosts, spines]) => (
                format!("leaves = {leaves}\nspines = {spines}\nhosts_per_leaf = {hosts}\n"),
                leaves.checked_mul(hosts),
            ),
            _ => return Err(invalid()),
        };
        let hosts = hosts.filter(|hosts| *hosts <= HOSTS_MAX);
        let hosts =
            hosts.ok_or_else(|| Invalid::new(PLACE, "too many hosts", format!("at most {HOSTS_MAX}")))?;
        let fabric = self.rates.get(1).map_or_else(String::new, |rate| format!("fabric_rate = \"{rate}\"\n"));
        let delay = self.delay.unwrap_or(DELAY);
        let table =
            format!("kind = \"{}\"\n{lines}rate = \"{rate}\"\n{fabric}delay = \"{delay}\"\n", self.kind);
        let mut notes = Vec::new();
        notes.extend(self.delay_note());
        Ok(Topology { shape: TopologyShape::Generated { table, hosts }, notes })
    }

    /// Returns the note on the delay of links, if the spec has none.
    pub(super) fn delay_note(&self) -> Option<Note> {
        let text = format!("each link has a delay of {DELAY}, since --topology has none");
        self.delay.is_none().then_some(Note { remark: Remark::Assumed, text })
    }
}

/// The most hosts of a network.
const HOSTS_MAX: u32 = 1_000_000;

/// Parses a rate, whose unit may be the letter of the multiple alone: `25G` is `25Gbps`.
pub(super) fn rate(text: &str) -> Option<Rate> {
    let is_short = text.ends_with(['K', 'M', 'G', 'T']);
    let rate: Rate = if is_short { format!("{text}bps").parse().ok()? } else { text.parse().ok()? };
    (rate > Rate::ZERO).then_some(rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_become_tables() {
        let cases = [
            ("rack:40,25G", "kind = \"rack\"\nhosts = 40\nrate = \"25Gbps\"\ndelay = \"1us\"\n", 40),
            (
                "leaf-spine:4x40x2,25G,100G,500ns",
                "kind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 40\nrate = \"25Gbps\"\n\
                 fabric_rate = \"100Gbps\"\ndelay = \"500ns\"\n",
                160,
            ),
            ("fat-tree:8,10Gbps", "kind = \"fat-tree\"\nk = 8\nrate = \"10Gbps\"\ndelay = \"1us\"\n", 128),
        ];
        for (spec, table, hosts) in cases {
            let topology = Topology::read(spec).unwrap();
            assert_eq!(topology.shape, TopologyShape::Generated { table: table.to_owned(), hosts }, "{spec}");
            assert_eq!(topology.notes.len(), usize::from(!spec.contains("ns")), "{spec}");
        }
    }

    #[test]
    fn errors_show_an_example() {
        for (spec, message) in [
            (
                "leafspine:4x40x4,25G",
                "--topology: unknown kind \"leafspine\" (did you mean `leaf-spine`?): expected one of",
            ),
            ("rack", "--topology: \"rack\" has no size or file: expected rack:40,25G"),
            ("rack:40", "--topology: no rate of the links of rack: expected rack:40,25G"),
            ("rack:40x2,25G", "--topology: invalid size \"40x2\" of rack: expected rack:40,25G"),
            ("fat-tree:7,25G", "--topology: invalid size \"7\" of fat-tree"),
            ("rack:0,25G", "--topology: invalid size \"0\" of rack"),
            ("rack:40,25G,100G", "--topology: 2 rates for rack: expected at most 1, such as rack:40,25G"),
            ("rack:40,fast", "--topology: \"fast\" is no rate and no delay: expected such as rack:40,25G"),
            ("leaf-spine:70000x70000x1,1G", "--topology: too many hosts: expected at most 1000000"),
        ] {
            let error = Topology::read(spec).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
