//! The programs in the hosts of an emulated run: the traffic agent, the user's own programs, and a shell.

pub(crate) mod agent;
pub(crate) mod cgroups;
pub(crate) mod programs;
pub(crate) mod shell;
