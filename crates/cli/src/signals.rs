//! Handles Ctrl-C: the first requests an orderly end, the second ends the process at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Whether, and by which signal, this process was requested to end.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<AtomicUsize>);

impl Interrupt {
    /// Watches SIGINT, SIGTERM, and, unless it is ignored as under nohup, SIGHUP from now on.
    ///
    /// # Errors
    /// Returns an error if the system rejects a handler.
    #[cfg(unix)]
    pub fn watch() -> std::io::Result<Interrupt> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let interrupt = Interrupt::default();
        let armed = Arc::new(std::sync::atomic::AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && ignores_hang_up() {
                continue;
            }
            // The order matters: the second signal finds the flag that the first has set.
            signal_hook::flag::register_conditional_default(signal, armed.clone())?;
            signal_hook::flag::register(signal, armed.clone())?;
            signal_hook::flag::register_usize(signal, interrupt.0.clone(), signal as usize)?;
        }
        Ok(interrupt)
    }

    /// Does nothing on this system: Ctrl-C ends the process, and finished points are kept.
    ///
    /// # Errors
    /// Never returns an error.
    #[cfg(not(unix))]
    pub fn watch() -> std::io::Result<Interrupt> {
        Ok(Interrupt::default())
    }

    /// Returns the signal, if one was received.
    pub fn signal(&self) -> Option<u8> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            signal => u8::try_from(signal).ok(),
        }
    }
}

/// Returns whether this process was started so that the loss of its terminal does not end it; false without /proc.
#[cfg(unix)]
fn ignores_hang_up() -> bool {
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return true };
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_none_or(|mask| mask & 1 << (signal_hook::consts::SIGHUP - 1) != 0)
}
