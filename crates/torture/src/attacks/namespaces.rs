//! [`HeldNamespaces`]: namespaces that end with their trial.

use std::ffi::OsStr;
use std::fs::File;
use std::process::Command;

use crate::program::{ProgramFolder, RunningProgram, run, wait_until};
use crate::trial::{Broken, Trial};

/// A network and a mount namespace, of a process that does nothing but hold them.
pub struct HeldNamespaces(RunningProgram);

impl HeldNamespaces {
    /// Creates namespaces, and prepares them by the shell command `preparation`.
    ///
    /// # Errors
    /// Returns [`Broken::NotTried`] if this machine cannot.
    pub fn create(trial: &Trial, preparation: &str) -> Result<HeldNamespaces, Broken> {
        let ready = trial.path("ready");
        let script = format!("{preparation} && touch \"$0\" && exec sleep 900");
        let mut stay = Command::new("unshare");
        stay.args(["--net", "--mount", "sh", "-c", &script]).arg(&ready);
        let mut holder = RunningProgram::start(&mut stay)?;
        wait_until("namespaces", || ready.exists() || !holder.is_running())?;
        if !ready.exists() {
            let why = holder.ended()?.stderr;
            return Err(Broken::NotTried(format!("no namespaces: {}", why.trim())));
        }
        Ok(HeldNamespaces(holder))
    }

    /// Returns a command that runs a program inside.
    pub fn command(&self, program: &OsStr) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.0.id().to_string(), "--net", "--mount", "--"]).arg(program);
        command
    }

    /// Returns a command that runs `plimsoll` inside.
    pub fn plimsoll(&self, programs: &ProgramFolder, arguments: &[&str]) -> Command {
        let mut command = self.command(programs.command("plimsoll").get_program());
        command.args(arguments);
        command
    }

    /// Returns the output of the shell command `look` inside.
    pub fn look(&self, look: &str) -> Result<String, Broken> {
        let mut command = self.command("sh".as_ref());
        command.args(["-c", look]);
        Ok(run(&mut command)?.stdout)
    }

    /// Opens the network namespace.
    pub fn network(&self) -> Result<File, Broken> {
        Ok(File::open(format!("/proc/{}/ns/net", self.0.id()))?)
    }
}

/// Returns the lines that are in only one of two looks.
pub fn differences(before: &str, after: &str) -> String {
    let gone = before.lines().filter(|line| !after.contains(line)).map(|line| format!("gone: {line}"));
    let new = after.lines().filter(|line| !before.contains(line)).map(|line| format!("new: {line}"));
    gone.chain(new).collect::<Vec<_>>().join("; ")
}
