//! The attacks, listed by name.

mod circuits;
mod digests;
mod emulations;
mod namespaces;
mod output;
mod policies;
mod runs;
mod servers;

use crate::program::ProgramFolder;
use crate::trial::{Outcome, Trial};

/// An attack on a program, and the promise that must hold under it.
#[derive(Debug)]
pub struct Attack {
    pub name: &'static str,
    pub promise: &'static str,
    pub run: fn(&mut Trial, &ProgramFolder) -> Outcome,
}

/// All attacks, in the order of their turns.
pub const ATTACKS: &[Attack] = &[
    Attack {
        name: "sweeps-killed",
        promise: "a sweep killed at random moments resumes, and ends with the bytes of an undisturbed one",
        run: runs::killed,
    },
    Attack {
        name: "two-in-one-directory",
        promise: "of two runs in one directory, one waits or is rejected; the bytes are those of one run",
        run: runs::two_at_once,
    },
    Attack {
        name: "disks-full",
        promise: "a full disk ends a run with an error; with room it resumes to the same bytes",
        run: runs::full_disk,
    },
    Attack {
        name: "files-damaged",
        promise: "damaged and removed files are harmless, or are reported and repaired",
        run: runs::damaged,
    },
    Attack {
        name: "output-lost",
        promise: "closed and full outputs lose no result, and no program ends by a signal",
        run: output::lost,
    },
    Attack {
        name: "digests",
        promise: "random scenarios have one digest on any number of threads, with and without capture",
        run: digests::equal,
    },
    Attack {
        name: "emulations-killed",
        promise: "a killed emulation leaves nothing in the kernel after `--clean`",
        run: emulations::killed,
    },
    Attack {
        name: "emulations-ended",
        promise: "an emulation that ends, or is interrupted, leaves nothing in the kernel",
        run: emulations::ended,
    },
    Attack {
        name: "policies-killed",
        promise: "after applies and rollbacks killed at random moments, a rollback restores the host",
        run: policies::killed,
    },
    Attack {
        name: "memcached",
        promise: "serves under churn, floods, never-readers and silent pipelines; memory and sockets return",
        run: servers::memcached,
    },
    Attack { name: "search", promise: "the same", run: servers::search },
    Attack { name: "openflow", promise: "the same", run: servers::openflow },
    Attack {
        name: "circuits-serve",
        promise: "circuits under floods, replays, strangers as switches, and agents and switches that end",
        run: circuits::serve,
    },
    Attack {
        name: "circuits-agent",
        promise: "no replay opens a gate, every gate closes without a controller, and a killed agent leaves nothing",
        run: circuits::agent,
    },
];
