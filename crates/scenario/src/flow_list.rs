//! [`ListedFlow`]: the rows of a flow list.
//!
//! ```text
//! start,source,destination,size,class
//! 0s,h1,client,10MB,background
//! ```

use std::ops::Range;

use plimsoll_units::csv::{Row, rows};
use plimsoll_units::{Bytes, ParseQuantityError, Span};

use crate::error::{Report, did_you_mean};
use crate::source::{Layer, Origin, Sources};
use crate::topology::Topology;

/// One flow of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ListedFlow {
    /// When it starts.
    pub start: Span,
    /// The sending host.
    pub source: u32,
    /// The receiving host.
    pub destination: u32,
    /// Its size.
    pub size: Bytes,
    /// A word to group flows by; may be empty.
    pub class: String,
}

const HEADER: &str = "start,source,destination,size,class";

/// Reads a list; host names are those of `topology`.
pub(crate) fn parse(name: &str, text: &str, topology: &Topology) -> Result<Vec<ListedFlow>, Vec<Report>> {
    let mut sources = Sources::default();
    let source = sources.add(name, text);
    let mut rows = rows(text, Some(b'#'));
    if rows.next().is_none_or(|row| row.cells().join(",") != HEADER) {
        // Nothing of it is shown: without our columns it may be anybody's file.
        return Err(vec![Report::without_excerpt(name, 1, "the columns are not known").allowed(HEADER)]);
    }
    let mut reports = Vec::new();
    let mut flows = Vec::new();
    for row in rows {
        match (Listed { sources: &sources, source, row: &row }).flow(topology) {
            Ok(flow) => flows.push(flow),
            Err(report) => reports.push(*report),
        }
    }
    if reports.is_empty() { Ok(flows) } else { Err(reports) }
}

/// A row of the list, and the source that its errors name.
struct Listed<'a> {
    sources: &'a Sources,
    source: usize,
    row: &'a Row<'a>,
}

/// The columns by their place in a row.
const START: usize = 0;
const SOURCE: usize = 1;
const DESTINATION: usize = 2;
const SIZE: usize = 3;

impl Listed<'_> {
    /// Returns a report that points at a part of the text.
    fn report(&self, span: Range<usize>, message: impl Into<String>) -> Report {
        Report::at(self.sources, &Origin { source: self.source, span, layer: Layer::File(0) }, "", message)
    }

    fn flow(&self, topology: &Topology) -> Result<ListedFlow, Box<Report>> {
        let cells = self.row.cells();
        let at = |column| self.row.span(column);
        let [start, _, _, size, class] = cells[..] else {
            let whole = self.row.start..self.row.start + self.row.text.len();
            return Err(Box::new(self.report(whole, format!("{} columns", cells.len())).allowed(HEADER)));
        };
        let host = |column: usize| {
            let name = cells[column];
            topology.host(name).ok_or_else(|| {
                let names: Vec<String> =
                    (0..topology.host_count().min(1000)).map(|host| topology.host_name(host)).collect();
                let help = did_you_mean(name, names.iter().map(String::as_str));
                Box::new(self.report(at(column), format!("there is no host \"{name}\"")).maybe_help(help))
            })
        };
        let quantity = |column, error: ParseQuantityError| {
            Box::new(self.report(at(column), "").quantity(&error.to_string()))
        };
        let flow = ListedFlow {
            start: start.parse().map_err(|error| quantity(START, error))?,
            source: host(SOURCE)?,
            destination: host(DESTINATION)?,
            size: size.parse().map_err(|error| quantity(SIZE, error))?,
            class: class.to_owned(),
        };
        if flow.source == flow.destination {
            return Err(Box::new(self.report(at(DESTINATION), "a flow from a host to itself")));
        }
        if flow.size == Bytes::ZERO {
            return Err(Box::new(self.report(at(SIZE), "a flow without bytes").allowed("at least 1B")));
        }
        Ok(flow)
    }
}
