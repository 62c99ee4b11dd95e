//! Events of clients, in a line a second at most for each kind, on standard error: with `-v`, or after `verbosity 1`.

use std::io::Write;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::stats::Shared;

/// Time between two looks at the counters.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Writes log lines until `end` is closed. Events that occurred while the journal was off are dropped.
pub fn keep(shared: &Shared, end: &Receiver<()>, mut lines: impl Write) {
    let mut before = Counts::of(shared);
    loop {
        let is_end = end.recv_timeout(LOOK_EVERY) != Err(RecvTimeoutError::Timeout);
        let counts = Counts::of(shared);
        if shared.verbosity.load(Ordering::Relaxed) > 0 {
            for (what, count, earlier) in [
                ("connections refused, since there are as many as -c allows", counts.refused, before.refused),
                ("accepts failed (no descriptors, or no memory)", counts.accept_errors, before.accept_errors),
                ("logins failed", counts.logins_failed, before.logins_failed),
            ] {
                if count > earlier {
                    // Standard error may be closed.
                    let _ = writeln!(lines, "{} {what} ({count} in all)", count - earlier);
                }
            }
        }
        before = counts;
        if is_end {
            return;
        }
    }
}

/// The counts that the journal reports.
struct Counts {
    refused: u64,
    accept_errors: u64,
    logins_failed: u64,
}

impl Counts {
    fn of(shared: &Shared) -> Counts {
        let total = shared.runtime.get().map(|runtime| runtime.total()).unwrap_or_default();
        Counts {
            refused: total.refused,
            accept_errors: total.accept_errors,
            logins_failed: shared.auth_errors.load(Ordering::Relaxed),
        }
    }
}
