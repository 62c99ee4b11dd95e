//! [`ScenarioError`] and [`ScenarioWarning`]: the problem, its place, the allowed values, and the source line
//! with a caret under the culprit.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use plimsoll_text::spelling::did_you_mean;
pub(crate) use plimsoll_text::spelling::nearest;
use plimsoll_text::{printable, shortened};
use plimsoll_traffic::check::NumberedLine;

use crate::node::ValueNode;
use crate::source::{ScenarioTexts, SourceLayer, ValueOrigin};

/// One error in a scenario, with its place, the allowed values and the nearest spelling.
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
pub struct ScenarioWarning(pub Report);

impl ScenarioWarning {
    /// Returns the key and the message in one line, without the place.
    pub fn brief(&self) -> String {
        format!("`{}`: {}", self.0.key, self.0.message)
    }
}

impl fmt::Display for ScenarioWarning {
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

impl std::ops::Deref for ScenarioWarning {
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
    /// Line, from 1; 0 where the file as such is wrong, which has no line to show then.
    pub line: usize,
    /// The column of the value in its line, in characters, counted from 1.
    pub column: usize,
    /// The dotted key; empty for an error of syntax.
    pub key: String,
    /// The problem in words, with the invalid value.
    pub message: String,
    /// The values that are allowed here, if they can be listed.
    pub allowed: Option<String>,
    /// What to do about it: the nearest spelling, or which key to turn off.
    pub help: Option<String>,
    /// Which layer set the value, and in which variants it is wrong.
    pub notes: Vec<String>,
    /// The text of the line in its file, which the message quotes.
    pub source_line: String,
    /// Characters of the wrong key or value, from `column` on; 0 where a key is missing, or the line is not shown.
    pub width: usize,
    /// Characters above the caret; 0 where the line is not shown, because the file may be anybody's.
    pub underlined: usize,
}

impl Report {
    /// A report about `key` that points at `origin`.
    pub(crate) fn at(
        sources: &ScenarioTexts,
        origin: &ValueOrigin,
        key: impl Into<String>,
        message: impl Into<String>,
    ) -> Report {
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
            underlined: place.width,
            ..Report::default()
        }
    }

    /// A report without a message about a part of a line.
    pub(crate) fn in_line(file: &str, line: &NumberedLine, span: Range<usize>) -> Report {
        let mut sources = ScenarioTexts::default();
        let source = sources.add(file, line.text.as_str());
        let origin = ValueOrigin { source, span, layer: SourceLayer::File(0) };
        Report { line: line.number, ..Report::at(&sources, &origin, "", "") }
    }

    /// A report about a line of a file whose text must not be quoted.
    pub(crate) fn without_excerpt(file: &str, line: usize, message: &str) -> Report {
        Report { file: file.to_owned(), line, column: 1, message: message.to_owned(), ..Report::default() }
    }

    /// A report about a key that is missing: the place is that of the table, and no value is wrong.
    pub(crate) fn without_value(mut self) -> Report {
        self.width = 0;
        self
    }

    /// With the allowed values.
    pub(crate) fn allowed(mut self, allowed: impl Into<String>) -> Report {
        self.allowed = Some(allowed.into());
        self
    }

    /// Adds advice to the report.
    pub(crate) fn help(mut self, help: impl Into<String>) -> Report {
        self.help = Some(help.into());
        self
    }

    /// With advice where there is some.
    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Report {
        self.help = help.or(self.help);
        self
    }

    /// With the message of a quantity that could not be parsed: the text after `; write` is the allowed form, and the
    /// `(did you mean ...?)` before it is advice.
    pub(crate) fn quantity(mut self, message: &str) -> Report {
        let (message, allowed) = match message.split_once("; write ") {
            Some((message, allowed)) => (message, Some(allowed)),
            None => (message, None),
        };
        let advice = message.strip_suffix(')').and_then(|message| message.rsplit_once(" (did you mean "));
        self.message = advice.map_or(message, |(message, _)| message).to_owned();
        self.help = advice.map(|(_, meant)| format!("did you mean {meant}").replace('`', "\""));
        self.allowed = allowed.map(str::to_owned);
        self
    }

    /// Whether it points at a node, at its key or at anything below it.
    pub(crate) fn is_about(&self, sources: &ScenarioTexts, node: &ValueNode) -> bool {
        let is_here = |origin: &ValueOrigin| {
            let place = sources.place(origin);
            (self.line, self.column) == (place.line, place.column) && self.file == place.file
        };
        let below = || node.as_table().into_iter().flat_map(|table| table.values());
        is_here(&node.origin) || is_here(&node.key) || below().any(|child| self.is_about(sources, child))
    }

    /// A report about a file that cannot be read, so that it has no line to point at.
    pub(crate) fn of_file(file: String, message: String) -> Report {
        Report { file, message, ..Report::default() }
    }

    /// Whether two reports say the same of the same place.
    pub(crate) fn same_as(&self, other: &Report) -> bool {
        (self.line, self.column) == (other.line, other.column)
            && self.file == other.file
            && self.message == other.message
    }
}

/// Reports, each once, with the variants that they occur in.
#[derive(Default)]
pub(crate) struct Findings(Vec<(Report, Vec<Arc<str>>)>);

impl Findings {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds a report about the file as such.
    pub(crate) fn add(&mut self, report: Report) {
        if !self.0.iter().any(|(known, _)| known.same_as(&report)) {
            self.0.push((report, Vec::new()));
        }
    }

    pub(crate) fn extend(&mut self, reports: Vec<Report>) {
        reports.into_iter().for_each(|report| self.add(report));
    }

    /// Adds a report about one variant.
    pub(crate) fn add_for(&mut self, report: Report, variant: &Arc<str>) {
        match self.0.iter_mut().find(|(known, _)| known.same_as(&report)) {
            None => self.0.push((report, vec![variant.clone()])),
            Some((_, variants)) if variants.contains(variant) => {}
            Some((_, variants)) => variants.push(variant.clone()),
        }
    }

    /// Says in which variants each occurs, where that is not all of them, and sorts by place.
    pub(crate) fn finish(&mut self, sources: &ScenarioTexts, variants: usize) {
        for (report, of) in &mut self.0 {
            if !of.is_empty() && of.len() < variants && report.notes.is_empty() {
                let names: Vec<String> = of.iter().map(|name| format!("`{name}`")).collect();
                report.notes.push(format!("in variant {}", names.join(", ")));
            }
        }
        self.0.sort_by_key(|(report, _)| (sources.index(&report.file), report.line, report.column));
    }

    pub(crate) fn reports(self) -> impl Iterator<Item = Report> {
        self.0.into_iter().map(|(report, _)| report)
    }
}

/// The most characters of a message, and of a key.
const MESSAGE: usize = 320;

/// The most characters of a source line that a message shows.
const EXCERPT: usize = 120;
/// The characters before the place that a cut line keeps.
const CONTEXT: usize = 30;

/// A source line as a message shows it, with the place of the carets below it.
struct Excerpt {
    line: String,
    before: usize,
    under: usize,
}

impl Report {
    /// Returns the source line, of which a long one is cut to the part around the place.
    fn excerpt(&self) -> Excerpt {
        let characters: Vec<char> = self.source_line.chars().collect();
        let (start, end) = (self.column - 1, self.column - 1 + self.underlined);
        let from = if characters.len() > EXCERPT { start.saturating_sub(CONTEXT) } else { 0 };
        let until = characters.len().min(from + EXCERPT).max(from);
        let marks = [if from > 0 { "..." } else { "" }, if until < characters.len() { "..." } else { "" }];
        let shown = |from: usize, until: usize| -> String {
            let part = characters.get(from.min(characters.len())..until.min(characters.len()));
            printable(&part.unwrap_or_default().iter().collect::<String>()).into_owned()
        };
        // Escaped characters take more room, and the carets must stay below the value; they may point behind the end.
        let missing = |end: usize| end.saturating_sub(characters.len());
        let before = shown(from, start).chars().count() + missing(start) + marks[0].len();
        let end = if until < characters.len() { end.min(until) } else { end };
        let under = shown(start, end).chars().count() + missing(end) - missing(start);
        Excerpt { line: format!("{}{}{}", marks[0], shown(from, until), marks[1]), before, under }
    }
}

struct Rendered<'a> {
    severity: &'static str,
    report: &'a Report,
}

impl fmt::Display for Rendered<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Rendered { severity, report } = self;
        let message = printable(&report.message);
        let message = shortened(&message, MESSAGE);
        match report.key.as_str() {
            "" => write!(f, "{severity}: {message}")?,
            key => write!(f, "{severity}: {}: {message}", shortened(&printable(key), MESSAGE))?,
        }
        let margin = " ".repeat(report.line.to_string().len());
        if report.line > 0 {
            write!(f, "\n{margin}--> {}:{}:{}", printable(&report.file), report.line, report.column)?;
        }
        if report.line > 0 && report.underlined > 0 {
            let Excerpt { line, before, under } = report.excerpt();
            writeln!(f, "\n{margin} |")?;
            writeln!(f, "{} | {line}", report.line)?;
            write!(f, "{margin} | {}{}", " ".repeat(before), "^".repeat(under))?;
        }
        if let Some(allowed) = &report.allowed {
            write!(f, "\n{margin} = allowed: {}", printable(allowed))?;
        }
        if let Some(help) = &report.help {
            write!(f, "\n{margin} = help: {}", printable(help))?;
        }
        for note in &report.notes {
            write!(f, "\n{margin} = note: {}", printable(note))?;
        }
        Ok(())
    }
}
