//! The run directory: everything a run leaves behind, safe against being killed at any moment.
//!
//! ```text
//! manifest.json   the run, the command that repeats it, the points and their digests
//! scenario.toml   the scenario with all that it depends on
//! columns.md      the meaning of the columns in the files below
//! points/<id>/    one folder a point: point.json and CSV (or Parquet) files
//! summary.json    every number, with intervals
//! report.html     the page
//! ```
//!
//! A point is written into a folder of another name, forced to the disk, and then renamed, which the file system does
//! whole or not at all: a folder under `points/` without a leading dot is a finished point, also after a power failure
//! (`disk.rs`). If a disk reported writes that it lost, lengths show which points were cut short; they run again.
//! Checksums show files that were changed otherwise since (`seal.rs`, `point_files.rs`): that is an error that names
//! the file, and [`Existing::Repair`] runs the bad points again. Summary and page are made anew from the points
//! whenever a run ends. Captures and timelines are not results, and have no checksums.
//!
//! Resuming, and merging the shards of a run, are therefore the same question: which folders are
//! there?

mod columns;
mod csv;
mod disk;
mod error;
mod manifest;
mod merge;
#[cfg(feature = "parquet")]
mod parquet;
mod point_files;
mod seal;
mod table_file;
mod table_form;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

pub use columns::{READERS, documentation};
pub use error::Error;
pub use manifest::{FORMAT, Manifest, ManifestPoint, PlannedPoint, RunPlan, SIMULATOR, point_id};
pub use merge::merge;
pub use table_form::Columns;

use plimsoll_files::Origin;
use plimsoll_text::printable_json;

use crate::by_rank::{self, SlowdownByRank};
use crate::digest::Digest;
use crate::point::{PointKey, PointOutcome};
use crate::summary::Summary;
use disk::free_bytes;
use manifest::MANIFEST;
use point_files::Mark;

/// Free space that a run needs at its start, in bytes, unless it needs more.
pub const ROOM_AT_LEAST: u64 = 64 << 20;

const SCENARIO: &str = "scenario.toml";
const COLUMNS: &str = "columns.md";
const SUMMARY: &str = "summary.json";
const REPORT: &str = "report.html";
/// The slowdown of every workload by the rank of its messages' sizes ([`crate::by_rank`]).
const BY_RANK: &str = "slowdown-by-rank.csv";
const POINTS: &str = "points";
/// Folders of files that some runs keep beside their points: captures, timelines, and the output of programs.
const BESIDE_POINTS: [&str; 3] = ["pcap", "perfetto", "programs"];
const LOCK: &str = ".lock";
const UNFINISHED: &str = ".unfinished-";

/// The action if the run directory already exists.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Existing {
    /// Leave it alone: an error.
    Refuse,
    /// Go on with it; an error if it is of another scenario, carrier, seed or version.
    Resume,
    /// Go on with it as [`Existing::Resume`] does, although its manifest is damaged.
    Repair,
    /// Remove it and start anew.
    Replace,
}

/// The state of a point of the manifest.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Status {
    /// Finished; its digest.
    Done(Digest),
    /// Not run yet, or not to its end.
    Missing,
    /// There, but cut short: to be run again.
    Cut(String),
    /// There in its full length, but something else has changed it since.
    Damaged(String),
}

/// A run directory, opened or created, with its manifest.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    manifest: Manifest,
    other_build: Option<String>,
    /// The form of the points that are written.
    columns: Columns,
    /// Held while this process writes; the system releases it however the process ends.
    _lock: Option<File>,
}

impl RunDir {
    /// Makes or resumes a run directory, after checking that the place can be written and has `room` bytes
    /// ([`ROOM_AT_LEAST`] if that is more).
    pub fn create(path: &Path, plan: &RunPlan, existing: Existing, room: u64) -> Result<RunDir, Error> {
        if !Columns::HERE.contains(&plan.columns) {
            return Err(Error::NoParquet { path: None });
        }
        let points = path.join(POINTS);
        check_free_for_a_run(path, existing)?;
        if existing != Existing::Replace {
            // Where the run is replaced, links are removed with the rest.
            std::iter::once(POINTS)
                .chain(BESIDE_POINTS)
                .try_for_each(|name| check_folder(&path.join(name)))?;
        }
        fs::create_dir_all(&points).map_err(|source| Error::io("make", &points, source))?;
        let lock = lock(path)?;
        probe(path, room.max(ROOM_AT_LEAST))?;
        if existing == Existing::Replace {
            fs::remove_dir_all(&points).map_err(|source| Error::io("remove", &points, source))?;
            fs::create_dir_all(&points).map_err(|source| Error::io("make", &points, source))?;
            for old in [SUMMARY, REPORT, BY_RANK] {
                let _ = fs::remove_file(path.join(old));
            }
            for old in BESIDE_POINTS {
                let _ = fs::remove_dir_all(path.join(old));
            }
        }
        remove_unfinished(&points)?;
        let mut manifest = Manifest::of(plan);
        let mut other_build = None;
        if matches!(existing, Existing::Resume | Existing::Repair) {
            match read_manifest(path) {
                Ok(found) => {
                    if let Some(why) = found.conflict_with(&manifest) {
                        return Err(Error::Conflict { path: path.to_owned(), why });
                    }
                    if has_points(&points)? {
                        other_build = manifest.go_on_with(&found);
                    }
                }
                // The run was killed before its manifest was written, or the manifest is damaged: the scenario shows
                // whose points these are. If that differs too, a repair could only guess.
                Err(error) => {
                    let kept = read_file(&path.join(SCENARIO)).unwrap_or_default();
                    if has_points(&points)? && kept != plan.scenario.as_bytes() {
                        let why = format!("{MANIFEST} cannot be read, and {SCENARIO} there is another");
                        return Err(Error::Conflict { path: path.to_owned(), why });
                    }
                    if existing == Existing::Resume && !matches!(error, Error::NoRun { .. }) {
                        return Err(error);
                    }
                }
            }
        }
        let run =
            RunDir { path: path.to_owned(), manifest, other_build, columns: plan.columns, _lock: Some(lock) };
        run.write_file(SCENARIO, &plan.scenario)?;
        run.write_file(COLUMNS, &documentation())?;
        run.write_manifest(&run.manifest)?;
        Ok(run)
    }

    /// Opens a run for reading.
    pub fn open(path: &Path) -> Result<RunDir, Error> {
        let (manifest, columns) = (read_manifest(path)?, Columns::default());
        check_folder(&path.join(POINTS))?;
        Ok(RunDir { path: path.to_owned(), manifest, other_build: None, columns, _lock: None })
    }

    /// Returns the path of the run directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the manifest. Digests of points are as of the last [`RunDir::finish`]; see [`RunDir::status`].
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the warning that existing points are of a build from another commit; it is also among the manifest's
    /// warnings.
    pub fn other_build(&self) -> Option<&str> {
        self.other_build.as_deref()
    }

    /// The scenario with all that it depends on.
    pub fn scenario(&self) -> Result<String, Error> {
        let path = self.path.join(SCENARIO);
        let text = String::from_utf8_lossy(&read_file(&path)?).into_owned();
        match Digest::of_text(&text) {
            digest if digest == self.manifest.scenario_digest => Ok(text),
            _ => Err(Error::Damaged { path, what: format!("it is not the scenario that {MANIFEST} names") }),
        }
    }

    /// Every point of the manifest and whether it is done.
    pub fn status(&self) -> Vec<(&ManifestPoint, Status)> {
        self.manifest.points.iter().map(|point| (point, self.point_status(point))).collect()
    }

    /// The points that are still to be run.
    pub fn missing(&self) -> Vec<&PointKey> {
        let open = |(point, status)| (!matches!(status, Status::Done(_))).then_some(point);
        self.status().into_iter().filter_map(open).map(|point: &ManifestPoint| &point.key).collect()
    }

    /// [`RunDir::status`], for which every file of every point was read and compared with its checksum.
    pub fn verify(&self) -> Vec<(&ManifestPoint, Status)> {
        let verified = |point| (point, self.status_by(point, point_files::verify));
        self.manifest.points.iter().map(verified).collect()
    }

    fn point_status(&self, point: &ManifestPoint) -> Status {
        self.status_by(point, point_files::read_mark)
    }

    fn status_by(&self, point: &ManifestPoint, read: fn(&Path) -> Result<Mark, Error>) -> Status {
        let folder = self.path.join(POINTS).join(point_id(&point.key));
        if fs::symlink_metadata(&folder).is_err() {
            return Status::Missing;
        }
        match read(&folder) {
            Ok(mark) if mark.key != point.key || mark.seed != point.seed => {
                Status::Damaged(format!("it holds {} with seed {}", mark.key, mark.seed))
            }
            Ok(mark) => Status::Done(mark.digest),
            Err(error @ Error::Cut { .. }) => Status::Cut(error.to_string()),
            Err(error) => Status::Damaged(error.to_string()),
        }
    }

    /// Keeps a finished point, whole or not at all. May be called from several threads.
    pub fn write_point(&self, point: &PointOutcome) -> Result<(), Error> {
        let id = point_id(&point.key);
        let unfinished = self.path.join(POINTS).join(format!("{UNFINISHED}{id}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&unfinished);
        fs::create_dir(&unfinished).map_err(|source| Error::io("make", &unfinished, source))?;
        let written =
            point_files::write(&unfinished, point, self.columns).and_then(|()| self.put(&unfinished, &id));
        if written.is_err() {
            // The remainder would only take room; failing to remove it changes nothing.
            let _ = fs::remove_dir_all(&unfinished);
        }
        written
    }

    /// Gives a finished folder its name, and replaces an existing one (damaged, or the same point again).
    fn put(&self, unfinished: &Path, id: &str) -> Result<(), Error> {
        let folder = self.path.join(POINTS).join(id);
        if fs::symlink_metadata(&folder).is_ok() {
            // If it is a link, this removes the link.
            fs::remove_dir_all(&folder).map_err(|source| Error::io("remove", &folder, source))?;
        }
        disk::rename(unfinished, &folder)
    }

    /// Reads one finished point and checks its digest.
    pub fn read_point(&self, key: &PointKey) -> Result<PointOutcome, Error> {
        point_files::read(&self.path.join(POINTS).join(point_id(key)))
    }

    /// Reads all finished points in the order of the manifest. One that is cut short counts as missing; one that is
    /// damaged is an error.
    pub fn read_points(&self) -> Result<Vec<PointOutcome>, Error> {
        let mut points = Vec::new();
        for (point, status) in self.status() {
            match status {
                Status::Done(_) => points.push(self.read_point(&point.key)?),
                Status::Damaged(what) => return Err(Error::Damaged { path: self.path.clone(), what }),
                Status::Missing | Status::Cut(_) => {}
            }
        }
        Ok(points)
    }

    /// Writes the manifest with the points done so far.
    pub fn finish(&self) -> Result<(), Error> {
        let mut manifest = self.manifest.clone();
        for point in &mut manifest.points {
            point.digest = match self.point_status(point) {
                Status::Done(digest) => Some(digest),
                _ => None,
            };
        }
        self.write_manifest(&manifest)
    }

    /// Writes `summary.json`.
    pub fn write_summary(&self, summary: &Summary) -> Result<(), Error> {
        let json = serde_json::to_string_pretty(summary).expect("a summary has text keys only");
        self.write_file(SUMMARY, &format!("{}\n", printable_json(&json)))
    }

    /// Reads `summary.json`.
    pub fn read_summary(&self) -> Result<Summary, Error> {
        let path = self.path.join(SUMMARY);
        serde_json::from_slice(&read_file(&path)?)
            .map_err(|error| Error::Damaged { path, what: error.to_string() })
    }

    /// Writes `report.html` and returns its path.
    pub fn write_report(&self, html: &str) -> Result<PathBuf, Error> {
        self.write_file(REPORT, html)?;
        Ok(self.path.join(REPORT))
    }

    /// Writes `slowdown-by-rank.csv`, unless no workload has enough messages of different sizes.
    pub fn write_by_rank(&self, ranks: &[SlowdownByRank]) -> Result<(), Error> {
        if ranks.is_empty() {
            return Ok(());
        }
        self.write_file(BY_RANK, &by_rank::csv(ranks))
    }

    fn write_manifest(&self, manifest: &Manifest) -> Result<(), Error> {
        self.write_file(MANIFEST, &manifest.text())
    }

    /// Writes a file whole or not at all, and forces it to the disk.
    pub fn write_file(&self, name: &str, text: &str) -> Result<(), Error> {
        let unfinished = self.path.join(format!("{UNFINISHED}{name}"));
        let path = self.path.join(name);
        let written = disk::write(&unfinished, text).and_then(|_| disk::rename(&unfinished, &path));
        if written.is_err() {
            // On a full disk, the remainder would keep others from writing.
            let _ = fs::remove_file(&unfinished);
        }
        written
    }
}

/// The largest file of a run directory that is read, except the tables of points, in bytes. A scenario may have files
/// embedded.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// Reads a file of a run directory.
fn read_file(path: &Path) -> Result<Vec<u8>, Error> {
    plimsoll_files::read(path, Origin::Folder, FILE_BYTES_MAX)
        .map_err(|source| Error::io("read", path, source))
}

/// Checks that a folder of a run directory, if it is there, is not a link to another place.
fn check_folder(path: &Path) -> Result<(), Error> {
    plimsoll_files::check_folder(path).map_err(|source| Error::io("read", path, source))
}

fn read_manifest(path: &Path) -> Result<Manifest, Error> {
    let file = path.join(MANIFEST);
    let bytes = match read_file(&file) {
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Err(Error::NoRun { path: path.to_owned() });
        }
        read => read?,
    };
    Manifest::read(&String::from_utf8_lossy(&bytes)).map_err(|what| Error::Damaged { path: file, what })
}

/// Refuses a folder with other things in it, and a run where none is expected.
fn check_free_for_a_run(path: &Path, existing: Existing) -> Result<(), Error> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(Error::io("read", path, source)),
    };
    let has_run = path.join(MANIFEST).exists();
    // A run that was killed before its manifest leaves only these, and the scenario.
    let ours = |name: &std::ffi::OsStr| {
        name == POINTS || name == LOCK || name.to_string_lossy().starts_with(UNFINISHED)
    };
    let foreign = !has_run && entries.filter_map(Result::ok).any(|entry| !ours(&entry.file_name()));
    let is_begun = path.join(SCENARIO).exists() && path.join(POINTS).exists();
    if foreign && !is_begun {
        Err(Error::Foreign { path: path.to_owned() })
    } else if has_run && existing == Existing::Refuse {
        Err(Error::Exists { path: path.to_owned() })
    } else {
        Ok(())
    }
}

fn lock(path: &Path) -> Result<File, Error> {
    let file = path.join(LOCK);
    // The name may be a hard link to a file elsewhere, whose content stays.
    let lock = plimsoll_files::open(&file, Origin::Folder, File::options().write(true).create(true))
        .map_err(|source| Error::io("write", &file, source))?;
    // A process that its owner has just forked holds the lock too, until it becomes another program.
    for patience in 0..LOCK_TRIES {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(fs::TryLockError::WouldBlock) if patience + 1 < LOCK_TRIES => thread::sleep(LOCK_PAUSE),
            Err(fs::TryLockError::WouldBlock) => {}
            // Some network file systems do not support locks; then the user must avoid two writers.
            Err(fs::TryLockError::Error(_)) => return Ok(lock),
        }
    }
    Err(Error::Busy { path: path.to_owned() })
}

/// A lock that is held for half a second belongs to another process.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// Writes a small file, and checks that `room` bytes are free.
fn probe(path: &Path, room: u64) -> Result<(), Error> {
    let file = path.join(format!("{UNFINISHED}probe"));
    let write = || plimsoll_files::create(&file, Origin::Folder)?.write_all(&[0; 4096]);
    let written = write().map_err(|source| Error::io("write", &file, source));
    let _ = fs::remove_file(&file);
    written?;
    match free_bytes(path) {
        Some(free) if free < room => Err(Error::NoRoom { path: path.to_owned(), free, needed: room }),
        _ => Ok(()),
    }
}

/// Returns whether any point has been finished.
fn has_points(points: &Path) -> Result<bool, Error> {
    let mut entries = fs::read_dir(points).map_err(|source| Error::io("read", points, source))?;
    Ok(entries.any(|entry| entry.is_ok_and(|entry| !entry.file_name().to_string_lossy().starts_with('.'))))
}

/// Removes the unfinished files of killed runs.
fn remove_unfinished(points: &Path) -> Result<(), Error> {
    let entries = fs::read_dir(points).map_err(|source| Error::io("read", points, source))?;
    for entry in entries.filter_map(Result::ok) {
        if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
            let path = entry.path();
            fs::remove_dir_all(&path).map_err(|source| Error::io("remove", &path, source))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
