//! Commands of the system: fixed programs, no shell, an environment of our own.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Error;
#[cfg(feature = "kernel")]
use crate::journal::Lock;

/// Where the programs are looked for, whatever this process was started with.
pub(crate) const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs `program`, which changes nothing, and returns what it printed. A terminal's Ctrl-C and Ctrl-Z do not reach it.
///
/// # Errors
/// If it cannot be run, or does not succeed: with what it said.
pub fn run(program: &str, arguments: &[&str]) -> Result<String, Error> {
    run_with(Stdio::null(), program, arguments)
}

/// Runs `program`, which changes the host, as [`run`]. It holds `lock` with this process, in place of an input, which
/// it does not read: should it outlive this process, nobody takes back what it is about to change before it has.
#[cfg(feature = "kernel")]
pub fn change(lock: &Lock, program: &str, arguments: &[&str]) -> Result<(), Error> {
    run_with(lock.held()?, program, arguments).map(drop)
}

fn run_with(input: Stdio, program: &str, arguments: &[&str]) -> Result<String, Error> {
    let shown = || format!("{program} {}", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .stdin(input)
        .process_group(0)
        .output()
        .map_err(|error| Error::Command { command: shown(), said: error.to_string() })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(Error::Command { command: shown(), said });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `program` and parses the JSON array that it printed; nothing is an empty one.
pub fn rows(program: &str, arguments: &[&str]) -> Result<Vec<Value>, Error> {
    let text = run(program, arguments)?;
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let unreadable =
        |said: String| Error::Command { command: format!("{program} {}", arguments.join(" ")), said };
    match serde_json::from_str(&text) {
        // iproute2 prints an empty object where a list of one would be empty.
        Ok(Value::Array(rows)) => {
            Ok(rows.into_iter().filter(|row| row.as_object().is_some_and(|row| !row.is_empty())).collect())
        }
        Ok(_) => Err(unreadable("it printed no list".to_owned())),
        Err(error) => Err(unreadable(error.to_string())),
    }
}
