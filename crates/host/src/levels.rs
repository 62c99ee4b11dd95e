//! Attaches the programs of a level to cgroups and units, and configures systemd so that a restarted unit, which gets a
//! new cgroup, has its level again.
//!
//! systemd can attach pinned programs by itself (`BPFProgram=`), and does so at a unit's first start; at the next
//! start, in a new cgroup of the same name, version 252 assumes that they are still attached. Therefore a service calls
//! [`attach_unit`] ahead of its programs (`ExecStartPre=`).

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_bpf::{CgroupPoint, ConnectionOptions, Connections, HeldLink, TrafficClassifier, pinned};
use plimsoll_units::{Bytes, Span};

use crate::Error;
use crate::commands::change;
use crate::facts::{Host, HostFacts as _, Unit};
use crate::folders::StateFolders;
use crate::journal::PolicyJournal;
use crate::kernel::{LINK, left, made};
use crate::lock::HostLock;
use crate::names::{PolicyName, UnitName};
use crate::plan::TRAFFIC;
use crate::step::{LevelCgroup, Step, Undone};

/// The bytes that a level may send in an epoch, and the epoch.
type EpochShare = Option<(Bytes, Span)>;

fn connections(share: EpochShare) -> Result<Option<Connections>, Error> {
    let options = share.map(|share| ConnectionOptions { send_buffer: None, share: Some(share) });
    Ok(options.map(|options| Connections::load(&options)).transpose()?)
}

/// Checks that the kernel accepts the programs.
pub(crate) fn check(level: u8, share: EpochShare) -> Result<(), Error> {
    TrafficClassifier::load(level)?;
    connections(share).map(drop)
}

/// Gives the level to the programs of `members`, which all together pace themselves to `share`.
pub(crate) fn give(level: u8, members: &[LevelCgroup], share: EpochShare, pins: &Path) -> Result<(), Error> {
    TrafficClassifier::load(level)?.pin(&pins.join(TRAFFIC))?;
    if let Some(mut connections) = connections(share)? {
        connections.pin(&pins.join(CONNECTIONS))?;
    }
    members
        .iter()
        .enumerate()
        .try_for_each(|(index, member)| attach(pins, &name_of(index, member), &member.cgroup))
}

/// Returns the name of a member's links: a unit's name, or a number.
pub(crate) fn name_of(index: usize, member: &LevelCgroup) -> String {
    member.unit.as_ref().map_or_else(|| index.to_string(), name_of_unit)
}

/// Returns the unit's name with its dots replaced: a BPF file system allows no dots, and unit names do not contain the
/// replacement.
pub(crate) fn name_of_unit(unit: &UnitName) -> String {
    unit.as_str().replace('.', "~")
}

/// Attaches a level's pinned programs to a cgroup, and replaces an earlier attachment of this name.
fn attach(pins: &Path, name: &str, cgroup: &Path) -> Result<(), Error> {
    for (program, point) in [(TRAFFIC, CgroupPoint::Egress), (CONNECTIONS, CgroupPoint::Connections)] {
        if !pins.join(program).exists() {
            continue;
        }
        let link = pins.join(format!("{LINK}-{program}-{name}"));
        pinned::detach(&link)?;
        HeldLink::at_cgroup(&pins.join(program), cgroup, point)?.pin(&link)?;
    }
    Ok(())
}

/// Attaches the level of a starting unit by the applied policy `name`; returns false if the policy has none for it.
///
/// # Errors
/// Returns an error if the unit is not running, the kernel rejects the programs, or another process changes the host
/// for longer than 5 s: the start of a unit does not wait for that.
pub fn attach_unit(name: &PolicyName, unit: &UnitName, folders: &StateFolders) -> Result<bool, Error> {
    let begun = Instant::now();
    let _lock = HostLock::acquire(folders, &mut || begun.elapsed() < PATIENCE)?;
    let Some(applied) = PolicyJournal::of(folders, name).read()? else { return Ok(false) };
    applied.here.check_mounts(name)?;
    let steps = applied.steps();
    let level = steps.iter().find_map(|step| match step {
        Step::DropIn { unit: of, level, .. } if of == unit => Some(*level),
        _ => None,
    });
    let pins = steps.iter().find_map(|step| match step {
        Step::Level { level: of, pins, .. } if Some(*of) == level => Some(pins),
        _ => None,
    });
    let Some(pins) = pins else { return Ok(false) };
    let (Some(root), Unit::Running(cgroup)) = (Host.cgroups(), Host.unit(unit)?) else {
        return Err(Error::Unavailable(vec![format!("unit {unit} is not running")]));
    };
    attach(pins, &name_of_unit(unit), &cgroup.under(&root)).map(|()| true)
}

/// Returns whether the member of this name still has its level; its cgroup may be gone.
pub(crate) fn is_given(pins: &Path, name: &str) -> Result<bool, Error> {
    let link = pins.join(format!("{LINK}-{TRAFFIC}-{name}"));
    Ok(link.exists() && pinned::still_attached(&link)?)
}

/// Detaches the level from all its members.
pub(crate) fn take(pins: &Path) -> Result<(), Error> {
    let Ok(entries) = fs::read_dir(pins) else { return Ok(()) };
    let is_link = |path: &Path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(LINK.as_bytes()))
    };
    let links = entries.flatten().map(|entry| entry.path()).filter(|path| is_link(path));
    links.into_iter().try_for_each(|link| Ok(pinned::detach(&link)?))
}

/// Writes `file`, and makes systemd reload its configuration. systemd runs its content as root, so only root may write
/// it, with any umask.
pub(crate) fn tell_systemd(lock: &HostLock, file: &Path, text: &str) -> Result<(), Error> {
    let folder = file.parent().expect("a drop-in is in its unit's folder");
    made(folder, DirBuilder::new().recursive(true).mode(0o755).create(folder))?;
    let written = OpenOptions::new().write(true).create_new(true).mode(0o644).open(file);
    made(file, written.and_then(|mut open| open.write_all(text.as_bytes())))?;
    reload(lock)
}

/// Removes `file`, and its folder if empty, and makes systemd reload its configuration.
pub(crate) fn untell_systemd(lock: &HostLock, file: &Path, text: &str) -> Result<Undone, Error> {
    match fs::read_to_string(file) {
        // A prefix of the text was left by an interrupted write.
        Ok(now) if !text.starts_with(&now) => return Ok(left(format!("{} has changed", file.display()))),
        Ok(_) => fs::remove_file(file).map_err(Error::doing(format!("removing {}", file.display())))?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(Error::doing(format!("reading {}", file.display()))(error)),
    }
    if let Some(folder) = file.parent() {
        // Others may have drop-ins for the unit, too.
        let _ = fs::remove_dir(folder);
    }
    reload(lock).map(|()| Undone::Restored)
}

fn reload(lock: &HostLock) -> Result<(), Error> {
    change(lock, "systemctl", &["daemon-reload"])
}

/// The longest wait for the lock: longer than an apply takes, and short compared with a unit's start timeout (90 s by
/// default).
const PATIENCE: Duration = Duration::from_secs(5);

/// The name of the pin of the program that paces a level's connections.
const CONNECTIONS: &str = "connections";
