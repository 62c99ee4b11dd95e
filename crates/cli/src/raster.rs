//! Renders SVG figures as PNG by a program of the system: a built-in renderer would be the largest part of this
//! program.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// The programs that can render an SVG, by name; the first installed one is used.
const RENDERERS: [&str; 4] = ["rsvg-convert", "chromium", "chromium-browser", "google-chrome"];
/// The number of pixels for each pixel of the figure.
const SCALE: u32 = 2;

/// Renders `svg`, of `size` (width, height), to a PNG next to it, and returns its path.
///
/// # Errors
/// Returns an error if no renderer is installed, or it fails.
pub fn png(svg: &Path, size: (u32, u32)) -> anyhow::Result<PathBuf> {
    let png = svg.with_extension("png");
    for name in RENDERERS {
        let mut command = Command::new(name);
        if name == "rsvg-convert" {
            command.arg("--zoom").arg(SCALE.to_string()).arg("--background-color=white").arg("--output");
            command.arg(&png).arg(svg);
        } else {
            let svg = svg.canonicalize().with_context(|| format!("cannot find {}", svg.display()))?;
            let (width, height) = size;
            command.args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
            command.arg(format!("--force-device-scale-factor={SCALE}"));
            command.arg(format!("--window-size={width},{height}"));
            command.arg(format!("--screenshot={}", png.display())).arg(format!("file://{}", svg.display()));
        }
        let drawn = match command.stdin(Stdio::null()).output() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            drawn => drawn.with_context(|| format!("cannot run {name}"))?,
        };
        if !drawn.status.success() || !png.exists() {
            let said = String::from_utf8_lossy(&drawn.stderr);
            bail!("{name} cannot draw {}: {}", svg.display(), said.lines().last().unwrap_or(""));
        }
        return Ok(png);
    }
    bail!("a PNG needs one of {}, and none is installed", RENDERERS.join(", "))
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
