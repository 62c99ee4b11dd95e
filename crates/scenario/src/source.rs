//! Texts that values come from, and [`ValueOrigin`]: which text, where in it, and which layer.

use std::ops::Range;
use std::sync::Arc;

/// What laid a value over those before it. Later variants of this enum win over earlier ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SourceLayer {
    /// No layer sets the value: it is the default.
    Default,
    /// A file; 0 is the scenario itself, 1 its include, and so on.
    File(usize),
    /// The variant whose table is `[variant.NAME]`.
    Variant(Arc<str>),
    /// A point of `[sweep]`.
    Sweep,
    /// `--set`, `--seed` or a replicate's derived seed.
    Flag,
}

impl SourceLayer {
    /// Orders layers; a larger rank wins.
    pub(crate) fn rank(&self) -> (u8, isize) {
        match self {
            SourceLayer::Default => (0, 0),
            SourceLayer::File(depth) => (1, -(*depth as isize)),
            SourceLayer::Variant(_) => (2, 0),
            SourceLayer::Sweep => (3, 0),
            SourceLayer::Flag => (4, 0),
        }
    }

    /// The sentence that an error adds where the place alone would not say it.
    pub(crate) fn note(&self) -> Option<String> {
        match self {
            SourceLayer::Variant(name) => Some(format!("set by variant `{name}`")),
            SourceLayer::Sweep => Some("set by the sweep".to_owned()),
            SourceLayer::Default | SourceLayer::File(_) | SourceLayer::Flag => None,
        }
    }
}

/// Where a value was written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ValueOrigin {
    pub(crate) source: usize,
    pub(crate) span: Range<usize>,
    pub(crate) layer: SourceLayer,
}

impl ValueOrigin {
    /// The start of the scenario file, the place of missing keys.
    pub(crate) fn start() -> ValueOrigin {
        ValueOrigin { source: 0, span: 0..0, layer: SourceLayer::Default }
    }
}

/// All texts of one scenario: the file, its includes, and each `--set`.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScenarioTexts(Vec<Source>);

#[derive(Clone, Debug)]
struct Source {
    name: String,
    text: String,
}

/// An origin as a person reads it.
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) source_line: String,
    pub(crate) width: usize,
}

impl ScenarioTexts {
    /// Adds a text; the result is its index.
    pub(crate) fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> usize {
        self.0.push(Source { name: name.into(), text: text.into() });
        self.0.len() - 1
    }

    /// Orders the names of texts: the scenario first. Files that the scenario names come last.
    pub(crate) fn index(&self, name: &str) -> usize {
        self.0.iter().position(|source| source.name == name).unwrap_or(self.0.len())
    }

    /// The name a text was added under.
    pub(crate) fn name(&self, source: usize) -> &str {
        &self.0[source].name
    }

    /// The text of an origin.
    pub(crate) fn text(&self, origin: &ValueOrigin) -> &str {
        self.0[origin.source].text.get(origin.span.clone()).unwrap_or_default()
    }

    /// Line (from 1) of an origin.
    pub(crate) fn line(&self, origin: &ValueOrigin) -> usize {
        let text = &self.0[origin.source].text;
        let start = origin.span.start.min(text.len());
        text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1
    }

    /// Line, column and text of an origin. A value of several lines is underlined in its first.
    pub(crate) fn place(&self, origin: &ValueOrigin) -> Place {
        let Source { name, text } = &self.0[origin.source];
        let mut start = origin.span.start.min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let mut end = origin.span.end.clamp(start, line_end);
        while !text.is_char_boundary(end) {
            end += 1;
        }
        Place {
            file: name.clone(),
            line: self.line(origin),
            column: text[line_start..start].chars().count() + 1,
            source_line: text[line_start..line_end].trim_end_matches('\r').replace('\t', " "),
            width: text[start..end].trim_end().chars().count().max(1),
        }
    }
}
