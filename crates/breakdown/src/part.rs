//! [`Part`]: the parts of a request's latency, and [`PartSpan`]s of them.

use serde::Serialize;

/// A part of a request's latency inside the server, from the device to the device. The order is that of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Time from the first packet of the request to the last.
    Arrival,
    /// Time from the device to the socket: soft interrupt, IP, TCP or UDP.
    Receive,
    /// The request waits in the socket while its thread does something else.
    Busy,
    /// Time from the notification of the socket to the wake-up of the thread that reads.
    WakeUp,
    /// The woken thread waits for a processor.
    RunQueue,
    /// The system calls that report the socket and read from it.
    Read,
    /// The application runs, from the return of its read to the begin of its send.
    Application,
    /// The application sleeps in between: a lock, a disk, another thread, another server.
    Blocked,
    /// The application could run in between, and waits for a processor.
    Preempted,
    /// Time from the send to the device: the system call, TCP or UDP, IP.
    Send,
    /// Time in the queueing discipline of the device.
    Queue,
    /// Time from the first packet of the reply to the last.
    Reply,
    /// Time that no event explains.
    Remainder,
}

impl Part {
    /// All parts, in the order of a request.
    pub const ALL: [Part; PARTS] = [
        Part::Arrival,
        Part::Receive,
        Part::Busy,
        Part::WakeUp,
        Part::RunQueue,
        Part::Read,
        Part::Application,
        Part::Blocked,
        Part::Preempted,
        Part::Send,
        Part::Queue,
        Part::Reply,
        Part::Remainder,
    ];

    /// Returns the part's name, for tables.
    pub fn name(self) -> &'static str {
        match self {
            Part::Arrival => "request arriving",
            Part::Receive => "receive path",
            Part::Busy => "thread busy",
            Part::WakeUp => "wake-up",
            Part::RunQueue => "run queue",
            Part::Read => "read calls",
            Part::Application => "application",
            Part::Blocked => "application asleep",
            Part::Preempted => "application preempted",
            Part::Send => "send path",
            Part::Queue => "device queue",
            Part::Reply => "reply leaving",
            Part::Remainder => "remainder",
        }
    }

    /// Returns the name in JSON and CSV.
    pub fn key(self) -> &'static str {
        match self {
            Part::Arrival => "arrival",
            Part::Receive => "receive",
            Part::Busy => "busy",
            Part::WakeUp => "wake_up",
            Part::RunQueue => "run_queue",
            Part::Read => "read",
            Part::Application => "application",
            Part::Blocked => "blocked",
            Part::Preempted => "preempted",
            Part::Send => "send",
            Part::Queue => "queue",
            Part::Reply => "reply",
            Part::Remainder => "remainder",
        }
    }

    /// Returns a phrase that names the begin and the end of the part.
    pub fn meaning(self) -> &'static str {
        match self {
            Part::Arrival => "from the first packet of the request to the last",
            Part::Receive => "from the device to the socket, in the soft interrupt",
            Part::Busy => "waits in the socket while its thread does other work",
            Part::WakeUp => "from the socket's notification to the wake-up of the thread",
            Part::RunQueue => "the woken thread waits for a processor",
            Part::Read => "the system calls up to the read that has the request",
            Part::Application => "on a processor, from that read to the send",
            Part::Blocked => "asleep in between: a lock, a disk, another thread",
            Part::Preempted => "able to run in between, without a processor",
            Part::Send => "from the send to the device",
            Part::Queue => "in the device's queueing discipline",
            Part::Reply => "from the first packet of the reply to the last",
            Part::Remainder => "explained by no event",
        }
    }

    /// Returns the layer that the part belongs to.
    pub fn layer(self) -> Layer {
        match self {
            Part::Arrival | Part::Reply => Layer::Network,
            Part::Receive | Part::WakeUp | Part::Read | Part::Send | Part::Queue => Layer::Kernel,
            Part::RunQueue | Part::Preempted => Layer::Scheduler,
            Part::Busy => Layer::Queueing,
            Part::Application | Part::Blocked => Layer::Server,
            Part::Remainder => Layer::Remainder,
        }
    }
}

/// The number of parts of a latency.
pub const PARTS: usize = 13;

/// The layer that owns a part of the latency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The request or the reply has several packets, between which the network or the peer takes time.
    Network,
    /// The kernel's network stack, system calls and wake-ups.
    Kernel,
    /// The threads wait for a processor.
    Scheduler,
    /// The request waits for its thread, which is busy with other requests: in the application or in the kernel.
    Queueing,
    /// The server: its computation, its locks, its disks and its own servers.
    Server,
    /// No event explains the time.
    Remainder,
}

impl Layer {
    /// All layers, in the order of tables.
    pub const ALL: [Layer; 6] =
        [Layer::Network, Layer::Kernel, Layer::Scheduler, Layer::Queueing, Layer::Server, Layer::Remainder];

    /// Returns the layer's name, for tables.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Network => "network and peer",
            Layer::Kernel => "kernel",
            Layer::Scheduler => "processor shortage",
            Layer::Queueing => "busy thread",
            Layer::Server => "server",
            Layer::Remainder => "remainder",
        }
    }
}

/// A stretch of a request's time that belongs to one part, in ns by the clock of the events.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PartSpan {
    /// The part that the time belongs to.
    pub part: Part,
    /// The begin of the stretch.
    pub from: u64,
    /// The end of the stretch, not before its begin.
    pub to: u64,
}

/// Adjacent spans, each of which begins where the one before ends.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Spans(Vec<PartSpan>);

impl Spans {
    /// Appends a span that ends at `to`. A span without length adds nothing, a span of the last part lengthens the last
    /// one.
    pub fn push(&mut self, part: Part, from: u64, to: u64) {
        if from >= to {
            return;
        }
        match self.0.last_mut() {
            Some(last) if last.part == part && last.to == from => last.to = to,
            _ => self.0.push(PartSpan { part, from, to }),
        }
    }

    /// Appends the spans of `other`.
    pub fn extend(&mut self, other: &Spans) {
        other.0.iter().for_each(|span| self.push(span.part, span.from, span.to));
    }

    /// Returns the spans in order.
    pub fn as_slice(&self) -> &[PartSpan] {
        &self.0
    }

    /// Removes all spans, to begin again.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the time of each part in ns, in the order of [`Part::ALL`].
    pub fn sums(&self) -> [u64; PARTS] {
        let mut sums = [0; PARTS];
        self.0.iter().for_each(|span| sums[span.part as usize] += span.to - span.from);
        sums
    }
}
