//! Traffic as a model: distributions and arrival processes that scenarios have, and how well they fit.
//!
//! | found | kind | fitted |
//! |---|---|---|
//! | requests that wait for responses | `closed-loop`, one a client | sizes, service, think times, connections |
//! | other requests | `rpc`, one a client | sizes, service, a Poisson process |
//! | flows | `transfer`, one a receiver | sizes, a Poisson process |
//! | rates of hosts | `all-to-all` by weights of hosts | the mean rate of each host |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use plimsoll_units::Span;

use super::fit::{FittedTable, ModelFit};
use super::gravity::Gravity;
use super::parts::{NamedText, OWN_CONNECTIONS, WorkloadText, Workloads, WriteError, assumed};
use crate::found::{
    ClassTraffic, FoundExchange, FoundFlow, HostRates, ImportFound, RequestStart, TrafficClass,
};

/// The most workloads that one class becomes.
const PARTS_MAX: usize = 64;

/// Returns the workloads of a model, and the judgements of their fits.
pub(super) fn workloads(found: &ImportFound, hosts: &[String]) -> Result<Workloads, WriteError> {
    let mut workloads = Workloads { has_duration: true, ..Workloads::default() };
    for class in &found.classes {
        let mut modelled =
            ModelledClass { class, hosts, duration: found.duration, workloads: &mut workloads };
        match &class.traffic {
            ClassTraffic::Exchanges(exchanges) => modelled.exchanges(exchanges)?,
            ClassTraffic::Flows(flows) => modelled.flows(flows)?,
            ClassTraffic::Rates(all) => rates(class, all, hosts, &mut workloads),
        }
    }
    Ok(workloads)
}

/// A class that becomes a model.
struct ModelledClass<'a> {
    class: &'a TrafficClass,
    hosts: &'a [String],
    duration: Span,
    workloads: &'a mut Workloads,
}

/// A table of a class in a file, and its key in a scenario.
struct KeptTable {
    table: FittedTable,
    file: NamedText,
}

impl ModelledClass<'_> {
    fn exchanges(&mut self, exchanges: &[FoundExchange]) -> Result<(), WriteError> {
        let waits = exchanges.iter().any(|exchange| matches!(exchange.start, RequestStart::After(_)));
        let mut fit = ModelFit::new(&self.class.name);
        let request = self.sizes("request", exchanges.iter().map(|exchange| exchange.request), &mut fit);
        let response = self.sizes("response", exchanges.iter().map(|exchange| exchange.response), &mut fit);
        let service = self.times("service", exchanges.iter().map(|exchange| exchange.service), &mut fit);
        let clients = parts(exchanges, |exchange| exchange.client);
        self.check_parts(clients.len())?;
        let keys = key("request", &request) + &key("response", &response) + &key("service", &service);
        let mut files = vec![request.file, response.file, service.file];
        if waits {
            let thinks = exchanges.iter().filter_map(|exchange| match exchange.start {
                RequestStart::After(think) => Some(think),
                RequestStart::At(_) => None,
            });
            let think = self.times("think", thinks, &mut fit);
            files.push(think.file.clone());
            for (client, of_client) in &clients {
                let mut table = "kind = \"closed-loop\"\n".to_owned();
                let _ = writeln!(table, "clients = [\"{}\"]", self.hosts[*client as usize]);
                let _ = writeln!(
                    table,
                    "servers = {}",
                    self.names(of_client.iter().map(|exchange| exchange.server))
                );
                let outstanding = connections_at_once(of_client, self.duration);
                let _ = writeln!(table, "outstanding = {outstanding}\npick = \"random\"\nthreads = 1000000");
                table += &(keys.clone() + &key("think", &think));
                self.push(*client, table, std::mem::take(&mut files));
            }
        } else {
            let starts: Vec<Span> = exchanges.iter().map(|exchange| at(exchange.start)).collect();
            fit.arrivals(&starts, self.duration);
            let seconds = self.duration.as_secs_f64().max(1e-9);
            for (client, of_client) in &clients {
                let mut table = "kind = \"rpc\"\n".to_owned();
                let _ = writeln!(table, "client = \"{}\"", self.hosts[*client as usize]);
                let _ = writeln!(
                    table,
                    "servers = {}",
                    self.names(of_client.iter().map(|exchange| exchange.server))
                );
                let load = of_client.len() as f64 * response.table.mean() * 8.0 / seconds;
                let _ = writeln!(table, "pick = \"random\"\nload = \"{}bps\"", load.ceil());
                table += &keys;
                self.push(*client, table, std::mem::take(&mut files));
            }
        }
        self.spread(clients.values().map(|all| all.iter().map(|exchange| exchange.server).collect()));
        self.workloads.fits.push(fit);
        Ok(())
    }

    fn flows(&mut self, flows: &[FoundFlow]) -> Result<(), WriteError> {
        let mut fit = ModelFit::new(&self.class.name);
        let size = self.sizes("size", flows.iter().map(|flow| flow.bytes), &mut fit);
        let starts: Vec<Span> = flows.iter().map(|flow| flow.start).collect();
        fit.arrivals(&starts, self.duration);
        let receivers = parts(flows, |flow| flow.destination);
        self.check_parts(receivers.len())?;
        let seconds = self.duration.as_secs_f64().max(1e-9);
        let mut files = vec![size.file.clone()];
        for (receiver, of_receiver) in &receivers {
            let load = of_receiver.len() as f64 * size.table.mean() * 8.0 / seconds;
            let servers = self.names(of_receiver.iter().map(|flow| flow.source));
            let receiver_name = &self.hosts[*receiver as usize];
            let table = transfer(receiver_name, &servers, load) + &key("size", &size) + OWN_CONNECTIONS;
            self.push(*receiver, table, std::mem::take(&mut files));
        }
        self.spread(receivers.values().map(|all| all.iter().map(|flow| flow.source).collect()));
        self.workloads.fits.push(fit);
        Ok(())
    }

    /// Fits a distribution to the sizes of messages.
    fn sizes(&self, name: &'static str, sizes: impl Iterator<Item = u64>, fit: &mut ModelFit) -> KeptTable {
        let sorted = sorted(sizes.map(|bytes| bytes as f64));
        let table = FittedTable::of(&sorted);
        fit.distribution(name, &sorted, |share| table.quantile(share));
        self.keep(name, "bytes", table)
    }

    /// Fits lengths of time.
    fn times(&self, name: &'static str, times: impl Iterator<Item = Span>, fit: &mut ModelFit) -> KeptTable {
        let sorted = sorted(times.map(Span::as_us_f64));
        let table = FittedTable::of(&sorted);
        fit.distribution(name, &sorted, |share| table.quantile(share));
        self.keep(name, "us", table)
    }

    fn keep(&self, name: &str, unit: &str, table: FittedTable) -> KeptTable {
        let file = NamedText { name: format!("{}-{name}.csv", self.class.name), text: table.text(unit) };
        KeptTable { table, file }
    }

    fn check_parts(&self, parts: usize) -> Result<(), WriteError> {
        if parts > PARTS_MAX {
            return Err(WriteError::Workloads { class: self.class.name.clone(), parts, most: PARTS_MAX });
        }
        Ok(())
    }

    fn names(&self, hosts: impl Iterator<Item = u32>) -> String {
        names(self.hosts, hosts)
    }

    fn push(&mut self, host: u32, table: String, files: Vec<NamedText>) {
        let name = format!("{}-h{host}", self.class.name);
        self.workloads.all.push(WorkloadText { name, table, files });
    }

    /// Notes that a client or receiver has each of its peers as often as another.
    fn spread(&mut self, peers: impl Iterator<Item = BTreeSet<u32>>) {
        if peers.into_iter().any(|peers| peers.len() > 1) {
            let text = format!("{}: each peer of a host is as likely as another", self.class.name);
            self.workloads.notes.push(assumed(text));
        }
    }
}

/// Writes mean rates of hosts as flows of a size that is assumed, between pairs of hosts by a gravity model.
pub(super) fn rates(class: &TrafficClass, all: &[HostRates], hosts: &[String], workloads: &mut Workloads) {
    workloads.has_duration = true;
    let gravity = Gravity::of(all, hosts.len());
    let file = format!("{}-hosts.csv", class.name);
    let load = gravity.total / hosts.len() as f64;
    let table = format!(
        "kind = \"all-to-all\"\nload = \"{}bps\"\nweights = \"{file}\"\nsize = \"{RATE_SIZE}\"\n{OWN_CONNECTIONS}",
        load.ceil()
    );
    let files = vec![NamedText { name: file, text: gravity.text(hosts) }];
    workloads.all.push(WorkloadText { name: class.name.clone(), table, files });
    let mut note = |text: String| workloads.notes.push(assumed(format!("{}: {text}", class.name)));
    note(gravity.sentence());
    note(format!(
        "rates have no messages, so they are of {RATE_SIZE} each, at random times: the tail is not theirs"
    ));
}

/// The size of the messages of a rate.
const RATE_SIZE: &str = "1MB";

fn transfer(receiver: &str, servers: &str, load: f64) -> String {
    let load = load.ceil().max(1.0);
    format!(
        "kind = \"transfer\"\nclient = \"{receiver}\"\nservers = {servers}\npick = \"random\"\nrequest = \"1B\"\n\
         load = \"{load}bps\"\n"
    )
}

/// Returns the names of hosts as a list of a scenario, each once.
fn names(all: &[String], hosts: impl Iterator<Item = u32>) -> String {
    let unique: BTreeSet<u32> = hosts.collect();
    let names: Vec<String> = unique.iter().map(|&host| format!("\"{}\"", all[host as usize])).collect();
    format!("[{}]", names.join(", "))
}

fn key(name: &str, kept: &KeptTable) -> String {
    let interpolate = if kept.table.steps { "step" } else { "linear" };
    let file = &kept.file.name;
    format!("{name} = {{ kind = \"cdf\", cdf = \"./{file}\", interpolate = \"{interpolate}\" }}\n")
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

fn parts<T>(all: &[T], of: impl Fn(&T) -> u32) -> BTreeMap<u32, Vec<&T>> {
    let mut parts: BTreeMap<u32, Vec<&T>> = BTreeMap::new();
    all.iter().for_each(|one| parts.entry(of(one)).or_default().push(one));
    parts
}

fn at(start: RequestStart) -> Span {
    match start {
        RequestStart::At(start) | RequestStart::After(start) => start,
    }
}

/// Returns how many connections a client has had at once, on average over `duration` and at least one.
fn connections_at_once(exchanges: &[&FoundExchange], duration: Span) -> u64 {
    // By connection: its first start, and the sum of its think times and latencies.
    let mut spans: BTreeMap<u32, Span> = BTreeMap::new();
    for exchange in exchanges {
        let think = match exchange.start {
            RequestStart::After(think) => think,
            RequestStart::At(_) => Span::ZERO,
        };
        *spans.entry(exchange.connection).or_default() += think + exchange.latency;
    }
    let all: f64 = spans.values().map(|span| span.as_secs_f64()).sum();
    (all / duration.as_secs_f64().max(1e-9)).round().max(1.0) as u64
}
