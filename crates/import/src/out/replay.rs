//! Traffic as lists: every message that was found.

use std::fmt::Write as _;

use plimsoll_text::csv_cell;
use plimsoll_units::Bytes;

use super::model;
use super::parts::{NamedText, OWN_CONNECTIONS, WorkloadText, Workloads, WriteError};
use crate::found::{ClassTraffic, FoundExchange, FoundFlow, ImportFound, RequestStart, TrafficClass};

/// Returns a list for each class; rates, which have no messages, become a model.
pub(super) fn workloads(found: &ImportFound, hosts: &[String]) -> Result<Workloads, WriteError> {
    let mut workloads = Workloads::default();
    for class in &found.classes {
        match &class.traffic {
            ClassTraffic::Exchanges(exchanges) => workloads.all.push(requests(class, exchanges, hosts)),
            ClassTraffic::Flows(flows) => workloads.all.push(list(class, flows, hosts)),
            ClassTraffic::Rates(rates) => model::rates(class, rates, hosts, &mut workloads),
        }
    }
    Ok(workloads)
}

fn requests(class: &TrafficClass, exchanges: &[FoundExchange], hosts: &[String]) -> WorkloadText {
    let mut text = "connection,start,think,client,server,request,response,service,class\n".to_owned();
    let name = |host: u32| csv_cell(&hosts[host as usize]);
    for exchange in exchanges {
        let (start, think) = match exchange.start {
            RequestStart::At(start) => (start.to_string(), String::new()),
            RequestStart::After(think) => (String::new(), think.to_string()),
        };
        let FoundExchange { connection, client, server, request, response, service, .. } = *exchange;
        let (request, response) = (Bytes::new(request), Bytes::new(response));
        let (client, server) = (name(client), name(server));
        let _ = writeln!(
            text,
            "{connection},{start},{think},{client},{server},{request},{response},{service},{}",
            class.name
        );
    }
    workload(class, "request-list", "", text)
}

fn list(class: &TrafficClass, flows: &[FoundFlow], hosts: &[String]) -> WorkloadText {
    let mut text = "start,source,destination,size,class\n".to_owned();
    let name = |host: u32| csv_cell(&hosts[host as usize]);
    for FoundFlow { start, source, destination, bytes, .. } in flows {
        let (source, destination, size) = (name(*source), name(*destination), Bytes::new(*bytes));
        let _ = writeln!(text, "{start},{source},{destination},{size},{}", class.name);
    }
    workload(class, "flow-list", OWN_CONNECTIONS, text)
}

fn workload(class: &TrafficClass, kind: &str, more: &str, text: String) -> WorkloadText {
    let file = format!("{}.csv", class.name);
    let table = format!("kind = \"{kind}\"\npath = \"{file}\"\n{more}");
    WorkloadText { name: class.name.clone(), table, files: vec![NamedText { name: file, text }] }
}
