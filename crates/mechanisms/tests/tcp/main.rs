//! The TCP transport, seen from outside: packet scripts with exact times, a random operation model,
//! and flows over a virtual bottleneck.

mod hull;
mod net;
