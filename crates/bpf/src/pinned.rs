//! Access to objects that programs have pinned in a BPF file system, where they outlive their process: maps to read,
//! and links to detach.

use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use libbpf_rs::query::LinkTypeInfo;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, Program};

use crate::Error;
use crate::shared::Shared;

/// A map that is pinned in a BPF file system.
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
    /// Returns [`Error::Kernel`] if there is none, or this process may not open it.
    pub fn open(path: &Path) -> Result<Pinned, Error> {
        MapHandle::from_pinned_path(path)
            .map(Pinned)
            .map_err(Error::while_doing(format!("{}", path.display())))
    }

    /// Reads entry `index`.
    ///
    /// # Errors
    /// Returns [`Error::Kernel`] if it cannot be read.
    ///
    /// # Panics
    /// Panics if the layout of the map differs.
    pub fn read<T: Shared>(&self, index: u32) -> Result<T, Error> {
        let found = self.0.lookup(&index.to_ne_bytes(), MapFlags::ANY);
        let found = found.map_err(Error::while_doing("reading a pinned map"))?;
        Ok(found.and_then(|bytes| T::from_bytes(&bytes)).expect("the map has this entry and layout"))
    }

    /// Reads entry `index` of every processor.
    ///
    /// # Errors
    /// Returns the errors of [`Pinned::read`].
    ///
    /// # Panics
    /// Panics as [`Pinned::read`] does.
    pub fn read_per_processor<T: Shared>(&self, index: u32) -> Result<Vec<T>, Error> {
        let found = self.0.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY);
        let found =
            found.map_err(Error::while_doing("reading a pinned map"))?.expect("the map has this entry");
        Ok(found.iter().map(|bytes| T::from_bytes(bytes).expect("the map has this layout")).collect())
    }
}

/// Detaches the link pinned at `path` at once, and removes its pin. A missing pin is not an error.
///
/// # Errors
/// Returns [`Error::Kernel`] if the pin cannot be removed.
pub fn detach(path: &Path) -> Result<(), Error> {
    if !path.exists() {
        return Ok(());
    }
    // Otherwise the kernel detaches it later, as it does for kinds of links that cannot detach.
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
/// Returns [`Error::Kernel`] if `path` is not in a BPF file system, or exists already.
pub fn pin(link: &mut Link, path: &Path) -> Result<(), Error> {
    link.pin(path).map_err(Error::while_doing(format!("pinning {}", path.display())))
}

/// Returns the number by which the kernel lists the program pinned at `path`.
///
/// # Errors
/// Returns [`Error::Kernel`] if there is none.
pub fn program_id(path: &Path) -> Result<u32, Error> {
    let id = Program::fd_from_pinned_path(path).and_then(|program| Program::id_from_fd(program.as_fd()));
    id.map_err(Error::while_doing(format!("{}", path.display())))
}

/// Returns whether the link pinned at `path` is still attached; its device or cgroup may be gone.
///
/// # Errors
/// Returns [`Error::Kernel`] if the link does not exist.
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
