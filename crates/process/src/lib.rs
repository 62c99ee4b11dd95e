//! What every program shares with its system: stdout and stderr, which never panic here ([`note!`], [`outln!`],
//! [`print`]), and state on disk that only its owner can have written ([`Folder`]).

#[cfg(unix)]
mod state;
mod stdio;

#[cfg(unix)]
pub use state::Folder;
pub use stdio::{ERROR, end, note, note_or_drop, note_without_memory, out_or_end, print};
