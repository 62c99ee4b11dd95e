//! The mechanisms as sans-IO state machines: integer time comes in as an argument, decisions come
//! out, and nothing here reads a clock, does I/O, starts a thread or owns a random generator.
//!
//! Each mechanism is one module: a `Params` struct, which is its table in a scenario file and whose
//! doc comments are its reference, and the machine itself. `Params::validate` says which values make
//! sense; the machines take parameters that passed it.

mod chance;
mod depth;
pub mod ecn;
mod invalid;
pub mod nic_burst;
pub mod pacer;
pub mod partition_balancer;
pub mod paths;
pub mod pfabric;
pub mod pfc;
pub mod phantom_queue;
pub mod qjump;
pub mod red;
pub mod shared_buffer;
pub mod tcp;
pub mod wred;

pub use depth::{Depth, ParseDepthError};
pub use invalid::InvalidParam;
