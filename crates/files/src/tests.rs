//! Each kind of entry, from each origin, read and written.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::*;

const MOST: u64 = 1 << 20;

/// Makes a folder with an entry of each kind, each named after it.
fn place() -> TempDir {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::write(path("file"), "text").unwrap();
    fs::create_dir(path("directory")).unwrap();
    mknodat(CWD, path("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    drop(UnixListener::bind(path("socket")).unwrap());
    for (to, name) in [("file", "link"), ("/dev/zero", "zero"), ("missing", "dangling")] {
        symlink(to, path(name)).unwrap();
    }
    place
}

#[test]
fn a_stranger_s_folder_has_regular_files_only() {
    let place = place();
    let cases = [
        ("file", None),
        ("directory", Some("it is no regular file but a directory")),
        ("pipe", Some("it is no regular file but a pipe")),
        ("socket", Some("it is no regular file")),
        ("link", Some("it is no regular file but a symbolic link")),
        ("zero", Some("it is no regular file but a symbolic link")),
        ("dangling", Some("it is no regular file but a symbolic link")),
    ];
    for (name, why) in cases {
        let path = place.path().join(name);
        let read = read(&path, Origin::Folder, MOST).map_err(|error| error.to_string());
        assert_eq!(read, why.map_or(Ok(b"text".to_vec()), |why| Err(why.to_owned())), "read {name}");
        let appended = open(&path, Origin::Folder, File::options().create(true).append(true));
        let created = appended.and_then(|_| create(&path, Origin::Folder)).map(drop);
        assert_eq!(created.map_err(|error| error.to_string()).err().as_deref(), why, "write {name}");
    }
    assert!(!place.path().join("missing").exists(), "nothing was created through a link");
}

#[test]
fn a_folder_in_a_stranger_s_folder_is_no_link() {
    let place = place();
    symlink("directory", place.path().join("folder")).unwrap();
    let cases = [
        ("directory", None),
        ("absent", None),
        ("folder", Some("it is no folder but a symbolic link")),
        ("dangling", Some("it is no folder but a symbolic link")),
        ("file", Some("it is no folder")),
        ("pipe", Some("it is no folder")),
    ];
    for (name, why) in cases {
        let checked = check_folder(&place.path().join(name)).map_err(|error| error.to_string());
        assert_eq!(checked.err().as_deref(), why, "{name}");
    }
}

#[test]
fn a_named_file_may_be_reached_by_a_link_but_has_an_end() {
    let place = place();
    for origin in [Origin::Name, Origin::Argument] {
        assert_eq!(read(&place.path().join("link"), origin, MOST).unwrap(), b"text");
        let refused = read(&place.path().join("zero"), origin, MOST).unwrap_err();
        assert_eq!(refused.to_string(), "it is no regular file");
        let missing = read(&place.path().join("dangling"), origin, MOST).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }
    let refused = read(&place.path().join("pipe"), Origin::Name, MOST).unwrap_err();
    assert_eq!(refused.to_string(), "it is no regular file but a pipe");
}

#[test]
fn an_argument_may_be_a_pipe() {
    let place = place();
    let pipe: PathBuf = place.path().join("pipe");
    let written = pipe.clone();
    // The reader waits until the writer is there, whichever comes first.
    let writer = thread::spawn(move || fs::write(written, "from a pipe"));
    assert_eq!(read_text(&pipe, Origin::Argument, MOST).unwrap(), "from a pipe");
    writer.join().unwrap().unwrap();
}

#[test]
fn a_size_has_a_limit_that_the_error_names() {
    let place = place();
    let path = place.path().join("file");
    assert_eq!(read(&path, Origin::Folder, 4).unwrap(), b"text");
    let refused = read(&path, Origin::Folder, 3).unwrap_err();
    assert_eq!(refused.to_string(), "it has more than 3 bytes");
    // A file with a hole takes no room on the disk, whatever its length.
    File::create(&path).unwrap().set_len(MOST + 1).unwrap();
    let refused = read(&path, Origin::Name, MOST).unwrap_err();
    assert_eq!(refused.to_string(), "it has more than 1 MiB");
    fs::write(&path, b"\xff").unwrap();
    let refused = read_text(&path, Origin::Name, MOST).unwrap_err();
    assert_eq!(refused.to_string(), "it is no text in UTF-8");
}
