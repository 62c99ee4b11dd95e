//! Standard output and standard error that are closed, full, or a pipe without a reader.

use std::fs::OpenOptions;
use std::io;
use std::process::{Command, Stdio};

use crate::attacks::runs;
use crate::program::{PATIENCE, ProgramFolder, run, wait_until};
use crate::trial::{Broken, Outcome, Trial, hold};

/// The state of an output when a program starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutputState {
    Kept,
    /// A device without free space.
    Full,
    /// A pipe whose reader has closed it.
    Broken,
    /// A descriptor that is closed at the start.
    Closed,
}

const SINKS: [OutputState; 4] =
    [OutputState::Kept, OutputState::Full, OutputState::Broken, OutputState::Closed];

/// Runs a scenario with broken outputs: its files match the files of an undisturbed run, and its exit status reports
/// lost results only.
pub fn lost(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    let sweep = runs::sweep(trial);
    trial.write("sweep.toml", &sweep)?;
    let whole = run(&mut programs.plimsoll(trial.folder(), &["run", "sweep.toml", "--out", "whole"]))?;
    hold!(whole.code() == Some(0), "a whole run: {}", whole.described());
    let (stdout, stderr) = (*trial.one_of(&SINKS), *trial.one_of(&SINKS));
    let mut arguments = vec!["run", "sweep.toml", "--out", "out"];
    arguments.extend(*trial.one_of(&[&[][..], &["--quiet"], &["--verbose"], &["--format", "json"]]));

    // The shell replaces itself by the program, after it has closed the descriptors.
    let mut script = "exec \"$0\" \"$@\"".to_owned();
    script += if stdout == OutputState::Closed { " >&-" } else { "" };
    script += if stderr == OutputState::Closed { " 2>&-" } else { "" };
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(programs.command("plimsoll").get_program()).args(&arguments);
    command.current_dir(trial.folder()).stdin(Stdio::null());
    command.stdout(open(stdout)?).stderr(open(stderr)?);
    let mut child = command.spawn()?;
    let what = format!("`plimsoll {}` with stdout {stdout:?} and stderr {stderr:?}", arguments.join(" "));
    let mut status = None;
    let ended = wait_until(&what, || {
        status = child.try_wait().ok().flatten();
        status.is_some()
    });
    if ended.is_err() {
        let _ = child.kill();
        let _ = child.wait();
        return Err(Broken::Lost(format!("does not end within {} s: {what}", PATIENCE.as_secs())));
    }
    let code = status.and_then(|status| status.code());
    let is_right = match stdout {
        OutputState::Kept | OutputState::Broken => code == Some(0),
        OutputState::Full => code == Some(2),
        // A program whose output was closed on purpose may end normally.
        OutputState::Closed => matches!(code, Some(0 | 2)),
    };
    hold!(is_right, "{what} ended with {status:?}");
    runs::equal(trial, "whole", "out")
}

fn open(sink: OutputState) -> io::Result<Stdio> {
    Ok(match sink {
        OutputState::Kept | OutputState::Closed => Stdio::null(),
        OutputState::Full => OpenOptions::new().write(true).open("/dev/full")?.into(),
        OutputState::Broken => io::pipe()?.1.into(),
    })
}
