//! Checks the modes of new files and folders under umask 0, in a process of its own, since the umask belongs to it.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use plimsoll_process::Folder;
use rustix::fs::{Mode, OFlags};

#[test]
fn an_open_umask_opens_nothing() {
    let place = tempfile::tempdir().unwrap();
    rustix::process::umask(Mode::empty());
    let path = place.path().join("a/b");
    let folder = Folder::make(&path).unwrap();
    folder.write("written", b"").unwrap();
    folder.file("opened", OFlags::WRONLY | OFlags::CREATE).unwrap().unwrap();
    folder.folder("c").unwrap();
    for (name, mode) in [("..", 0o700), (".", 0o700), ("c", 0o700), ("written", 0o600), ("opened", 0o600)] {
        assert_eq!(fs::metadata(path.join(name)).unwrap().mode() & 0o7777, mode, "{name}");
    }
}
