//! [`CaptureOptions`]: what counts as a message, and the limits of memory.

use plimsoll_units::Span;

/// How captures are read.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// A pause that ends a message to which nothing comes back.
    pub idle: Span,
    /// What separates classes; by default the server's port, and nothing where Plimsoll made the ports up.
    pub class: Option<CaptureClassBy>,
    /// The rule by which requests start.
    pub starts: StartBy,
    /// The most messages that are kept.
    pub messages_max: usize,
    /// Conversations of a generation: twice as many are kept at most.
    pub conversations_max: usize,
    /// The most hosts that have numbers.
    pub hosts_max: usize,
    /// Whether the headers inside tunnels count.
    pub decapsulate: bool,
}

/// What separates one class of traffic from another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CaptureClassBy {
    /// A class for each port of a server.
    Port,
    /// The differentiated services code point of the first packet.
    Dscp,
    /// All traffic is of one class.
    One,
}

/// When the requests of a replay start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StartBy {
    /// By class, whichever the capture shows.
    #[default]
    Shown,
    /// At their times in the capture.
    Time,
    /// So long after the response before as in the capture.
    Response,
}

impl Default for CaptureOptions {
    fn default() -> CaptureOptions {
        CaptureOptions {
            idle: Span::from_ms(100),
            class: None,
            starts: StartBy::Shown,
            messages_max: 1_000_000,
            conversations_max: 65_536,
            hosts_max: 4_096,
            decapsulate: false,
        }
    }
}
