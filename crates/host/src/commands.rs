//! Runs commands of the system: fixed programs, without a shell, in an environment that this crate sets.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Error;
#[cfg(feature = "kernel")]
use crate::lock::HostLock;

/// The search path of the programs, which does not depend on the environment of this process.
pub(crate) const PATH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";

/// Runs `program`, which changes nothing, and returns its output. A terminal's Ctrl-C and Ctrl-Z do not reach it.
///
/// # Errors
/// Returns an error if the program cannot be run or fails; the error contains its output.
pub fn run(program: &str, arguments: &[&str]) -> Result<String, Error> {
    run_with(Stdio::null(), program, arguments)
}

/// Runs `program`, which changes the host, as [`run`] does. The program gets `lock` as its standard input, which it
/// does not read: if it outlives this process, no rollback starts before it has made its change.
#[cfg(feature = "kernel")]
pub fn change(lock: &HostLock, program: &str, arguments: &[&str]) -> Result<(), Error> {
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

/// Runs `program` and parses the JSON array that it prints; no output is an empty array.
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
        Ok(_) => Err(unreadable("expected a JSON array".to_owned())),
        Err(error) => Err(unreadable(error.to_string())),
    }
}
