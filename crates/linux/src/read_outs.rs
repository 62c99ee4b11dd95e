//! Measurements of a live run beside its traffic: sockets, demand, windows, lateness, and the machine itself.

pub(crate) mod control;
pub(crate) mod demand;
pub(crate) mod hints;
pub(crate) mod lateness;
pub(crate) mod machine;
pub(crate) mod series;
pub(crate) mod sock_diag;
pub(crate) mod suspect;
