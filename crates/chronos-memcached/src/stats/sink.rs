//! [`ReportSink`]: the destination of the lines of a report.

use std::fmt::Display;

/// Takes the lines of a report, and makes text or binary answers of them.
pub trait ReportSink {
    /// Appends one line to the report.
    fn line(&mut self, name: &str, value: &dyn Display);
}
