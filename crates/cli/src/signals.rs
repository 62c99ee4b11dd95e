//! Handles signals that ask a process to end: the first requests an orderly end, and the second ends the process at
//! once, unless something outside the process has to be removed first.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(unix)]
use signal_hook::consts::{
    SIGALRM, SIGHUP, SIGINT, SIGPROF, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU, SIGXFSZ,
};

/// Whether, and by which signal, this process was requested to end. Once all its clones are dropped, the next signal
/// ends the process at once.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Watched>);

#[derive(Debug, Default)]
struct Watched {
    signal: Arc<AtomicUsize>,
    /// Whether the next signal ends the process.
    is_armed: Arc<AtomicBool>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        // A signal without a watcher would be lost.
        self.is_armed.store(true, Ordering::Relaxed);
    }
}

/// Makes a file that may not grow further (`ulimit -f`) an error of the write, as a full disk is, in place of a signal
/// that ends the process.
pub fn outlive_file_size_limit() {
    // Where the system rejects the handler, the signal ends the process as before.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

impl Interrupt {
    /// Watches SIGINT, SIGTERM, and, unless it is ignored as under nohup, SIGHUP from now on.
    ///
    /// # Errors
    /// Returns an error if the system rejects a handler.
    #[cfg(unix)]
    pub fn watch() -> std::io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in interrupt.watch_for(&[SIGINT, SIGTERM, SIGHUP])? {
            // The order matters: the second signal finds the flag that the first has set.
            signal_hook::flag::register(signal, interrupt.0.is_armed.clone())?;
        }
        Ok(interrupt)
    }

    /// Watches every signal that users send to end a process, each as often as it comes, for work that has made
    /// something outside of this process, such as network namespaces: only SIGKILL ends the process before that is
    /// removed.
    ///
    /// # Errors
    /// Returns an error if the system rejects a handler.
    #[cfg(unix)]
    pub fn watch_all() -> std::io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        interrupt.watch_for(&ENDING)?;
        Ok(interrupt)
    }

    /// Records these signals from now on, and returns the ones that are not ignored.
    #[cfg(unix)]
    fn watch_for(&self, signals: &[i32]) -> std::io::Result<Vec<i32>> {
        let is_watched = |signal: &i32| *signal != SIGHUP || !ignores_hang_up();
        let watched: Vec<i32> = signals.iter().copied().filter(is_watched).collect();
        for &signal in &watched {
            signal_hook::flag::register_conditional_default(signal, self.0.is_armed.clone())?;
            signal_hook::flag::register_usize(signal, self.0.signal.clone(), signal as usize)?;
        }
        Ok(watched)
    }

    /// Does nothing on this system: Ctrl-C ends the process, and finished points are kept.
    ///
    /// # Errors
    /// Never returns an error.
    #[cfg(not(unix))]
    pub fn watch() -> std::io::Result<Interrupt> {
        Ok(Interrupt::default())
    }

    /// Does nothing on this system.
    ///
    /// # Errors
    /// Never returns an error.
    #[cfg(not(unix))]
    pub fn watch_all() -> std::io::Result<Interrupt> {
        Interrupt::watch()
    }

    /// Returns the signal, if one was received.
    pub fn signal(&self) -> Option<u8> {
        match self.0.signal.load(Ordering::Relaxed) {
            0 => None,
            signal => u8::try_from(signal).ok(),
        }
    }
}

/// The signals whose default is to end the process, and which a user, a timer or a limit sends. SIGPIPE is ignored by
/// every program in Rust.
#[cfg(unix)]
const ENDING: [i32; 10] =
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU];

/// Returns whether this process was started so that the loss of its terminal does not end it; false without /proc.
#[cfg(unix)]
fn ignores_hang_up() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return true };
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_none_or(|mask| mask & 1 << (SIGHUP - 1) != 0)
}
