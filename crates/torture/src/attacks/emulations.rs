//! Emulated runs that end, are interrupted or are killed; the caller compares the state of the kernel.

use std::time::Duration;

use rustix::process::Signal;

use crate::program::{ProgramFolder, RunningProgram, run};
use crate::trial::{Broken, Outcome, Trial, hold};

/// Writes a random scenario of `milliseconds` whose load this machine can emulate.
fn begin(trial: &mut Trial, programs: &ProgramFolder, milliseconds: u64) -> Outcome {
    let check = run(&mut programs.plimsoll(trial.folder(), &["check", "emulate"]))?;
    if check.code() != Some(0) {
        return Err(Broken::NotTried("`plimsoll check emulate` finds something missing".to_owned()));
    }
    let kind = trial.one_of(&["tcp", "cubic", "dctcp"]);
    let mut host = String::new();
    let has_programs = |line: &str| {
        let state = line.trim_start().strip_prefix("eBPF programs").map(str::trim_start);
        state.is_some_and(|state| state.starts_with("found"))
    };
    if trial.once_in(3) && check.stdout.lines().any(has_programs) {
        host = "[host]\nqjump = {}\n".to_owned();
    }
    let text = format!(
        "version = 1\ntitle = 'live'\n[run]\nduration = '{milliseconds}ms'\ndrain = '1s'\n\
         [topology]\nkind = 'rack'\nhosts = {}\nrate = '50Mbps'\ndelay = '20us'\n{host}\
         [transport]\nkind = '{kind}'\n\
         [workload.requests]\nkind = 'rpc'\nrequest = '100B'\nresponse = '900B'\nload = 0.01\n\
         [workload.bulk]\nkind = 'flows'\nfrom = ['h1']\nto = 'h0'\n",
        trial.number(2..5)
    );
    trial.write("live.toml", &text)
}

/// Kills an emulation at a random moment, then runs `--clean`.
pub fn killed(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    begin(trial, programs, 3000)?;
    let moment = Duration::from_millis(trial.number(0..2500));
    let mut command = programs.plimsoll(trial.folder(), &["emulate", "live.toml", "--out", "out"]);
    RunningProgram::start(&mut command)?.kill_after(moment);
    let clean = run(&mut programs.plimsoll(trial.folder(), &["emulate", "--clean"]))?;
    hold!(clean.code() == Some(0), "--clean: {}", clean.described());
    Ok(())
}

/// Lets an emulation end by itself, or interrupts it at a random moment.
pub fn ended(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    begin(trial, programs, 500)?;
    let mut command = programs.plimsoll(trial.folder(), &["emulate", "live.toml", "--out", "out"]);
    let mut running = RunningProgram::start(&mut command)?;
    if trial.once_in(2) {
        std::thread::sleep(Duration::from_millis(trial.number(0..700)));
        let is_running = running.is_running();
        running.signal(*trial.one_of(&[Signal::INT, Signal::TERM]));
        let ended = running.ended()?;
        let is_right = ended.code().is_none_or(|code| [0, 2, 130, 143].contains(&code));
        hold!(is_right || !is_running, "interrupted: {}", ended.described());
        return Ok(());
    }
    let ended = running.ended()?;
    if ended.stderr.contains("too busy") {
        return Ok(());
    }
    hold!(ended.code() == Some(0), "an emulation: {}", ended.described());
    Ok(())
}
