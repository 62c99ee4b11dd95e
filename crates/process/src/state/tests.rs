#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};

use super::*;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn said<T: std::fmt::Debug>(found: io::Result<T>) -> String {
    found.unwrap_err().to_string()
}

/// The umask belongs to the process, so its test has a process of its own: `tests/umask.rs`.
#[test]
fn what_is_made_is_the_owners_alone() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a/b");
    let folder = Folder::make(&path).unwrap();
    folder.write("file", b"bytes").unwrap();
    assert_eq!((mode(&place.path().join("a")), mode(&path), mode(&path.join("file"))), (0o700, 0o700, 0o600));
    assert_eq!(folder.read("file", 5).unwrap().unwrap(), b"bytes");
    assert!(said(folder.read("file", 4)).contains("longer than 4 bytes"));
    assert!(said(folder.write("file", b"again")).contains("exists"));
    folder.rename("file", "other").unwrap();
    assert_eq!(folder.names().unwrap(), ["other"]);
    folder.remove("other").unwrap();
    folder.remove("other").unwrap();
    assert!(folder.find("none").unwrap().is_none() && folder.read("none", 1).unwrap().is_none());
    assert!(Folder::open(&place.path().join("none/of/these")).unwrap().is_none());
    // A folder that others may read loses that permission when it is opened.
    set_mode(&path, 0o755);
    assert!(Folder::open(&path).unwrap().is_some());
    assert_eq!(mode(&path), 0o700);
}

#[test]
fn what_others_may_write_is_not_trusted() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a/b");
    Folder::make(&path).unwrap().write("file", b"").unwrap();
    for writable in [0o770, 0o707, 0o1777] {
        set_mode(&path, writable);
        assert!(said(Folder::open(&path)).contains(&format!("(mode {writable:o})")));
    }
    set_mode(&path, 0o700);
    set_mode(&path.join("file"), 0o620);
    let folder = Folder::open(&path).unwrap().unwrap();
    assert!(said(folder.read("file", 9)).contains("(mode 620)"));
    // A writable ancestor is accepted only where it is sticky, since others cannot rename its entries then.
    set_mode(&place.path().join("a"), 0o777);
    assert!(said(Folder::open(&path)).contains("(mode 777)"));
    set_mode(&place.path().join("a"), 0o1777);
    assert!(Folder::open(&path).unwrap().is_some());
}

#[test]
fn no_link_is_followed() {
    let place = tempfile::tempdir().unwrap();
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    set_mode(&elsewhere, 0o700);
    fs::write(elsewhere.join("file"), "precious").unwrap();
    set_mode(&elsewhere.join("file"), 0o600);
    let link = place.path().join("link");
    symlink(&elsewhere, &link).unwrap();
    for path in [link.clone(), link.join("below")] {
        assert!(said(Folder::make(&path)).contains("symbolic link"));
    }
    let folder = Folder::make(&place.path().join("own")).unwrap();
    symlink(elsewhere.join("file"), folder.path().join("file")).unwrap();
    symlink(&elsewhere, folder.path().join("folder")).unwrap();
    fs::hard_link(elsewhere.join("file"), folder.path().join("second")).unwrap();
    assert!(said(folder.read("file", 99)).contains("symbolic link"));
    assert!(said(folder.file("file", OFlags::WRONLY | OFlags::CREATE)).contains("symbolic link"));
    assert!(said(folder.folder("folder")).contains("symbolic link"));
    assert!(said(folder.read("second", 99)).contains("with one hard link"));
    assert!(folder.has("file").unwrap());
    for name in ["file", "folder", "second"] {
        folder.remove(name).unwrap();
    }
    assert_eq!(fs::read_to_string(elsewhere.join("file")).unwrap(), "precious");
    for name in ["..", ".", "", "/etc", "a/b", "a/"] {
        assert!(said(folder.read(name, 9)).contains("expected the name of a file"), "{name}");
        assert!(said(folder.folder(name)).contains("expected the name of a file"), "{name}");
    }
    for path in ["own", "/a/../b", "/"] {
        assert!(said(Folder::make(Path::new(path))).contains("expected an absolute path"), "{path}");
    }
}

#[test]
fn what_is_others_is_not_trusted() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a/b");
    let folder = Folder::make(&path).unwrap();
    folder.write("file", b"").unwrap();
    if chown(path.join("file"), Some(4711), None).is_err() {
        return plimsoll_testing::skipped!("only root may give files away");
    }
    assert!(said(folder.read("file", 9)).contains("belongs to user 4711"));
    chown(&path, Some(4711), None).unwrap();
    assert!(said(Folder::open(&path)).contains("b is not trusted: it belongs to user 4711"));
    chown(place.path().join("a"), Some(4711), None).unwrap();
    assert!(said(Folder::open(&path)).contains("a is not trusted: it belongs to user 4711"));
}
