//! [`ColumnMapping`]: which columns of a log mean what, and in which units.
//!
//! ```text
//! start=first,end=last,source=src,destination=dst,source_port=sport,destination_port=dport,bytes=octets:KB
//! ```
//!
//! A field has one column, or several of which the first with a value is taken: `source=src4_addr|src6_addr`. In JSON
//! a column is a path of keys: `connection.src_ip`.

use plimsoll_text::shortened;
use plimsoll_text::spelling::did_you_mean;

use super::quantity::ColumnUnit;
use crate::invalid::Invalid;

/// A field of a flow's record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub(crate) enum FlowField {
    Start,
    End,
    Duration,
    Source,
    Destination,
    SourcePort,
    DestinationPort,
    Protocol,
    Tos,
    Dscp,
    Bytes,
    Packets,
    ReplyBytes,
    ReplyPackets,
    Sampling,
    Exporter,
    Class,
}

/// The names of the fields, in the order of [`FlowField`].
const NAMES: &[(&str, FlowField)] = &[
    ("start", FlowField::Start),
    ("end", FlowField::End),
    ("duration", FlowField::Duration),
    ("source", FlowField::Source),
    ("destination", FlowField::Destination),
    ("source_port", FlowField::SourcePort),
    ("destination_port", FlowField::DestinationPort),
    ("protocol", FlowField::Protocol),
    ("tos", FlowField::Tos),
    ("dscp", FlowField::Dscp),
    ("bytes", FlowField::Bytes),
    ("packets", FlowField::Packets),
    ("reply_bytes", FlowField::ReplyBytes),
    ("reply_packets", FlowField::ReplyPackets),
    ("sampling", FlowField::Sampling),
    ("exporter", FlowField::Exporter),
    ("class", FlowField::Class),
];

impl FlowField {
    pub(crate) fn name(self) -> &'static str {
        NAMES.iter().find(|(_, field)| *field == self).map_or("", |(name, _)| name)
    }

    /// Returns the unit of values without one, and the units that a mapping may name; none for a field without units.
    fn units(self) -> (ColumnUnit, Vec<(&'static str, ColumnUnit)>) {
        match self {
            FlowField::Start | FlowField::End => {
                (ColumnUnit::Instant, ColumnUnit::times().chain([("date", ColumnUnit::Instant)]).collect())
            }
            FlowField::Duration => (ColumnUnit::Scaled(1_000_000_000, 1), ColumnUnit::times().collect()),
            FlowField::Bytes | FlowField::ReplyBytes => {
                (ColumnUnit::Scaled(1, 1), ColumnUnit::sizes().collect())
            }
            _ => (ColumnUnit::Scaled(1, 1), Vec::new()),
        }
    }

    /// Returns the names of the units that a mapping may name for this field.
    pub(crate) fn unit_names(self) -> String {
        self.units().1.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
    }
}

/// The columns of one field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct FieldColumns {
    pub(crate) field: FlowField,
    /// The names of the columns; the first with a value is taken.
    pub(crate) names: Vec<String>,
    pub(crate) unit: ColumnUnit,
}

impl FieldColumns {
    /// Parses the columns of a field, such as `octets:KB`; `place` is the option or file that has them.
    pub(crate) fn parse(place: &str, field: &str, columns: &str) -> Result<FieldColumns, Invalid> {
        let found = NAMES.iter().find(|(name, _)| *name == field);
        let Some((_, field)) = found else {
            let names = NAMES.iter().map(|(name, _)| *name);
            let mut problem = format!("unknown field \"{field}\"");
            if let Some(meant) = did_you_mean(field, names.clone()) {
                problem.push_str(&format!(" ({meant})"));
            }
            return Err(Invalid::new(
                place,
                problem,
                format!("one of {}", names.collect::<Vec<_>>().join(", ")),
            ));
        };
        let (unit, units) = field.units();
        let (columns, unit) = match columns.rsplit_once(':').filter(|_| !units.is_empty()) {
            Some((before, name)) => {
                let Some((_, unit)) = units.iter().find(|(known, _)| *known == name) else {
                    let mut problem = format!("unknown unit \"{}\" of {}", shortened(name, 40), field.name());
                    if let Some(meant) = did_you_mean(name, units.iter().map(|(name, _)| *name)) {
                        problem.push_str(&format!(" ({meant})"));
                    }
                    let allowed =
                        format!("one of {}, also after a column whose name has a `:`", field.unit_names());
                    return Err(Invalid::new(place, problem, allowed));
                };
                (before, *unit)
            }
            None => (columns, unit),
        };
        let names: Vec<String> = columns.split('|').map(|name| name.trim().to_owned()).collect();
        if names.iter().any(String::is_empty) {
            let problem = format!("the field {} has a column without a name", field.name());
            return Err(Invalid::new(place, problem, "FIELD=COLUMN, such as bytes=octets"));
        }
        Ok(FieldColumns { field: *field, names, unit })
    }
}

/// The columns of a log by their fields.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ColumnMapping {
    pub(crate) columns: Vec<FieldColumns>,
}

impl ColumnMapping {
    /// Checks that a flow can be made of these columns.
    pub(crate) fn new(place: &str, columns: Vec<FieldColumns>) -> Result<ColumnMapping, Invalid> {
        let mapping = ColumnMapping { columns };
        for (index, column) in mapping.columns.iter().enumerate() {
            if mapping.columns[..index].iter().any(|other| other.field == column.field) {
                let problem = format!("the field {} is given twice", column.field.name());
                return Err(Invalid::new(place, problem, "each field once; several columns as a|b"));
            }
        }
        for field in [FlowField::Source, FlowField::Destination, FlowField::Bytes] {
            if !mapping.has(field) {
                let problem = format!("no column for the field {}", field.name());
                return Err(Invalid::new(place, problem, "columns for source, destination and bytes"));
            }
        }
        if mapping.has(FlowField::SourcePort) != mapping.has(FlowField::DestinationPort) {
            return Err(Invalid::new(
                place,
                "a column for the port of one end",
                "ports of both ends, or of none",
            ));
        }
        Ok(mapping)
    }

    /// Parses the value of `--map`.
    pub(crate) fn parse(text: &str) -> Result<ColumnMapping, Invalid> {
        const PLACE: &str = "--map";
        let column = |part: &str| match part.split_once('=') {
            Some((field, columns)) => FieldColumns::parse(PLACE, field.trim(), columns.trim()),
            None => Err(Invalid::new(
                PLACE,
                format!("\"{part}\" has no `=`"),
                "FIELD=COLUMN, such as start=first,source=src,destination=dst,bytes=octets",
            )),
        };
        ColumnMapping::new(PLACE, text.split(',').map(column).collect::<Result<_, _>>()?)
    }

    pub(crate) fn has(&self, field: FlowField) -> bool {
        self.columns.iter().any(|column| column.field == field)
    }

    /// Returns whether records name connections, so that the records of one can be joined.
    pub(crate) fn has_ports(&self) -> bool {
        self.has(FlowField::SourcePort)
    }

    /// Returns the same mapping without the columns that a table may lack and does lack.
    pub(crate) fn within(&self, header: &[&str]) -> ColumnMapping {
        let is_there = |column: &&FieldColumns| {
            let is_needed = matches!(
                column.field,
                FlowField::Source | FlowField::Destination | FlowField::Bytes | FlowField::Class
            );
            is_needed || column.names.iter().any(|name| header.contains(&name.as_str()))
        };
        ColumnMapping { columns: self.columns.iter().filter(is_there).cloned().collect() }
    }

    /// Finds the place of each field's columns in the header of a table.
    pub(crate) fn places(&self, place: &str, header: &[&str]) -> Result<Vec<Vec<usize>>, Invalid> {
        let find = |column: &FieldColumns| {
            let places = column.names.iter().filter_map(|name| header.iter().position(|cell| cell == name));
            let places: Vec<usize> = places.collect();
            if places.is_empty() {
                let name = column.names.join("|");
                let mut problem = format!("no column \"{name}\" for the field {}", column.field.name());
                if let Some(meant) = did_you_mean(&name, header.iter().copied()) {
                    problem.push_str(&format!(" ({meant})"));
                }
                return Err(Invalid::new(
                    place,
                    problem,
                    format!("one of the columns {}", header.join(", ")),
                ));
            }
            Ok(places)
        };
        self.columns.iter().map(find).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_names_columns_and_units() {
        let mapping = ColumnMapping::parse("start=first:ms, source=a|b,destination=dst,bytes=kb:KB").unwrap();
        let columns: Vec<(&str, String, ColumnUnit)> = mapping
            .columns
            .iter()
            .map(|column| (column.field.name(), column.names.join("|"), column.unit))
            .collect();
        let text = str::to_owned;
        assert_eq!(
            columns,
            [
                ("start", text("first"), ColumnUnit::Scaled(1_000_000, 1)),
                ("source", text("a|b"), ColumnUnit::Scaled(1, 1)),
                ("destination", text("dst"), ColumnUnit::Scaled(1, 1)),
                ("bytes", text("kb"), ColumnUnit::Scaled(1000, 1)),
            ]
        );
        assert_eq!(
            mapping.places("f:1", &["b", "first", "dst", "kb"]).unwrap(),
            [vec![1], vec![0], vec![2], vec![3]]
        );
    }

    #[test]
    fn errors_name_the_nearest_spelling() {
        for (text, message) in [
            (
                "sorce=a",
                "--map: unknown field \"sorce\" (did you mean `source`?): expected one of start, end,",
            ),
            ("source=a,destination=b", "--map: no column for the field bytes: expected"),
            ("source", "--map: \"source\" has no `=`: expected FIELD=COLUMN"),
            ("source=a,source=b", "--map: the field source is given twice"),
            ("source=a,destination=b,bytes=c,source_port=d", "--map: a column for the port of one end"),
            ("source=", "--map: the field source has a column without a name"),
            (
                "start=t:msec",
                "--map: unknown unit \"msec\" of start (did you mean `ms`?): expected one of s, ms, us, ns, date, also",
            ),
            ("bytes=n:kb", "--map: unknown unit \"kb\" of bytes"),
        ] {
            let error = ColumnMapping::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
        let mapping = ColumnMapping::parse("source=src,destination=dst,bytes=octets").unwrap();
        let error = mapping.places("flows.csv:1", &["src", "dst", "octet"]).unwrap_err().to_string();
        assert_eq!(
            error,
            "flows.csv:1: no column \"octets\" for the field bytes (did you mean `octet`?): expected one of the \
             columns src, dst, octet"
        );
    }
}
