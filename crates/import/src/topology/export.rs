//! [`text_of`]: the text of another tool's export.

use std::path::Path;

use plimsoll_files::Origin;

use crate::invalid::Invalid;

/// Reads the text of an export.
pub(super) fn text_of(path: &Path) -> Result<String, Invalid> {
    const BYTES_MAX: u64 = 64 << 20;
    plimsoll_files::read_text(path, Origin::Argument, BYTES_MAX)
        .map_err(|error| Invalid::unreadable(path.display().to_string(), &error))
}
