//! Levels of cgroups and units: the programs at their cgroups, and what systemd is told, so that a unit that starts again,
//! in a new cgroup, has its level again.
//!
//! systemd can attach pinned programs by itself (`BPFProgram=`), and does so at a unit's first start; at the next, in a new
//! cgroup of the same name, version 252 takes them for attached already. So a service calls [`attach_unit`] ahead of its
//! programs (`ExecStartPre=`).

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use plimsoll_bpf::{CgroupPoint, ConnectionOptions, Connections, HeldLink, TrafficClassifier, pinned};
use plimsoll_units::{Bytes, Span};

use crate::Error;
use crate::commands::change;
use crate::facts::{Facts as _, Host, Unit};
use crate::journal::{Journal, Lock, Places};
use crate::kernel::{LINK, left, made};
use crate::names::{PolicyName, UnitName};
use crate::plan::TRAFFIC;
use crate::step::{Member, Step, Undone};

/// What a level may send in an epoch.
type Share = Option<(Bytes, Span)>;

fn connections(share: Share) -> Result<Option<Connections>, Error> {
    let options = share.map(|share| ConnectionOptions { send_buffer: None, share: Some(share) });
    Ok(options.map(|options| Connections::load(&options)).transpose()?)
}

/// Whether the kernel takes the programs.
pub(crate) fn check(level: u8, share: Share) -> Result<(), Error> {
    TrafficClassifier::load(level)?;
    connections(share).map(drop)
}

/// Gives the programs of `members` the level. Those of all of them together pace themselves to `share`.
pub(crate) fn give(level: u8, members: &[Member], share: Share, pins: &Path) -> Result<(), Error> {
    TrafficClassifier::load(level)?.pin(&pins.join(TRAFFIC))?;
    if let Some(mut connections) = connections(share)? {
        connections.pin(&pins.join(CONNECTIONS))?;
    }
    members
        .iter()
        .enumerate()
        .try_for_each(|(index, member)| attach(pins, &name_of(index, member), &member.cgroup))
}

/// By which the links of a member are known: a unit's name, or a number.
pub(crate) fn name_of(index: usize, member: &Member) -> String {
    member.unit.as_ref().map_or_else(|| index.to_string(), name_of_unit)
}

/// A BPF file system has no names with dots, and a unit none with this.
pub(crate) fn name_of_unit(unit: &UnitName) -> String {
    unit.as_str().replace('.', "~")
}

/// Attaches a level's pinned programs to a cgroup, in place of what they were attached to by this name.
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

/// Gives a unit that is being started its level by the applied policy `name`, if it has one.
///
/// # Errors
/// If it does not run, the kernel refuses, or somebody else changes the host for longer than 5 s: a unit's start does not
/// wait for that.
pub fn attach_unit(name: &PolicyName, unit: &UnitName, places: &Places) -> Result<bool, Error> {
    let begun = Instant::now();
    let _lock = Journal::lock(places, &mut || begun.elapsed() < PATIENCE)?;
    let Some(applied) = Journal::of(places, name).read()? else { return Ok(false) };
    applied.here.check_mounts(name)?;
    let steps = &applied.plan.steps[..applied.begun];
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
        return Err(Error::Unavailable(vec![format!("unit {unit} does not run")]));
    };
    attach(pins, &name_of_unit(unit), &cgroup.under(&root)).map(|()| true)
}

/// Whether the member of this name has its level still; its cgroup may be gone.
pub(crate) fn is_given(pins: &Path, name: &str) -> Result<bool, Error> {
    let link = pins.join(format!("{LINK}-{TRAFFIC}-{name}"));
    Ok(link.exists() && pinned::still_attached(&link)?)
}

/// Takes the level from all that have it.
pub(crate) fn take(pins: &Path) -> Result<(), Error> {
    let Ok(entries) = fs::read_dir(pins) else { return Ok(()) };
    let is_link = |path: &Path| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(LINK.as_bytes()))
    };
    let links = entries.flatten().map(|entry| entry.path()).filter(|path| is_link(path));
    links.into_iter().try_for_each(|link| Ok(pinned::detach(&link)?))
}

/// Writes `file`, and has systemd read it. What systemd runs as root, nobody else may write, whatever the umask.
pub(crate) fn tell_systemd(lock: &Lock, file: &Path, text: &str) -> Result<(), Error> {
    let folder = file.parent().expect("a drop-in is in its unit's folder");
    made(folder, DirBuilder::new().recursive(true).mode(0o755).create(folder))?;
    let written = OpenOptions::new().write(true).create_new(true).mode(0o644).open(file);
    made(file, written.and_then(|mut open| open.write_all(text.as_bytes())))?;
    reload(lock)
}

/// Removes `file`, and its folder if nothing else is in it, and has systemd notice.
pub(crate) fn untell_systemd(lock: &Lock, file: &Path, text: &str) -> Result<Undone, Error> {
    match fs::read_to_string(file) {
        // Half a text is one whose writing was interrupted.
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

fn reload(lock: &Lock) -> Result<(), Error> {
    change(lock, "systemctl", &["daemon-reload"])
}

/// Longer than an apply takes, and short beside a unit's own time to start (90 s by default).
const PATIENCE: Duration = Duration::from_secs(5);

/// The pin of the program that paces a level's connections.
const CONNECTIONS: &str = "connections";
