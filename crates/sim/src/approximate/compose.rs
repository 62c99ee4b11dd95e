//! [`Delays`]: the delays of flows at simulated links, and the completion times that they make.
//!
//! ```text
//! flow ──> its links ──> each simulated? its own delay there : that of a flow of about its size at a link alike
//!      ──> time on idle links + sum of the delays
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_fabric::net::PortId;
use plimsoll_units::mix64;

/// What links have in common whose delays stand for each other: the number of the class, the links on the path, and the
/// workload.
pub(super) type PoolKey = (u16, u8, u16);

/// A flow, by its workload and its number there.
pub(super) type FlowKey = (u16, u64);

/// The delay of a flow at one simulated link.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delay {
    pub(super) flow: FlowKey,
    pub(super) bytes: u64,
    /// The number of the link in the sample.
    pub(super) link: u32,
    pub(super) ps: i64,
}

/// The delays at all simulated links.
#[derive(Debug, Default)]
pub(super) struct Delays {
    /// The delays of each pool, by size.
    pools: BTreeMap<PoolKey, Vec<Delay>>,
    /// The delay of each flow at each port.
    own: Arc<BTreeMap<(FlowKey, PortId), i64>>,
}

/// A flow whose completion time is asked for.
#[derive(Clone, Debug)]
pub(super) struct MeasuredFlow {
    pub(super) key: FlowKey,
    pub(super) bytes: u64,
    /// Its links: class and port.
    pub(super) links: Vec<(u16, PortId)>,
}

/// Flows of about the same size from which a delay is drawn.
const NEIGHBOURS: usize = 100;

impl Delays {
    /// Takes a delay at `port`.
    pub(super) fn add(&mut self, key: PoolKey, port: PortId, delay: Delay) {
        self.pools.entry(key).or_default().push(delay);
        Arc::make_mut(&mut self.own).insert((delay.flow, port), delay.ps);
    }

    pub(super) fn sort(&mut self) {
        for pool in self.pools.values_mut() {
            pool.sort_unstable_by_key(|delay| (delay.bytes, delay.flow, delay.link));
        }
    }

    /// Returns the sum of a flow's delays, in picoseconds.
    pub(super) fn of(&self, flow: &MeasuredFlow, word: u64) -> i64 {
        self.along(flow.key, flow.bytes, flow.links.len() as u8, &flow.links, word)
    }

    /// Returns the sum of a flow's delays at some links of its path, which has `hops` in all. A draw depends on the
    /// flow and the link alone.
    pub(super) fn along(
        &self,
        flow: FlowKey,
        bytes: u64,
        hops: u8,
        links: &[(u16, PortId)],
        word: u64,
    ) -> i64 {
        let of = |(class, port): &(u16, PortId)| {
            let own = self.own.get(&(flow, *port)).copied();
            own.unwrap_or_else(|| {
                let drawn = mix64(mix64(word ^ u64::from(flow.0) << 48 ^ flow.1) ^ u64::from(port.0));
                self.draw((*class, hops, flow.0), bytes, drawn)
            })
        };
        links.iter().map(of).sum()
    }

    /// Returns the delay that the uniform word `drawn` chooses of those like it; 0 where no such link was run.
    fn draw(&self, key: PoolKey, bytes: u64, drawn: u64) -> i64 {
        let Some(pool) = self.pools.get(&key).filter(|pool| !pool.is_empty()) else { return 0 };
        let place = pool.partition_point(|delay| delay.bytes < bytes);
        let first = place.saturating_sub(NEIGHBOURS / 2).min(pool.len().saturating_sub(NEIGHBOURS));
        let near = &pool[first..pool.len().min(first + NEIGHBOURS)];
        let chosen = near[choice(drawn, near.len())];
        // Of a flow half as large the delay is half as long.
        (chosen.ps as f64 * bytes as f64 / chosen.bytes as f64) as i64
    }

    /// Returns these delays with another draw of links, with replacement: as many, of the same numbers.
    pub(super) fn resampled(&self, links: usize, word: u64) -> Delays {
        let mut times = vec![0_u32; links];
        for draw in 0..links {
            times[choice(mix64(word ^ draw as u64), links)] += 1;
        }
        let pools = self.pools.iter().map(|(key, pool)| {
            let again = pool.iter().flat_map(|delay| {
                let times = times[delay.link as usize] as usize;
                std::iter::repeat_n(*delay, times)
            });
            (*key, again.collect())
        });
        Delays { pools: pools.collect(), own: Arc::clone(&self.own) }
    }
}

/// Returns the number below `count` that the uniform word `drawn` chooses.
pub(super) fn choice(drawn: u64, count: usize) -> usize {
    ((u128::from(drawn) * count as u128) >> 64) as usize
}
