//! Effects of a terminal's job control on a process: a process that must not stop ignores them.

use std::io;

/// Makes this process continue where job control would stop it: at Ctrl-Z, and when it reads from or writes to its
/// terminal in the background, where a read fails instead (EIO). Programs that it starts inherit this.
///
/// # Errors
/// If the system refuses.
pub fn ignore() -> io::Result<()> {
    [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].into_iter().try_for_each(ignore_signal)
}

#[expect(unsafe_code, reason = "no safe crate of this workspace has a signal ignored")]
fn ignore_signal(signal: i32) -> io::Result<()> {
    // SAFETY: no handler is installed, so that no code runs when the signal arrives.
    let before = unsafe { libc::signal(signal, libc::SIG_IGN) };
    if before == libc::SIG_ERR { Err(io::Error::last_os_error()) } else { Ok(()) }
}
