//! Adds the commit to `plimsoll --version`, where the build is of a checkout, and whether it has the eBPF programs. It
//! reads git's files itself: git may not be installed, and there may be no checkout.

use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = checkout().and_then(|git| commit(&git)).unwrap_or_default();
    let commit = commit.get(..12).unwrap_or_default();
    println!("cargo::rustc-env=PLIMSOLL_COMMIT={commit}");
    let number = std::env::var("CARGO_PKG_VERSION").expect("cargo sets it");
    let version = if commit.is_empty() { number } else { format!("{number} (commit {commit})") };
    println!("cargo::rustc-env=PLIMSOLL_VERSION={version}");
    let features = match std::env::var_os("CARGO_FEATURE_KERNEL") {
        Some(_) => "with the eBPF programs (feature kernel)",
        None => "without the eBPF programs (feature kernel), which emulate uses, and host and breakdown need",
    };
    let parquet = match std::env::var_os("CARGO_FEATURE_PARQUET") {
        Some(_) => "with Parquet (feature parquet)",
        None => "without Parquet (feature parquet), for tables of run directories",
    };
    println!("cargo::rustc-env=PLIMSOLL_FEATURES={features}");
    println!("cargo::rustc-env=PLIMSOLL_PARQUET={parquet}");
}

/// Returns the folder with git's files; in a linked work tree, a file there names it.
fn checkout() -> Option<PathBuf> {
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR")?);
    let root = package.ancestors().skip(1).take(2).find(|folder| folder.join(".git").exists())?;
    let git = root.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let pointer = fs::read_to_string(&git).ok()?;
    Some(root.join(pointer.strip_prefix("gitdir:")?.trim()))
}

fn commit(git: &Path) -> Option<String> {
    let head = read(&git.join("HEAD"))?;
    let Some(reference) = head.strip_prefix("ref:").map(str::trim) else { return Some(head) };
    let common = read(&git.join("commondir")).map_or_else(|| git.to_owned(), |common| git.join(common));
    read(&common.join(reference)).or_else(|| packed(&common, reference))
}

fn packed(git: &Path, reference: &str) -> Option<String> {
    let packed = read(&git.join("packed-refs"))?;
    let mut lines = packed.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(_, name)| *name == reference).map(|(commit, _)| commit.to_owned())
}

fn read(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?.trim().to_owned();
    println!("cargo::rerun-if-changed={}", path.display());
    Some(text)
}
