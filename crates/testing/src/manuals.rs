//! Checks that the manual pages of programs match their command lines.

use std::path::{Path, PathBuf};

/// Compares the files that `make` writes into a folder with the files of `deploy/man` that begin with `name`. With the
/// environment variable UPDATE set, they are replaced.
///
/// # Panics
/// Panics if a file differs, is missing or is not made any more, and if a folder cannot be read or written.
pub fn are_up_to_date(name: &str, make: impl FnOnce(&Path) -> std::io::Result<()>) {
    let made = tempfile::tempdir().expect("a temporary folder");
    make(made.path()).expect("pages are written");
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/man");
    let of = |folder: &Path| -> Vec<PathBuf> {
        let files =
            std::fs::read_dir(folder).into_iter().flatten().map(|file| file.expect("a folder").path());
        let is_of = |file: &PathBuf| {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            stem == name || stem.starts_with(&format!("{name}-"))
        };
        let mut files: Vec<PathBuf> = files.filter(is_of).collect();
        files.sort();
        files
    };
    let contents = |folder: &Path| -> Vec<(String, String)> {
        let read = |file: &PathBuf| {
            let text = std::fs::read_to_string(file).expect("a page");
            (file.file_name().unwrap_or_default().to_string_lossy().into_owned(), text)
        };
        of(folder).iter().map(read).collect()
    };
    let pages = contents(made.path());
    assert!(!pages.is_empty(), "{name} has no page");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(&committed).expect("a folder");
        of(&committed).iter().for_each(|old| std::fs::remove_file(old).expect("an old page"));
        for (file, text) in &pages {
            std::fs::write(committed.join(file), text).expect("a page is written");
        }
    }
    assert!(
        contents(&committed) == pages,
        "the manual pages of {name} in deploy/man have drifted; make them again: UPDATE=1 cargo test manual_page"
    );
}
