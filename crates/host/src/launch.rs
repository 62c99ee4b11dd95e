//! [`launch`] runs an unmodified program at a level, in a cgroup below that of this process, whose limits stay in
//! force. This process holds the classifier and the sizes of send buffers, and waits for the program.

use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::thread;
use std::time::Duration;

use plimsoll_bpf::{ConnectionOptions, Connections, SocketClassifier, TrafficClassifier};

use crate::Error;
use crate::commands::run;
use crate::facts::{Host, HostFacts};

/// A program to start at a level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// The level of its sockets, 0 to 7.
    pub level: u8,
    /// The set-up of its TCP connections.
    pub connections: ConnectionOptions,
    /// The user that runs the program; none for the user of this process.
    pub user: Option<String>,
    /// The program, followed by its arguments.
    pub command: Vec<String>,
}

/// Runs the program until it and all its descendants have ended, and returns its exit status. It inherits this
/// process's environment, folder and files. `signal` is polled: each signal that it returns is passed on.
///
/// # Errors
/// Returns an error if the system rejects a call before the program is started, or the program or the user does not
/// exist.
pub fn launch(launch: &Launch, signal: &mut dyn FnMut() -> Option<i32>) -> Result<ExitStatus, Error> {
    let (name, arguments) =
        launch.command.split_first().ok_or_else(|| Error::Unavailable(vec!["no program".to_owned()]))?;
    let mut command = Command::new(name);
    command.args(arguments);
    if let Some(user) = &launch.user {
        command.uid(id_of(user, "-u")?).gid(id_of(user, "-g")?);
    }
    let classifier = SocketClassifier::load(launch.level)?;
    // An accepted connection does not inherit its listener's priority.
    let traffic = TrafficClassifier::load(launch.level)?;
    let has_any = launch.connections != ConnectionOptions::default();
    let connections = has_any.then(|| Connections::load(&launch.connections)).transpose()?;
    let cgroup = Cgroup::make()?;
    let _level = (classifier.attach(&cgroup.folder)?, traffic.attach(&cgroup.folder)?);
    let _connections = connections.as_ref().map(|program| program.attach(&cgroup.folder)).transpose()?;
    // The program starts in the cgroup of this process.
    cgroup.enter(&cgroup.folder)?;
    let child = command.spawn();
    cgroup.enter(&cgroup.above)?;
    let mut child = child.map_err(Error::doing(format!("starting {name}")))?;
    let mut ended = None;
    while ended.is_none() || cgroup.is_populated() {
        while let Some(signal) = signal() {
            cgroup.signal(signal);
        }
        if ended.is_none() {
            ended = child.try_wait().map_err(Error::doing(format!("waiting for {name}")))?;
        }
        if ended.is_none() || cgroup.is_populated() {
            thread::sleep(LOOK_AGAIN);
        }
    }
    Ok(ended.expect("the loop waits for it"))
}

/// A cgroup of this process, which is removed when dropped.
struct Cgroup {
    folder: PathBuf,
    above: PathBuf,
}

impl Cgroup {
    fn make() -> Result<Cgroup, Error> {
        let root = Host.cgroups().ok_or_else(|| {
            Error::Unavailable(vec![
                "cgroups of version 2 are not mounted: mount -t cgroup2 none FOLDER".to_owned(),
            ])
        })?;
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default().to_owned();
        let above = if own.is_empty() { root } else { root.join(own) };
        remove_left_behind(&above);
        let folder = above.join(format!("{PREFIX}{}", std::process::id()));
        fs::DirBuilder::new()
            .mode(0o755)
            .create(&folder)
            .map_err(Error::doing(format!("making {}", folder.display())))?;
        Ok(Cgroup { folder, above })
    }

    /// Moves this process into the cgroup of `folder`.
    fn enter(&self, folder: &Path) -> Result<(), Error> {
        fs::write(folder.join("cgroup.procs"), "0")
            .map_err(Error::doing(format!("entering {}", folder.display())))
    }

    fn is_populated(&self) -> bool {
        let events = fs::read_to_string(self.folder.join("cgroup.events"));
        events.is_ok_and(|events| events.lines().any(|line| line == "populated 1"))
    }

    fn signal(&self, signal: i32) {
        let processes = fs::read_to_string(self.folder.join("cgroup.procs")).unwrap_or_default();
        let signal = rustix::process::Signal::from_named_raw(signal);
        for process in processes.lines().filter_map(|process| process.parse().ok()) {
            if let (Some(process), Some(signal)) = (rustix::process::Pid::from_raw(process), signal) {
                // The process may have ended in the meantime.
                let _ = rustix::process::kill_process(process, signal);
            }
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let _ = self.enter(&self.above);
        let _ = fs::remove_dir(&self.folder);
    }
}

/// Removes sibling cgroups that killed processes have left behind. A cgroup with a running process cannot be removed.
fn remove_left_behind(above: &Path) {
    for entry in fs::read_dir(above).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse().ok());
        if let Some(owner) = owner.and_then(rustix::process::Pid::from_raw)
            && rustix::process::test_kill_process(owner) == Err(rustix::io::Errno::SRCH)
        {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn id_of(user: &str, which: &str) -> Result<u32, Error> {
    let text = run("id", &[which, "--", user])?;
    text.trim().parse().map_err(|_| Error::Command { command: format!("id {which} -- {user}"), said: text })
}

/// The prefix of the cgroups' names, which a process ID follows.
const PREFIX: &str = "plimsoll-run-";
/// The polling interval: short compared with the life of a program, long compared with a poll.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
