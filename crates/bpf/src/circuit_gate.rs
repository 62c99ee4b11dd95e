//! [`CircuitGate`] sends packets to chosen receivers by another device, until their leases end.

use std::net::Ipv4Addr;

use libbpf_rs::{MapCore as _, MapFlags};

use crate::shared::{CircuitGateCounts, CircuitGateSettings, CircuitLease, Shared};
use crate::{Error, Inputs, Program};

/// The gate of a host's circuits, for the egress of its device to the packet switch.
#[derive(Debug)]
pub struct CircuitGate(Program);

impl CircuitGate {
    /// Loads a gate to the device `ifindex`, without a lease.
    ///
    /// # Errors
    /// Returns [`Error::Unsupported`] or [`Error::Kernel`] as [`Program::clock`].
    pub fn load(ifindex: i32, inputs: Inputs) -> Result<CircuitGate, Error> {
        let settings = CircuitGateSettings { inputs_from_cb: inputs.in_packet(), ifindex: ifindex as u64 };
        Program::load("circuit_gate", "circuit_gate", Some(&settings.to_bytes())).map(CircuitGate)
    }

    /// Returns the program, to attach at the egress of the device to the packet switch.
    pub fn program(&self) -> &Program {
        &self.0
    }

    /// Opens the gate to `receiver`, whose device has the link-layer address `address`, until `until_ns` of
    /// CLOCK_MONOTONIC.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be written.
    pub fn open(&self, receiver: Ipv4Addr, address: [u8; 6], until_ns: u64) -> Result<(), Error> {
        let [a, b, c, d, e, f] = address;
        let lease = CircuitLease { until_ns, address: u64::from_ne_bytes([a, b, c, d, e, f, 0, 0]) };
        let map = self.0.map_named("leases");
        map.update(&receiver.octets(), &lease.to_bytes(), MapFlags::ANY).map_err(self.0.failed("opening"))
    }

    /// Closes the gate to `receiver`, if it is open.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be written.
    pub fn close(&self, receiver: Ipv4Addr) -> Result<(), Error> {
        match self.0.map_named("leases").delete(&receiver.octets()) {
            Err(error) if error.kind() != libbpf_rs::ErrorKind::NotFound => {
                Err(self.0.failed("closing")(error))
            }
            _ => Ok(()),
        }
    }

    /// Reads the counts of the gate.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if the map cannot be read.
    pub fn counts(&self) -> Result<CircuitGateCounts, Error> {
        let sum = |sum: CircuitGateCounts, one: CircuitGateCounts| CircuitGateCounts {
            packets: sum.packets + one.packets,
            bytes: sum.bytes + one.bytes,
            late: sum.late + one.late,
        };
        Ok(self.0.counts(0)?.into_iter().fold(CircuitGateCounts::default(), sum))
    }
}
