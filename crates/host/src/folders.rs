//! [`StateFolders`]: where journals and pins are.

use std::path::PathBuf;

/// The folders of journals and pins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateFolders {
    /// The folder of journals. A reboot must empty it, as it undoes the changes that the journals describe.
    pub state: PathBuf,
    /// The folder of pins, in a BPF file system.
    pub pins: PathBuf,
}

impl Default for StateFolders {
    fn default() -> StateFolders {
        StateFolders {
            state: PathBuf::from("/run/plimsoll/host"),
            pins: PathBuf::from("/sys/fs/bpf/plimsoll"),
        }
    }
}
