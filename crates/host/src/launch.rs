//! [`launch`]: an unmodified program at a level, in a cgroup of its own below that of this process, so that the limits of
//! that one stay in force. The classifier and the send buffers' sizes are held by this process, which waits.

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
use crate::facts::{Facts, Host};

/// A program to start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Launch {
    /// The level of its sockets, 0 to 7.
    pub level: u8,
    /// What its TCP connections get.
    pub connections: ConnectionOptions,
    /// As whom it runs; none as this process.
    pub user: Option<String>,
    /// The program and its arguments.
    pub command: Vec<String>,
}

/// Runs the program until it and all that it has started have ended, and returns how it ended itself. Its environment,
/// folder and files are those of this process. `signal` is asked again and again: each signal that it
/// returns is passed on.
///
/// # Errors
/// If the system refuses, before the program is started, or there is no such program or user.
pub fn launch(launch: &Launch, signal: &mut dyn FnMut() -> Option<i32>) -> Result<ExitStatus, Error> {
    let (name, arguments) =
        launch.command.split_first().ok_or_else(|| Error::Unavailable(vec!["no program".to_owned()]))?;
    let mut command = Command::new(name);
    command.args(arguments);
    if let Some(user) = &launch.user {
        command.uid(id_of(user, "-u")?).gid(id_of(user, "-g")?);
    }
    let classifier = SocketClassifier::load(launch.level)?;
    // A connection that a server accepts does not inherit its listener's priority.
    let traffic = TrafficClassifier::load(launch.level)?;
    let has_any = launch.connections != ConnectionOptions::default();
    let connections = has_any.then(|| Connections::load(&launch.connections)).transpose()?;
    let cgroup = Cgroup::make()?;
    let _level = (classifier.attach(&cgroup.folder)?, traffic.attach(&cgroup.folder)?);
    let _connections = connections.as_ref().map(|program| program.attach(&cgroup.folder)).transpose()?;
    // The program is born where this process is.
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

/// A cgroup of this process's own, gone when dropped.
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

    /// Moves this process.
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
                // It may have ended meanwhile.
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

/// Removes the cgroups beside which this process makes its own, where they were left behind by one that was killed. One in
/// which something still runs cannot be removed.
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

/// What the names of the cgroups begin with; a process's number follows.
const PREFIX: &str = "plimsoll-run-";
/// Short beside the life of a program, long beside the cost of looking.
const LOOK_AGAIN: Duration = Duration::from_millis(20);
