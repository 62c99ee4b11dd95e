//! One point on disk: `point.json` (values outside columns, and the mark that the point is complete) and one CSV file
//! for each kind of record. The mark has the length and the checksum of each file, and one of itself.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use plimsoll_files::Origin;
use plimsoll_units::{Rate, Span, Time};
use serde::{Deserialize, Serialize};

use plimsoll_text::{csv_cell, printable_json};

use super::columns::{Fields, Names, QueueInterval, Record, TABLES};
use super::csv::{Writer, reader};
use super::disk::{self, FileIdentity, Writing};
use super::error::Error;
use super::manifest::FORMAT;
use super::seal;
use super::table_file::{self, TableWriter};
use super::table_form::{Columns, PARQUET};
use crate::capture::Capture;
use crate::digest::{Checksum, Digest};
use crate::outcome::{
    Approximation, BlockedTraffic, Counters, Delivered, ExtraLoad, FaultRecord, MechanismUse, Outcome,
    ProcessorTotals, QueueObservation, RepeatRecord, Supply, WorkloadInfo,
};
use crate::point::{PointKey, PointOutcome};

pub(super) const MARK: &str = "point.json";

/// The layout of the file `point.json`.
#[derive(Serialize, Deserialize)]
pub(super) struct Mark {
    format: u32,
    #[serde(flatten)]
    pub(super) key: PointKey,
    pub(super) seed: u64,
    pub(super) digest: Digest,
    end_ps: u64,
    warmup_ps: u64,
    workloads: Vec<WorkloadMark>,
    tiers: Vec<String>,
    counters: Counters,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    extra: Vec<ExtraLoad>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    processors: Vec<ProcessorMark>,
    queues: Vec<QueueMark>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    faults: Vec<FaultMark>,
    warnings: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    mechanisms: Vec<MechanismUse>,
    /// Absent where a version wrote the point that did not measure it.
    #[serde(default)]
    delivered: DeliveredMark,
    #[serde(default, skip_serializing_if = "BlockedTraffic::is_empty")]
    blocked: BlockedTraffic,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    approximation: Option<Approximation>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    repeats: Vec<RepeatRecord>,
    /// Each file beside this one.
    files: BTreeMap<String, FileMark>,
    /// Checksum of the file ([`seal`]). None in format 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

/// The recorded properties of a file.
#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum FileMark {
    /// Its length and the checksum of its bytes.
    Whole { bytes: u64, checksum: Digest },
    /// Its length alone: format 2.
    Length(u64),
}

impl FileMark {
    fn bytes(&self) -> u64 {
        match *self {
            FileMark::Whole { bytes, .. } | FileMark::Length(bytes) => bytes,
        }
    }
}

impl From<FileIdentity> for FileMark {
    fn from(FileIdentity { bytes, checksum }: FileIdentity) -> FileMark {
        FileMark::Whole { bytes, checksum }
    }
}

#[derive(Serialize, Deserialize)]
struct WorkloadMark {
    name: String,
    kind: String,
    deadline_ps: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    observed: Option<String>,
    #[serde(default)]
    supply: Supply,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
}

#[derive(Default, Serialize, Deserialize)]
struct DeliveredMark {
    observed_ps: u64,
    bytes: Vec<u64>,
}

#[derive(Serialize, Deserialize)]
struct ProcessorMark {
    host: u32,
    busy_ps: Vec<u64>,
    frames_received: u64,
    frames_sent: u64,
    ring_drops: u64,
}

#[derive(Serialize, Deserialize)]
struct FaultMark {
    link: String,
    from_ps: u64,
    until_ps: Option<u64>,
    rate_bps: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct QueueMark {
    name: String,
    port: String,
    rate_bps: u64,
    every_ps: u64,
    from_ps: u64,
    drops: u64,
    marks: u64,
    packets: u64,
    bytes: u64,
    /// Same as [`Queue::time_at`].
    time_at_ps: Vec<u64>,
}

/// Writes a point into an empty folder; the mark comes last.
pub(super) fn write(folder: &Path, point: &PointOutcome, columns: Columns) -> Result<(), Error> {
    let outcome = &point.outcome;
    let names = names(&outcome.workloads);
    let mut files =
        WrittenFiles { folder, key: &point.key, names: &names, columns, written: BTreeMap::new() };
    let intervals: Vec<QueueInterval> =
        outcome.queues.iter().zip(0..).flat_map(|(queue, number)| intervals(queue, number)).collect();
    files.write(&outcome.messages)?;
    files.write(&outcome.queries)?;
    files.write(&outcome.observations)?;
    files.write(&outcome.iterations)?;
    files.write(&outcome.ranks)?;
    files.write(&outcome.operations)?;
    files.write(&outcome.path_waits)?;
    files.write(&intervals)?;
    files.write(&outcome.links)?;
    files.write(&outcome.circuits)?;
    files.write(&outcome.circuit_weeks)?;
    files.write(&outcome.connections)?;
    files.write(&outcome.series)?;
    files.write(&outcome.goodput)?;
    let mark = mark(point, files.written);
    let json = serde_json::to_string_pretty(&mark).expect("a mark has text keys only");
    disk::write(&folder.join(MARK), &seal::sealed(&printable_json(&json)))?;
    disk::sync_folder(folder)
}

/// Reads the mark and checks that every file is there in its full length.
pub(super) fn read_mark(folder: &Path) -> Result<Mark, Error> {
    super::check_folder(folder)?;
    let path = folder.join(MARK);
    let bytes = super::read_file(&path)?;
    let text = String::from_utf8_lossy(&bytes);
    if !text.trim_end().ends_with('}') {
        return Err(Error::Cut { path, what: "its end is missing".to_owned() });
    }
    let mark: Mark = serde_json::from_str(&text)
        .map_err(|error| Error::Damaged { path: path.clone(), what: error.to_string() })?;
    if !(FORMAT_UNSEALED..=FORMAT).contains(&mark.format) {
        let what = format!("it has format {}, this version reads {FORMAT_UNSEALED} to {FORMAT}", mark.format);
        return Err(Error::Damaged { path, what });
    }
    if mark.checksum.is_some() || mark.format > FORMAT_UNSEALED {
        seal::check(&text).map_err(|what| Error::Damaged { path: path.clone(), what })?;
    }
    for (file, about) in &mark.files {
        // The run directory may be of unknown origin: no other file is opened.
        let csv = file.replace(PARQUET, ".csv");
        if !TABLES.iter().any(|table| table.file == csv) {
            return Err(Error::Damaged { path, what: format!("it names a file `{file}`") });
        }
        let path = folder.join(file);
        let found = match fs::metadata(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Cut { path, what: "it is missing".to_owned() });
            }
            found => found.map_err(|source| Error::io("read", &path, source))?,
        };
        let found = if found.is_file() { found.len() } else { 0 };
        if found != about.bytes() {
            let what = format!("it has {found} bytes instead of {}", about.bytes());
            return Err(Error::Cut { path, what });
        }
    }
    Ok(mark)
}

/// The last format without checksums, which is still read.
const FORMAT_UNSEALED: u32 = 2;

/// Reads the mark and checks every file, to its last bit where the mark has checksums.
pub(super) fn verify(folder: &Path) -> Result<Mark, Error> {
    let mark = read_mark(folder)?;
    mark.files.keys().try_for_each(|file| verified(folder, &mark, file).map(drop))?;
    Ok(mark)
}

/// The largest table of a point that is read, in bytes: some 300 million messages.
const TABLE_BYTES_MAX: u64 = 32 << 30;

/// The bytes of a file that is as it was written.
fn verified(folder: &Path, mark: &Mark, file: &str) -> Result<Vec<u8>, Error> {
    let path = folder.join(file);
    let bytes = plimsoll_files::read(&path, Origin::Folder, TABLE_BYTES_MAX)
        .map_err(|source| Error::io("read", &path, source))?;
    if let Some(&FileMark::Whole { checksum, .. }) = mark.files.get(file) {
        let mut found = Checksum::default();
        found.update(&bytes);
        let found = found.finish();
        if found != checksum {
            return Err(Error::Damaged { path, what: format!("its checksum is {found}, not {checksum}") });
        }
    }
    Ok(bytes)
}

/// Reads a point and checks its files and its digest.
pub(super) fn read(folder: &Path) -> Result<PointOutcome, Error> {
    let mark = read_mark(folder)?;
    let workloads: Vec<WorkloadInfo> = mark
        .workloads
        .iter()
        .map(|workload| WorkloadInfo {
            name: workload.name.clone(),
            kind: workload.kind.clone(),
            deadline: workload.deadline_ps.map(Span::from_ps),
            observed: workload.observed.clone(),
            supply: workload.supply,
            groups: workload.groups.clone(),
        })
        .collect();
    let names = names(&workloads);
    let outcome = Outcome {
        workloads,
        tiers: mark.tiers.clone(),
        end: Time::from_ps(mark.end_ps),
        warmup: Span::from_ps(mark.warmup_ps),
        messages: read_records(folder, &mark, &names)?,
        queries: read_records(folder, &mark, &names)?,
        observations: read_records(folder, &mark, &names)?,
        iterations: read_records(folder, &mark, &names)?,
        ranks: read_records(folder, &mark, &names)?,
        operations: read_records(folder, &mark, &names)?,
        path_waits: read_records(folder, &mark, &names)?,
        extra: mark.extra.clone(),
        queues: queues(&mark, read_records(folder, &mark, &names)?),
        links: read_records(folder, &mark, &names)?,
        processors: mark
            .processors
            .iter()
            .map(|mark| ProcessorTotals {
                host: mark.host,
                busy: mark.busy_ps.iter().map(|ps| Span::from_ps(*ps)).collect(),
                frames_received: mark.frames_received,
                frames_sent: mark.frames_sent,
                ring_drops: mark.ring_drops,
            })
            .collect(),
        circuits: read_records(folder, &mark, &names)?,
        circuit_weeks: read_records(folder, &mark, &names)?,
        connections: read_records(folder, &mark, &names)?,
        series: read_records(folder, &mark, &names)?,
        goodput: read_records(folder, &mark, &names)?,
        delivered: Delivered {
            observed: Span::from_ps(mark.delivered.observed_ps),
            bytes: mark.delivered.bytes.clone(),
        },
        counters: mark.counters,
        faults: mark
            .faults
            .iter()
            .map(|fault| FaultRecord {
                link: fault.link.clone(),
                from: Time::from_ps(fault.from_ps),
                until: fault.until_ps.map(Time::from_ps),
                rate: fault.rate_bps.map(Rate::from_bps),
            })
            .collect(),
        capture: Capture::default(),
        warnings: mark.warnings.clone(),
        mechanisms: mark.mechanisms.clone(),
        blocked: mark.blocked.clone(),
        approximation: mark.approximation.clone(),
        repeats: mark.repeats.clone(),
    };
    let digest = Digest::of(&outcome);
    if digest != mark.digest {
        let what = format!("its records have digest {digest} instead of {}", mark.digest);
        return Err(Error::Damaged { path: folder.to_owned(), what });
    }
    Ok(PointOutcome { key: mark.key, seed: mark.seed, digest, outcome })
}

fn mark(point: &PointOutcome, files: BTreeMap<String, FileMark>) -> Mark {
    let outcome = &point.outcome;
    Mark {
        format: FORMAT,
        key: point.key.clone(),
        seed: point.seed,
        digest: point.digest,
        end_ps: outcome.end.as_ps(),
        warmup_ps: outcome.warmup.as_ps(),
        workloads: outcome
            .workloads
            .iter()
            .map(|workload| WorkloadMark {
                name: workload.name.clone(),
                kind: workload.kind.clone(),
                deadline_ps: workload.deadline.map(Span::as_ps),
                observed: workload.observed.clone(),
                supply: workload.supply,
                groups: workload.groups.clone(),
            })
            .collect(),
        tiers: outcome.tiers.clone(),
        counters: outcome.counters,
        extra: outcome.extra.clone(),
        queues: outcome
            .queues
            .iter()
            .map(|queue| QueueMark {
                name: queue.name.clone(),
                port: queue.port.clone(),
                rate_bps: queue.rate.as_bps(),
                every_ps: queue.every.as_ps(),
                from_ps: queue.from.as_ps(),
                drops: queue.drops,
                marks: queue.marks,
                packets: queue.packets,
                bytes: queue.bytes,
                time_at_ps: queue.time_at.clone(),
            })
            .collect(),
        processors: outcome
            .processors
            .iter()
            .map(|processor| ProcessorMark {
                host: processor.host,
                busy_ps: processor.busy.iter().map(|busy| busy.as_ps()).collect(),
                frames_received: processor.frames_received,
                frames_sent: processor.frames_sent,
                ring_drops: processor.ring_drops,
            })
            .collect(),
        faults: outcome
            .faults
            .iter()
            .map(|fault| FaultMark {
                link: fault.link.clone(),
                from_ps: fault.from.as_ps(),
                until_ps: fault.until.map(Time::as_ps),
                rate_bps: fault.rate.map(Rate::as_bps),
            })
            .collect(),
        warnings: outcome.warnings.clone(),
        mechanisms: outcome.mechanisms.clone(),
        delivered: DeliveredMark {
            observed_ps: outcome.delivered.observed.as_ps(),
            bytes: outcome.delivered.bytes.clone(),
        },
        blocked: outcome.blocked.clone(),
        approximation: outcome.approximation.clone(),
        repeats: outcome.repeats.clone(),
        files,
        checksum: seal::open(),
    }
}

fn names(workloads: &[WorkloadInfo]) -> Names {
    Names::new(workloads.iter().map(|workload| workload.name.clone()).collect())
}

fn intervals(queue: &QueueObservation, number: u32) -> impl Iterator<Item = QueueInterval> {
    (0..queue.mean_bytes.len().max(queue.max_bytes.len())).map(move |interval| QueueInterval {
        queue: number,
        name: queue.name.clone(),
        port: queue.port.clone(),
        time: queue.from.saturating_add(queue.every.saturating_mul(interval as u64)),
        mean_bytes: queue.mean_bytes.get(interval).copied(),
        max_bytes: queue.max_bytes.get(interval).copied(),
    })
}

fn queues(mark: &Mark, intervals: Vec<QueueInterval>) -> Vec<QueueObservation> {
    let mut queues: Vec<QueueObservation> = mark
        .queues
        .iter()
        .map(|queue| QueueObservation {
            name: queue.name.clone(),
            port: queue.port.clone(),
            rate: Rate::from_bps(queue.rate_bps),
            every: Span::from_ps(queue.every_ps),
            from: Time::from_ps(queue.from_ps),
            mean_bytes: Vec::new(),
            max_bytes: Vec::new(),
            time_at: queue.time_at_ps.clone(),
            drops: queue.drops,
            marks: queue.marks,
            packets: queue.packets,
            bytes: queue.bytes,
        })
        .collect();
    for interval in intervals {
        if let Some(queue) = queues.get_mut(interval.queue as usize) {
            queue.mean_bytes.extend(interval.mean_bytes);
            queue.max_bytes.extend(interval.max_bytes);
        }
    }
    queues
}

/// The files of a point that is being written.
struct WrittenFiles<'a> {
    folder: &'a Path,
    key: &'a PointKey,
    names: &'a Names,
    columns: Columns,
    written: BTreeMap<String, FileMark>,
}

impl WrittenFiles<'_> {
    fn write<R: Record>(&mut self, records: &[R]) -> Result<(), Error> {
        if records.is_empty() {
            return Ok(());
        }
        let mut writer = Writer::new();
        writer.text("variant");
        writer.text("replicate");
        self.key.sweep.iter().for_each(|(swept, _)| writer.text(swept));
        R::COLUMNS.iter().for_each(|(name, _)| writer.text(name));
        writer.end_row();
        let header = writer.take_text();
        let mut prefix = format!("{},{}", csv_cell(&self.key.variant), self.key.replicate);
        for (_, value) in &self.key.sweep {
            prefix.push(',');
            prefix.push_str(&csv_cell(value));
        }
        let file = self.columns.file(R::FILE);
        let path = self.folder.join(&*file);
        let mut table = TableWriter::new(Writing::create(&path)?, self.columns, &header)?;
        for records in records.chunks(RECORDS_AT_ONCE) {
            for record in records {
                writer.prefix(&prefix);
                record.write(&mut writer, self.names);
                writer.end_row();
            }
            table.put(&writer.take_text())?;
        }
        self.written.insert(file.into_owned(), table.finish()?.into());
        Ok(())
    }
}

/// Number of rows that are kept as text at once: a point may have more than fit into memory that way.
const RECORDS_AT_ONCE: usize = 4096;

fn read_records<R: Record>(folder: &Path, mark: &Mark, names: &Names) -> Result<Vec<R>, Error> {
    let forms = [Columns::Csv, Columns::Parquet].map(|columns| columns.file(R::FILE));
    let Some(file) = forms.iter().find(|file| mark.files.contains_key(&***file)) else {
        return Ok(Vec::new());
    };
    let path = folder.join(&**file);
    let text = table_file::rows(&path, verified(folder, mark, file)?)?;
    let key_columns = 2 + mark.key.sweep.len();
    let mut records = Vec::new();
    // The header is the first row.
    for (row, fields) in (2..).zip(reader(&text).into_records()) {
        let record = fields
            .map_err(|error| error.to_string())
            .and_then(|fields| R::read(&mut Fields::after(key_columns, &fields), names));
        let damaged = |what| Error::Damaged { path: path.clone(), what: format!("row {row}: {what}") };
        records.push(record.map_err(damaged)?);
    }
    Ok(records)
}
