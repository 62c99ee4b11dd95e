//! Real clients against the program.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::server::Server;

/// Debian's Python, which sees Debian's packages.
const PYTHON: &str = "/usr/bin/python3";

/// Runs a client's script, if its module is installed; otherwise prints the reason.
#[track_caller]
fn run(python: &Path, module: &str, package: &str, script: &str, arguments: &[&str]) {
    let has = Command::new(python).args(["-c", &format!("import {module}")]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        return plimsoll_testing::missing(format!("{} has no {module} ({package})", python.display()));
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients").join(script);
    let output = Command::new(python).arg(path).args(arguments).output().expect("python runs");
    let (text, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.trim_end() == "ok", "{script}: {text}\n{errors}");
}

#[test]
fn pymemcache() {
    let package = "apt-get install python3-pymemcache";
    let server = Server::start(&[], &[]);
    let place = format!("127.0.0.1:{}", server.tcp);
    run(Path::new(PYTHON), "pymemcache", package, "pymemcache_client.py", &[&place]);
    let (_server, path) = Server::start_unix(&["-t", "2"]);
    let place = path.to_str().expect("a path");
    run(Path::new(PYTHON), "pymemcache", package, "pymemcache_client.py", &[place]);
}

#[test]
fn pylibmc_in_text_binary_and_datagrams() {
    let server = Server::start(&[], &[]);
    let (tcp, udp) = (server.tcp.to_string(), server.udp.to_string());
    let package = "apt-get install python3-pylibmc";
    run(Path::new(PYTHON), "pylibmc", package, "pylibmc_client.py", &["127.0.0.1", &tcp, &udp]);
}

#[test]
fn python_binary_memcached_with_and_without_login() {
    let package = "apt-get install python3-binary-memcached";
    let server = Server::start(&[], &[]);
    let place = format!("127.0.0.1:{}", server.tcp);
    run(Path::new(PYTHON), "bmemcached", package, "bmemcached_client.py", &[&place]);
    let directory = tempfile::tempdir().expect("a directory");
    let users = directory.path().join("users");
    std::fs::write(&users, "ann:secret\n").expect("a file");
    let server = Server::start(&["-S"], &[("MEMCACHED_SASL_PWDB", &users)]);
    let place = format!("127.0.0.1:{}", server.tcp);
    run(Path::new(PYTHON), "bmemcached", package, "bmemcached_client.py", &[&place, "ann", "secret"]);
}

/// A Python of its own for a package that Debian does not have; None, with the reason printed, if it cannot be had:
/// that takes a network, which the build machine may lack.
fn python_with(package: &str) -> Option<PathBuf> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("python-{package}"));
    let python = place.join("bin/python");
    let done = place.join("complete");
    if done.exists() {
        return Some(python);
    }
    let made = Command::new("python3").args(["-m", "venv"]).arg(&place).output();
    let installed = made.is_ok_and(|made| made.status.success())
        && Command::new(&python)
            .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", package])
            .output()
            .is_ok_and(|output| output.status.success());
    if !installed {
        plimsoll_testing::skipped!("{package} could not be installed (no network, or no python3-venv)");
        return None;
    }
    std::fs::write(done, "").expect("a file");
    Some(python)
}

#[test]
fn meta_memcache() {
    let Some(python) = python_with("meta-memcache") else { return };
    let server = Server::start(&[], &[]);
    run(
        &python,
        "meta_memcache",
        "pip install",
        "meta_memcache_client.py",
        &["127.0.0.1", &server.tcp.to_string()],
    );
}

#[test]
fn the_memcache_crate() {
    for protocol in ["ascii", "binary"] {
        let server = Server::start(&["-t", "2"], &[]);
        let url = format!("memcache://127.0.0.1:{}?timeout=30&protocol={protocol}", server.tcp);
        let client = memcache::connect(url).expect("it listens");
        client.set("key", "value", 0).expect("stored");
        assert_eq!(client.get::<String>("key").expect("an answer"), Some("value".to_owned()));
        assert_eq!(client.get::<String>("none").expect("an answer"), None);
        client.set("number", 40, 0).expect("stored");
        assert_eq!(client.increment("number", 2).expect("a number"), 42);
        // The crate reports an existing item as an error in binary only; the value decides.
        drop(client.add("key", "x", 0));
        client.append("key", "-more").expect("stored");
        let found = client.gets::<(Vec<u8>, u32, Option<u64>)>(&["key", "none"]).expect("an answer");
        let (value, _, cas) = &found["key"];
        assert_eq!(value, b"value-more");
        let cas = cas.expect("a cas value");
        assert!(client.cas("key", "new", 0, cas).expect("an answer"));
        // In binary the crate reports it as an error.
        assert!(!client.cas("key", "newer", 0, cas).unwrap_or(false));
        assert!(client.touch("key", 100).expect("an answer"));
        assert!(client.delete("key").expect("an answer"));
        client.flush().expect("flushed");
        assert_eq!(client.get::<i64>("number").expect("an answer"), None);
    }
}
