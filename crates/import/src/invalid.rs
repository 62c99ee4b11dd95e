//! [`Invalid`]: the reason why a file or an option cannot be imported.

use std::fmt;
use std::io;

/// The reason why a file or an option cannot be imported: its place, the problem, and the allowed values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalid {
    place: String,
    problem: String,
    allowed: Option<String>,
}

impl Invalid {
    pub(crate) fn new(
        place: impl Into<String>,
        problem: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Invalid {
        Invalid { place: place.into(), problem: problem.into(), allowed: Some(allowed.into()) }
    }

    /// Describes a file that the system does not read.
    pub(crate) fn unreadable(place: impl Into<String>, error: &io::Error) -> Invalid {
        Invalid { place: place.into(), problem: format!("cannot be read: {error}"), allowed: None }
    }
}

impl std::error::Error for Invalid {}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)?;
        self.allowed.as_ref().map_or(Ok(()), |allowed| write!(f, ": expected {allowed}"))
    }
}
