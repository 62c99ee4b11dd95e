//! Lists the files below `scenarios/`, so that the program holds them and a new file needs no line of Rust.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root =
        PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("../../scenarios");
    let mut folders = vec![(String::new(), root.clone())];
    for path in sorted(&root)?.into_iter().filter(|path| path.is_dir()) {
        folders.push((name(&path), path));
    }
    let mut list = "&[".to_owned();
    for (name, folder) in folders {
        println!("cargo::rerun-if-changed={}", folder.display());
        list.push_str(&listed(&name, &folder)?);
    }
    list.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("folders.rs"), list)
}

/// Returns a folder as Rust: its name, and its TOML and CSV files by name, with their texts.
fn listed(folder_name: &str, folder: &Path) -> io::Result<String> {
    let mut list = String::new();
    let mut write = |line: String| writeln!(list, "{line}").map_err(io::Error::other);
    write(format!("ShippedFolder {{ name: {folder_name:?}, files: &["))?;
    for file in sorted(folder)? {
        if file.extension().is_some_and(|end| end == "toml" || end == "csv") {
            let path = fs::canonicalize(&file)?;
            write(format!("({:?}, include_str!({path:?})),", name(&file)))?;
        }
    }
    write("] },".to_owned())?;
    Ok(list)
}

/// Returns the entries of a folder, by name.
fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
