//! [`HpccScenario`]: settings, topology and flows of HPCC's simulator as a scenario with the same controller.
//!
//! ```text
//! config.txt ──> HpccConfig ──┐                        ┌──> scenario.toml   each line with the key that it is from
//! topology   ─────────────────┼──> HpccConfig::scenario┼──> network.toml
//! flows      ─────────────────┘                        └──> flows.csv
//! ```
//!
//! | `CC_MODE` | kind |
//! |---|---|
//! | 1 | `dcqcn`, in the form of the NICs |
//! | 3, 10 | `hpcc` |
//! | 7 | `timely` |
//! | 8 | `roce-dctcp` |

use std::collections::BTreeSet;
use std::fmt::Write;

use plimsoll_units::{Bytes, Rate, Span};

use super::config::HpccConfig;
use super::keys::Fate;
use super::paths::LongestPath;
use super::words::ns3_time;
use super::{Topology, hpcc_flows, read_topology};
use crate::error::ScenarioError;
use crate::import::Imported;

/// A run of HPCC's simulator, as the files of a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HpccScenario {
    /// The graph file `network.toml`.
    pub network: Imported,
    /// The flow list `flows.csv`.
    pub flows: Imported,
    /// The scenario that names both, with a comment for each key, and those that are left out.
    pub scenario: Imported,
}

/// The controllers of the simulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Dcqcn,
    Hpcc,
    Timely,
    Dctcp,
}

impl Mode {
    fn kind(self) -> &'static str {
        match self {
            Mode::Dcqcn => "dcqcn",
            Mode::Hpcc => "hpcc",
            Mode::Timely => "timely",
            Mode::Dctcp => "roce-dctcp",
        }
    }
}

type Result<T> = std::result::Result<T, Box<ScenarioError>>;

impl HpccConfig<'_> {
    /// Makes the scenario of these settings with a topology and flows, each the name and the text of its file.
    ///
    /// # Errors
    /// At the first word that does not fit, of the settings or of the two files.
    pub fn scenario(mut self, topology: (&str, &str), flows: (&str, &str)) -> Result<HpccScenario> {
        let network = read_topology(topology.0, topology.1)?;
        let hosts =
            network.graph.hosts.iter().filter_map(|name| name.strip_prefix('h')?.parse().ok()).collect();
        let flows = hpcc_flows(flows.0, flows.1, Some(&hosts))?;
        let mut draft = Draft::default();
        let mode = self.mode(&mut draft)?;
        self.run(&mut draft)?;
        self.switches(&mut draft, mode, &network)?;
        self.transport(&mut draft, mode, &network)?;
        self.link_down(&mut draft, &network)?;
        draft.line("workload.flows", "kind = \"flow-list\"", "");
        self.word("FLOW_FILE");
        draft.line("workload.flows", "path = \"flows.csv\"", self.comment("FLOW_FILE"));
        let classes: BTreeSet<&str> =
            flows.text.lines().skip(1).filter_map(|line| line.rsplit(',').next()).collect();
        if classes.len() > 1 {
            let classes: Vec<&str> = classes.into_iter().collect();
            draft.notes.push(format!(
                "all flows have one priority, and not a queue for each of {}",
                classes.join(", ")
            ));
        }
        self.left_out(&mut draft, mode);
        let name = self.lines.name().to_owned();
        let scenario = draft.finish(&name);
        Ok(HpccScenario { network: network.finish(topology.0), flows, scenario })
    }

    fn mode(&mut self, draft: &mut Draft) -> Result<Mode> {
        let word = self.word("CC_MODE").unwrap_or("1");
        let mode = match word {
            "1" => Mode::Dcqcn,
            "3" | "10" => Mode::Hpcc,
            "7" => Mode::Timely,
            "8" => Mode::Dctcp,
            _ => {
                let allowed = "1 (DCQCN), 3 (HPCC), 7 (TIMELY), 8 (DCTCP) or 10 (HPCC with PINT)";
                return Err(self.lines.error(word, format!("CC_MODE {word} is not imported"), allowed));
            }
        };
        draft.line("transport", format!("kind = \"{}\"", mode.kind()), self.comment("CC_MODE"));
        Ok(mode)
    }

    /// The length of the run, its seed and the network.
    fn run(&mut self, draft: &mut Draft) -> Result<()> {
        let word = self.word("SIMULATOR_STOP_TIME").unwrap_or_default();
        let stop = ns3_time(word).ok_or_else(|| {
            self.lines.error(
                word,
                format!("`{word}` is no time that a run can have"),
                "seconds, such as 4.00",
            )
        });
        // Some copies have a time beyond all runs, which means that the flows end the run.
        let is_endless = word.parse::<f64>().is_ok_and(|seconds| seconds > 1e6);
        if is_endless {
            draft.line("run", "", format!("{}: the flows end the run", self.comment("SIMULATOR_STOP_TIME")));
        } else {
            draft.line("run", format!("duration = \"{}\"", stop?), self.comment("SIMULATOR_STOP_TIME"));
            draft.line("run", "drain = \"0s\"", "nothing goes on after it");
        }
        if let Some(seed) = self.number::<u64>("RANDOM_SEED", "whole number")? {
            draft.line("run", format!("seed = {seed}"), self.comment("RANDOM_SEED"));
        }
        self.word("TOPOLOGY_FILE");
        draft.line("topology", "kind = \"file\"", "");
        draft.line("topology", "path = \"network.toml\"", self.comment("TOPOLOGY_FILE"));
        draft.line("observe", "links = true", "utilisation, drops and pauses of each link");
        Ok(())
    }

    /// Marks, telemetry and the packet memory of the switches.
    fn switches(&mut self, draft: &mut Draft, mode: Mode, network: &Topology) -> Result<()> {
        const SECTION: &str = "port.switch";
        let is_marking = self.is_on("ENABLE_QCN")? && matches!(mode, Mode::Dcqcn | Mode::Dctcp);
        if is_marking {
            self.marks(draft, network)?;
        } else if matches!(mode, Mode::Dcqcn | Mode::Dctcp) {
            draft.line(
                SECTION,
                "",
                format!("{}: no marks, so that no flow is slowed", self.comment("ENABLE_QCN")),
            );
        }
        if self.word("CC_MODE") == Some("10") {
            let base = self.number::<f64>("PINT_LOG_BASE", "number")?.unwrap_or(1.05);
            let entry = format!("int = {{ header = \"2B\", digest = {{ base = {base:?} }} }}");
            draft.line(SECTION, entry, "PINT: 2 B from the first switch on");
            let note = "switches average their load over 13 us, HPCC's T: `int.digest.base_rtt` is to be the longest \
                        idle round trip";
            draft.notes.push(note.to_owned());
        } else if mode == Mode::Hpcc {
            let comment = "42 B from the first switch on; stamps are exact";
            draft.line(SECTION, "int = { header = \"42B\", hop = \"0B\" }", comment);
        }
        let word = self.word("BUFFER_SIZE").unwrap_or_default();
        let mib: u64 = self.lines.number(word, "number of MiB")?;
        let memory = match mib.checked_mul(1 << 20).filter(|bytes| *bytes > 0) {
            Some(bytes) => Bytes::new(bytes),
            None => {
                return Err(self.lines.error(word, format!("`{word}` MiB of memory"), "1 or more, in MiB"));
            }
        };
        let comment = self.comment("BUFFER_SIZE");
        let pauses = [self.is_on("ENABLE_PFC")?, self.is_on("ENABLE_QBB")?] == [true, true];
        if pauses {
            draft.line(
                "port.switch.lossless",
                format!("memory = \"{memory}\""),
                format!("{comment}, in MiB"),
            );
            for (entry, comment) in [
                ("alpha = 0.125", "of the released switches, at ports as fast as the NICs'"),
                ("reserve = \"4096B\"", "of the released switches"),
                ("resume_offset = \"3072B\"", "of the released switches"),
            ] {
                draft.line("port.switch.lossless", entry, comment);
            }
            let nics = network.host_rate();
            if network.graph.links.iter().any(|(.., rate, _)| *rate > nics) {
                let note = "alpha is 1/8 at all ports: the released switches double it for each doubling of a port's \
                            rate beyond the NICs'";
                draft.notes.push(note.to_owned());
            }
            let note =
                "the headroom of each link is what it needs: the released switches have 3 x rate x delay";
            draft.notes.push(note.to_owned());
        } else {
            let comment = format!("{comment}, in MiB, without PFC: a share of the free memory for each port");
            draft.line("port.switch.shared_buffer", format!("total = \"{memory}\""), comment);
            draft.line("port.switch.shared_buffer", "alpha = 1.0", "of the released switches' egress queues");
        }
        if self.is_on("ACK_HIGH_PRIO")? {
            let comment = self.comment("ACK_HIGH_PRIO");
            draft.line(SECTION, "order = \"priorities\"", comment.clone());
            draft.line("port.host", "order = \"priorities\"", comment.clone());
            draft.line("host", "ack_priority = 7", comment);
        }
        Ok(())
    }

    /// The thresholds of marks, by the rates of the topology's links.
    fn marks(&mut self, draft: &mut Draft, network: &Topology) -> Result<()> {
        let nics = network.host_rate();
        let mut own = [0.0; 3];
        let keys = ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"];
        for (value, key) in own.iter_mut().zip(keys) {
            *value = self.at_rate(key, nics)?;
        }
        let [min, max, probability] = own;
        let rates: BTreeSet<Rate> = network.graph.links.iter().map(|(.., rate, _)| *rate).collect();
        let (mut are_equal, mut are_scaled) = (true, true);
        for rate in rates {
            let ratio = rate.as_bps() as f64 / nics.as_bps() as f64;
            let [own_min, own_max] = [self.at_rate("KMIN_MAP", rate)?, self.at_rate("KMAX_MAP", rate)?];
            are_equal &= (own_min, own_max) == (min, max);
            // Thresholds are whole kilobytes.
            are_scaled &= (own_min - min * ratio).abs() < 1.0 && (own_max - max * ratio).abs() < 1.0;
            if self.at_rate("PMAX_MAP", rate)? != probability {
                draft.notes.push(format!("links of {rate} have the PMAX_MAP of those of {nics}"));
            }
        }
        if !are_equal && !are_scaled {
            draft.notes.push(format!("all links have the KMIN_MAP and KMAX_MAP of those of {nics}"));
        }
        let kilobytes = |value: f64| Bytes::new((value * 1e3).round() as u64);
        let section = "port.switch.red";
        draft.line(section, format!("min = \"{}\"", kilobytes(min)), self.comment("KMIN_MAP"));
        draft.line(section, format!("max = \"{}\"", kilobytes(max)), self.comment("KMAX_MAP"));
        draft.line(section, format!("probability = {probability:?}"), self.comment("PMAX_MAP"));
        draft.line(section, "marks = \"independent\"", "at arrival; the released switches mark at departure");
        if !are_equal && are_scaled {
            draft.line(section, format!("for_rate = \"{nics}\""), "the maps grow with the rate");
        }
        Ok(())
    }

    /// Packets, windows and the controller.
    fn transport(&mut self, draft: &mut Draft, mode: Mode, network: &Topology) -> Result<()> {
        let word = self.word("PACKET_PAYLOAD_SIZE").unwrap_or_default();
        let payload: u64 = self.lines.number(word, "count of bytes")?;
        if !(1..=65_000).contains(&payload) {
            return Err(self.lines.error(word, format!("packets of {word} B"), "1 to 65000 B of payload"));
        }
        draft.line("transport", format!("segment = \"{payload}B\""), self.comment("PACKET_PAYLOAD_SIZE"));
        draft.line("transport", "header = \"48B\"", "of the simulator's packets");
        draft.line("transport", "connections = \"per-message\"", "a queue pair for each flow");
        let longest = LongestPath::of(&network.graph, payload);
        self.losses(draft, longest.links)?;
        const SECTION: &str = "transport.roce";
        if self.is_on("ENABLE_IRN")? {
            draft.line(SECTION, "repair = \"selective\"", self.comment("ENABLE_IRN"));
        }
        let interval: u64 = self.number("L2_ACK_INTERVAL", "count of bytes")?.unwrap_or(0);
        let chunk: u64 = self.number("L2_CHUNK_SIZE", "count of bytes")?.unwrap_or(0);
        let bytes = if chunk == 0 { interval } else { interval.min(chunk) };
        let comment =
            format!("{} and {}, in bytes", self.comment("L2_ACK_INTERVAL"), self.comment("L2_CHUNK_SIZE"));
        draft.line(
            SECTION,
            format!("ack_every = {}", bytes.div_ceil(payload).clamp(1, u64::from(u32::MAX))),
            comment,
        );
        self.window(draft, mode, longest)?;
        match mode {
            Mode::Dcqcn => self.dcqcn(draft),
            Mode::Hpcc => {
                let section = "transport.roce.hpcc";
                self.share(draft, section, "eta", "U_TARGET")?;
                self.count(draft, section, "max_stage", "MI_THRESH")?;
                self.rates(draft, section, &[("increase", "RATE_AI"), ("min_rate", "MIN_RATE")])
            }
            Mode::Timely => {
                let section = "transport.roce.timely";
                self.rates(draft, section, &[("increase", "RATE_AI"), ("min_rate", "MIN_RATE")])
            }
            Mode::Dctcp => {
                self.share(draft, "transport.dctcp", "gain", "EWMA_GAIN")?;
                let section = "transport.roce.dctcp";
                self.rates(draft, section, &[("increase", "DCTCP_RATE_AI"), ("min_rate", "MIN_RATE")])
            }
        }
    }

    /// Losses by chance: hosts lose as many packets as the longest path would.
    fn losses(&mut self, draft: &mut Draft, links: u32) -> Result<()> {
        let word = self.word("ERROR_RATE_PER_LINK").unwrap_or_default();
        let rate: f64 = self.lines.number(word, "error rate")?;
        if !(0.0..=1.0).contains(&rate) {
            return Err(self.lines.error(word, format!("`{word}` is no probability"), "0 to 1"));
        }
        if rate > 0.0 {
            let loss = -(f64::from(links) * (-rate).ln_1p()).exp_m1();
            let comment = format!(
                "{}: {links} links of the longest path, at the host",
                self.comment("ERROR_RATE_PER_LINK")
            );
            draft.line("host", format!("loss = {loss:?}"), comment);
        }
        Ok(())
    }

    fn window(&mut self, draft: &mut Draft, mode: Mode, longest: LongestPath) -> Result<()> {
        const SECTION: &str = "transport.roce";
        let [has, varies] = [self.is_on("HAS_WIN")?, self.is_on("VAR_WIN")?];
        let comment = format!("{}, {}", self.comment("HAS_WIN"), self.comment("VAR_WIN"));
        match (mode, has, varies) {
            (Mode::Hpcc, true, true) => draft.line(SECTION, "", format!("{comment}: HPCC's own window")),
            (Mode::Hpcc, ..) => draft.notes.push(format!("HPCC has a window that varies, and not {comment}")),
            (_, false, _) => draft.line(SECTION, "window = \"off\"", comment),
            (_, true, true) => draft.line(SECTION, "window = \"bdp\"", comment),
            (_, true, false) => {
                draft.notes.push(format!(
                    "the window follows the rate of its flow, and is not fixed as with {comment}"
                ));
                draft.line(SECTION, "window = \"bdp\"", comment);
            }
        }
        let comment = self.comment("GLOBAL_T");
        if self.is_on("GLOBAL_T")? && !longest.round_trip.is_zero() {
            let comment = format!("{comment}: of the longest path");
            draft.line(SECTION, format!("base_rtt = \"{}\"", longest.round_trip), comment);
        } else {
            draft.line(SECTION, "", format!("{comment}: the base RTT is that of each pair of hosts"));
        }
        Ok(())
    }

    fn dcqcn(&mut self, draft: &mut Draft) -> Result<()> {
        draft.line(
            "transport.roce",
            "cnp_interval = \"0s\"",
            "there each acknowledgement notifies the mark of its packet",
        );
        let section = "transport.roce.dcqcn";
        draft.line(section, "form = \"nic\"", "");
        self.share(draft, section, "gain", "EWMA_GAIN")?;
        for (name, key) in [
            ("alpha_period", "ALPHA_RESUME_INTERVAL"),
            ("cut_period", "RATE_DECREASE_INTERVAL"),
            ("timer", "RP_TIMER"),
        ] {
            let Some(word) = self.word(key) else { continue };
            let span = ns3_time(&format!("{word}us")).filter(|span| !span.is_zero());
            let Some(span) = span else {
                let message = format!("`{word}` is no time above 0");
                return Err(self.lines.error(word, message, "microseconds, such as 55"));
            };
            draft.line(section, format!("{name} = \"{span}\""), format!("{}, in us", self.comment(key)));
        }
        self.count(draft, section, "fast_recovery", "FAST_RECOVERY_TIMES")?;
        let clamps = self.is_on("CLAMP_TARGET_RATE")?;
        draft.line(section, format!("clamp_target = {clamps}"), self.comment("CLAMP_TARGET_RATE"));
        let rates = [("increase", "RATE_AI"), ("hyper_increase", "RATE_HAI"), ("min_rate", "MIN_RATE")];
        self.rates(draft, section, &rates)
    }

    /// Writes a fraction, if the file or the simulator's defaults have it.
    fn share(
        &mut self,
        draft: &mut Draft,
        section: &'static str,
        name: &str,
        key: &'static str,
    ) -> Result<()> {
        if let Some(value) = self.number::<f64>(key, "number")? {
            draft.line(section, format!("{name} = {value:?}"), self.comment(key));
        }
        Ok(())
    }

    fn count(
        &mut self,
        draft: &mut Draft,
        section: &'static str,
        name: &str,
        key: &'static str,
    ) -> Result<()> {
        if let Some(value) = self.number::<u32>(key, "whole number")? {
            draft.line(section, format!("{name} = {value}"), self.comment(key));
        }
        Ok(())
    }

    fn rates(
        &mut self,
        draft: &mut Draft,
        section: &'static str,
        rates: &[(&str, &'static str)],
    ) -> Result<()> {
        for &(name, key) in rates {
            if let Some(rate) = self.rate(key)? {
                draft.line(section, format!("{name} = \"{rate}\""), self.comment(key));
            }
        }
        Ok(())
    }

    /// The link that fails: so many microseconds after 2 s, for good.
    fn link_down(&mut self, draft: &mut Draft, network: &Topology) -> Result<()> {
        if self.comment("LINK_DOWN").starts_with("LINK_DOWN 0 ") {
            return Ok(());
        }
        let Some(words) = self.words("LINK_DOWN") else { return Ok(()) };
        let us: u64 = self.lines.number(words[0], "whole number of microseconds")?;
        let at = Span::from_us(us.min(MOST_US)) + Span::from_secs(2);
        let mut ends = Vec::new();
        for word in &words[1..] {
            let node: u32 = self.lines.number(word, "number of a node")?;
            let names = [format!("h{node}"), format!("s{node}")];
            let mut known = network.graph.hosts.iter().chain(&network.graph.switches);
            let name = known.find(|name| names.contains(name));
            let error = || {
                self.lines.error(word, format!("the topology has no node {node}"), "a node of the topology")
            };
            ends.push(name.ok_or_else(error)?.clone());
        }
        let comment = self.comment("LINK_DOWN");
        draft.line("[fault]", format!("from = \"{}\"", ends[0]), comment);
        draft.line("[fault]", format!("to = \"{}\"", ends[1]), "");
        draft.line("[fault]", format!("at = \"{at}\""), "so many microseconds after 2 s");
        draft.line("[fault]", "down = true", "");
        Ok(())
    }

    /// Lists the keys that the scenario does not have.
    fn left_out(&self, draft: &mut Draft, mode: Mode) {
        let (mut results, mut others, mut same) = (Vec::new(), Vec::new(), Vec::new());
        for (key, words) in self.unused() {
            match key.fate {
                Fate::Mapped(_) if words == "0 0 0" => same.push(format!("{} {words}", key.name)),
                Fate::Mapped(_) => others.push(key.name),
                Fate::OfHpcc(..) if mode != Mode::Hpcc => others.push(key.name),
                Fate::Results => results.push(key.name),
                Fate::Only(value, _) | Fate::OfHpcc(value, _) if value == words => {
                    same.push(format!("{} {words}", key.name))
                }
                Fate::Only(_, why) | Fate::OfHpcc(_, why) => {
                    draft.notes.push(format!("{} {words} is left out: {why}", key.name))
                }
            }
        }
        for (names, why) in [
            (&others, format!("{} does not use them", mode.kind())),
            (&results, "a run directory has all results".to_owned()),
        ] {
            if !names.is_empty() {
                draft.notes.push(format!("left out, as {why}: {}", names.join(", ")));
            }
        }
        if !self.unknown.is_empty() {
            draft
                .notes
                .push(format!("left out, as HPCC's simulator has no such key: {}", self.unknown.join(", ")));
        }
        if !same.is_empty() {
            draft.remarks.push(format!("As here in any case: {}.", same.join(", ")));
        }
    }
}

/// Latest failure of a link, in microseconds: 10 days.
const MOST_US: u64 = 864_000_000_000;

impl Topology {
    /// Returns the rate of the first host's link, as the simulator does; that of the first link where no host has one.
    fn host_rate(&self) -> Rate {
        let of_host =
            |link: &&(String, String, Rate, Span)| link.0.starts_with('h') || link.1.starts_with('h');
        let link = self.graph.links.iter().find(of_host).or(self.graph.links.first());
        link.map_or(Rate::from_gbps(1), |(.., rate, _)| *rate)
    }
}

/// A scenario file in the making.
#[derive(Debug, Default)]
struct Draft {
    /// Sections with their entries, each with a comment; an entry without text is a comment alone.
    sections: Vec<(&'static str, Vec<(String, String)>)>,
    /// What is left out or differs.
    notes: Vec<String>,
    /// What needs no warning.
    remarks: Vec<String>,
}

impl Draft {
    fn line(&mut self, section: &'static str, entry: impl Into<String>, comment: impl Into<String>) {
        let line = (entry.into(), comment.into());
        match self.sections.iter_mut().find(|(name, _)| *name == section) {
            Some((_, lines)) => lines.push(line),
            None => self.sections.push((section, vec![line])),
        }
    }

    fn finish(mut self, name: &str) -> Imported {
        let file = name.rsplit('/').next().unwrap_or(name).replace(['"', '\\'], "");
        let mut text = format!("# Imported from {file}.\n");
        for note in self.notes.iter().chain(&self.remarks) {
            let _ = writeln!(text, "# {note}");
        }
        let _ = writeln!(text, "version = 1\ntitle = \"Imported from {file}\"");
        let place = |name: &str| ORDER.iter().position(|section| *section == name).unwrap_or(ORDER.len());
        self.sections.sort_by_key(|(name, _)| place(name));
        for (section, lines) in &self.sections {
            let _ = writeln!(text, "\n[{section}]");
            for (entry, comment) in lines {
                let _ = match (entry.is_empty(), comment.is_empty()) {
                    (true, _) => writeln!(text, "# {comment}"),
                    (false, true) => writeln!(text, "{entry}"),
                    (false, false) => writeln!(text, "{entry:<43} # {comment}"),
                };
            }
        }
        let summary = self
            .sections
            .iter()
            .find_map(|(name, lines)| {
                (*name == "transport").then(|| lines.first().map(|line| line.0.clone()))?
            })
            .unwrap_or_default();
        Imported { text, summary, notes: self.notes, hosts: BTreeSet::new(), links: Vec::new() }
    }
}

/// The sections in the order of the file.
const ORDER: &[&str] = &[
    "run",
    "topology",
    "[fault]",
    "port.host",
    "port.switch",
    "port.switch.red",
    "port.switch.lossless",
    "port.switch.shared_buffer",
    "host",
    "transport",
    "transport.dctcp",
    "transport.roce",
    "transport.roce.dcqcn",
    "transport.roce.hpcc",
    "transport.roce.timely",
    "transport.roce.dctcp",
    "observe",
    "workload.flows",
];
