//! The digest of a run's input: FNV-1a (64 bit) over the canonical text and over what it reads.

use std::fmt::Write;

use crate::distribution::Distribution;
use crate::flow_list::ListedFlow;
use crate::model::{Model, Topology, Workload};

/// The same digest means the same input.
pub(crate) fn digest(model: &Model, canonical: &str) -> u64 {
    let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
    // Writing to the hash cannot fail.
    let _ = hash.write_str(canonical);
    if let Topology::File { graph, .. } = &model.topology {
        let _ = write!(hash, "{graph:?}");
    }
    for workload in model.workload.values() {
        match workload {
            Workload::FlowList(list) => {
                list.flows.iter().for_each(|flow| listed(&mut hash, flow));
            }
            Workload::Rpc(rpc) => {
                table(&mut hash, &rpc.response);
                table(&mut hash, &rpc.service);
            }
            Workload::Transfer(transfer) => table(&mut hash, &transfer.size),
            Workload::FanOut(fan_out) => {
                table(&mut hash, &fan_out.response);
                table(&mut hash, &fan_out.service);
            }
            Workload::AllToAll(all) => table(&mut hash, &all.size),
            Workload::Packets(packets) => table(&mut hash, &packets.size),
            Workload::ClosedLoop(closed) => {
                table(&mut hash, &closed.request);
                table(&mut hash, &closed.response);
                table(&mut hash, &closed.service);
                table(&mut hash, &closed.think);
            }
            Workload::Shuffle(shuffle) => {
                table(&mut hash, &shuffle.size);
                table(&mut hash, &shuffle.request);
            }
            Workload::Barrier(barrier) => table(&mut hash, &barrier.compute),
            Workload::Pages(pages) => {
                table(&mut hash, &pages.request);
                pages.size.iter().for_each(|size| table(&mut hash, size));
                table(&mut hash, &pages.service);
            }
            Workload::Flows(_)
            | Workload::Permutation(_)
            | Workload::Incast(_)
            | Workload::Ping(_)
            | Workload::Commit(_)
            | Workload::Ptp(_) => {}
        }
    }
    hash.0
}

fn table<Q>(hash: &mut Fnv, distribution: &Distribution<Q>) {
    if let Distribution::Cdf { table: Some(table), .. } = distribution {
        let _ = write!(hash, "{:?}", table.points());
    }
}

/// A list may have hundreds of thousands: the numbers themselves, not their texts.
fn listed(hash: &mut Fnv, flow: &ListedFlow) {
    let ListedFlow { start, source, destination, size, class } = flow;
    hash.bytes(&start.as_ps().to_le_bytes());
    hash.bytes(&source.to_le_bytes());
    hash.bytes(&destination.to_le_bytes());
    hash.bytes(&size.get().to_le_bytes());
    hash.bytes(&(class.len() as u64).to_le_bytes());
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
