//! [`CgroupLevel`]: a cgroup that gives the sockets of its programs a level of QJump, without the programs' knowledge.
//!
//! Cgroups are `plimsoll-<process>-p<number>` in the hierarchy of version 2, at its mount point. The cgroups of a
//! process that has ended are removed with its namespaces.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::agents::agent::Shares;

/// The prefix of every name.
const PREFIX: &str = "plimsoll-";

/// A cgroup with a level; dropping it removes it, with all programs in it.
#[derive(Debug)]
pub(crate) struct CgroupLevel {
    folder: PathBuf,
    #[cfg(feature = "kernel")]
    _attached: Vec<plimsoll_bpf::CgroupLink>,
}

/// The levels of a run's programs. Connections of one level of a host share it, whichever program they are of.
#[derive(Debug)]
pub(crate) struct LevelsOfPrograms<'a> {
    #[cfg(feature = "kernel")]
    shares: &'a Shares,
    #[cfg(feature = "kernel")]
    by_host: std::collections::BTreeMap<(u32, u8), plimsoll_bpf::Connections>,
    #[cfg(not(feature = "kernel"))]
    _shares: std::marker::PhantomData<&'a Shares>,
}

#[cfg(feature = "kernel")]
impl<'a> LevelsOfPrograms<'a> {
    pub(crate) fn new(shares: &'a Shares) -> LevelsOfPrograms<'a> {
        LevelsOfPrograms { shares, by_host: std::collections::BTreeMap::new() }
    }

    /// A cgroup for program `number` of this process, on `host`, with `level`, which is less than 8.
    ///
    /// # Errors
    /// If there are no cgroups of version 2, or the system refuses.
    pub(crate) fn prepare(&mut self, host: u32, level: u8, number: usize) -> io::Result<CgroupLevel> {
        use std::os::unix::fs::DirBuilderExt as _;

        let root = root().ok_or_else(|| io::Error::other(NO_CGROUPS))?;
        let folder = root.join(format!("{PREFIX}{}-p{number}", std::process::id()));
        fs::DirBuilder::new()
            .mode(0o755)
            .create(&folder)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", folder.display())))?;
        match self.attach(host, level, &folder) {
            Ok(attached) => Ok(CgroupLevel { folder, _attached: attached }),
            Err(error) => {
                remove(&folder);
                Err(io::Error::other(error))
            }
        }
    }

    fn attach(
        &mut self,
        host: u32,
        level: u8,
        folder: &Path,
    ) -> Result<Vec<plimsoll_bpf::CgroupLink>, plimsoll_bpf::Error> {
        use std::collections::btree_map::Entry;

        use plimsoll_bpf::{ConnectionOptions, Connections, SocketClassifier, TrafficClassifier};
        // A connection that a server accepts does not inherit its listener's priority.
        let mut attached = vec![
            SocketClassifier::load(level)?.attach(folder)?,
            TrafficClassifier::load(level)?.attach(folder)?,
        ];
        if let Some(share) = self.shares.of(host, level) {
            let loaded = match self.by_host.entry((host, level)) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry
                    .insert(Connections::load(&ConnectionOptions { send_buffer: None, share: Some(share) })?),
            };
            attached.push(loaded.attach(folder)?);
        }
        Ok(attached)
    }
}

/// Levels need eBPF programs.
#[cfg(not(feature = "kernel"))]
impl<'a> LevelsOfPrograms<'a> {
    pub(crate) fn new(_: &'a Shares) -> LevelsOfPrograms<'a> {
        LevelsOfPrograms { _shares: std::marker::PhantomData }
    }

    pub(crate) fn prepare(&mut self, _: u32, _: u8, _: usize) -> io::Result<CgroupLevel> {
        Err(io::Error::other(crate::net::qjump::lacks().unwrap_or_default()))
    }
}

impl CgroupLevel {
    /// The file that a process joins by.
    pub(crate) fn members(&self) -> PathBuf {
        self.folder.join("cgroup.procs")
    }
}

impl Drop for CgroupLevel {
    fn drop(&mut self) {
        remove(&self.folder);
    }
}

/// Returns whether cgroups of version 2 are mounted.
pub(crate) fn are_here() -> bool {
    root().is_some()
}

/// Returns why programs can have no level here; `None` if they can. A level belongs to the limiters.
pub(crate) fn lacks(has_limiters: bool) -> Option<String> {
    if !has_limiters {
        return Some("hosts without `host.qjump` have no levels".to_owned());
    }
    root().is_none().then(|| NO_CGROUPS.to_owned()).or_else(crate::net::qjump::lacks)
}

const NO_CGROUPS: &str = "cgroups of version 2 are not mounted (mount -t cgroup2 none FOLDER)";

/// Returns the mount point of the hierarchy of version 2.
fn root() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
    let mut lines = mounts.lines().map(|line| line.split(' '));
    lines.find_map(|mut words| {
        let folder = words.nth(1)?;
        (words.next() == Some("cgroup2")).then(|| PathBuf::from(folder))
    })
}

/// Removes the cgroups of processes that are no more.
pub(crate) fn clean(lives: impl Fn(&str) -> bool) {
    let Some(root) = root() else { return };
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if let Some(owner) = entry.file_name().to_str().and_then(owner_of)
            && !lives(owner)
        {
            remove(&entry.path());
        }
    }
}

/// The process in a name that is ours: `plimsoll-<process>-p<number>`, and no other.
fn owner_of(name: &str) -> Option<&str> {
    let (owner, number) = name.strip_prefix(PREFIX)?.split_once("-p")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    (is_number(owner) && is_number(number)).then_some(owner)
}

/// Kills the processes in the cgroup and removes it. If it cannot be removed now, the next start removes it.
fn remove(folder: &Path) {
    let _ = fs::write(folder.join("cgroup.kill"), "1");
    let begun = Instant::now();
    while fs::remove_dir(folder).is_err_and(|error| error.kind() != io::ErrorKind::NotFound)
        && begun.elapsed() < PATIENCE
    {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Time limit for a killed program to end.
const PATIENCE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cgroups_of_programs_are_ours() {
        assert_eq!(owner_of("plimsoll-4711-p0"), Some("4711"));
        for other in ["plimsoll-4711-h0", "plimsoll-4711", "plimsoll-x-p0", "plimsoll-4711-p", "user.slice"] {
            assert_eq!(owner_of(other), None, "{other}");
        }
    }
}
