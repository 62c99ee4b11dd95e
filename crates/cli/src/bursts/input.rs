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

/// Returns the captures that have a report together: all that are named, or the captures of each point of a run
/// directory.
pub(super) fn groups(paths: &[PathBuf]) -> anyhow::Result<Vec<Vec<CaptureInput>>> {
    if let [run] = paths
        && run.is_dir()
    {
        return captures(run)?.into_iter().map(CaptureInput::of_files).collect();
    }
    let named: Vec<Vec<CaptureInput>> =
        paths.iter().map(|path| CaptureInput::of(path)).collect::<anyhow::Result<_>>()?;
    Ok(vec![named.into_iter().flatten().collect()])
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

/// Opens the captures that a path of a command line names, one file or all captures of a run's only point, and returns
/// their names.
///
/// # Errors
/// Fails if one cannot be opened, or the path is a run directory with captures of several points.
pub fn open(path: &Path) -> anyhow::Result<Vec<(String, File)>> {
    let open = |CaptureInput { name, source, .. }: CaptureInput| {
        let input = match &source {
            Source::Stdin => stdin(),
            Source::File(path, origin) => plimsoll_files::open_to_read(path, *origin),
            Source::Device(_) => Err(io::Error::other("a device is no file")),
        };
        let input = input.with_context(|| format!("cannot open {name}"))?;
        Ok((name, input))
    };
    CaptureInput::of(path)?.into_iter().map(open).collect()
}

impl CaptureInput {
    /// Makes the input of a live capture.
    pub(super) fn of_device(name: &str, time: Option<Span>, packets: Option<u64>) -> CaptureInput {
        let source = Source::Device(Limits { time, packets });
        CaptureInput { name: name.to_owned(), source, is_simulated: false }
    }

    fn of(path: &Path) -> anyhow::Result<Vec<CaptureInput>> {
        if path == Path::new("-") {
            let name = "stdin".to_owned();
            return Ok(vec![CaptureInput { name, source: Source::Stdin, is_simulated: false }]);
        }
        if !path.is_dir() {
            return Ok(vec![CaptureInput::of_file(path.to_owned(), Origin::Argument)?]);
        }
        match <[Vec<PathBuf>; 1]>::try_from(captures(path)?) {
            Ok([only]) => CaptureInput::of_files(only),
            Err(many) => {
                let files = many.iter().flatten();
                let names: Vec<String> = files.map(|file| file.display().to_string()).collect();
                Err(anyhow!(
                    "{} has {} captures; give it alone, or name one of them:\n{}",
                    path.display(),
                    names.len(),
                    listed(names.iter().map(String::as_str))
                ))
            }
        }
    }

    fn of_files(files: Vec<PathBuf>) -> anyhow::Result<Vec<CaptureInput>> {
        files.into_iter().map(|file| CaptureInput::of_file(file, Origin::Folder)).collect()
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

/// Returns the captures of each point of a run directory, which has at least one: `pcap/POINT.pcapng` of a simulation,
/// and `pcap/POINT/HOST.pcapng` of an emulation.
fn captures(run: &Path) -> anyhow::Result<Vec<Vec<PathBuf>>> {
    let folder = run.join(CAPTURES);
    let mut points = Vec::new();
    for path in entries(&folder).map_err(|error| {
        anyhow!(
            "{} has no captured packets ({error}); `plimsoll run SCENARIO --pcap` and `plimsoll emulate SCENARIO \
             --capture` keep them below {CAPTURES}/ of the run directory",
            run.display()
        )
    })? {
        let is_capture = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "pcapng");
        if is_capture(&path) {
            points.push(vec![path]);
        } else if path.is_dir() {
            let of_hosts = entries(&path).with_context(|| format!("cannot read {}", path.display()))?;
            points.push(of_hosts.into_iter().filter(is_capture).collect());
        }
    }
    points.retain(|files| !files.is_empty());
    if points.is_empty() { Err(anyhow!("{} has no .pcapng file", folder.display())) } else { Ok(points) }
}

/// Returns the paths in a folder, in order.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    plimsoll_files::check_folder(folder)?;
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    paths.sort();
    Ok(paths)
}
