//! The signals that a change of the host heeds, and the message by which it asks for its confirmation.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use anyhow::Result;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Watches the signals that would otherwise end this process within a change; 0 means none yet.
pub fn watched() -> Result<Arc<AtomicUsize>> {
    let caught = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_usize(signal, caught.clone(), signal as usize)?;
    }
    Ok(caught)
}

/// The beginning of the message of an apply that waits for its confirmation, by which a rollout recognizes it.
pub const TO_KEEP_IT: &str = "to keep it, ";
