//! [`Intake`]: the values of a record become an observation, or are counted as ignored or damaged.

use std::borrow::Cow;
use std::collections::BTreeMap;

use hashbrown::HashMap;
use plimsoll_text::{counted, shortened};

use super::mapping::{ColumnMapping, FlowField};
use super::observations::{FlowObservation, Observations, RecordKey};
use crate::found::{Note, Remark};
use crate::invalid::Invalid;

/// Names by number, in order of appearance.
#[derive(Default)]
pub(crate) struct NumberedNames {
    pub(crate) names: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl NumberedNames {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// The classes that the flows are divided into; each becomes a workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FlowClassBy {
    /// By the lower of the two ports, which is the server's.
    Port,
    /// By the code point of differentiated services.
    Dscp,
    /// By a column of the file.
    Column(String),
    /// All flows are in one class.
    One,
}

/// The settings of a file's records.
pub(crate) struct RecordSettings<'a> {
    pub(crate) mapping: &'a ColumnMapping,
    pub(crate) class_by: &'a FlowClassBy,
    /// The values of columns that a record of traffic has, by the place of the column in the row.
    pub(crate) only: &'a [(usize, String, Vec<String>)],
    /// One packet in this many is sampled, where the record does not say it.
    pub(crate) sampling: u64,
    /// The record has already been multiplied by its sampling rate.
    pub(crate) is_scaled: bool,
    /// Each record is one packet.
    pub(crate) is_packets: bool,
    /// A record without bytes is of a flow's begin.
    pub(crate) has_begins: bool,
}

/// A row of a log: the values of the mapping's columns, then of the columns of the settings' `only`.
pub(crate) type RecordRow<'a> = [Option<Cow<'a, str>>];

/// Everything that the files had.
pub(crate) struct Intake {
    pub(crate) hosts: NumberedNames,
    pub(crate) exporters: NumberedNames,
    /// The values of the class's column.
    pub(crate) classes: NumberedNames,
    pub(crate) observations: Observations,
    /// The number of records that are not imported, by the reason.
    pub(crate) ignored: BTreeMap<String, u64>,
    /// The first damaged record, in words.
    damaged_first: Option<String>,
    damaged: u64,
    pub(crate) records: u64,
    /// The highest sampling rate of a record.
    pub(crate) sampling_max: u64,
    /// The number of records without a number of packets, whose bytes may include headers.
    pub(crate) without_packets: u64,
}

/// This many damaged records are left out of any log; above it, one in this many.
const DAMAGED_MAX: u64 = 100;

impl Intake {
    pub(crate) fn new(gap: u64) -> Intake {
        Intake {
            hosts: NumberedNames::default(),
            exporters: NumberedNames::default(),
            classes: NumberedNames::default(),
            observations: Observations::new(gap),
            ignored: BTreeMap::new(),
            damaged_first: None,
            damaged: 0,
            records: 0,
            sampling_max: 1,
            without_packets: 0,
        }
    }

    /// Takes a record; `place` is its file and line.
    ///
    /// # Errors
    /// Returns an error if too many records are damaged, or if there are too many flows.
    pub(crate) fn take(
        &mut self,
        place: impl Fn() -> String,
        settings: &RecordSettings<'_>,
        row: &RecordRow<'_>,
    ) -> Result<(), Invalid> {
        match self.observe(settings, row) {
            Ok(Some(both)) => {
                self.records += 1;
                both.into_iter().flatten().try_for_each(|observation| self.observations.push(observation))
            }
            Ok(None) => Ok(()),
            Err(problem) => self.damage(place(), &problem),
        }
    }

    /// Counts a damaged record.
    ///
    /// # Errors
    /// Returns an error if there are more than a log may have.
    pub(crate) fn damage(&mut self, place: String, problem: &str) -> Result<(), Invalid> {
        self.damaged += 1;
        if self.damaged > DAMAGED_MAX + self.records / DAMAGED_MAX {
            let problem =
                format!("{problem}; {} before it are damaged, too", counted(self.damaged - 1, "record"));
            let allowed = format!("at most {DAMAGED_MAX} damaged records, and one in {DAMAGED_MAX} more");
            return Err(Invalid::new(place, problem, allowed));
        }
        self.damaged_first.get_or_insert_with(|| format!("{place}: {problem}"));
        Ok(())
    }

    /// Returns the note on damaged records, if there are any.
    pub(crate) fn damage_note(&self) -> Option<Note> {
        let first = self.damaged_first.as_ref()?;
        let text = format!("{} left out; the first: {first}", counted(self.damaged, "damaged record"));
        Some(Note { remark: Remark::Ignored, text })
    }

    fn ignore(&mut self, reason: String) {
        *self.ignored.entry(reason).or_default() += 1;
    }

    /// Returns the observations of a record, one for each direction; none if it is ignored.
    fn observe(
        &mut self,
        settings: &RecordSettings<'_>,
        row: &RecordRow<'_>,
    ) -> Result<Option<[Option<FlowObservation>; 2]>, String> {
        let values = RecordValues { mapping: settings.mapping, row };
        for (place, column, allowed) in settings.only {
            if let Some(value) =
                row[*place].as_deref().filter(|value| !allowed.iter().any(|other| other == value))
            {
                self.ignore(format!("whose {column} is {}", shortened(value, 40)));
                return Ok(None);
            }
        }
        let (Some(source), Some(destination)) =
            (values.text(FlowField::Source), values.text(FlowField::Destination))
        else {
            self.ignore("without addresses".to_owned());
            return Ok(None);
        };
        let protocol = match values.text(FlowField::Protocol).map(protocol_number) {
            None | Some(Ok(TCP)) => TCP,
            Some(Ok(UDP)) => UDP,
            Some(Ok(other)) => {
                self.ignore(format!("of protocol {other}, which is neither TCP nor UDP"));
                return Ok(None);
            }
            Some(Err(name)) => {
                self.ignore(format!("of protocol {}, which is neither TCP nor UDP", shortened(name, 40)));
                return Ok(None);
            }
        };
        if source == destination {
            self.ignore("from a host to itself".to_owned());
            return Ok(None);
        }
        let (start, end) = values.range(self.records)?;
        let port = |field| match values.number(field)? {
            None => Ok(0),
            Some(port) => {
                u16::try_from(port).map_err(|_| format!("invalid value {port} for {}", field.name()))
            }
        };
        let (source_port, destination_port) =
            (port(FlowField::SourcePort)?, port(FlowField::DestinationPort)?);
        let class = match settings.class_by {
            FlowClassBy::One => 0,
            FlowClassBy::Port => u32::from(source_port.min(destination_port)),
            FlowClassBy::Dscp => match values.number(FlowField::Dscp)? {
                Some(code) => code as u32,
                None => values.number(FlowField::Tos)?.unwrap_or(0) as u32 >> 2,
            },
            FlowClassBy::Column(_) => self.classes.number(values.text(FlowField::Class).unwrap_or("")),
        };
        let sampled = match values.number(FlowField::Sampling)?.filter(|rate| *rate > 0) {
            Some(rate) => rate,
            None => settings.sampling,
        };
        let times = if settings.is_scaled && settings.sampling == 1 { 1 } else { sampled };
        self.sampling_max = self.sampling_max.max(times);
        let none_yet = settings.has_begins.then_some(0);
        let bytes = values.number(FlowField::Bytes)?.or(none_yet).ok_or("no value for bytes")?;
        let packets =
            if settings.is_packets { Some(1) } else { values.number(FlowField::Packets)?.or(none_yet) };
        self.without_packets += u64::from(packets.is_none());
        let replies =
            (values.number(FlowField::ReplyBytes)?.unwrap_or(0), values.number(FlowField::ReplyPackets)?);
        let exporter = values.text(FlowField::Exporter).unwrap_or("");
        let serial = if settings.mapping.has_ports() { 0 } else { (self.records + 1) as u32 };
        let key = RecordKey {
            source: self.hosts.number(source),
            destination: self.hosts.number(destination),
            source_port,
            destination_port,
            protocol,
            class,
            serial,
        };
        let exporter = self.exporters.number(exporter);
        let observation = |key, bytes: u64, packets: u64| FlowObservation {
            key,
            exporter,
            start,
            end,
            bytes: bytes.saturating_mul(times),
            packets: packets.saturating_mul(times),
            samples: if times > 1 { packets } else { 0 },
        };
        let back = RecordKey {
            source: key.destination,
            destination: key.source,
            source_port: key.destination_port,
            destination_port: key.source_port,
            ..key
        };
        let reply = (replies.0 > 0 || settings.has_begins)
            .then(|| observation(back, replies.0, replies.1.unwrap_or(0)));
        Ok(Some([Some(observation(key, bytes, packets.unwrap_or(0))), reply]))
    }
}

pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

/// Returns the number of a protocol by its number, name or initial; the name if it is not TCP's or UDP's.
fn protocol_number(text: &str) -> Result<u8, &str> {
    match text {
        "T" => Ok(TCP),
        "U" => Ok(UDP),
        _ if text.eq_ignore_ascii_case("tcp") => Ok(TCP),
        _ if text.eq_ignore_ascii_case("udp") => Ok(UDP),
        _ => text.parse().map_err(|_| text),
    }
}

/// The values of a record by their fields.
struct RecordValues<'a> {
    mapping: &'a ColumnMapping,
    row: &'a RecordRow<'a>,
}

impl<'a> RecordValues<'a> {
    /// Returns the text of a field; `-` and an empty cell are no value.
    fn text(&self, field: FlowField) -> Option<&'a str> {
        let place = self.mapping.columns.iter().position(|column| column.field == field)?;
        self.row[place].as_deref().filter(|text| !text.is_empty() && *text != "-")
    }

    /// Returns the number of a field in its basic unit.
    fn number(&self, field: FlowField) -> Result<Option<u64>, String> {
        let Some(text) = self.text(field) else { return Ok(None) };
        let unit = self.mapping.columns.iter().find(|column| column.field == field).map(|column| column.unit);
        let hexadecimal = text.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let number = hexadecimal.or_else(|| unit.and_then(|unit| unit.parse(text)));
        number.map(Some).ok_or_else(|| {
            let problem = format!("invalid value \"{}\" for {}", shortened(text, 40), field.name());
            let is_time = matches!(field, FlowField::Start | FlowField::End | FlowField::Duration);
            if is_time && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
                return format!("{problem}: too large for its unit, of {}", field.unit_names());
            }
            problem
        })
    }

    /// Returns the first and the last time of a record in nanoseconds; its number if the log has no times.
    fn range(&self, number: u64) -> Result<(u64, u64), String> {
        if !self.mapping.has(FlowField::Start) {
            return Ok((number, number));
        }
        let start = self.number(FlowField::Start)?.ok_or("no value for start")?;
        let end = match (self.number(FlowField::End)?, self.number(FlowField::Duration)?) {
            (Some(end), _) => end,
            (None, Some(duration)) => start.saturating_add(duration),
            (None, None) => start,
        };
        if let Some(factor) = other_unit(start, end) {
            return Err(format!(
                "start and end differ by a factor of {factor}, as if one of them had another unit"
            ));
        }
        if end < start {
            return Err("its end is before its start".to_owned());
        }
        Ok((start, end))
    }
}

/// Returns the ratio of two times if it is that of two units, to a part in a thousand. Times of the first twelve days
/// after 1970 are relative ones, which may have any ratio.
fn other_unit(start: u64, end: u64) -> Option<u64> {
    let (low, high) = (start.min(end), start.max(end));
    let is_ratio = |factor: &u64| low.saturating_mul(*factor).abs_diff(high) <= high / 1000;
    [1_000, 1_000_000, 1_000_000_000].into_iter().find(is_ratio).filter(|_| high >= 1_000_000_000_000_000)
}
