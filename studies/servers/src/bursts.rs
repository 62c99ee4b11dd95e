//! TCP's bursts on this kernel: what TCP hands to a device at once, and what that would be on a link of a rate.
//!
//! ```text
//! Arm ──> run: Star (namespaces, veth, bridge), StarFlows (threads with sockets), PacketSocket at h0 ──> RoundSeen
//!           │                                      └── services: files, a sort's transfers, memcached
//!           └── several rounds ──> segments, trains, bytes of an acknowledgement, throughput
//! ```
//!
//! A packet socket sees segments before the device cuts them, so lengths of segments are exact. Times
//! between them are software's, so trains of segments are joined by a gap above what such times resolve.

mod arm;
mod flows;
mod run;
mod services;
mod trains;

use std::sync::Arc;

use crate::parameters::Parameters;
use crate::task::{MakeTask, Measured, Task};
use arm::{Arm, Pattern};
use run::Length;

/// Reads what makes the tasks of a figure: its keys are an arm's.
pub(crate) fn read(parameters: Parameters) -> Result<MakeTask, String> {
    Ok(Arc::new(move |point| {
        let mut arm: Arm =
            parameters.read(point.x, point.series).expect("a test makes every task of every study");
        if arm.window == Some(1) {
            // A receiver that waits for the whole segment opens its window for the next one at once.
            arm.low_water = Some(arm.window_bytes(1));
        }
        let length = Length::of(point.quick);
        Some(Arc::new(OnKernel { arm, length, point: point.name() }))
    }))
}

/// An arm on this machine's kernel.
struct OnKernel {
    arm: Arm,
    length: Length,
    point: String,
}

impl Task for OnKernel {
    fn settings(&self) -> String {
        let OnKernel { arm, length: Length { count, warm_up_ms, time_ms }, point } = self;
        let rounds = format!("Rounds {{ count: {count}, warm_up_ms: {warm_up_ms}, time_ms: {time_ms} }}");
        format!("{point}: {}, {rounds}", arm.settings())
    }

    fn check(&self) -> Result<(), String> {
        plimsoll_linux::Star::lacks().map_or(Ok(()), Err)?;
        match self.arm.pattern {
            Pattern::Memcached => crate::turns::installed("memcached", "memcached"),
            _ => Ok(()),
        }
    }

    fn measure(&self, goes_on: &dyn Fn() -> bool) -> Result<Vec<Measured>, String> {
        run::measure(&self.arm, self.length, goes_on).map_err(|error| format!("{error:#}"))
    }
}
