//! Lists the files of the studies, so that the program holds them and a new file needs no line of Rust.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../..");
    let mut list = String::new();
    constant(&mut list, "STUDIES", &folders(&root.join("studies"))?)?;
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("files.rs"), list)
}

/// Returns the folders of studies in a folder, by name.
fn folders(parent: &Path) -> io::Result<Vec<PathBuf>> {
    println!("cargo::rerun-if-changed={}", parent.display());
    let mut folders = sorted(parent)?;
    folders.retain(|path| path.join("study.toml").is_file());
    Ok(folders)
}

/// Returns the entries of a folder, by name.
fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// Writes a constant: folders by name, and in each its TOML, CSV and Markdown files by name, with their texts.
fn constant(list: &mut String, name: &str, folders: &[PathBuf]) -> io::Result<()> {
    let text = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let write = |list: &mut String, line: String| writeln!(list, "{line}").map_err(io::Error::other);
    write(list, format!("const {name}: &[ShippedFolder] = &["))?;
    for folder in folders {
        write(list, format!("ShippedFolder {{ name: {:?}, files: &[", text(folder)))?;
        for file in sorted(folder)? {
            if ["toml", "csv", "md"].iter().any(|end| file.extension().is_some_and(|is| is == *end)) {
                let path = fs::canonicalize(&file)?;
                write(list, format!("({:?}, include_str!({path:?})),", text(&file)))?;
            }
        }
        write(list, "] },".to_owned())?;
    }
    write(list, "];".to_owned())
}
