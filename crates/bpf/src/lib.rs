//! Mechanisms as eBPF programs for the Linux kernel, each equal bit by bit to its implementation in
//! `plimsoll-mechanisms`.
//!
//! ```text
//! programs/shared.h ──> layouts and arithmetic ──> programs/*.bpf.c ──clang──> images in this crate
//!        └── build.rs ──> the same layouts in Rust ──> Program::load ──> verifier, JIT
//!                                                           └── test_run: BPF_PROG_TEST_RUN, same vectors as Rust
//! ```
//!
//! A program's parameters are constants that the verifier sees (`.rodata`, frozen at load): disabled features are
//! absent from the compiled code, and each port has a program of its own. `docs/internals/bpf.md` states the quantum,
//! rounding and cost of each program.
//!
//! Without the feature `kernel` this crate contains only [`Needs`]. With it but without clang, loading returns an error
//! that says so.

#[cfg(feature = "kernel")]
mod circuit_gate;
#[cfg(feature = "kernel")]
mod connections;
#[cfg(feature = "kernel")]
mod dctcp;
#[cfg(feature = "kernel")]
mod error;
#[cfg(feature = "kernel")]
mod held_link;
mod needs;
#[cfg(feature = "kernel")]
mod pacer;
#[cfg(feature = "kernel")]
mod phantom_queue;
#[cfg(feature = "kernel")]
pub mod pinned;
#[cfg(feature = "kernel")]
mod profile;
#[cfg(feature = "kernel")]
mod program;
#[cfg(feature = "kernel")]
mod qjump;
#[cfg(feature = "kernel")]
mod queue_length;
#[cfg(feature = "kernel")]
mod redirect;
#[cfg(feature = "kernel")]
mod requests;
#[cfg(feature = "kernel")]
mod send_calls;
#[cfg(feature = "kernel")]
pub mod shared;
#[cfg(feature = "kernel")]
mod steering;
#[cfg(feature = "kernel")]
mod tracepoints;

#[cfg(feature = "kernel")]
pub use {
    circuit_gate::CircuitGate,
    connections::{ConnectionOptions, Connections},
    dctcp::{DCTCP_NAME, DctcpArithmetic, KernelDctcp},
    error::Error,
    held_link::{CgroupPoint, HeldLink},
    pacer::{ChosenCgroup, PacerFeedback, PacerProgram, flow_number},
    phantom_queue::PhantomQueueProgram,
    profile::Profile,
    program::{Attached, HookDirection, Inputs, Packet, Program, ProgramSize, TestRun},
    qjump::{
        CgroupLink, LimitedGuest, LimiterProgram, PacketClassifier, PortClassifier, SocketClassifier, Tag,
        TrafficClassifier,
    },
    queue_length::QueueLength,
    redirect::{DatagramRedirect, DispatchOptions, RedirectOptions},
    requests::{CostGuard, RequestTrace, RequestTraceOptions},
    send_calls::SendCalls,
    steering::{SteeringOptions, SteeringProgram},
};

pub use needs::Needs;
