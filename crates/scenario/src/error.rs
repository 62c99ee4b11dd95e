//! [`ScenarioError`] and [`Warning`]: what is wrong, where, what would be right, and the source line
//! with a caret under the culprit.

use std::fmt;

use crate::source::{Origin, Sources};

/// One thing wrong with a scenario.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError(pub Report);

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Rendered { severity: "error", report: &self.0 }.fmt(f)
    }
}

impl std::error::Error for ScenarioError {}

/// Something that is allowed and probably not meant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Warning(pub Report);

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Rendered { severity: "warning", report: &self.0 }.fmt(f)
    }
}

impl std::ops::Deref for ScenarioError {
    type Target = Report;
    fn deref(&self) -> &Report {
        &self.0
    }
}

impl std::ops::Deref for Warning {
    type Target = Report;
    fn deref(&self) -> &Report {
        &self.0
    }
}

/// What an error or a warning says and which place it speaks of.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// The file's name as it was given, or `--set`, `--seed`.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The dotted key; empty for an error of syntax.
    pub key: String,
    /// What is wrong, with the bad value.
    pub message: String,
    /// What is allowed.
    pub allowed: Option<String>,
    /// What to do about it: the nearest spelling, or which key to turn off.
    pub help: Option<String>,
    /// Which layer set the value, and in which variants it is wrong.
    pub notes: Vec<String>,
    /// The source line.
    pub source_line: String,
    /// Characters under the caret.
    pub width: usize,
}

impl Report {
    /// A report about `key` that points at `origin`.
    pub(crate) fn at(sources: &Sources, origin: &Origin, key: impl Into<String>, message: impl Into<String>) -> Report {
        let place = sources.place(origin);
        Report {
            file: place.file,
            line: place.line,
            column: place.column,
            key: key.into(),
            message: message.into(),
            notes: origin.layer.note().into_iter().collect(),
            source_line: place.source_line,
            width: place.width,
            ..Report::default()
        }
    }

    /// With the allowed values.
    pub(crate) fn allowed(mut self, allowed: impl Into<String>) -> Report {
        self.allowed = Some(allowed.into());
        self
    }

    /// With advice.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Report {
        self.help = Some(help.into());
        self
    }

    /// With advice where there is some.
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Report {
        self.help = help.or(self.help);
        self
    }

    /// Whether two reports say the same of the same place.
    pub(crate) fn same_as(&self, other: &Report) -> bool {
        (self.line, self.column) == (other.line, other.column)
            && self.file == other.file
            && self.message == other.message
    }
}

struct Rendered<'a> {
    severity: &'static str,
    report: &'a Report,
}

impl fmt::Display for Rendered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rendered { severity, report } = self;
        match report.key.as_str() {
            "" => writeln!(f, "{severity}: {}", report.message)?,
            key => writeln!(f, "{severity}: {key}: {}", report.message)?,
        }
        let margin = " ".repeat(report.line.to_string().len());
        writeln!(f, "{margin}--> {}:{}:{}", report.file, report.line, report.column)?;
        writeln!(f, "{margin} |")?;
        writeln!(f, "{} | {}", report.line, report.source_line)?;
        write!(f, "{margin} | {}{}", " ".repeat(report.column - 1), "^".repeat(report.width))?;
        if let Some(allowed) = &report.allowed {
            write!(f, "\n{margin} = allowed: {allowed}")?;
        }
        if let Some(help) = &report.help {
            write!(f, "\n{margin} = help: {help}")?;
        }
        for note in &report.notes {
            write!(f, "\n{margin} = note: {note}")?;
        }
        Ok(())
    }
}

/// The word of `candidates` that `word` was probably meant to be.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, &candidate.to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= 1 + candidate.len().max(word.len()) / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `did you mean ...?`, where something is near enough.
pub(crate) fn did_you_mean<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, candidates).map(|candidate| format!("did you mean `{candidate}`?"))
}
