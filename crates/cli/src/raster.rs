//! Renders SVG figures as PNG or PDF by a program of the system: a built-in renderer would be the largest part of this
//! program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, anyhow, bail};

/// The programs that can render an SVG, by name; the first installed one is used.
const RENDERERS: [&str; 4] = ["rsvg-convert", "chromium", "chromium-browser", "google-chrome"];
/// The number of pixels for each pixel of the figure.
const SCALE: u32 = 2;

/// The kinds of file that a figure can be rendered as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ImageKind {
    Png,
    Pdf,
}

/// Renders the text of an SVG that [`svg`](plimsoll_report::svg) has made as a file of this kind.
///
/// # Errors
/// Returns an error if no renderer is installed, or it fails.
pub fn draw(svg: &str, kind: ImageKind, out: &Path) -> anyhow::Result<()> {
    let (width, height) = size(svg).ok_or_else(|| anyhow!("the figure has no size"))?;
    // A browser prints a page, which has the size of the figure.
    let page = format!(
        "<!DOCTYPE html><meta charset=\"utf-8\"><style>@page {{ size: {width}px {height}px; margin: 0 }} \
         body {{ margin: 0 }} svg {{ display: block }}</style>{svg}"
    );
    let source = beside(out, "unfinished.svg");
    let page_file = beside(out, "unfinished.html");
    // The user has named neither of these files, so an error names the figure.
    let written = fs::write(&source, svg).and_then(|()| fs::write(&page_file, &page));
    let drawn = written
        .with_context(|| format!("cannot write {}", out.display()))
        .and_then(|()| with_any(kind, &source, &page_file, (width, height), out));
    // They only take space, so an error here is ignored.
    let _ = (fs::remove_file(&source), fs::remove_file(&page_file));
    drawn
}

/// Returns a hidden file in the folder of `out`.
fn beside(out: &Path, extension: &str) -> PathBuf {
    let name = out.file_name().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!(".{name}.{extension}"))
}

fn with_any(kind: ImageKind, svg: &Path, page: &Path, size: (u32, u32), out: &Path) -> anyhow::Result<()> {
    let before = fs::metadata(out).and_then(|file| file.modified()).ok();
    for name in RENDERERS {
        let mut command = Command::new(name);
        if name == "rsvg-convert" {
            match kind {
                ImageKind::Png => {
                    command.arg("--zoom").arg(SCALE.to_string()).arg("--background-color=white")
                }
                ImageKind::Pdf => command.arg("--format=pdf"),
            };
            command.arg("--output").arg(out).arg(svg);
        } else {
            let page = page.canonicalize().with_context(|| format!("cannot find {}", page.display()))?;
            let (width, height) = size;
            command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
            match kind {
                ImageKind::Png => command
                    .arg(format!("--force-device-scale-factor={SCALE}"))
                    .arg(format!("--window-size={width},{height}"))
                    .arg(format!("--screenshot={}", out.display())),
                ImageKind::Pdf => {
                    command.arg("--no-pdf-header-footer").arg(format!("--print-to-pdf={}", out.display()))
                }
            };
            command.arg(format!("file://{}", page.display()));
        }
        let drawn = match command.stdin(Stdio::null()).output() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            drawn => drawn.with_context(|| format!("cannot run {name}"))?,
        };
        let after = fs::metadata(out).and_then(|file| file.modified()).ok();
        if !drawn.status.success() || after.is_none() || after == before {
            let said = String::from_utf8_lossy(&drawn.stderr);
            bail!("{name} cannot draw {}: {}", out.display(), said.lines().last().unwrap_or(""));
        }
        return Ok(());
    }
    bail!("a PNG or a PDF needs one of {}, and none is installed", RENDERERS.join(", "))
}

/// Returns the width and height of a generated SVG, from its first tag.
pub fn size(svg: &str) -> Option<(u32, u32)> {
    let tag = svg.split_once('>')?.0;
    let number = |name: &str| tag.split_once(&format!("{name}=\""))?.1.split_once('"')?.0.parse().ok();
    Some((number(" width")?, number(" height")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_that_of_the_first_tag() {
        let svg = r#"<svg xmlns="x" width="720" height="400" viewBox="0 0 7 4"><rect width="1"/></svg>"#;
        assert_eq!(size(svg), Some((720, 400)));
        assert_eq!(size("<svg><rect width=\"1\" height=\"2\"/></svg>"), None);
    }
}
