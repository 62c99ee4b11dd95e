//! Embeds the files of `presets/`: `OUT_DIR/presets.rs` is the list of their names and texts, sorted by name.

use std::path::Path;
use std::{env, fs};

fn main() {
    let folder = Path::new(&env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("presets");
    println!("cargo::rerun-if-changed={}", folder.display());
    let files = fs::read_dir(&folder).expect("the folder is there");
    let mut paths: Vec<_> = files.map(|file| file.expect("it can be listed").path()).collect();
    paths.sort();
    let entry = |path: &Path| {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("names are text");
        format!("({name:?}, include_str!({path:?})),")
    };
    let list: String = paths.iter().map(|path| entry(path)).collect();
    let out = Path::new(&env::var_os("OUT_DIR").expect("cargo sets it")).join("presets.rs");
    fs::write(out, format!("&[{list}]")).expect("the folder of the build can be written");
}
