//! [`Request`]: a request with its parts, and the [`Reason`]s why another has none.

use serde::Serialize;

use crate::event::{Flow, ThreadId};
use crate::part::{PARTS, PartSpan};

/// A request whose time is divided completely: the spans follow each other from the first packet in to the last out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The connection, or the client's address.
    pub flow: Flow,
    /// The thread that read the request.
    pub reader: ThreadId,
    /// The thread that sent the reply.
    pub sender: ThreadId,
    /// The payload of the request in bytes.
    pub bytes_in: u64,
    /// The payload of the reply in bytes.
    pub bytes_out: u64,
    /// The packets of the request, as the network stack received them.
    pub packets_in: u32,
    /// The packets of the reply, before segmentation by the device.
    pub packets_out: u32,
    /// The spans of the request, each of which begins where the one before ends.
    pub spans: Vec<PartSpan>,
    /// The time of each part in ns, in the order of [`crate::Part::ALL`]; their sum is the latency.
    pub parts: [u64; PARTS],
    /// When the first packet of the request was received, in ns by the clock of the events.
    pub received: u64,
    /// Time from the first packet in to the last packet out, in ns.
    pub latency: u64,
}

impl Request {
    /// Checks that the spans are adjacent and that they and the parts add up to the latency.
    ///
    /// # Panics
    /// Panics if they do not: such a request must never be reported.
    pub(crate) fn assert_whole(&self) {
        let mut at = self.received;
        for span in &self.spans {
            assert!(span.from == at && span.to > at, "the spans of {self:?} are not adjacent at {at}");
            at = span.to;
        }
        assert_eq!(at - self.received, self.latency, "the spans of {self:?} do not add up");
        assert_eq!(self.parts.iter().sum::<u64>(), self.latency, "the parts of {self:?} do not add up");
    }
}

/// The reason why a request has no breakdown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// More data of the same connection arrived before the reply was complete, or several packets were answered by
    /// several sends: only the protocol could match replies to requests.
    Pipelined,
    /// The server read it and sent nothing before the connection's next request, or before its end.
    NoReply,
    /// A thread read it, and its packets were not seen.
    ArrivalNotSeen,
    /// Its reply was transmitted, and the begin of the send was not seen.
    SendNotSeen,
    /// Its events contradict each other in time.
    Disorder,
    /// Records of that time were lost, as the ring buffer was full.
    RecordsLost,
}

impl Reason {
    /// All reasons, in the order of reports.
    pub const ALL: [Reason; 6] = [
        Reason::Pipelined,
        Reason::NoReply,
        Reason::ArrivalNotSeen,
        Reason::SendNotSeen,
        Reason::Disorder,
        Reason::RecordsLost,
    ];

    /// Returns the reason as a clause after "not matched:".
    pub fn text(self) -> &'static str {
        match self {
            Reason::Pipelined => {
                "several requests of a connection may have been in progress at once (pipelined)"
            }
            Reason::NoReply => "no reply before the next request or the end of the connection",
            Reason::ArrivalNotSeen => "their packets were not seen",
            Reason::SendNotSeen => "the begin of the send was not seen",
            Reason::Disorder => "their events contradict each other in time",
            Reason::RecordsLost => "records of that time were lost",
        }
    }
}

/// The requests that were seen and have no breakdown.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Unmatched {
    /// The number of each reason, in the order of [`Reason::ALL`].
    by_reason: [u64; Reason::ALL.len()],
    /// The requests that had begun before tracing did, or had not ended when it ended.
    pub cut_off: u64,
}

impl Unmatched {
    /// Counts `requests` requests with this reason.
    pub(crate) fn add(&mut self, reason: Reason, requests: u64) {
        self.by_reason[reason as usize] += requests;
    }

    /// Returns the number of requests with this reason.
    pub fn of(&self, reason: Reason) -> u64 {
        self.by_reason[reason as usize]
    }

    /// Returns the number of requests with any reason, without the ones that tracing cut off.
    pub fn total(&self) -> u64 {
        self.by_reason.iter().sum()
    }
}
