//! Runs that are killed, started twice, out of disk space, or damaged: the same command must produce the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::program::{ProgramExit, ProgramFolder, RunningProgram, run, timed};
use crate::trial::{Broken, Outcome, Trial, hold};

/// The arguments that run the sweep into the folder `out`.
const RUN: [&str; 4] = ["run", "sweep.toml", "--out", "out"];

/// Writes a random sweep of short points, and runs it undisturbed into `whole`. Returns how long that took.
fn begin(trial: &mut Trial, programs: &ProgramFolder) -> Result<Duration, Broken> {
    let sweep = sweep(trial);
    trial.write("sweep.toml", &sweep)?;
    let (time, ended) =
        timed(&mut programs.plimsoll(trial.folder(), &["run", "sweep.toml", "--out", "whole"]))?;
    hold!(ended.code() == Some(0), "a whole run: {}", ended.described());
    Ok(time)
}

/// Writes a sweep of 4 to 16 points of some 10 to 100 milliseconds of processor time each.
pub fn sweep(trial: &mut Trial) -> String {
    let duration = trial.number(100..1500);
    let replicates = trial.number(1..3);
    let seed = trial.number(0..1 << 40);
    let size = trial.one_of(&["20KB", "200KB", "1MB"]);
    let loads = trial.one_of(&["0.5, 0.6", "0.3, 0.5, 0.7, 0.8"]);
    let series =
        if trial.once_in(2) { "[observe]\nflow_series = '1ms'\ngoodput_every = '1ms'\n" } else { "" };
    format!(
        "version = 1\ntitle = 'A sweep under attack'\nreplicates = {replicates}\n\
         [run]\nduration = '{duration}ms'\nseed = {seed}\n\
         [topology]\nkind = 'rack'\nhosts = 3\nrate = '1Gbps'\ndelay = '5us'\n\
         [port.switch]\nbuffer = '100 packets'\n[port.host]\nbuffer = '1000 packets'\n\
         [transport]\nmin_rto = '10ms'\n\
         [workload.transfers]\nkind = 'transfer'\nsize = '{size}'\nload = 0.5\n{series}\
         [variant.TCP]\ntransport.kind = 'tcp'\n\
         [variant.DCTCP]\ntransport.kind = 'dctcp'\nport.switch.ecn = {{ threshold = '30KB' }}\n\
         [sweep]\n'workload.transfers.load' = [{loads}]\n"
    )
}

/// Returns the command that runs the sweep into `out`, with a random number of threads.
fn again(trial: &mut Trial, programs: &ProgramFolder, more: &[&str]) -> Command {
    let threads = trial.one_of(&["1", "2", "3"]);
    programs.plimsoll(trial.folder(), &[&RUN[..], &["--threads", threads], more].concat())
}

/// Reads every file of a run directory.
pub fn files(folder: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, Broken> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                open.push(path);
            } else {
                let bytes = fs::read(&path)?;
                let name = path.strip_prefix(folder).map_err(|error| Broken::Lost(error.to_string()))?;
                found.insert(name.to_owned(), bytes);
            }
        }
    }
    Ok(found)
}

/// Reports a loss unless both folders hold the same files with the same bytes.
pub fn equal(trial: &Trial, one: &str, other: &str) -> Outcome {
    let (first, second) = (files(&trial.path(one))?, files(&trial.path(other))?);
    let mut names: Vec<&PathBuf> = first.keys().chain(second.keys()).collect();
    names.sort();
    names.dedup();
    // Hidden files are locks.
    let is_hidden =
        |name: &Path| name.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    let differ = |name: &&PathBuf| !is_hidden(name) && first.get(*name) != second.get(*name);
    let different: Vec<&PathBuf> = names.into_iter().filter(differ).collect();
    hold!(different.is_empty(), "{one} and {other} differ in {different:?}");
    Ok(())
}

/// Expects one of these exit statuses, not a signal.
fn ends(ended: &ProgramExit, codes: &[i32]) -> Outcome {
    let is_right = ended.code().is_some_and(|code| codes.contains(&code));
    hold!(is_right, "expected an exit status of {codes:?}: {}", ended.described());
    Ok(())
}

/// Kills a run up to four times at random moments, and resumes it.
pub fn killed(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    let time = begin(trial, programs)?;
    for _ in 0..trial.number(1..5) {
        let mut command = again(trial, programs, &[]);
        let moment = Duration::from_micros(trial.number(0..time.as_micros() as u64 + 1));
        if !RunningProgram::start(&mut command)?.kill_after(moment) {
            break;
        }
    }
    ends(&run(&mut again(trial, programs, &[]))?, &[0])?;
    equal(trial, "whole", "out")
}

/// Starts two runs in one directory, one of which may be killed.
pub fn two_at_once(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    let time = begin(trial, programs)?;
    let mut first = RunningProgram::start(&mut again(trial, programs, &[]))?;
    let moment = Duration::from_micros(trial.number(0..time.as_micros() as u64 + 1));
    std::thread::sleep(moment.min(Duration::from_secs(2)) / 2);
    let second = RunningProgram::start(&mut again(trial, programs, &[]))?;
    if trial.once_in(2) {
        first.kill_after(moment / 2);
    } else {
        ends(&first.ended()?, &[0, 2])?;
    }
    ends(&second.ended()?, &[0, 2])?;
    ends(&run(&mut again(trial, programs, &[]))?, &[0])?;
    equal(trial, "whole", "out")
}

/// A small file system of its own, which is unmounted when the value is dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: PathBuf, kibibytes: u64) -> Result<Disk, Broken> {
        fs::create_dir(&path)?;
        let options = format!("size={kibibytes}k");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "tmpfs"])
            .arg(&path)
            .stderr(Stdio::null())
            .status();
        if mounted.is_ok_and(|status| status.success()) {
            Ok(Disk(path))
        } else {
            Err(Broken::NotTried("only root may mount a small disk".to_owned()))
        }
    }

    fn grow(&self, kibibytes: u64) -> Outcome {
        let options = format!("remount,size={kibibytes}k");
        let status = Command::new("mount").args(["-o", &options]).arg(&self.0).status()?;
        hold!(status.success(), "a disk cannot be made larger");
        Ok(())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Runs on a file system with space for a part of the results.
pub fn full_disk(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    begin(trial, programs)?;
    let all: usize = files(&trial.path("whole"))?.values().map(Vec::len).sum();
    let room = trial.number(4..2 * all as u64 / 1024 + 64);
    let disk = Disk::mount(trial.path("disk"), room)?;
    let on_disk = ["run", "sweep.toml", "--out", "disk/out"];
    ends(&run(&mut programs.plimsoll(trial.folder(), &on_disk))?, &[0, 2])?;
    disk.grow(1024 * 1024)?;
    ends(&run(&mut programs.plimsoll(trial.folder(), &on_disk))?, &[0])?;
    equal(trial, "whole", "disk/out")
}

/// Damages up to four random files of a finished run: no program that reads them ends by a signal, and the advice that
/// it prints repairs them.
pub fn damaged(trial: &mut Trial, programs: &ProgramFolder) -> Outcome {
    begin(trial, programs)?;
    ends(&run(&mut again(trial, programs, &[]))?, &[0])?;
    let names: Vec<PathBuf> = files(&trial.path("out"))?.into_keys().collect();
    let mut damages = Vec::new();
    for _ in 0..trial.number(1..5) {
        let name = trial.one_of(&names).clone();
        damages.push(format!("{} {}", name.display(), damage(trial, &name)?));
    }
    let ended = run(&mut programs.plimsoll(trial.folder(), &["compare", "out", "whole"]))?;
    ends(&ended, &[0, 1, 2])?;
    let ended = run(&mut again(trial, programs, &[]))?;
    ends(&ended, &[0, 2])?;
    if ended.code() == Some(2) {
        let advice = ["--repair", "--force"].into_iter().find(|flag| ended.stderr.contains(flag));
        hold!(advice.is_some(), "{damages:?}: no advice: {}", ended.described());
        let mended = run(&mut again(trial, programs, advice.as_slice()))?;
        hold!(mended.code() == Some(0), "{damages:?}: {advice:?} does not repair it: {}", mended.described());
    }
    let same = equal(trial, "whole", "out");
    same.map_err(|error| match error {
        Broken::Lost(what) => Broken::Lost(format!("{damages:?}: {what}; said: {}", ended.described())),
        other => other,
    })
}

/// Damages a file of `out` if it still exists, and describes the damage.
fn damage(trial: &mut Trial, name: &Path) -> Result<String, Broken> {
    let path = trial.path("out").join(name);
    let Ok(mut bytes) = fs::read(&path) else { return Ok("was gone".to_owned()) };
    let place = trial.number(0..bytes.len().max(1) as u64) as usize;
    let how = match trial.number(0..6) {
        0 => {
            fs::remove_file(&path)?;
            return Ok("removed".to_owned());
        }
        1 => {
            bytes.truncate(place);
            format!("cut at {place}")
        }
        2 => {
            let rest = &mut bytes[place..];
            rest.fill(0);
            format!("zeroes from {place}")
        }
        3 => {
            bytes.extend_from_slice(b"more\n");
            "grown".to_owned()
        }
        _ => {
            let bit = trial.number(0..8);
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 1 << bit;
            }
            format!("bit {bit} of byte {place} flipped")
        }
    };
    fs::write(&path, bytes)?;
    Ok(how)
}
