//! The digest of a run's input: FNV-1a (64 bit) over the canonical text and over what it reads.

use std::fmt::Write;

use crate::distribution::Distribution;
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
        let size = match workload {
            Workload::FlowList(list) => {
                let _ = write!(hash, "{:?}", list.flows);
                continue;
            }
            Workload::Rpc(rpc) => &rpc.response,
            Workload::Transfer(transfer) => &transfer.size,
            Workload::FanOut(fan_out) => &fan_out.response,
            Workload::AllToAll(all) => &all.size,
            Workload::Packets(packets) => &packets.size,
            Workload::Flows(_) | Workload::Permutation(_) | Workload::Incast(_) => continue,
        };
        table(&mut hash, size);
        if let Workload::Rpc(rpc) = workload {
            table(&mut hash, &rpc.service);
        } else if let Workload::FanOut(fan_out) = workload {
            table(&mut hash, &fan_out.service);
        }
    }
    hash.0
}

fn table<Q>(hash: &mut Fnv, distribution: &Distribution<Q>) {
    if let Distribution::Cdf { table: Some(table), .. } = distribution {
        let _ = write!(hash, "{:?}", table.points());
    }
}

struct Fnv(u64);

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0 =
            text.bytes().fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        Ok(())
    }
}
