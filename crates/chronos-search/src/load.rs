//! Documents from files, before the server starts.
//!
//! * `*.jsonl`, `*.ndjson`: a document a line, `{"id": ..., "text": ..., "title": ..., "url": ...}`; `id` is a string
//!   or a whole number, `title` and `url` may be left out, and other fields are ignored.
//! * a folder: every file in it, and in the folders within. A document's name is its path within the folder.
//! * any other file: a document of its name.
//!
//! Spaces, control characters and `%` in paths are percent-encoded. Files with a NUL byte are not text and are left
//! out; bytes that are not UTF-8 end a word.

use std::borrow::Cow;
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use plimsoll_files::Origin;
use serde::Deserialize;

use crate::budget::Full;
use crate::document::About;
use crate::service::SearchService;
use crate::{IdError, check_id};

/// The number of documents read, and of files left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Loaded {
    /// Documents; one that is read twice counts twice.
    pub documents: u64,
    /// Files that are not text.
    pub left_out: u64,
}

/// The reason that a file could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("{}: {source}", path.display())]
    Read {
        /// The path that was named.
        path: PathBuf,
        /// The error of the kernel.
        source: io::Error,
    },
    /// The file is not in UTF-8.
    #[error(
        "{}: it begins with the byte order mark of UTF-16 or UTF-32; allowed: UTF-8, with or without its mark",
        path.display()
    )]
    Encoding {
        /// The file that was read.
        path: PathBuf,
    },
    /// A line is not a document in JSON.
    #[error("{}:{line}: not a document: {wrong}", path.display())]
    Line {
        /// The file that was read.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// The error of the parser; it is part of the text, and therefore not a source.
        wrong: serde_json::Error,
    },
    /// The budget has no memory for a document.
    #[error(
        "{}:{line}: no memory is left for it: {} bytes are taken of the {} that may be (--memory-max)",
        path.display(),
        taken,
        limit
    )]
    Memory {
        /// The file that was read.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// The bytes of the budget that are taken.
        taken: u64,
        /// The bytes of the budget in all.
        limit: u64,
    },
    /// A document's name is not allowed.
    #[error("{}:{line}: {source}", path.display())]
    Name {
        /// The file that was read.
        path: PathBuf,
        /// The line's number, from 1.
        line: usize,
        /// The error in the document's name.
        source: IdError,
    },
}

/// Loads the file, or the files in the folder.
///
/// # Errors
/// If something cannot be read, or a line is not a document.
pub fn load(search: &SearchService, path: &Path) -> Result<Loaded, LoadError> {
    let mut loaded = Loaded::default();
    let read = |source| LoadError::Read { path: path.to_owned(), source };
    if fs::metadata(path).map_err(read)?.is_dir() {
        load_folder(search, path, path, &mut loaded)?;
    } else {
        let parent = path.parent().unwrap_or(Path::new(""));
        load_file(search, parent, path, &mut loaded)?;
    }
    Ok(loaded)
}

/// In the order of names, so that the same folder gives the same index.
fn load_folder(
    search: &SearchService,
    root: &Path,
    folder: &Path,
    loaded: &mut Loaded,
) -> Result<(), LoadError> {
    let read = |source| LoadError::Read { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(read)?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(read)?;
    paths.sort_unstable();
    for path in paths {
        let kind = fs::symlink_metadata(&path).map_err(read)?;
        if kind.is_dir() {
            load_folder(search, root, &path, loaded)?;
        } else if path.is_file() {
            // Links to files are followed, links to folders are not: they could form a cycle.
            load_file(search, root, &path, loaded)?;
        }
    }
    Ok(())
}

/// The most bytes of a file that is one document; a longer one is refused.
const FILE_BYTES_MAX: u64 = 1 << 30;

fn load_file(search: &SearchService, root: &Path, path: &Path, loaded: &mut Loaded) -> Result<(), LoadError> {
    let extension = path.extension().and_then(|extension| extension.to_str());
    if matches!(extension, Some("jsonl" | "ndjson")) {
        return load_lines(search, path, loaded);
    }
    let bytes = plimsoll_files::read(path, Origin::Name, FILE_BYTES_MAX)
        .map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
    if bytes.contains(&0) {
        loaded.left_out += 1;
        return Ok(());
    }
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    const ENCODED: &AsciiSet = &CONTROLS.add(b' ').add(b'%');
    let name = path.strip_prefix(root).unwrap_or(path).to_string_lossy();
    let name = utf8_percent_encode(&name, ENCODED).to_string();
    let wrong = |source| LoadError::Name { path: path.to_owned(), line: 1, source };
    check_id(&name).map_err(wrong)?;
    let about = About { id: name.into(), ..About::default() };
    load_document(search, about, &String::from_utf8_lossy(text), path, 1, loaded)
}

fn load_document(
    search: &SearchService,
    about: About,
    text: &str,
    path: &Path,
    line: usize,
    loaded: &mut Loaded,
) -> Result<(), LoadError> {
    search.load(about, text).map_err(|Full| {
        let (taken, limit) = (search.budget().taken(), search.budget().limit().unwrap_or(u64::MAX));
        LoadError::Memory { path: path.to_owned(), line, taken, limit }
    })?;
    loaded.documents += 1;
    Ok(())
}

/// Skips the byte order mark of UTF-8, which some editors write (RFC 8259, section 8.1, lets a reader ignore it).
///
/// # Errors
/// If the file begins with the mark of UTF-16 or UTF-32, which is not read.
fn skip_byte_order_mark(file: &mut impl BufRead, path: &Path) -> Result<(), LoadError> {
    let start = file.fill_buf().map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
    if start.starts_with(b"\xef\xbb\xbf") {
        file.consume(3);
    } else if start.starts_with(b"\xff\xfe")
        || start.starts_with(b"\xfe\xff")
        || start.starts_with(b"\0\0\xfe\xff")
    {
        return Err(LoadError::Encoding { path: path.to_owned() });
    }
    Ok(())
}

fn load_lines(search: &SearchService, path: &Path, loaded: &mut Loaded) -> Result<(), LoadError> {
    #[derive(Deserialize)]
    struct DocumentLine<'a> {
        id: Id<'a>,
        #[serde(borrow)]
        text: Cow<'a, str>,
        title: Option<Box<str>>,
        url: Option<Box<str>>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Id<'a> {
        Name(Cow<'a, str>),
        Number(i64),
    }
    let read = |source| LoadError::Read { path: path.to_owned(), source };
    let mut file = BufReader::new(plimsoll_files::open_to_read(path, Origin::Name).map_err(read)?);
    skip_byte_order_mark(&mut file, path)?;
    for (number, text) in (1..).zip(file.lines()) {
        let text = text.map_err(read)?;
        if text.trim().is_empty() {
            continue;
        }
        let line: DocumentLine<'_> = serde_json::from_str(&text).map_err(|wrong| LoadError::Line {
            path: path.to_owned(),
            line: number,
            wrong,
        })?;
        let id: Box<str> = match line.id {
            Id::Name(name) => name.into(),
            Id::Number(number) => number.to_string().into(),
        };
        check_id(&id).map_err(|source| LoadError::Name { path: path.to_owned(), line: number, source })?;
        let about = About { id, title: line.title, url: line.url };
        load_document(search, about, &line.text, path, number, loaded)?;
    }
    Ok(())
}
