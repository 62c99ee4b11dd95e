//! [`write_folder`]: a folder that is there with all its files, or not at all.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use plimsoll_files::Origin;

use super::NamedText;

/// Writes files into a new folder at `path`, or into an empty one.
///
/// # Errors
/// Fails if the folder has content, or a file cannot be written; nothing is left then.
pub fn write_folder(path: &Path, files: &[NamedText]) -> io::Result<()> {
    if path.is_file() || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "it is there and not empty: name another folder, or remove it",
        ));
    }
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        std::fs::create_dir_all(parent)?;
    }
    let unfinished = beside(path);
    let written = fill(&unfinished, files).and_then(|()| std::fs::rename(&unfinished, path));
    if written.is_err() {
        // The error that is reported is the first one.
        let _ = std::fs::remove_dir_all(&unfinished);
    }
    written
}

/// Returns a name beside the folder, in the same file system.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".unfinished-{}", std::process::id()));
    path.with_file_name(name)
}

fn fill(folder: &Path, files: &[NamedText]) -> io::Result<()> {
    std::fs::create_dir(folder)?;
    for NamedText { name, text } in files {
        let mut file = plimsoll_files::create(&folder.join(name), Origin::Folder)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
    }
    Ok(())
}
