//! [`LogFormat`]: the formats of logs that are recognised by their first line. Each is a file in `formats/`.

use std::collections::BTreeMap;

use plimsoll_text::shortened;
use plimsoll_text::spelling::did_you_mean;
use plimsoll_units::Span;
use serde::Deserialize;
use serde_json::Value;

use super::lines::Separator;
use super::mapping::{ColumnMapping, FieldColumns};
use super::objects::text_at;
use crate::invalid::Invalid;

/// The known formats, with the names that `--format` has for them. Of two that fit, the first is taken.
const FORMATS: &[(&str, &str)] = &[
    ("nfdump-csv", include_str!("../../formats/nfdump-csv.toml")),
    ("nfdump-fast-csv", include_str!("../../formats/nfdump-fast-csv.toml")),
    ("nfdump-short-csv", include_str!("../../formats/nfdump-short-csv.toml")),
    ("nfdump-json", include_str!("../../formats/nfdump-json.toml")),
    ("sflow", include_str!("../../formats/sflow.toml")),
    ("aws-vpc", include_str!("../../formats/aws-vpc.toml")),
    ("gcp-vpc", include_str!("../../formats/gcp-vpc.toml")),
    ("azure-nsg", include_str!("../../formats/azure-nsg.toml")),
    ("azure-vnet", include_str!("../../formats/azure-vnet.toml")),
];

/// The structure of a log's records.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Structure {
    /// A line a record, with commas or another character between the cells.
    Csv,
    /// A line a record, with white space between the cells.
    Blanks,
    /// An object of JSON for each record.
    Json,
}

/// A format, as its file describes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FormatFile {
    kind: Structure,
    /// The columns or keys by which a file is recognised.
    #[serde(default)]
    begins: Vec<String>,
    /// The first characters of a record by which a file without a header is recognised.
    #[serde(default)]
    starts: Vec<String>,
    /// The columns of a file without a header, or of the records of `within`.
    #[serde(default)]
    header: Vec<String>,
    /// The arrays on the way from an object to its records, each of which is a text of cells, separated by commas.
    #[serde(default)]
    within: Vec<String>,
    /// The line after which no records follow.
    end: Option<String>,
    /// Bytes and packets are already multiplied by the sampling rate.
    #[serde(default)]
    scaled: bool,
    /// Each record is one sampled packet.
    #[serde(default)]
    packets: bool,
    /// The records of a flow follow each other; one without bytes is of its begin.
    #[serde(default)]
    states: bool,
    /// The longest time between two records of one flow.
    join: Option<Span>,
    columns: BTreeMap<String, String>,
    /// The values of columns that a record of traffic has, where the column is there.
    #[serde(default)]
    only: BTreeMap<String, Vec<String>>,
}

/// The description of a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LogFormat {
    pub(crate) name: String,
    pub(crate) structure: Structure,
    pub(crate) separator: char,
    pub(crate) mapping: ColumnMapping,
    /// The columns of a file without a header, or of the records within an object.
    pub(crate) header: Option<Vec<String>>,
    /// The arrays on the way from an object to its records; none where each object is a record.
    pub(crate) within: Vec<String>,
    pub(crate) end: Option<String>,
    pub(crate) is_scaled: bool,
    pub(crate) is_packets: bool,
    pub(crate) has_begins: bool,
    /// The longest time between two records of one flow.
    pub(crate) join: Option<Span>,
    pub(crate) only: BTreeMap<String, Vec<String>>,
    /// Columns that a file may lack are left out.
    pub(crate) may_lack_columns: bool,
}

impl LogFormat {
    /// Returns the names of all known formats.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
        FORMATS.iter().map(|(name, _)| *name)
    }

    /// Returns the format of a name.
    pub(crate) fn named(name: &str) -> Result<LogFormat, Invalid> {
        let found = FORMATS.iter().find(|(known, _)| *known == name);
        let Some((name, text)) = found else {
            let meant = did_you_mean(name, LogFormat::names())
                .map_or_else(String::new, |meant| format!(" ({meant})"));
            return Err(Invalid::new("--format", format!("unknown format \"{name}\"{meant}"), allowed()));
        };
        Ok(LogFormat::from_file(name, parsed(text)))
    }

    /// Returns the format of a mapping.
    pub(crate) fn mapped(mapping: ColumnMapping, structure: Structure, separator: char) -> LogFormat {
        LogFormat {
            name: "--map".to_owned(),
            structure,
            separator,
            mapping,
            header: None,
            within: Vec::new(),
            end: None,
            is_scaled: false,
            is_packets: false,
            has_begins: false,
            join: None,
            only: BTreeMap::new(),
            may_lack_columns: false,
        }
    }

    /// Recognises the format of a log by its first line, or its first object; `place` is named in the error.
    pub(crate) fn recognise(place: &str, first: &str) -> Result<LogFormat, Invalid> {
        let object: Option<Value> =
            first.starts_with('{').then(|| serde_json::from_str(first).ok()).flatten();
        for (name, text) in FORMATS {
            let file = parsed(text);
            let fits = match (&object, file.kind) {
                (Some(object), Structure::Json) => {
                    file.begins.iter().all(|key| text_at(object, key).is_some())
                }
                (None, Structure::Csv | Structure::Blanks) => {
                    let cells = separator(file.kind, ',').cells(first);
                    let has = |name: &String| cells.iter().any(|cell| cell == name);
                    let is_header = !file.begins.is_empty() && file.begins.iter().all(has);
                    let is_record = file.starts.iter().any(|start| first.starts_with(start));
                    is_header
                        || is_record && (file.kind == Structure::Csv || cells.len() == file.header.len())
                }
                _ => false,
            };
            if fits {
                return Ok(LogFormat::from_file(name, file));
            }
        }
        let problem = format!("the format of \"{}\" is not known", shortened(first, 80));
        Err(Invalid::new(place, problem, format!("{}; --map names the columns of other files", allowed())))
    }

    fn from_file(name: &str, file: FormatFile) -> LogFormat {
        let column = |(field, columns): (&String, &String)| FieldColumns::parse(name, field, columns);
        let columns: Result<Vec<FieldColumns>, Invalid> = file.columns.iter().map(column).collect();
        let mapping = columns.and_then(|columns| ColumnMapping::new(name, columns));
        LogFormat {
            name: name.to_owned(),
            structure: file.kind,
            separator: ',',
            mapping: mapping.expect("a test reads every file of formats/"),
            header: (!file.header.is_empty()).then_some(file.header),
            within: file.within,
            end: file.end,
            is_scaled: file.scaled,
            is_packets: file.packets,
            has_begins: file.states,
            join: file.join,
            only: file.only,
            may_lack_columns: true,
        }
    }

    /// Returns the separator of a table's cells.
    pub(crate) fn separator(&self) -> Separator {
        separator(self.structure, self.separator)
    }
}

fn separator(structure: Structure, character: char) -> Separator {
    match structure {
        Structure::Blanks => Separator::Blanks,
        Structure::Csv | Structure::Json => Separator::Character(character),
    }
}

fn parsed(text: &str) -> FormatFile {
    toml::from_str(text).expect("a test reads every file of formats/")
}

fn allowed() -> String {
    format!("one of the formats {}", LogFormat::names().collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_read_and_recognised() {
        for (name, text) in FORMATS {
            let file = parsed(text);
            let format = LogFormat::named(name).unwrap();
            for start in &file.starts {
                let words = " x".repeat(file.header.len() - 1);
                let first = if file.kind == Structure::Blanks { format!("2{words}") } else { start.clone() };
                assert_eq!(LogFormat::recognise("f:1", &first).unwrap().name, *name);
            }
            if !file.begins.is_empty() {
                let first = match file.kind {
                    Structure::Json => {
                        let mut object = serde_json::json!({});
                        for key in &file.begins {
                            object[key] = 1.into();
                        }
                        object.to_string()
                    }
                    _ => format.separator().joined(&file.begins),
                };
                assert_eq!(LogFormat::recognise("f:1", &first).unwrap().name, *name, "{first}");
            }
        }
        let error = LogFormat::recognise("f:1", "a,b,c").unwrap_err().to_string();
        assert!(error.starts_with(
            "f:1: the format of \"a,b,c\" is not known: expected one of the formats nfdump-csv,"
        ));
        let error = LogFormat::named("nfdump").unwrap_err().to_string();
        assert!(error.starts_with("--format: unknown format \"nfdump\": expected one of"), "{error}");
    }

    impl Separator {
        fn joined(self, cells: &[String]) -> String {
            match self {
                Separator::Blanks => cells.join(" "),
                Separator::Character(separator) => cells.join(&separator.to_string()),
            }
        }
    }
}
