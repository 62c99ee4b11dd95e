//! Shared code of the command's tests: the binary, a small scenario, a temporary folder.
#![allow(dead_code, clippy::unwrap_used, reason = "a test, of which no file uses all")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tempfile::TempDir;

/// The scenario that `make run` runs.
pub const QUICKSTART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/quickstart.toml");

/// A sweep of eight points of some hundred milliseconds each.
pub const SWEEP: &str = r#"
version = 1
title = "A sweep to be stopped"
[run]
duration = "8s"
[topology]
kind = "rack"
hosts = 3
rate = "1Gbps"
delay = "5us"
[port.switch]
buffer = "100 packets"
[port.host]
buffer = "1000 packets"
[transport]
min_rto = "10ms"
[workload.transfers]
kind = "transfer"
size = "1MB"
load = 0.5
[variant.TCP]
transport.kind = "tcp"
[variant.DCTCP]
transport.kind = "dctcp"
port.switch.ecn = { threshold = "30KB" }
[sweep]
"workload.transfers.load" = [0.5, 0.6, 0.7, 0.8]
"#;

/// Parts of the errors of a machine that cannot emulate, or is too busy now.
const NOT_HERE: [&str; 4] = [
    "no `dctcp` congestion control",
    "the limiter cannot be loaded",
    "this build has no eBPF programs",
    "too busy",
];

/// A folder that is deleted with the test.
pub struct Place {
    dir: TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place { dir: TempDir::new().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, text: &str) {
        self.write_bytes(name, text.as_bytes());
    }

    pub fn write_bytes(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path(name), bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        let path = self.path(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns the command with these arguments, in this folder.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null()).env_remove("COLUMNS");
        command
    }

    #[track_caller]
    pub fn plimsoll(&self, args: &[&str]) -> Ran {
        Ran::of(args, self.command(args).output().unwrap())
    }

    /// Returns the summary in a run directory.
    #[track_caller]
    pub fn summary(&self, folder: &str) -> Value {
        serde_json::from_str(&self.read(&format!("{folder}/summary.json"))).unwrap()
    }

    /// Returns the summary of an emulated run, during which no other test of this binary emulates. An error is a reason
    /// to skip the test: this machine was too busy for the run, or lacks a requirement.
    #[track_caller]
    pub fn emulated(&self, args: &[&str], folder: &str) -> Result<Value, String> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let ran = self.plimsoll(&[&["emulate"], args, &["--out", folder]].concat());
        let reason = ran.stderr.lines().find(|line| NOT_HERE.iter().any(|words| line.contains(words)));
        if let Some(reason) = reason {
            return Err(reason.to_owned());
        }
        ran.ends_with(0);
        let summary = self.summary(folder);
        let texts =
            summary["warnings"].as_array().unwrap().iter().filter_map(|warning| warning["text"].as_str());
        match texts.into_iter().find(|text| text.starts_with("suspect:")) {
            Some(reason) => Err(reason.to_owned()),
            None => Ok(summary),
        }
    }

    /// Returns whether this process may receive all packets of a device.
    pub fn may_capture(&self) -> bool {
        let ran = self.plimsoll(&["bursts", "-i", "lo", "--time", "1us"]);
        !ran.stderr.contains("CAP_NET_RAW")
    }

    /// Returns the names of all entries of the folder.
    pub fn entries(&self) -> Vec<String> {
        names(self.dir.path())
    }
}

/// The exit status and output of a command.
pub struct Ran {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    said: String,
}

impl Ran {
    pub fn of(args: &[&str], output: Output) -> Ran {
        let (stdout, stderr) = (text(output.stdout), text(output.stderr));
        let said = format!("plimsoll {}\n{}\n{stdout}\n{stderr}", args.join(" "), output.status);
        Ran { code: output.status.code(), stdout, stderr, said }
    }

    #[track_caller]
    pub fn ends_with(self, code: i32) -> Ran {
        assert_eq!(self.code, Some(code), "{}", self.said);
        self
    }

    #[track_caller]
    pub fn says(self, words: &str) -> Ran {
        assert!(self.stderr.contains(words), "no `{words}` in: {}", self.said);
        self
    }

    #[track_caller]
    pub fn prints(self, words: &str) -> Ran {
        assert!(self.stdout.contains(words), "no `{words}` in: {}", self.said);
        self
    }

    #[track_caller]
    pub fn prints_nothing(self) -> Ran {
        assert_eq!(self.stdout, "", "{}", self.said);
        self
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.said))
    }
}

/// Returns the names in a folder, without hidden ones.
pub fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

/// Sends a signal to a program that a test has started.
pub fn signal(child: &Child, signal: i32) {
    let pid = child.id().to_string();
    let sent = Command::new("kill").arg(format!("-{signal}")).arg(pid).status().unwrap();
    assert!(sent.success());
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}
