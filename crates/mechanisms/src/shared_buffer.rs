//! A switch buffer shared by its ports under a dynamic threshold (Choudhury and Hahne, "Dynamic queue
//! length thresholds for shared-memory packet switches", 1998).
//!
//! Each port owns `reserved` bytes. The rest is shared, and a port may hold of it
//!
//! ```text
//! T = alpha x (shared - all that ports hold of it)
//! ```
//!
//! with its share after the packet compared with T before it. `n` ports that all need more converge to `alpha x shared
//! / (1 + n alpha)` each, and the rest stays free for ports that become busy.
//!
//! alpha is kept in units of 2^-16, to the nearest; products round down.

use plimsoll_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::mechanism::{EngineNeed, Mechanism, Section, Table};

/// A buffer memory that all ports of a switch share, instead of a fixed buffer per port.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SharedBufferParams {
    /// The whole memory, at least the sum of `reserved` over all ports. Default 4 MB, as in the 1 Gb/s switches of the
    /// DCTCP paper's testbed.
    pub total: Bytes,
    /// The largest share of the shared memory that one port may hold, relative to the free part: more than 0, at most
    /// 1024. One port alone gets `alpha / (1 + alpha)` of it. Default 1.
    #[schemars(range(min = 0.0, max = 1024.0))]
    pub alpha: f64,
    /// The memory that every port has for itself. Default 0 B: all is shared.
    pub reserved: Bytes,
}

impl Default for SharedBufferParams {
    fn default() -> SharedBufferParams {
        SharedBufferParams { total: Bytes::new(4_000_000), alpha: 1.0, reserved: Bytes::ZERO }
    }
}

impl Mechanism for SharedBufferParams {
    const TABLE: Table =
        Table::replaced_whole(Section::Port, "shared_buffer", "each port has a `buffer` of its own")
            .needs(EngineNeed::GeneralHere);
}

impl SharedBufferParams {
    /// Checks the ranges given above for a switch of `ports` ports.
    pub fn validate_for(&self, ports: usize) -> Result<(), InvalidParam> {
        InvalidParam::unless(self.total > Bytes::ZERO, "total", self.total, "more than 0B")?;
        let alpha_ok = self.alpha * FIXED_ONE >= 1.0 && self.alpha <= 1024.0;
        InvalidParam::unless(alpha_ok, "alpha", self.alpha, "more than 0 (at least 2^-16) and at most 1024")?;
        let reserved = u128::from(self.reserved.get()) * ports as u128;
        let reserved_ok = reserved <= u128::from(self.total.get());
        InvalidParam::unless(
            reserved_ok,
            "reserved",
            self.reserved,
            "at most `total` over the number of ports",
        )
    }
}

/// The memory of one switch, with the bytes that each port holds of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SharedBuffer {
    /// Bytes held by each port, reserved and shared.
    held: Vec<u64>,
    reserved: u64,
    /// Size of the shared part, and the bytes taken of it.
    shared: u64,
    shared_held: u64,
    /// alpha is kept in units of 2^-16.
    alpha: u64,
}

impl SharedBuffer {
    /// An empty memory for ports `0..ports`. `params` must be valid for that number.
    pub fn new(params: &SharedBufferParams, ports: usize) -> SharedBuffer {
        SharedBuffer {
            held: vec![0; ports],
            reserved: params.reserved.get(),
            shared: params.total.get().saturating_sub(params.reserved.get() * ports as u64),
            shared_held: 0,
            alpha: (params.alpha * FIXED_ONE).round() as u64,
        }
    }

    /// Returns whether there is room for `bytes` at `port`. If there is, there would be with less in the memory, too.
    #[inline]
    pub fn has_room(&self, port: usize, bytes: u64) -> bool {
        let after = (self.held[port] + bytes).saturating_sub(self.reserved);
        let fits = self.shared_held + self.shared_part(port, bytes) <= self.shared;
        after == 0 || fits && after <= self.threshold_bytes()
    }

    /// Takes `bytes` for a packet at `port` if there is room; false if the packet must be dropped.
    #[inline]
    pub fn admit(&mut self, port: usize, bytes: u64) -> bool {
        self.has_room(port, bytes) && self.admit_above_threshold(port, bytes)
    }

    /// Takes `bytes` for a packet at `port` if the memory has room, whatever the port holds of it. Returns false if the
    /// packet must be dropped.
    pub fn admit_above_threshold(&mut self, port: usize, bytes: u64) -> bool {
        let of_shared = self.shared_part(port, bytes);
        let admitted = self.shared_held + of_shared <= self.shared;
        if admitted {
            self.shared_held += of_shared;
            self.held[port] += bytes;
        }
        admitted
    }

    /// Returns the part of `bytes` more at `port` that is not its reserve.
    fn shared_part(&self, port: usize, bytes: u64) -> u64 {
        let beyond = |held: u64| held.saturating_sub(self.reserved);
        beyond(self.held[port] + bytes) - beyond(self.held[port])
    }

    /// Gives back the `bytes` of a packet that left `port`.
    ///
    /// # Panics
    /// If the port does not hold as many: bytes would have been made up.
    pub fn release(&mut self, port: usize, bytes: u64) {
        let held = self.held[port];
        assert!(bytes <= held, "port {port} gives back {bytes} B and holds {held} B");
        let before = held.saturating_sub(self.reserved);
        self.held[port] = held - bytes;
        self.shared_held -= before - self.held[port].saturating_sub(self.reserved);
    }

    /// Returns the bytes of the shared part that a port may hold at this moment.
    pub fn threshold_bytes(&self) -> u64 {
        let free = u128::from(self.shared - self.shared_held);
        ((free * u128::from(self.alpha)) >> ALPHA_BITS).min(u128::from(u64::MAX)) as u64
    }

    /// Returns the bytes that `port` holds, reserved and shared.
    pub fn port_bytes(&self, port: usize) -> u64 {
        self.held[port]
    }

    /// Returns the bytes that all ports hold together.
    pub fn total_bytes(&self) -> u64 {
        self.held.iter().sum()
    }
}

const ALPHA_BITS: u32 = 16;
const FIXED_ONE: f64 = 65_536.0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn buffer(total: u64, alpha: f64, reserved: u64, ports: usize) -> SharedBuffer {
        let params = SharedBufferParams { total: Bytes::new(total), alpha, reserved: Bytes::new(reserved) };
        params.validate_for(ports).unwrap();
        SharedBuffer::new(&params, ports)
    }

    /// Offers packets to `ports` in turn until none is admitted.
    fn fill(buffer: &mut SharedBuffer, ports: std::ops::Range<usize>) {
        while ports.clone().filter(|&port| buffer.admit(port, 100)).count() > 0 {}
    }

    #[test]
    fn busy_ports_settle_at_the_dynamic_threshold() {
        for (alpha, ports, each) in
            [(1.0, 1, 500_000), (1.0, 4, 200_000), (0.5, 2, 250_000), (8.0, 3, 320_000)]
        {
            let mut buffer = buffer(1_000_000, alpha, 0, 4);
            fill(&mut buffer, 0..ports);
            for port in 0..ports {
                let held = buffer.port_bytes(port);
                assert!(held.abs_diff(each) <= 900, "alpha {alpha}, {ports} ports: {held} for {each}");
            }
        }
    }

    #[test]
    fn a_new_port_finds_room_and_the_reserve_is_its_own() {
        let mut buffer = buffer(1_000_000, 1.0, 10_000, 4);
        fill(&mut buffer, 0..1);
        assert_eq!(buffer.port_bytes(0), 10_000 + 480_000);
        assert!(buffer.admit(1, 10_000));
        assert_eq!(buffer.threshold_bytes(), 480_000);
        fill(&mut buffer, 1..4);
        assert!(buffer.total_bytes() <= 1_000_000);
        buffer.release(3, buffer.port_bytes(3));
        assert!(buffer.admit(3, 10_000));
    }

    #[test]
    #[should_panic(expected = "gives back")]
    fn giving_back_too_much_is_a_mistake() {
        buffer(1_000, 1.0, 0, 1).release(0, 1);
    }

    #[test]
    fn ranges() {
        let default = SharedBufferParams::default;
        assert!(default().validate_for(48).is_ok());
        assert_eq!(SharedBufferParams { alpha: 0.0, ..default() }.validate_for(4).unwrap_err().key, "alpha");
        assert_eq!(
            SharedBufferParams { alpha: f64::NAN, ..default() }.validate_for(4).unwrap_err().key,
            "alpha"
        );
        let greedy = SharedBufferParams { reserved: Bytes::new(1_000_001), ..default() };
        assert!(greedy.validate_for(3).is_ok());
        assert_eq!(greedy.validate_for(4).unwrap_err().key, "reserved");
    }

    proptest! {
        #[test]
        fn bytes_are_conserved_and_never_exceed_the_memory(
            alpha in 0.01f64..16.0,
            reserved in 0u64..50_000,
            packets in prop::collection::vec(
                (0usize..4, 40u64..9_000, any::<bool>(), any::<bool>()),
                1..500,
            ),
        ) {
            let mut buffer = buffer(200_000, alpha, reserved, 4);
            let mut queues = vec![std::collections::VecDeque::new(); 4];
            for (port, bytes, leaves, has_threshold) in packets {
                let admitted = match has_threshold {
                    true => buffer.admit(port, bytes),
                    false => buffer.admit_above_threshold(port, bytes),
                };
                if admitted {
                    queues[port].push_back(bytes);
                } else {
                    prop_assert!(buffer.port_bytes(port) + bytes > reserved);
                }
                if leaves && let Some(bytes) = queues[port].pop_front() {
                    buffer.release(port, bytes);
                }
                let shared: u64 = (0..4).map(|port| buffer.port_bytes(port).saturating_sub(reserved)).sum();
                prop_assert_eq!(buffer.shared_held, shared);
                prop_assert!(shared + 4 * reserved <= 200_000);
                for (port, queue) in queues.iter().enumerate() {
                    prop_assert_eq!(buffer.port_bytes(port), queue.iter().sum::<u64>());
                }
            }
        }
    }
}
