//! The digest of a run's input: FNV-1a (64 bit) over the canonical text and over the files that it names.

use std::fmt::Write;

use plimsoll_fabric::net::topology::File;
use plimsoll_traffic::flow_list::ListedFlow;
use plimsoll_traffic::kind::Input;
use plimsoll_traffic::request_list::{ListedRequest, ListedStart};

use crate::model::Model;

/// Returns the digest of a run's input; the same digest means the same input.
pub(crate) fn digest(model: &Model, canonical: &str) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // Writing to the hash cannot fail.
    let _ = hash.write_str(canonical);
    if let Some((File { graph, .. }, _)) = model.topology.file() {
        // With the names of its structs: another name is another digest.
        let _ = write!(hash, "{graph:?}");
    }
    for (section, name, version) in model.outside.named() {
        let _ = write!(hash, "{section} {name} {version}");
    }
    for input in model.workload.values().flat_map(|workload| workload.params().inputs()) {
        match input {
            Input::Flows(flows) => flows.iter().for_each(|flow| listed(&mut hash, flow)),
            Input::Requests(requests) => requests.iter().for_each(|request| asked(&mut hash, request)),
            Input::Job(graph) => graph.words().for_each(|word| hash.bytes(&word.to_le_bytes())),
            Input::Weights(weights) => {
                let _ = write!(hash, "{weights:?}");
            }
            Input::Cdf(table) => {
                let _ = write!(hash, "{:?}", table.points());
            }
        }
    }
    hash.0
}

/// Hashes the numbers of a flow rather than their texts: a list may have hundreds of thousands of flows.
fn listed(hash: &mut Fnv, flow: &ListedFlow) {
    let ListedFlow { start, source, destination, size, class } = flow;
    hash.bytes(&start.as_ps().to_le_bytes());
    hash.bytes(&source.to_le_bytes());
    hash.bytes(&destination.to_le_bytes());
    hash.bytes(&size.get().to_le_bytes());
    hash.bytes(&(class.len() as u64).to_le_bytes());
    hash.bytes(class.as_bytes());
}

/// Hashes the numbers of a request, as [`listed`] those of a flow.
fn asked(hash: &mut Fnv, listed: &ListedRequest) {
    let ListedRequest { connection, start, client, server, request, response, service, class } = listed;
    let (kind, start) = match start {
        ListedStart::At(start) => (0, start),
        ListedStart::After(think) => (1, think),
    };
    hash.bytes(&[kind]);
    for number in [connection, client, server] {
        hash.bytes(&number.to_le_bytes());
    }
    for number in [start.as_ps(), request.get(), response.get(), service.as_ps(), class.len() as u64] {
        hash.bytes(&number.to_le_bytes());
    }
    hash.bytes(class.as_bytes());
}

struct Fnv(u64);

impl Fnv {
    fn bytes(&mut self, bytes: &[u8]) {
        self.0 =
            bytes.iter().fold(self.0, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.bytes(text.as_bytes());
        Ok(())
    }
}
