//! Mechanisms as eBPF programs for the Linux kernel, each held to its twin in `plimsoll-mechanisms` bit by bit.
//!
//! ```text
//! programs/shared.h ──> layouts and arithmetic ──> programs/*.bpf.c ──clang──> images in this crate
//!        └── build.rs ──> the same layouts in Rust ──> Program::load ──> verifier, JIT
//!                                                           └── test_run: BPF_PROG_TEST_RUN, same vectors as Rust
//! ```
//!
//! A program's parameters are constants that the verifier sees (`.rodata`, frozen at load): what is switched off
//! is not in the compiled code, and a port has a program of its own. `docs/internals/bpf.md` has quantum, rounding and
//! cost of each.
//!
//! Without the feature `kernel` this crate is empty. With it but without clang, loading is an
//! [`Error::Unsupported`] that says so.
#![cfg(feature = "kernel")]

mod connections;
mod dctcp;
mod error;
mod held_link;
mod needs;
mod pacer;
mod phantom_queue;
pub mod pinned;
mod program;
mod qjump;
mod queue_length;
mod redirect;
pub mod shared;
mod steering;

pub use connections::{ConnectionOptions, Connections};
pub use dctcp::{DCTCP_NAME, Dctcp, DctcpArithmetic};
pub use error::Error;
pub use held_link::{CgroupPoint, HeldLink};
pub use needs::Needs;
pub use pacer::{ChosenCgroup, Pacer, PacerFeedback, flow_number};
pub use phantom_queue::PhantomQueue;
pub use program::{Attached, Direction, Inputs, Packet, Program, Size, TestRun};
pub use qjump::{
    CgroupLink, Limiter, PacketClassifier, PortClassifier, SocketClassifier, Tag, TrafficClassifier,
};
pub use queue_length::QueueLength;
pub use redirect::{DatagramRedirect, RedirectOptions};
pub use steering::{DatagramSteering, SteeringOptions};
