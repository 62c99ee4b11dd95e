//! Flow logs: NetFlow, IPFIX, sFlow and VPC flow logs as text, and any CSV or JSON by a mapping of its columns.
//!
//! ```text
//! file ──LogLines, Objects──> rows ──LogFormat: its mapping──> Intake ──> Observations ──assemble──> ImportFound
//!         one at a time              recognised, or given       ignored,   joined,          classes,
//!                                                               damaged    once each        payload, notes
//! ```

mod assemble;
mod format;
mod intake;
mod lines;
mod mapping;
mod objects;
mod observations;
mod quantity;

use std::borrow::Cow;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use plimsoll_files::Origin;
use plimsoll_units::Span;
use serde_json::Value;

pub use intake::FlowClassBy;

use crate::found::ImportFound;
use crate::invalid::Invalid;
use format::{LogFormat, Structure};
use intake::{Intake, RecordSettings};
use lines::LogLines;
use mapping::{ColumnMapping, FieldColumns, FlowField};
use objects::{Objects, text_at, texts_within};
use quantity::ColumnUnit;

/// The settings of an import of flow logs; everything that is `None` follows from the files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowSettings {
    /// The columns by their fields, such as `start=first:ms,source=src,destination=dst,bytes=octets`.
    pub map: Option<String>,
    /// The name of a known format.
    pub format: Option<String>,
    /// The columns of files without a header, separated by commas.
    pub header: Option<String>,
    /// The character between the cells of a table; a blank means any white space.
    pub separator: char,
    /// The classes that become workloads.
    pub class_by: FlowClassBy,
    /// One packet in this many was sampled.
    pub sampling: Option<u64>,
    /// The longest time between two records of one connection that are one flow.
    pub join: Option<Span>,
    /// The time that a log without times covers.
    pub duration: Option<Span>,
}

impl Default for FlowSettings {
    fn default() -> FlowSettings {
        FlowSettings {
            map: None,
            format: None,
            header: None,
            separator: ',',
            class_by: FlowClassBy::Port,
            sampling: None,
            join: None,
            duration: None,
        }
    }
}

/// The gap between records that are joined: an active timeout cuts a flow between two packets.
const JOIN: Span = Span::from_secs(1);

/// Reads flow logs, all of which belong to one network and one time.
///
/// # Errors
/// Returns an error that names the place if a file cannot be read, its format is not known, a column is missing, too
/// many records are damaged, or nothing is found.
pub fn read(files: &[PathBuf], settings: &FlowSettings) -> Result<ImportFound, Invalid> {
    let mut import = Import {
        settings,
        intake: None,
        times: true,
        gap: JOIN,
        names: false,
        notes: assemble::LogFacts::default(),
    };
    for path in files {
        let name = path.display().to_string();
        let input = open(path).map_err(|error| Invalid::unreadable(&name, &error))?;
        import.file(&name, input)?;
    }
    let Some(intake) = import.intake else {
        return Err(Invalid::new("flows", "no files", "one or more flow logs"));
    };
    let without_effect = [
        (
            "--header",
            settings.header.is_some() && !import.names,
            "each file names its columns",
            "a table without names",
        ),
        (
            "--duration",
            settings.duration.is_some() && import.times,
            "the records have times",
            "a log without times",
        ),
        ("--join", settings.join.is_some() && !import.times, "the records have no times", "a log with times"),
    ];
    if let Some((option, _, problem, allowed)) = without_effect.into_iter().find(|(_, is_so, ..)| *is_so) {
        return Err(Invalid::new(option, format!("no effect, since {problem}"), allowed));
    }
    assemble::found(intake, settings, import.times, import.gap, import.notes)
}

fn open(path: &Path) -> std::io::Result<BufReader<std::fs::File>> {
    Ok(BufReader::new(plimsoll_files::open_to_read(path, Origin::Argument)?))
}

/// An import of several files while they are read.
struct Import<'a> {
    settings: &'a FlowSettings,
    intake: Option<Intake>,
    /// True if the records of the logs have times.
    times: bool,
    gap: Span,
    /// True if a file had the columns of `--header`.
    names: bool,
    notes: assemble::LogFacts,
}

impl Import<'_> {
    fn file(&mut self, name: &str, mut input: impl BufRead) -> Result<(), Invalid> {
        let unreadable = |error| Invalid::unreadable(name, &error);
        let start = input.fill_buf().map_err(unreadable)?;
        let start = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start);
        let is_json = matches!(start.trim_ascii_start().first(), Some(b'{' | b'['));
        if is_json { self.objects(name, input) } else { self.table(name, input) }
    }

    /// Returns the format of a file, from the options or its first line or object.
    fn format(&self, place: &str, first: &str, structure: Structure) -> Result<LogFormat, Invalid> {
        let settings = self.settings;
        let mut format = match (&settings.map, &settings.format) {
            (Some(map), _) => LogFormat::mapped(ColumnMapping::parse(map)?, structure, settings.separator),
            (None, Some(name)) => LogFormat::named(name)?,
            (None, None) => LogFormat::recognise(place, first)?,
        };
        if (format.structure == Structure::Json) != (structure == Structure::Json) {
            let (found, wanted) = match structure {
                Structure::Json => ("JSON", "a table"),
                _ => ("no JSON", "an array of objects, or an object a line"),
            };
            return Err(Invalid::new(place, format!("the file is {found}"), wanted));
        }
        if let Some(header) = settings.header.as_ref().filter(|_| structure != Structure::Json) {
            format.header = Some(header.split(',').map(|name| name.trim().to_owned()).collect());
        }
        if let FlowClassBy::Column(column) = &settings.class_by {
            let class = FieldColumns {
                field: FlowField::Class,
                names: vec![column.clone()],
                unit: ColumnUnit::Scaled(1, 1),
            };
            format.mapping.columns.retain(|column| column.field != FlowField::Class);
            format.mapping.columns.push(class);
        }
        Ok(format)
    }

    /// Prepares for the records of a file, whose columns are known.
    fn begin(
        &mut self,
        place: &str,
        format: &LogFormat,
        mapping: &ColumnMapping,
    ) -> Result<FlowClassBy, Invalid> {
        let times = mapping.has(FlowField::Start);
        if !times && self.settings.duration.is_none() {
            let allowed = "--duration, over which its records are spread evenly, or a column with times";
            return Err(Invalid::new(
                place,
                format!("a log of the format {} has no times", format.name),
                allowed,
            ));
        }
        if self.intake.is_some() && times != self.times {
            return Err(Invalid::new(place, "logs with and without times", "all with times, or all without"));
        }
        if self.intake.is_none() {
            self.times = times;
            self.gap = match self.settings.join {
                _ if !times => Span::MAX,
                Some(gap) => gap,
                None => format.join.unwrap_or(JOIN),
            };
            self.intake = Some(Intake::new(self.gap.as_ps() / 1000));
        }
        self.notes.file(place, &format.name, mapping);
        let by_dscp = mapping.has(FlowField::Tos) || mapping.has(FlowField::Dscp);
        match &self.settings.class_by {
            FlowClassBy::Dscp if !by_dscp => {
                Err(Invalid::new("--class", "the log has no code points", "port, none or a column"))
            }
            FlowClassBy::Port if !mapping.has_ports() => Ok(FlowClassBy::One),
            class_by => Ok(class_by.clone()),
        }
    }

    fn objects(&mut self, name: &str, input: impl BufRead) -> Result<(), Invalid> {
        let unreadable = |error| Invalid::unreadable(name, &error);
        let mut objects = Objects::new(input);
        let mut known: Option<(LogFormat, FlowClassBy)> = None;
        while let Some(text) = objects.next().map_err(unreadable)? {
            let text = String::from_utf8_lossy(text).into_owned();
            let line = objects.line;
            let place = || format!("{name}:{line}");
            if known.is_none() {
                let format = self.format(&place(), &text, Structure::Json)?;
                let class_by = self.begin(name, &format, &format.mapping)?;
                known = Some((format, class_by));
            }
            let (Some((format, class_by)), Some(intake)) = (&known, &mut self.intake) else { continue };
            let object: Value = match serde_json::from_str(&text) {
                Ok(object) => object,
                Err(error) => {
                    intake.damage(place(), &format!("no object of JSON: {error}"))?;
                    continue;
                }
            };
            let first = format.mapping.columns.len();
            let only = (first..).zip(&format.only);
            let only: Vec<_> = only.map(|(at, (key, values))| (at, key.clone(), values.clone())).collect();
            let record = record_settings(self.settings, format, &format.mapping, class_by, &only);
            let row = |value: &dyn Fn(&String) -> Option<String>| -> Vec<Option<Cow<'_, str>>> {
                let columns = format.mapping.columns.iter().map(|column| column.names.iter().find_map(value));
                columns.chain(format.only.keys().map(value)).map(|cell| cell.map(Cow::Owned)).collect()
            };
            if format.within.is_empty() {
                intake.take(place, &record, &row(&|name| text_at(&object, name)))?;
            }
            let header = format.header.as_deref().unwrap_or_default();
            for text in texts_within(&object, &format.within) {
                let cells: Vec<&str> = text.split(',').map(str::trim).collect();
                if cells.len() != header.len() {
                    let wanted = format!("where the format {} has {}", format.name, header.len());
                    intake.damage(place(), &format!("{} cells {wanted}", cells.len()))?;
                    continue;
                }
                let value = |name: &String| match header.iter().position(|column| column == name) {
                    Some(at) => Some(cells[at].to_owned()),
                    None => text_at(&object, name),
                };
                intake.take(place, &record, &row(&value))?;
            }
        }
        if known.is_none() {
            return Err(Invalid::new(name, "no objects", "an array of objects, or an object a line"));
        }
        Ok(())
    }

    fn table(&mut self, name: &str, input: impl BufRead) -> Result<(), Invalid> {
        let unreadable = |error| Invalid::unreadable(name, &error);
        let mut lines = LogLines::new(input);
        let first = loop {
            match lines.next().map_err(unreadable)? {
                None => return Err(Invalid::new(name, "an empty file", "a flow log")),
                Some(line) if line.is_empty() || line.starts_with('#') => {}
                Some(line) => break line.into_owned(),
            }
        };
        let place = format!("{name}:{}", lines.number);
        let structure = if self.settings.separator == ' ' { Structure::Blanks } else { Structure::Csv };
        let format = self.format(&place, &first, structure)?;
        let separator = format.separator();
        let first_cells = separator.cells(&first);
        let mut header: Vec<&str> = first_cells.iter().map(|cell| &**cell).collect();
        let mut is_header = true;
        if let Some(known) = &format.header {
            let has = |column: &FieldColumns| column.names.iter().any(|name| header.contains(&name.as_str()));
            is_header =
                format.mapping.columns.iter().filter(|column| column.field != FlowField::Class).any(has);
            if !is_header {
                header = known.iter().map(String::as_str).collect();
                self.names = true;
            }
        }
        let mapping =
            if format.may_lack_columns { format.mapping.within(&header) } else { format.mapping.clone() };
        let places = mapping.places(&place, &header)?;
        let class_by = self.begin(name, &format, &mapping)?;
        let only = format.only.iter().filter_map(|(column, values)| {
            Some((header.iter().position(|cell| cell == column)?, column.clone(), values.clone()))
        });
        let filters: Vec<(usize, String, Vec<String>)> = only.collect();
        let only = (mapping.columns.len()..).zip(&filters);
        let only: Vec<_> =
            only.map(|(at, (_, column, values))| (at, column.clone(), values.clone())).collect();
        let record = record_settings(self.settings, &format, &mapping, &class_by, &only);
        let Some(intake) = &mut self.intake else { return Ok(()) };
        let mut table = FlowTable { name, places, filters, columns: header.len(), record, intake };
        if !is_header {
            table.line(lines.number, &separator.cells(&first))?;
        }
        let mut is_ended = false;
        loop {
            let number = lines.number + 1;
            let Some(line) = lines.next().map_err(unreadable)? else { return Ok(()) };
            let is_again = is_header && line == first;
            is_ended = !is_again && (is_ended || format.end.as_deref() == Some(&*line));
            if !(is_ended || is_again || line.is_empty() || line.starts_with('#')) {
                table.line(number, &separator.cells(&line))?;
            }
        }
    }
}

fn record_settings<'a>(
    settings: &FlowSettings,
    format: &LogFormat,
    mapping: &'a ColumnMapping,
    class_by: &'a FlowClassBy,
    only: &'a [(usize, String, Vec<String>)],
) -> RecordSettings<'a> {
    RecordSettings {
        mapping,
        class_by,
        only,
        sampling: settings.sampling.unwrap_or(1),
        is_scaled: format.is_scaled,
        is_packets: format.is_packets,
        has_begins: format.has_begins,
    }
}

/// A table whose columns are known.
struct FlowTable<'a> {
    name: &'a str,
    places: Vec<Vec<usize>>,
    /// The columns that decide which records are taken, with their places.
    filters: Vec<(usize, String, Vec<String>)>,
    columns: usize,
    record: RecordSettings<'a>,
    intake: &'a mut Intake,
}

impl FlowTable<'_> {
    fn line(&mut self, number: u64, cells: &[Cow<'_, str>]) -> Result<(), Invalid> {
        let place = || format!("{}:{number}", self.name);
        let is_filtered = |(place, _, values): &(usize, String, Vec<String>)| {
            cells.get(*place).is_some_and(|cell| !values.iter().any(|value| value == cell))
        };
        // Lines of another kind may have another number of cells.
        if cells.len() != self.columns && !self.filters.iter().any(is_filtered) {
            let problem = format!("{} cells where the header has {}", cells.len(), self.columns);
            return self.intake.damage(place(), &problem);
        }
        let cell = |place: &usize| cells.get(*place).map(|cell| Cow::Borrowed(&**cell));
        let value = |places: &Vec<usize>| {
            let mut with_value = places.iter().filter_map(cell);
            with_value.find(|cell: &Cow<'_, str>| !cell.is_empty())
        };
        let mut row: Vec<Option<Cow<'_, str>>> = self.places.iter().map(value).collect();
        row.extend(self.filters.iter().map(|(place, ..)| cell(place)));
        self.intake.take(place, &self.record, &row)
    }
}
