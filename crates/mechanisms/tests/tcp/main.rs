//! The TCP transport, seen from outside: packet scripts with exact times, a random operation model,
//! and flows over a virtual bottleneck.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bottleneck;
mod ecn;
mod hull;
mod loss;
mod model;
mod net;
mod pacing;
mod params;
mod receiver;
mod script;
mod timers;
mod window;
