//! Waits for the confirmation of a policy that was applied with `--confirm-within`: by `plimsoll host confirm`, or by
//! Enter on the terminal while this process is in the foreground. The wait always ends.

use std::io::{self, IsTerminal as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plimsoll_host::{PolicyJournal, PolicyName, StateFolders};
use plimsoll_units::Span;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{QueueSelector, tcflush, tcgetpgrp};

use super::heeded::TO_KEEP_IT;
use super::kernel::say;

/// The result of the wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConfirmationEnd {
    /// The policy was confirmed, or rolled back by another process.
    Kept,
    /// The policy must be rolled back, for this reason.
    Unconfirmed(&'static str),
}

/// Waits until the policy `name` is confirmed or rolled back, `signal` is set, or `within` has passed.
pub fn wait(
    name: &PolicyName,
    folders: &StateFolders,
    within: Span,
    signal: &AtomicUsize,
) -> ConfirmationEnd {
    let deadline = Instant::now() + Duration::from_nanos(within.as_ps() / 1_000);
    let journal = PolicyJournal::of(folders, name);
    let entered = Arc::new(AtomicBool::new(false));
    let command = format!("run `plimsoll host confirm {name}` within {within}");
    if io::stdin().is_terminal() {
        // Input that was typed before the question is discarded.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
        let entered = entered.clone();
        let read = move || entered.store(is_entered(), Ordering::Relaxed);
        match thread::Builder::new().name("terminal".to_owned()).spawn(read) {
            Ok(_) => say(&format!("{TO_KEEP_IT}press Enter or {command}")),
            Err(error) => say(&format!("{TO_KEEP_IT}{command} (Enter is not read: {error})")),
        }
    } else {
        say(&format!("{TO_KEEP_IT}{command}"));
    }
    loop {
        match journal.read() {
            Ok(Some(applied)) if !applied.confirmed => {}
            Ok(_) => return ConfirmationEnd::Kept,
            Err(_) => return ConfirmationEnd::Unconfirmed("its journal cannot be read"),
        }
        if entered.load(Ordering::Relaxed) {
            return ConfirmationEnd::Kept;
        }
        if signal.load(Ordering::Relaxed) > 0 {
            return ConfirmationEnd::Unconfirmed("interrupted before it was confirmed");
        }
        if Instant::now() >= deadline {
            return ConfirmationEnd::Unconfirmed("not confirmed in time");
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Waits for a line on the terminal; returns false if the terminal is lost. In the background, the input belongs to
/// other processes and is not read.
fn is_entered() -> bool {
    let stdin = io::stdin();
    let terminal = stdin.as_fd();
    let mut is_in_front = true;
    let mut bytes = [0; 256];
    loop {
        let was_in_front = is_in_front;
        is_in_front = in_foreground(terminal);
        if is_in_front && !was_in_front {
            let _ = tcflush(terminal, QueueSelector::IFlush);
        }
        if !is_in_front {
            thread::sleep(LOOK_AGAIN);
            continue;
        }
        let mut polled = [PollFd::new(&terminal, PollFlags::IN)];
        if !matches!(poll(&mut polled, Some(&LOOK_AGAIN_OF_POLL)), Ok(1..)) {
            continue;
        }
        match rustix::io::read(terminal, &mut bytes) {
            // The end of input means that the terminal was lost; it is not a confirmation.
            Ok(0) => return false,
            Ok(length) if bytes[..length].contains(&b'\n') => return true,
            // The process has moved to the background, where it cannot read.
            Ok(_) | Err(_) => thread::sleep(LOOK_AGAIN),
        }
    }
}

/// Returns whether the terminal's input is for this process. A terminal that controls no process is shared.
fn in_foreground(terminal: BorrowedFd<'_>) -> bool {
    match tcgetpgrp(terminal) {
        Ok(group) => group == getpgrp(),
        Err(error) => error == Errno::NOTTY,
    }
}

/// The polling interval: short compared with a person's reaction.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
const LOOK_AGAIN_OF_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
