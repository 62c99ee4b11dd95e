//! What programs leave in a BPF file system, so that it outlives the process that put it there: maps to read, and links
//! to take away.

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Program};

use crate::Error;
use crate::shared::Shared;

/// A pinned map.
#[derive(Debug)]
pub struct Pinned(MapHandle);

impl AsFd for Pinned {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Pinned {
    /// Opens the map pinned at `path`.
    ///
    /// # Errors
    /// [`Error::Kernel`] if there is none, or this process may not.
    pub fn open(path: &Path) -> Result<Pinned, Error> {
        MapHandle::from_pinned_path(path)
            .map(Pinned)
            .map_err(Error::while_doing(format!("{}", path.display())))
    }

    /// Entry `index`.
    ///
    /// # Errors
    /// [`Error::Kernel`] if it cannot be read.
    ///
    /// # Panics
    /// If the map has another layout.
    pub fn read<T: Shared>(&self, index: u32) -> Result<T, Error> {
        let found = self.0.lookup(&index.to_ne_bytes(), MapFlags::ANY);
        let found = found.map_err(Error::while_doing("reading a pinned map"))?;
        Ok(found.and_then(|bytes| T::from_bytes(&bytes)).expect("the map has this entry and layout"))
    }

    /// Entry `index` of every processor.
    ///
    /// # Errors
    /// As [`Pinned::read`].
    ///
    /// # Panics
    /// As [`Pinned::read`].
    pub fn read_per_processor<T: Shared>(&self, index: u32) -> Result<Vec<T>, Error> {
        let found = self.0.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY);
        let found =
            found.map_err(Error::while_doing("reading a pinned map"))?.expect("the map has this entry");
        Ok(found.iter().map(|bytes| T::from_bytes(bytes).expect("the map has this layout")).collect())
    }
}

/// Takes away what the link pinned at `path` attached, at once, and then its pin. No pin is no error.
///
/// # Errors
/// [`Error::Kernel`] if the pin cannot be removed.
pub fn detach(path: &Path) -> Result<(), Error> {
    if !path.exists() {
        return Ok(());
    }
    // Without this it goes when the kernel gets round to it, as it does where a kind of link knows no detaching.
    let _ = Link::open(path).and_then(|link| link.detach());
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::while_doing(format!("detaching {}", path.display()))(error.into()))
        }
        _ => Ok(()),
    }
}

/// Pins `link` at `path`.
///
/// # Errors
/// [`Error::Kernel`] if that is not in a BPF file system, or there already.
pub fn pin(link: &mut Link, path: &Path) -> Result<(), Error> {
    link.pin(path).map_err(Error::while_doing(format!("pinning {}", path.display())))
}

/// The number of the program pinned at `path`, by which the kernel lists it.
///
/// # Errors
/// [`Error::Kernel`] if there is none.
pub fn program_id(path: &Path) -> Result<u32, Error> {
    let id = Program::fd_from_pinned_path(path).and_then(|program| Program::id_from_fd(program.as_fd()));
    id.map_err(Error::while_doing(format!("{}", path.display())))
}

/// Whether the link pinned at `path` still has what it was attached to; a device or a cgroup may be gone.
///
/// # Errors
/// [`Error::Kernel`] if there is no such link.
pub fn still_attached(path: &Path) -> Result<bool, Error> {
    let link = Link::open(path).map_err(Error::while_doing(format!("{}", path.display())))?;
    Ok(is_attached(&link))
}

fn is_attached(link: &Link) -> bool {
    match link.info().map(|info| info.info) {
        Ok(LinkTypeInfo::Tcx(tcx)) => tcx.ifindex != 0,
        Ok(LinkTypeInfo::Cgroup(cgroup)) => cgroup.cgroup_id != 0,
        Ok(_) => true,
        Err(_) => false,
    }
}
