//! The files that commands write beside their output.

use std::path::Path;

use anyhow::bail;
use plimsoll_report::chart::Chart;
use plimsoll_report::svg::{self, Size};

use crate::output;

/// Checks the extension of the file that an option names.
///
/// # Errors
/// Returns an error that names the option, the file and the extension.
pub fn check_extension(option: &str, path: Option<&Path>, wanted: &str) -> anyhow::Result<()> {
    match path {
        Some(path) if path.extension().is_none_or(|extension| extension != wanted) => {
            bail!("{option} {}: allowed: a name that ends in .{wanted}", path.display())
        }
        _ => Ok(()),
    }
}

/// Draws a chart into an SVG file.
///
/// # Errors
/// Returns an error if the file cannot be written.
pub fn write_svg(path: &Path, chart: &Chart) -> anyhow::Result<()> {
    output::write_whole(path, &svg::render(chart, Size::default()))
}
