//! What an import finds in the user's files: hosts by number, and traffic by class.

use plimsoll_units::Span;

/// Everything that was found, in time from the first observation on.
#[derive(Clone, Debug, Default)]
pub struct ImportFound {
    /// The names or addresses of the hosts as the files have them, by number; a scenario calls them `h0` to `hn`
    /// unless the user keeps their names.
    pub hosts: Vec<String>,
    /// The traffic, by the user's classes: a port, a DSCP or a column of the file.
    pub classes: Vec<TrafficClass>,
    /// The time from the first observation to the last.
    pub duration: Span,
    /// Notes that the user needs before believing the scenario.
    pub notes: Vec<Note>,
}

/// The traffic of one class, which becomes one workload.
#[derive(Clone, Debug)]
pub struct TrafficClass {
    /// The name, such as `port-11211`.
    pub name: String,
    /// The traffic, in order of its start.
    pub traffic: ClassTraffic,
}

/// Traffic in one of the three forms in which files have it.
#[derive(Clone, Debug)]
pub enum ClassTraffic {
    /// Bytes in one direction.
    Flows(Vec<FoundFlow>),
    /// Requests with responses.
    Exchanges(Vec<FoundExchange>),
    /// Mean rates of hosts, from metrics.
    Rates(Vec<HostRates>),
}

/// Bytes from one host to another, without a reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundFlow {
    /// The time of the first byte.
    pub start: Span,
    /// The time of the last byte, to compare with.
    pub end: Span,
    /// The number of the host that sends.
    pub source: u32,
    /// The number of the host that receives.
    pub destination: u32,
    /// Payload in bytes, after scaling where the file is a sample.
    pub bytes: u64,
}

/// A request and its response on one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundExchange {
    /// The time at which the request is sent.
    pub start: RequestStart,
    /// The number of the connection, from 0 in order of appearance.
    pub connection: u32,
    /// The number of the host that sends the request.
    pub client: u32,
    /// The number of the host that responds.
    pub server: u32,
    /// The payload of the request in bytes.
    pub request: u64,
    /// The payload of the response in bytes.
    pub response: u64,
    /// The time from the last byte of the request to the first of the response, at the server.
    pub service: Span,
    /// The latency that the capture shows, to compare with.
    pub latency: Span,
}

/// The rule by which a client sends its next request: at a time, or after a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RequestStart {
    /// At this time: the client did not wait for an earlier response.
    At(Span),
    /// This long after the response before it on its connection: a closed loop keeps its think times.
    After(Span),
}

/// The mean rates of a host in bits per second; peers are not known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HostRates {
    /// The number of the host.
    pub host: u32,
    /// The rate that the host sends; none where the files do not have it.
    pub sent: Option<f64>,
    /// The rate that the host receives; none where the files do not have it.
    pub received: Option<f64>,
}

/// A sentence for the user, on the page and on stderr.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Note {
    /// The kind of sentence.
    pub remark: Remark,
    /// The sentence, with its numbers.
    pub text: String,
}

/// The part of the page to which a note belongs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remark {
    /// A fact that the files show.
    Found,
    /// A value that the files lack, and the one that was taken.
    Assumed,
    /// A part of the files that the scenario lacks.
    Ignored,
    /// A defect of the files, by which the scenario is far from the network's traffic.
    Warning,
}
