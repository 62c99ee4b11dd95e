//! Compiles `programs/*.bpf.c` with clang, and translates the shared part of `programs/shared.h` into Rust. Without
//! clang the build succeeds without the programs, and loading one returns an error that says so.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=programs");
    println!("cargo::rerun-if-env-changed=CLANG");
    if env::var_os("CARGO_FEATURE_KERNEL").is_none() {
        return;
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let shared = fs::read_to_string("programs/shared.h").expect("part of this package");
    fs::write(out.join("shared.rs"), rust_of(&shared)).expect("OUT_DIR can be written");
    fs::write(out.join("images.rs"), images(&out)).expect("OUT_DIR can be written");
}

/// Writes a table of program names, each with its compiled image, or with none.
fn images(out: &Path) -> String {
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let available =
        Command::new(&clang).arg("--version").output().is_ok_and(|output| output.status.success());
    if !available {
        println!("cargo::warning=eBPF programs are off: `{clang}` does not run (apt-get install clang)");
    }
    let mut rust = String::from("&[\n");
    for source in sources() {
        let name = source.file_name().and_then(|name| name.to_str()).expect("our names are ASCII");
        let name = name.trim_end_matches(".bpf.c").to_owned();
        let image = out.join(format!("{name}.o"));
        let bytes = if available {
            compile(&clang, &source, &image);
            format!("Some(include_bytes!({image:?}))")
        } else {
            "None".to_owned()
        };
        writeln!(rust, "    ({name:?}, {bytes}),").expect("a String takes everything");
    }
    rust + "]\n"
}

fn sources() -> Vec<PathBuf> {
    let entries = fs::read_dir("programs").expect("part of this package");
    let mut sources: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    sources.retain(|path| path.to_str().is_some_and(|path| path.ends_with(".bpf.c")));
    sources.sort();
    sources
}

fn compile(clang: &str, source: &Path, image: &Path) {
    let libbpf = env::var("DEP_BPF_INCLUDE").expect("libbpf-sys says where its headers are");
    let architecture = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let macro_of = if architecture == "x86_64" { "x86" } else { "arm64" };
    let status = Command::new(clang)
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3"])
        .args(["-Wall", "-Wextra", "-Werror", "-Wno-unused-parameter"])
        .arg(format!("-D__TARGET_ARCH_{macro_of}"))
        .arg(format!("-I{libbpf}"))
        // Debian keeps <asm/types.h> here; elsewhere it is in /usr/include.
        .arg(format!("-idirafter/usr/include/{architecture}-linux-gnu"))
        .args(["-idirafter", "/usr/include", "-c"])
        .arg(source)
        .arg("-o")
        .arg(image)
        .status()
        .expect("it ran a moment ago");
    assert!(status.success(), "{} does not compile", source.display());
}

/// Translates the constants and structs between the two "Rust" lines into Rust.
fn rust_of(header: &str) -> String {
    let shared = header.split("/* -- Rust -- */").nth(1).expect("shared.h has two Rust lines");
    let mut rust = String::new();
    let mut open: Option<Struct> = None;
    for line in shared.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.trim_end_matches(';').split_whitespace().collect();
        match (words.as_slice(), open.as_mut()) {
            (["///", ..], Some(open)) => open.fields += &format!("    {line}\n"),
            (["///", ..], None) => rust += &format!("{line}\n"),
            (["#define", name, value], None) => rust += &format!("pub const {name}: u64 = {value};\n"),
            (["struct", name, "{"], None) => open = Some(Struct::new(name)),
            (["__u64", field], Some(open)) => open.field(field),
            (["}"], Some(_)) => rust += &open.take().expect("matched").close(),
            _ => panic!("shared.h: `{line}` is not what build.rs can share"),
        }
    }
    rust
}

struct Struct {
    name: String,
    fields: String,
    write: String,
    read: String,
}

impl Struct {
    fn new(name: &str) -> Struct {
        let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
        let name = name.split('_').map(capital).collect();
        Struct { name, fields: String::new(), write: String::new(), read: String::new() }
    }

    fn field(&mut self, field: &str) {
        match field.split_once('[') {
            Some((name, length)) => {
                let length = length.trim_end_matches(']');
                self.fields += &format!("    pub {name}: [u64; {length} as usize],\n");
                self.write += &format!("        words.extend(self.{name});\n");
                self.read += &format!("            {name}: std::array::from_fn(|_| words.next()),\n");
            }
            None => {
                self.fields += &format!("    pub {field}: u64,\n");
                self.write += &format!("        words.push(self.{field});\n");
                self.read += &format!("            {field}: words.next(),\n");
            }
        }
    }

    fn close(self) -> String {
        let Struct { name, fields, write, read } = self;
        format!(
            "#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]\npub struct {name} {{\n{fields}}}\n\n\
             impl Shared for {name} {{\n\
             \x20   fn write(&self, words: &mut Vec<u64>) {{\n{write}    }}\n\
             \x20   fn read(mut words: SharedWords) -> {name} {{\n        {name} {{\n{read}        }}\n    }}\n}}\n\n"
        )
    }
}
