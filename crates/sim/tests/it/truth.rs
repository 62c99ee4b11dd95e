//! Properties that a wrong simulator would violate: completion times that follow from arithmetic, waits that
//! follow from queueing theory, and runs that must be equal.
#![allow(clippy::unwrap_used, reason = "tests")]

mod apps;
mod arbitrary;
mod chaos;
mod classes;
mod conservation;
mod datagrams;
mod determinism;
mod ecmp;
mod engines;
mod fabrics;
mod faults;
mod homa;
mod hosts;
mod hybrid;
mod hybrid_networks;
mod idle;
mod jobs;
mod lab;
mod lossless;
mod mptcp;
mod ndp;
mod nics;
mod parallel;
mod parallelism;
mod pauses;
mod queueing;
mod random_jobs;
mod random_nics;
mod replay;
mod roce;
mod roce_acceptance;
mod roce_read;
mod roce_reliability;
mod standing_queue;
mod swift;
mod telemetry;
mod transports;
mod trimming;
mod uet;
mod wred;
