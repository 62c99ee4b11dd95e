//! The control loop between real hosts: [`LiveController`], [`CircuitAgent`], and the messages between them.
//!
//! ```text
//! agent       ──Report: demand, highest sequence seen, gate open or closed (also the heartbeat)──>  controller
//! controller  ──Grant: a circuit, as a lease that ends by the agent's own clock, or none─────────>  agent
//! new matching: grants without a lease ─> every gate reported closed, or its lease over ─> drain ─> Install
//!               ─> the switch confirms ─> grants with a lease
//! silence: leases end by themselves, so that all packets take the packet switch
//! ```
//!
//! Both are state machines without a clock, a socket or random numbers: `now` is an argument, and so are fresh nonces.
//!
//! * **A lease needs no common clock.** A report holds the agent's time; a grant repeats it. The lease ends at that
//!   time plus its length. The report was sent before it arrived, so the lease is over by the controller's clock when
//!   its length has passed since the arrival. `drain` must cover the drift of the clocks in one lease.
//! * **Every message is a whole state.** A lost one is replaced by the next, and one that is not newer than the last is
//!   dropped: numbers count up within a session. Sessions begin with nonces of both sides, so that no recorded message
//!   is accepted again: Hello (the agent's nonce), Challenge (the controller's), and every further message has both.
//! * **Departure from REACToR**: hosts do not keep packets for a coming circuit. Without a circuit they take the packet
//!   switch, and the backlog of its lower rate waits in the sockets, where demand is read.

mod agent;
mod controller;
mod message;
#[cfg(test)]
mod tests;

pub use agent::CircuitAgent;
pub use controller::{LiveAction, LiveController, LiveCounts, LiveParams};
pub use message::{CircuitGrant, ControlMessage, DemandReport, LIVE_HOSTS_MAX, MessageBody, MessageError};
