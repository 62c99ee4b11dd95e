//! Tests the classifier of sockets: only sockets that a program in the cgroup opens have the level.

use std::path::Path;
use std::process::Command;

use plimsoll_bpf::SocketClassifier;
use tempfile::TempDir;

use crate::loaded;
use crate::namespace::python_is_here;

#[test]
fn a_program_in_the_cgroup_gets_the_level() {
    let Some(classifier) = loaded(SocketClassifier::load(5)) else { return };
    let Some(root) = Cgroups::mount().filter(|_| python_is_here()) else { return };
    let (inside, outside) = (root.0.path().join(format!("plimsoll-{}", std::process::id())), root.0.path());
    std::fs::create_dir(&inside).unwrap();
    let link = classifier.attach(&inside).unwrap();
    let classified = (priority_of_a_socket_in(&inside), priority_of_a_socket_in(outside));
    drop(link);
    let afterwards = priority_of_a_socket_in(&inside);
    std::fs::remove_dir(&inside).unwrap();
    assert_eq!((classified.0.as_str(), classified.1.as_str(), afterwards.as_str()), ("5", "0", "0"));
}

/// The cgroups (version 2), mounted in a folder until dropped, since the usual path may have version 1.
struct Cgroups(TempDir);

impl Cgroups {
    fn mount() -> Option<Cgroups> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "cgroup2", "none"]).arg(folder.path()).status();
        if !mounted.is_ok_and(|status| status.success()) {
            plimsoll_testing::skipped!("this process may not mount cgroups (version 2)");
            return None;
        }
        Some(Cgroups(folder))
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

fn priority_of_a_socket_in(cgroup: &Path) -> String {
    let print =
        "import socket; print(socket.socket().getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY), end='')";
    let script = format!("echo $$ > {}/cgroup.procs && exec python3 -c \"{print}\"", cgroup.display());
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
