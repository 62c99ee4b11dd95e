//! Metrics: rates of hosts from a range query of Prometheus, as JSON.
//!
//! ```text
//! series ──> by host, class and direction ──> rate a step (a counter's increase, resets recognised)
//!              labels; interfaces that see           ──> mean rate, and how much it varied ──> ImportFound
//!              another's traffic are left out
//! ```

mod series;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plimsoll_files::Origin;
use plimsoll_text::{count, counted, shortened};
use plimsoll_units::Span;
use serde::Deserialize;

use crate::found::{ClassTraffic, HostRates, ImportFound, Note, Remark, TrafficClass};
use crate::invalid::Invalid;
use series::{SeriesForm, milliseconds, rates};

/// The settings of an import of metrics.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MetricSettings {
    /// The label that names a host; a port after its last colon is left out.
    pub host_label: String,
    /// The label by which traffic is divided into classes; all is one class without it.
    pub class_label: Option<String>,
    /// The direction of series whose name does not say it.
    pub direction: Option<RateDirection>,
    /// The values are bits; bytes otherwise.
    pub bits: bool,
}

impl Default for MetricSettings {
    fn default() -> MetricSettings {
        MetricSettings { host_label: "instance".to_owned(), class_label: None, direction: None, bits: false }
    }
}

/// The direction of a host's traffic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RateDirection {
    /// From the host into the network.
    Transmit,
    /// From the network to the host.
    Receive,
}

/// The answer of a query.
#[derive(Deserialize)]
struct PrometheusAnswer {
    #[serde(default)]
    status: String,
    #[serde(default)]
    error: String,
    data: Option<Data>,
}

#[derive(Deserialize)]
struct Data {
    #[serde(rename = "resultType")]
    kind: String,
    result: serde_json::Value,
}

/// A series: its labels, and times in seconds with values as text.
#[derive(Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    values: Vec<(f64, String)>,
}

/// The largest answer that is read.
const BYTES_MAX: u64 = 512 << 20;

/// Reads the answer to a range query.
///
/// # Errors
/// Returns an error that names the place if the file is not an answer with series, or a series lacks a label or values.
pub fn read(path: &Path, settings: &MetricSettings) -> Result<ImportFound, Invalid> {
    let place = path.display().to_string();
    const ALLOWED: &str = "the JSON of /api/v1/query_range";
    let text = plimsoll_files::read_text(path, Origin::Argument, BYTES_MAX)
        .map_err(|error| Invalid::unreadable(&place, &error))?;
    let answer: PrometheusAnswer = serde_json::from_str(&text)
        .map_err(|error| Invalid::new(&place, format!("no answer of Prometheus: {error}"), ALLOWED))?;
    let Some(data) = answer.data.filter(|_| answer.status == "success") else {
        let error = if answer.error.is_empty() { "no data" } else { &answer.error };
        return Err(Invalid::new(place, format!("the query failed: {}", shortened(error, 200)), ALLOWED));
    };
    if data.kind != "matrix" {
        let problem = format!("the answer is a {}", shortened(&data.kind, 40));
        return Err(Invalid::new(place, problem, "a matrix: ask /api/v1/query_range, not /api/v1/query"));
    }
    let series: Vec<Series> = serde_json::from_value(data.result)
        .map_err(|error| Invalid::new(&place, format!("no series: {error}"), ALLOWED))?;
    let mut sums = RateSums::default();
    for (number, series) in series.iter().enumerate() {
        sums.add(&format!("{place}: series {number}"), series, settings)?;
    }
    sums.found(&place, settings)
}

/// The rates of a host in a class, by time in milliseconds.
type Steps = BTreeMap<u64, f64>;

/// The sums of all series, by class, direction and host.
#[derive(Default)]
struct RateSums {
    rates: BTreeMap<(String, RateDirection, String), Steps>,
    /// The series that were read, by their form.
    forms: BTreeMap<SeriesForm, u64>,
    resets: u64,
    /// The first and the last time of any value, in milliseconds.
    times: Option<(u64, u64)>,
    /// Interfaces that are left out.
    interfaces: BTreeSet<String>,
    left_out: u64,
}

impl RateSums {
    fn add(&mut self, place: &str, series: &Series, settings: &MetricSettings) -> Result<(), Invalid> {
        let label = |name: &str| {
            series.metric.get(name).ok_or_else(|| {
                let names: Vec<&str> = series.metric.keys().map(String::as_str).collect();
                let meant = plimsoll_text::spelling::did_you_mean(name, names.iter().copied());
                let meant = meant.map_or_else(String::new, |meant| format!(" ({meant})"));
                Invalid::new(
                    place,
                    format!("no label \"{name}\"{meant}"),
                    format!("one of {}", names.join(", ")),
                )
            })
        };
        if let Some(interface) = series.metric.get("device").filter(|device| sees_others_traffic(device)) {
            self.interfaces.insert(interface.clone());
            self.left_out += 1;
            return Ok(());
        }
        let host = host_of(label(&settings.host_label)?);
        let class =
            settings.class_label.as_deref().map_or(Ok("traffic"), |name| label(name).map(String::as_str))?;
        let name = series.metric.get("__name__").map_or("", String::as_str);
        let said = if name.contains("receive") {
            Some(RateDirection::Receive)
        } else if name.contains("transmit") {
            Some(RateDirection::Transmit)
        } else {
            None
        };
        let Some(direction) = settings.direction.or(said) else {
            let problem = "the name of the series does not say its direction";
            return Err(Invalid::new(place, problem, "--direction transmit or receive"));
        };
        let form = if name.ends_with("_total") { SeriesForm::Counter } else { SeriesForm::Rate };
        let (steps, resets) = rates(&series.values, form).map_err(|problem| {
            Invalid::new(place, problem, "times in seconds that ascend, and numbers from 0")
        })?;
        *self.forms.entry(form).or_default() += 1;
        self.resets += resets;
        if let (Some((first, _)), Some((last, _))) = (series.values.first(), series.values.last()) {
            let (first, last) = (milliseconds(*first), milliseconds(*last));
            let (low, high) = self.times.unwrap_or((first, last));
            self.times = Some((low.min(first), high.max(last)));
        }
        let unit = if settings.bits { 1.0 } else { 8.0 };
        let sums = self.rates.entry((class.to_owned(), direction, host.to_owned())).or_default();
        for (time, rate) in steps {
            *sums.entry(time).or_default() += rate * unit;
        }
        Ok(())
    }

    fn found(self, place: &str, settings: &MetricSettings) -> Result<ImportFound, Invalid> {
        let mut notes = Vec::new();
        let mut note = |remark, text| notes.push(Note { remark, text });
        for (form, series) in &self.forms {
            let text = match form {
                SeriesForm::Counter => {
                    format!("{} series of counters, of which rates are taken", count(*series))
                }
                SeriesForm::Rate => format!("{} series of rates", count(*series)),
            };
            note(Remark::Found, text);
        }
        if self.resets > 0 {
            let text =
                format!("a counter became smaller {}: it restarted from 0", counted(self.resets, "time"));
            note(Remark::Assumed, text);
        }
        if self.left_out > 0 {
            let interfaces: Vec<&str> = self.interfaces.iter().take(8).map(String::as_str).collect();
            let more = if self.interfaces.len() > interfaces.len() { ", ..." } else { "" };
            let text = format!(
                "{} series of interfaces that carry no packets of the network, or those of another interface: {}{more}",
                count(self.left_out),
                interfaces.join(", ")
            );
            note(Remark::Ignored, text);
        }
        let Some((first, last)) = self.times else {
            return Err(Invalid::new(place, "no series with values", "the metrics of network interfaces"));
        };
        if first == last {
            let problem = "all values are of one time, so there is no length of time for a run";
            return Err(Invalid::new(place, problem, "two times or more"));
        }
        let mut found = ImportFound { duration: Span::from_ms(last - first), ..ImportFound::default() };
        let mut by_host: BTreeMap<(&str, &str), [Option<f64>; 2]> = BTreeMap::new();
        for ((class, direction, host), steps) in &self.rates {
            let mean = steps.values().sum::<f64>() / steps.len().max(1) as f64;
            by_host.entry((class, host)).or_default()[*direction as usize] = Some(mean);
        }
        let mut classes: BTreeMap<&str, Vec<HostRates>> = BTreeMap::new();
        for ((class, name), [sent, received]) in by_host {
            if [sent, received].into_iter().flatten().all(|rate| rate <= 0.0) {
                continue;
            }
            let known = found.hosts.iter().position(|host| host == name);
            let host = known.unwrap_or_else(|| {
                found.hosts.push(name.to_owned());
                found.hosts.len() - 1
            });
            classes.entry(class).or_default().push(HostRates { host: host as u32, sent, received });
        }
        if classes.is_empty() {
            return Err(Invalid::new(place, "no host has traffic", "rates above 0"));
        }
        for (class, rates) in classes {
            let is_sent = rates.iter().any(|of| of.sent.is_some());
            let direction = if is_sent { RateDirection::Transmit } else { RateDirection::Receive };
            note(Remark::Found, self.varied(class, direction));
            found.classes.push(TrafficClass { name: class_name(class), traffic: ClassTraffic::Rates(rates) });
        }
        let unit = if settings.bits { "bits" } else { "bytes" };
        note(
            Remark::Assumed,
            format!(
                "the {unit} of interfaces, headers included, are taken for payload: about 4 % too much with full \
                 packets"
            ),
        );
        found.notes = notes;
        Ok(found)
    }

    /// Describes how much the rate of a class varied from step to step.
    fn varied(&self, class: &str, direction: RateDirection) -> String {
        let mut sums: Steps = BTreeMap::new();
        for ((of, other, _), steps) in &self.rates {
            if of == class && *other == direction {
                steps.iter().for_each(|(time, rate)| *sums.entry(*time).or_default() += rate);
            }
        }
        let rates: Vec<f64> = sums.into_values().collect();
        let mean = rates.iter().sum::<f64>() / rates.len().max(1) as f64;
        let (low, high) =
            rates.iter().fold((f64::MAX, 0.0f64), |(low, high), rate| (low.min(*rate), high.max(*rate)));
        let mbps = |rate: f64| format!("{:.3} Mb/s", rate / 1e6);
        match rates.len() {
            0 | 1 => format!(
                "class {class}: {} in one step, so that nothing is known of how it varies",
                mbps(mean)
            ),
            steps => format!(
                "class {class}: {} on average, {} .. {} in {steps} steps; variation within a step is not known",
                mbps(mean),
                mbps(low),
                mbps(high)
            ),
        }
    }
}

/// Returns whether an interface carries no packets of the network, or carries the packets of another interface once
/// more.
fn sees_others_traffic(device: &str) -> bool {
    const VIRTUAL: &[&str] = &[
        "veth", "docker", "br-", "virbr", "cali", "cilium", "flannel", "cni", "tun", "tap", "bond", "team",
        "dummy",
    ];
    // A VLAN has the name of its interface, and a dot.
    device == "lo" || device.contains('.') || VIRTUAL.iter().any(|start| device.starts_with(start))
}

/// Returns a host without the port of its exporter.
fn host_of(instance: &str) -> &str {
    match instance.rsplit_once(':') {
        Some((host, port)) if !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) => {
            host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
        }
        _ => instance,
    }
}

/// Returns the name of a workload: the value of the label, with a hyphen for what names cannot have.
fn class_name(label: &str) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if label.is_empty() {
        "none".to_owned()
    } else {
        label.chars().map(|c| if is_name(c) { c } else { '-' }).collect()
    }
}
