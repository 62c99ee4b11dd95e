//! `plimsoll breakdown` in a build without the eBPF programs, which only explains how to get them.

use anyhow::anyhow;

use super::Args;
use crate::output::{Done, NO_PROGRAMS};

/// Returns the error that says what this build lacks.
pub(super) fn run(_: &Args) -> Done {
    Err(anyhow!(NO_PROGRAMS))
}
