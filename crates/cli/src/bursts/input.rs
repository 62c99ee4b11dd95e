//! The captures that a command line names, and their analysis.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use plimsoll_bursts::{Analyser, ReadError, analyse};
use plimsoll_files::Origin;
use plimsoll_results::run_dir::SIMULATOR;
use plimsoll_units::Span;

use crate::output;
use crate::signals::Interrupt;

/// A capture and where it comes from.
pub(super) struct CaptureInput {
    pub(super) name: String,
    source: Source,
    pub(super) is_simulated: bool,
}

enum Source {
    Stdin,
    File(PathBuf, Origin),
    Device(Limits),
}

/// When a capture of a device ends without a signal.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Limits {
    pub(super) time: Option<Span>,
    pub(super) packets: Option<u64>,
}

/// The folder of captures in a run directory.
const CAPTURES: &str = "pcap";
/// The most names in an error.
const LISTED: usize = 20;

/// Returns the captures that have a report together: all that are named, or each of a run directory alone.
pub(super) fn groups(paths: &[PathBuf]) -> anyhow::Result<Vec<Vec<CaptureInput>>> {
    if let [run] = paths
        && run.is_dir()
    {
        return captures(run)?
            .into_iter()
            .map(|file| Ok(vec![CaptureInput::of_file(file, Origin::Folder)?]))
            .collect();
    }
    Ok(vec![paths.iter().map(|path| CaptureInput::of(path)).collect::<anyhow::Result<_>>()?])
}

/// Returns names, a line each, and how many more there are.
pub(super) fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let mut lines: Vec<String> = names.iter().take(LISTED).map(|name| format!("  {name}")).collect();
    if names.len() > LISTED {
        lines.push(format!("  and {} more", names.len() - LISTED));
    }
    lines.join("\n")
}

/// Opens the capture that a command line names, and returns its name.
///
/// # Errors
/// Fails if it cannot be opened, or is a run directory with several captures.
pub fn open(path: &Path) -> anyhow::Result<(String, File)> {
    let CaptureInput { name, source, .. } = CaptureInput::of(path)?;
    let input = match &source {
        Source::Stdin => stdin(),
        Source::File(path, origin) => plimsoll_files::open_to_read(path, *origin),
        Source::Device(_) => Err(io::Error::other("a device is no file")),
    };
    let input = input.with_context(|| format!("cannot open {name}"))?;
    Ok((name, input))
}

impl CaptureInput {
    /// Makes the input of a live capture.
    pub(super) fn of_device(name: &str, time: Option<Span>, packets: Option<u64>) -> CaptureInput {
        let source = Source::Device(Limits { time, packets });
        CaptureInput { name: name.to_owned(), source, is_simulated: false }
    }

    fn of(path: &Path) -> anyhow::Result<CaptureInput> {
        if path == Path::new("-") {
            return Ok(CaptureInput { name: "stdin".to_owned(), source: Source::Stdin, is_simulated: false });
        }
        if !path.is_dir() {
            return CaptureInput::of_file(path.to_owned(), Origin::Argument);
        }
        match <[PathBuf; 1]>::try_from(captures(path)?) {
            Ok([only]) => CaptureInput::of_file(only, Origin::Folder),
            Err(many) => {
                let names: Vec<String> = many.iter().map(|file| file.display().to_string()).collect();
                Err(anyhow!(
                    "{} has {} captures; give it alone, or name one of them:\n{}",
                    path.display(),
                    many.len(),
                    listed(names.iter().map(String::as_str))
                ))
            }
        }
    }

    fn of_file(file: PathBuf, origin: Origin) -> anyhow::Result<CaptureInput> {
        // A file of a run directory: RUN/pcap/POINT.pcapng.
        let folder = file.parent().filter(|parent| parent.ends_with(CAPTURES)).and_then(Path::parent);
        let run = folder.filter(|run| run.join("manifest.json").exists());
        let is_simulated = match run {
            Some(run) => output::open_run(run)?.manifest().carrier == SIMULATOR,
            None => false,
        };
        Ok(CaptureInput {
            name: file.display().to_string(),
            source: Source::File(file, origin),
            is_simulated,
        })
    }

    /// Analyses the capture; the inner error is the capture's own, whose frames up to there have been analysed.
    pub(super) fn analyse(
        &self,
        analyser: &mut Analyser,
        stop: &Interrupt,
    ) -> anyhow::Result<Result<(), ReadError>> {
        let input = match &self.source {
            Source::Stdin => stdin(),
            Source::File(path, origin) => plimsoll_files::open_to_poll(path, *origin),
            Source::Device(limits) => return of_device(&self.name, *limits, analyser, stop),
        };
        let input = input.with_context(|| format!("cannot open {}", self.name))?;
        Ok(analyse(UntilStopped { input, stop }, analyser))
    }
}

/// Captures from a device until a limit or a signal.
#[cfg(target_os = "linux")]
fn of_device(
    name: &str,
    limits: Limits,
    analyser: &mut Analyser,
    stop: &Interrupt,
) -> anyhow::Result<Result<(), ReadError>> {
    let mut live = super::live::Live::open(name, limits, stop.clone())?;
    let result = analyse(&mut live, analyser);
    live.note_end();
    Ok(result)
}

#[cfg(not(target_os = "linux"))]
fn of_device(
    name: &str,
    _: Limits,
    _: &mut Analyser,
    _: &Interrupt,
) -> anyhow::Result<Result<(), ReadError>> {
    Err(anyhow!(
        "-i {name}: only Linux has packet sockets; here `tcpdump -w - | plimsoll bursts -` does the same"
    ))
}

/// An input that ends at a signal, also while it waits for data, so that a live capture is reported when Ctrl-C ends
/// it.
struct UntilStopped<'a> {
    input: File,
    stop: &'a Interrupt,
}

impl Read for UntilStopped<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.stop.signal().is_none() {
            if !is_readable(&self.input)? {
                continue;
            }
            match self.input.read(into) {
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                read => return read,
            }
        }
        Ok(0)
    }
}

/// Waits until an input has data or has ended, and returns whether that is so; false after a signal or a while.
#[cfg(unix)]
fn is_readable(input: &File) -> io::Result<bool> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    // A signal that comes just before the wait is seen after it.
    let patience = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
    match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&patience)) {
        Err(rustix::io::Errno::INTR) => Ok(false),
        ready => Ok(ready? > 0),
    }
}

#[cfg(not(unix))]
fn is_readable(_: &File) -> io::Result<bool> {
    Ok(true)
}

/// Returns stdin without the buffer of the standard library, in which a poll would not see data.
fn stdin() -> io::Result<File> {
    #[cfg(unix)]
    let own = std::os::fd::AsFd::as_fd(&io::stdin()).try_clone_to_owned()?;
    #[cfg(windows)]
    let own = std::os::windows::io::AsHandle::as_handle(&io::stdin()).try_clone_to_owned()?;
    Ok(File::from(own))
}

/// Returns the captures of a run directory, which has at least one.
fn captures(run: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let folder = run.join(CAPTURES);
    let entries = plimsoll_files::check_folder(&folder).and_then(|()| std::fs::read_dir(&folder)).map_err(|error| {
        anyhow!(
            "{} has no captured packets ({error}); `plimsoll run SCENARIO --pcap` and `plimsoll emulate SCENARIO \
             --capture` keep them below {CAPTURES}/ of the run directory",
            run.display()
        )
    })?;
    let mut found: Vec<PathBuf> = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "pcapng") {
            found.push(path);
        }
    }
    found.sort();
    if found.is_empty() { Err(anyhow!("{} has no .pcapng file", folder.display())) } else { Ok(found) }
}
