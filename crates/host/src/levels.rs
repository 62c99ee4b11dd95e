//! Levels of cgroups and units: the programs at their cgroups, and what systemd is told, so that a unit that starts again,
//! in a new cgroup, has its level again.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use plimsoll_bpf::{CgroupLink, ConnectionOptions, Connections, TrafficClassifier, pinned};
use plimsoll_units::{Bytes, Span};

use crate::Error;
use crate::commands::run;
use crate::kernel::{LINK, left, made};
use crate::plan::{CONNECTIONS, TRAFFIC};
use crate::step::{Member, Undone};

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
    let mut traffic = TrafficClassifier::load(level)?;
    traffic.pin(&pins.join(TRAFFIC))?;
    let mut connections = connections(share)?;
    if let Some(connections) = &mut connections {
        connections.pin(&pins.join(CONNECTIONS))?;
    }
    let hold = |mut link: CgroupLink, index, what| {
        pinned::pin(&mut link, &pins.join(format!("{LINK}-{index}-{what}")))
    };
    for (index, member) in members.iter().enumerate() {
        hold(traffic.attach(&member.cgroup)?, index, TRAFFIC)?;
        if let Some(connections) = &connections {
            hold(connections.attach(&member.cgroup)?, index, CONNECTIONS)?;
        }
    }
    Ok(())
}

/// Whether the member of this number still has its level; its cgroup may be gone.
pub(crate) fn is_given(pins: &Path, member: usize) -> Result<bool, Error> {
    let link = pins.join(format!("{LINK}-{member}-{TRAFFIC}"));
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

/// Writes `file`, and has systemd read it.
pub(crate) fn tell_systemd(file: &Path, text: &str) -> Result<(), Error> {
    let folder = file.parent().expect("a drop-in is in its unit's folder");
    made(folder, fs::create_dir_all(folder))?;
    made(file, fs::write(file, text))?;
    reload()
}

/// Removes `file`, and its folder if nothing else is in it, and has systemd notice.
pub(crate) fn untell_systemd(file: &Path, text: &str) -> Result<Undone, Error> {
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
    reload().map(|()| Undone::Restored)
}

fn reload() -> Result<(), Error> {
    run("systemctl", &["daemon-reload"]).map(drop)
}
