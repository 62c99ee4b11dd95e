//! Traffic as a model: distributions and arrival processes that scenarios have, and how well they fit.
//!
//! | found | kind | fitted |
//! |---|---|---|
//! | requests that wait for responses | `closed-loop`, one a client | sizes, service, think times, connections |
//! | other requests | `rpc`, one a client | responses, service, a Poisson process; requests have their mean size |
//! | flows | `transfer`, one a receiver | sizes, a Poisson process |
//! | rates | `transfer`, or `all-to-all` without receivers | the mean rate alone |

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use plimsoll_units::Span;

use super::fit::{Fit, Table};
use super::{NamedText, OWN_CONNECTIONS, WorkloadText, Workloads, WriteError, assumed};
use crate::found::{Class, Exchange, Flow, Found, Rate, Start, Traffic};

/// The most workloads that one class becomes.
const PARTS_MAX: usize = 64;

/// Returns the workloads of a model, and the judgements of their fits.
pub(super) fn workloads(found: &Found, hosts: &[String]) -> Result<Workloads, WriteError> {
    let mut workloads = Workloads { has_duration: true, ..Workloads::default() };
    for class in &found.classes {
        let mut modelled = Modelled { class, hosts, duration: found.duration, workloads: &mut workloads };
        match &class.traffic {
            Traffic::Exchanges(exchanges) => modelled.exchanges(exchanges)?,
            Traffic::Flows(flows) => modelled.flows(flows)?,
            Traffic::Rates(all) => rates(class, all, hosts, &mut workloads)?,
        }
    }
    Ok(workloads)
}

/// A class that becomes a model.
struct Modelled<'a> {
    class: &'a Class,
    hosts: &'a [String],
    duration: Span,
    workloads: &'a mut Workloads,
}

/// A table of a class in a file, and its key in a scenario.
struct Kept {
    table: Table,
    file: NamedText,
}

impl Modelled<'_> {
    fn exchanges(&mut self, exchanges: &[Exchange]) -> Result<(), WriteError> {
        let waits = exchanges.iter().any(|exchange| matches!(exchange.start, Start::After(_)));
        let mut fit = Fit::new(&self.class.name);
        let request =
            self.sizes("request", exchanges.iter().map(|exchange| exchange.request), &mut fit, !waits);
        let response =
            self.sizes("response", exchanges.iter().map(|exchange| exchange.response), &mut fit, false);
        let service = self.times("service", exchanges.iter().map(|exchange| exchange.service), &mut fit);
        let clients = parts(exchanges, |exchange| exchange.client);
        self.check_parts(clients.len())?;
        let service_key = key("service", &service);
        let response_key = key("response", &response);
        let mut files = vec![response.file.clone(), service.file.clone()];
        if waits {
            let thinks = exchanges.iter().filter_map(|exchange| match exchange.start {
                Start::After(think) => Some(think),
                Start::At(_) => None,
            });
            let think = self.times("think", thinks, &mut fit);
            files.extend([request.file.clone(), think.file.clone()]);
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
                table += &(key("request", &request) + &response_key + &service_key + &key("think", &think));
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
                let mean = request.table.mean().round().max(1.0);
                let _ = writeln!(
                    table,
                    "pick = \"random\"\nload = \"{}bps\"\nrequest = \"{mean}B\"",
                    load.ceil()
                );
                table += &(response_key.clone() + &service_key);
                self.push(*client, table, std::mem::take(&mut files));
            }
        }
        self.spread(clients.values().map(|all| all.iter().map(|exchange| exchange.server).collect()));
        self.workloads.fits.push(fit);
        Ok(())
    }

    fn flows(&mut self, flows: &[Flow]) -> Result<(), WriteError> {
        let mut fit = Fit::new(&self.class.name);
        let size = self.sizes("size", flows.iter().map(|flow| flow.bytes), &mut fit, false);
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

    /// Fits sizes; a workload that has their mean alone is judged by that.
    fn sizes(
        &self,
        name: &'static str,
        sizes: impl Iterator<Item = u64>,
        fit: &mut Fit,
        is_mean: bool,
    ) -> Kept {
        let sorted = sorted(sizes.map(|bytes| bytes as f64));
        let table = Table::of(&sorted);
        let mean = table.mean();
        fit.distribution(name, &sorted, |share| if is_mean { mean } else { table.quantile(share) });
        self.keep(name, "bytes", table)
    }

    /// Fits lengths of time.
    fn times(&self, name: &'static str, times: impl Iterator<Item = Span>, fit: &mut Fit) -> Kept {
        let sorted = sorted(times.map(Span::as_us_f64));
        let table = Table::of(&sorted);
        fit.distribution(name, &sorted, |share| table.quantile(share));
        self.keep(name, "us", table)
    }

    fn keep(&self, name: &str, unit: &str, table: Table) -> Kept {
        let file = NamedText { name: format!("{}-{name}.csv", self.class.name), text: table.text(unit) };
        Kept { table, file }
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

/// Writes mean rates as transfers of a size that is assumed.
pub(super) fn rates(
    class: &Class,
    all: &[Rate],
    hosts: &[String],
    workloads: &mut Workloads,
) -> Result<(), WriteError> {
    workloads.has_duration = true;
    let mut receivers: BTreeMap<u32, (f64, BTreeSet<u32>)> = BTreeMap::new();
    let mut senders = Vec::new();
    for rate in all {
        match (rate.source, rate.destination) {
            (source, Some(destination)) => {
                let (sum, sources) = receivers.entry(destination).or_default();
                *sum += rate.bits_per_second;
                sources.extend(source);
            }
            (Some(_), None) => senders.push(rate.bits_per_second),
            (None, None) => {}
        }
    }
    if receivers.len() > PARTS_MAX {
        let (class, parts) = (class.name.clone(), receivers.len());
        return Err(WriteError::Workloads { class, parts, most: PARTS_MAX });
    }
    let size = format!("size = \"{RATE_SIZE}\"\n");
    for (receiver, (load, sources)) in receivers {
        let others = || (0..hosts.len() as u32).filter(|&host| host != receiver).collect();
        let sources: BTreeSet<u32> = if sources.is_empty() { others() } else { sources };
        let servers = names(hosts, sources.into_iter());
        let table = transfer(&hosts[receiver as usize], &servers, load) + &size + OWN_CONNECTIONS;
        let name = format!("{}-h{receiver}", class.name);
        workloads.all.push(WorkloadText { name, table, files: Vec::new() });
    }
    if !senders.is_empty() {
        let load = senders.iter().sum::<f64>() / hosts.len() as f64;
        let most = senders.iter().copied().fold(0.0, f64::max);
        let table = format!("kind = \"all-to-all\"\nload = \"{}bps\"\n{size}{OWN_CONNECTIONS}", load.ceil());
        workloads.all.push(WorkloadText { name: class.name.clone(), table, files: Vec::new() });
        workloads.notes.push(assumed(format!(
            "{}: all hosts send the mean rate to all others; the busiest of them sends {:.1} times the mean",
            class.name,
            most / load.max(f64::MIN_POSITIVE)
        )));
    }
    workloads.notes.push(assumed(format!(
        "{}: rates have no messages, so they are of {RATE_SIZE} each, at random times: the tail is not theirs",
        class.name
    )));
    Ok(())
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

fn key(name: &str, kept: &Kept) -> String {
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

fn at(start: Start) -> Span {
    match start {
        Start::At(start) | Start::After(start) => start,
    }
}

/// Returns how many connections a client has had at once, on average over `duration` and at least one.
fn connections_at_once(exchanges: &[&Exchange], duration: Span) -> u64 {
    // By connection: its first start, and the sum of its think times and latencies.
    let mut spans: BTreeMap<u32, Span> = BTreeMap::new();
    for exchange in exchanges {
        let think = match exchange.start {
            Start::After(think) => think,
            Start::At(_) => Span::ZERO,
        };
        *spans.entry(exchange.connection).or_default() += think + exchange.latency;
    }
    let all: f64 = spans.values().map(|span| span.as_secs_f64()).sum();
    (all / duration.as_secs_f64().max(1e-9)).round().max(1.0) as u64
}
