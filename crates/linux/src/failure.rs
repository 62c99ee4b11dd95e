//! Errors of the system, with their context.

use std::fmt::Display;
use std::io;
use std::thread::{self, JoinHandle};

/// Returns `error` with `what` before it: a file, or the action that failed.
pub(crate) fn failed(what: impl Display, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{what}: {error}"))
}

/// Starts a thread that does `work`.
///
/// # Errors
/// Returns an error that names the thread by `what`, as in "a thread that reads sockets".
pub(crate) fn start_thread<T: Send + 'static>(
    what: impl Display,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    thread::Builder::new().spawn(work).map_err(|error| failed(format_args!("cannot start {what}"), error))
}
