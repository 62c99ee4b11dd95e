//! [`ListedFlow`]: the rows of a flow list.
//!
//! ```text
//! start,source,destination,size,class
//! 0s,h1,client,10MB,background
//! ```

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
    let mut reports = Vec::new();
    let mut flows = Vec::new();
    let mut start = 0;
    for (index, line) in text.split('\n').enumerate() {
        let row = Row { sources: &sources, source, start, line: line.trim_end() };
        start += line.len() + 1;
        if index == 0 {
            if row.line.replace(' ', "") != HEADER {
                // Nothing of it is shown: without our columns it may be anybody's file.
                reports.push(Report::without_excerpt(name, 1, "the columns are not known").allowed(HEADER));
                break;
            }
        } else if !row.line.is_empty() && !row.line.starts_with('#') {
            match row.flow(topology) {
                Ok(flow) => flows.push(flow),
                Err(report) => reports.push(*report),
            }
        }
    }
    if reports.is_empty() { Ok(flows) } else { Err(reports) }
}

struct Row<'a> {
    sources: &'a Sources,
    source: usize,
    /// Where the line starts in the text.
    start: usize,
    line: &'a str,
}

impl Row<'_> {
    /// A report that points at `part`, a slice of the line.
    fn report(&self, part: &str, message: impl Into<String>) -> Report {
        let offset = (part.as_ptr() as usize).saturating_sub(self.line.as_ptr() as usize);
        let start = self.start + offset;
        let origin = Origin { source: self.source, span: start..start + part.len(), layer: Layer::File(0) };
        Report::at(self.sources, &origin, "", message)
    }

    fn flow(&self, topology: &Topology) -> Result<ListedFlow, Box<Report>> {
        let cells: Vec<&str> = self.line.split(',').map(str::trim).collect();
        let [start, source, destination, size, class] = cells[..] else {
            return Err(Box::new(self.report(self.line, format!("{} columns", cells.len())).allowed(HEADER)));
        };
        let host = |name: &str| {
            topology.host(name).ok_or_else(|| {
                let names: Vec<String> =
                    (0..topology.host_count().min(1000)).map(|host| topology.host_name(host)).collect();
                let help = did_you_mean(name, names.iter().map(String::as_str));
                Box::new(self.report(name, format!("there is no host \"{name}\"")).maybe_help(help))
            })
        };
        let quantity =
            |cell, error: ParseQuantityError| Box::new(self.report(cell, "").quantity(&error.to_string()));
        let flow = ListedFlow {
            start: start.parse().map_err(|error| quantity(start, error))?,
            source: host(source)?,
            destination: host(destination)?,
            size: size.parse().map_err(|error| quantity(size, error))?,
            class: class.to_owned(),
        };
        if flow.source == flow.destination {
            return Err(Box::new(self.report(destination, "a flow from a host to itself")));
        }
        if flow.size == Bytes::ZERO {
            return Err(Box::new(self.report(size, "a flow without bytes").allowed("at least 1B")));
        }
        Ok(flow)
    }
}
