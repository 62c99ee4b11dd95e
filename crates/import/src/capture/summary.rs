//! [`summarise`]: the messages of a capture as the traffic of a scenario, with notes about it.

use std::collections::BTreeSet;
use std::ops::Range;

use plimsoll_text::{count, counted};
use plimsoll_units::{Span, Time};

use super::collected::{Collected, SeenExchange, SeenFlow};
use super::compared::{ComparedClass, Tally};
use super::hosts::CapturedHosts;
use super::options::{CaptureOptions, StartBy};
use super::starts;
use crate::found::{
    ClassTraffic, FoundExchange, FoundFlow, ImportFound, Note, Remark, RequestStart, TrafficClass,
};

/// The most classes of a scenario; the smaller ones are one.
const CLASSES_MAX: usize = 12;

/// Returns the traffic, and what to compare a run with.
pub(super) fn summarise(
    mut collected: Collected,
    hosts: &CapturedHosts,
    range: Range<Time>,
    mut notes: Vec<Note>,
    options: &CaptureOptions,
) -> (ImportFound, Vec<ComparedClass>) {
    if collected.is_full() {
        notes.push(ignored(format!(
            "everything after the first {}, which is the most (--messages-max): a shorter capture, or one of fewer \
             hosts, has all",
            counted(options.messages_max as u64, "message")
        )));
    }
    if collected.left_out > 0 {
        notes.push(ignored(format!(
            "{} without TCP or UDP, or from a host to itself",
            counted(collected.left_out, "packet")
        )));
    }
    let names = largest_classes(&mut collected);
    let Collected { exchanges, flows, tallies, turnarounds, .. } = collected;
    let ends = exchanges.iter().flat_map(|seen| [seen.client, seen.server]);
    let used: BTreeSet<u32> =
        ends.chain(flows.iter().flat_map(|seen| [seen.source, seen.destination])).collect();
    let (numbers, host_names) = hosts.in_order(|number| used.contains(&number));
    let since = |time: Time| time.saturating_since(range.start);
    let (mut classes, mut compared) = (Vec::new(), Vec::new());
    let mut is_assumed = false;
    for (number, (name, tally)) in (0..).zip(names.iter().zip(&tallies)) {
        let mut of_class: Vec<&SeenExchange> = exchanges.iter().filter(|seen| seen.class == number).collect();
        of_class.sort_by_key(|seen| (seen.start, seen.connection));
        let mut own_flows: Vec<&SeenFlow> = flows.iter().filter(|seen| seen.class == number).collect();
        own_flows.sort_by_key(|seen| (seen.start, seen.source, seen.destination));
        if of_class.is_empty() && own_flows.is_empty() {
            continue;
        }
        notes.extend(about(name, tally, of_class.len(), options.idle));
        let waits = match options.starts {
            StartBy::Time => false,
            StartBy::Response => true,
            StartBy::Shown => {
                let judged = starts::judge(&of_class, tally.overlaps);
                notes.extend((!of_class.is_empty()).then(|| found(format!("{name}: {}", judged.why))));
                judged.waits
            }
        };
        compared.push(tally.compared(name.clone(), of_class.iter().map(|seen| seen.latency)));
        let mut exchange = |seen: &&SeenExchange| {
            let (service, assumed) = turnarounds.network(seen.server, seen.client, seen.has_copies);
            let (path, _) = turnarounds.network(seen.client, seen.server, seen.has_copies);
            is_assumed |= assumed;
            FoundExchange {
                start: match seen.think.filter(|_| waits) {
                    Some(think) => RequestStart::After(think.saturating_sub(path)),
                    None => RequestStart::At(since(seen.start)),
                },
                connection: seen.connection,
                client: numbers[seen.client as usize],
                server: numbers[seen.server as usize],
                request: seen.request,
                response: seen.response,
                service: seen.turnaround.saturating_sub(service),
                latency: seen.latency,
            }
        };
        if !of_class.is_empty() {
            let traffic = ClassTraffic::Exchanges(of_class.iter().map(&mut exchange).collect());
            classes.push(TrafficClass { name: name.clone(), traffic });
        }
        if !own_flows.is_empty() {
            let flow = |seen: &&SeenFlow| FoundFlow {
                start: since(seen.start),
                end: since(seen.end),
                source: numbers[seen.source as usize],
                destination: numbers[seen.destination as usize],
                bytes: seen.bytes,
            };
            let name = if of_class.is_empty() { name.clone() } else { format!("{name}-flows") };
            classes.push(TrafficClass {
                name,
                traffic: ClassTraffic::Flows(own_flows.iter().map(flow).collect()),
            });
        }
    }
    if is_assumed {
        notes.push(Note {
            remark: Remark::Assumed,
            text: "a server without acknowledgements of their own: its fastest response took no service time"
                .into(),
        });
    }
    let pause = format!("a pause of {} ends a message to which nothing comes back (--idle)", options.idle);
    notes.push(Note { remark: Remark::Assumed, text: pause });
    let duration = range.end.saturating_since(range.start);
    (ImportFound { hosts: host_names, classes, duration, notes }, compared)
}

/// Returns the name of each class, of which the smaller ones beyond [`CLASSES_MAX`] have become the last.
fn largest_classes(collected: &mut Collected) -> Vec<String> {
    let mut names: Vec<String> =
        (0..collected.tallies.len()).map(|number| collected.classes.name(number as u16)).collect();
    if names.len() <= CLASSES_MAX {
        return names;
    }
    let mut order: Vec<usize> = (0..names.len()).collect();
    order.sort_by_key(|&number| std::cmp::Reverse(collected.tallies[number].bytes));
    let small: BTreeSet<usize> = order.split_off(CLASSES_MAX - 1).into_iter().collect();
    let mut other = Tally::default();
    small.iter().for_each(|&number| other.merge(&collected.tallies[number]));
    let number = collected.tallies.len() as u16;
    collected.tallies.push(other);
    names.push("other".to_owned());
    let is_small = |class: u16| small.contains(&usize::from(class));
    let exchanges = collected.exchanges.iter_mut().map(|seen| &mut seen.class);
    let flows = collected.flows.iter_mut().map(|seen| &mut seen.class);
    exchanges.chain(flows).filter(|class| is_small(**class)).for_each(|class| *class = number);
    names
}

/// Returns the notes about one class.
fn about(name: &str, tally: &Tally, exchanges: usize, idle: Span) -> Vec<Note> {
    let mut notes = Vec::new();
    let compared = tally.compared(String::new(), std::iter::empty());
    if 2 * tally.one_way > tally.with_data {
        let text = format!(
            "{name}: {} of {} with payload have packets of one direction alone, not even acknowledgements: the \
             capture lacks the other direction, as that of one queue or of a mirror port for one direction does. No \
             request has its response, so all bytes are flows, which end at pauses ({idle}, --idle), and there are \
             neither latencies nor think times; capture both directions, or give both captures",
            count(tally.one_way),
            counted(tally.with_data, "TCP connection")
        );
        notes.push(Note { remark: Remark::Warning, text });
    }
    if compared.tls_packets > 0 {
        notes.push(found(format!(
            "{name}: TLS, so sizes are those of records, with their heads, and handshakes are requests as well"
        )));
    }
    if tally.overlaps > 0 {
        notes.push(found(format!(
            "{name}: {} times a side sent before it had everything from the other: those bytes are flows, beside {}",
            count(tally.overlaps),
            counted(exchanges as u64, "request")
        )));
    }
    if tally.unanswered > 0 {
        notes.push(ignored(format!(
            "{name}: {} without a whole response",
            counted(tally.unanswered, "request")
        )));
    }
    if compared.copies > 0 {
        notes.push(found(format!(
            "{name}: {} captured at more than one place, each counted once",
            counted(compared.copies, "packet")
        )));
    }
    notes
}

fn found(text: String) -> Note {
    Note { remark: Remark::Found, text }
}

fn ignored(text: String) -> Note {
    Note { remark: Remark::Ignored, text }
}
