//! The parts of a program that face its system: stdout and stderr, which never panic here ([`note!`], [`outln!`],
//! [`print`]), state on disk that only its owner can have written ([`Folder`]), and the memory that it may have
//! ([`control_group_memory`]).

mod control_group;
#[cfg(unix)]
mod state;
mod stdio;

pub use control_group::control_group_memory;
#[cfg(unix)]
pub use state::Folder;
pub use stdio::{ERROR, end, note, note_or_drop, note_without_memory, out_or_end, print};
