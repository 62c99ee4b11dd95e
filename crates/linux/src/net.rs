//! The networks of this kernel: namespaces, devices, congestion control, and the options of sockets.

pub(crate) mod congestion;
pub(crate) mod low_water;
pub(crate) mod multipath;
pub(crate) mod namespaces;
pub(crate) mod offloads;
pub mod packet_socket;
pub(crate) mod qjump;
pub(crate) mod star;
pub(crate) mod transports;
