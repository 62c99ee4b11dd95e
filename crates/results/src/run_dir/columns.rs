//! The records of an outcome as columns, lossless: records read back have the same digest.
//!
//! Every file starts with the columns `variant`, `replicate` and one for each swept key, so that all points of a run
//! can be read at once (`points/*/messages.csv`). Times are integer picoseconds since the start of the run; an empty
//! field is 'none'. A column holds one type: estimates always have a decimal point, so that a reader that samples some
//! rows never takes them for integers, and 'no limit' is empty instead of the largest integer, which no signed column
//! holds.

use std::collections::BTreeMap;

use csv::{StringRecord, StringRecordIter};
use plimsoll_text::from_csv_cell;
use plimsoll_units::{Span, Time};

use super::csv::Writer;
use crate::outcome::{
    CircuitUse, CircuitWeek, ConnectionRecord, Counters, GoodputInterval, IterationRecord, LinkTotals,
    MessageRecord, Observation, OperationRecord, PathWait, QueryRecord, RankRecord, ScheduleTimes,
    SeriesPoint, Split,
};
use crate::plain::Plain;

/// A column's header and the description of its values.
pub(super) type ColumnDoc = (&'static str, &'static str);

/// The columns in front of every file's own.
pub(super) const KEY_COLUMNS: &[ColumnDoc] = &[
    ("variant", "the variant's name"),
    ("replicate", "number of the replicate, from 0"),
    ("(each swept key)", "its value as the scenario writes it; one column a key, under the key's own name"),
];

/// The type of a column's values.
#[cfg(any(test, feature = "parquet"))]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ColumnKind {
    Text,
    /// A signed integer of 64 bits.
    Integer,
    Float,
}

/// Returns the type of a column by its name. Swept keys are texts: a scenario writes them with their unit.
#[cfg(any(test, feature = "parquet"))]
pub(super) fn column_kind(name: &str) -> ColumnKind {
    let texts = ["variant", "workload", "name", "port", "from", "to", "tier", "at"];
    let mut known = TABLES.iter().flat_map(|table| table.columns).chain(KEY_COLUMNS);
    if texts.contains(&name) || !known.any(|(known, _)| *known == name) {
        ColumnKind::Text
    } else if ["mean_bytes", "alpha"].contains(&name) {
        ColumnKind::Float
    } else {
        ColumnKind::Integer
    }
}

/// A kind of record, as its file shows it.
pub(super) struct Table {
    /// The name of its file in CSV.
    pub(super) file: &'static str,
    about: &'static str,
    columns: &'static [ColumnDoc],
}

/// All that a point may have a file of.
pub(super) const TABLES: [Table; 14] = [
    table::<MessageRecord>(),
    table::<QueryRecord>(),
    table::<Observation>(),
    table::<IterationRecord>(),
    table::<RankRecord>(),
    table::<OperationRecord>(),
    table::<PathWait>(),
    table::<QueueInterval>(),
    table::<LinkTotals>(),
    table::<CircuitUse>(),
    table::<CircuitWeek>(),
    table::<ConnectionRecord>(),
    table::<SeriesPoint>(),
    table::<GoodputInterval>(),
];

const fn table<R: Record>() -> Table {
    Table { file: R::FILE, about: R::ABOUT, columns: R::COLUMNS }
}

/// Names that records refer to by index.
pub(super) struct Names {
    workloads: Vec<String>,
    index: BTreeMap<String, u16>,
}

impl Names {
    pub(super) fn new(workloads: Vec<String>) -> Names {
        let index = workloads.iter().zip(0u16..).map(|(name, index)| (name.clone(), index)).collect();
        Names { workloads, index }
    }

    fn workload(&self, index: u16) -> &str {
        self.workloads.get(usize::from(index)).map_or("", String::as_str)
    }
}

/// One kind of record: its file, its columns, and both directions.
pub(super) trait Record: Sized {
    const FILE: &'static str;
    const ABOUT: &'static str;
    const COLUMNS: &'static [ColumnDoc];
    fn write(&self, row: &mut Writer, names: &Names);
    fn read(fields: &mut Fields<'_>, names: &Names) -> Result<Self, String>;
}

/// The fields of one row, taken from left to right.
pub(super) struct Fields<'a> {
    fields: std::iter::Skip<StringRecordIter<'a>>,
}

impl<'a> Fields<'a> {
    /// The fields behind the first `skipped`.
    pub(super) fn after(skipped: usize, row: &'a StringRecord) -> Fields<'a> {
        Fields { fields: row.iter().skip(skipped) }
    }

    fn text(&mut self) -> Result<&'a str, String> {
        self.fields.next().ok_or_else(|| "a field is missing".to_owned())
    }
}

/// A value of a record, in one column or several.
trait Field: Sized {
    fn write(&self, row: &mut Writer, names: &Names);
    fn read(fields: &mut Fields<'_>, names: &Names) -> Result<Self, String>;
}

impl<P: Plain> Field for P {
    fn write(&self, row: &mut Writer, _: &Names) {
        row.plain(self.to_plain());
    }

    fn read(fields: &mut Fields<'_>, _: &Names) -> Result<P, String> {
        parse(fields.text()?)
    }
}

impl<P: Plain> Field for Option<P> {
    fn write(&self, row: &mut Writer, _: &Names) {
        row.maybe(self.as_ref().map(Plain::to_plain));
    }

    fn read(fields: &mut Fields<'_>, _: &Names) -> Result<Option<P>, String> {
        let text = fields.text()?;
        if text.is_empty() { Ok(None) } else { parse(text).map(Some) }
    }
}

fn parse<P: Plain>(text: &str) -> Result<P, String> {
    text.parse().map(P::from_plain).map_err(|_| format!("`{text}` is not a number of its column"))
}

impl Field for String {
    fn write(&self, row: &mut Writer, _: &Names) {
        row.text(self);
    }

    fn read(fields: &mut Fields<'_>, _: &Names) -> Result<String, String> {
        Ok(from_csv_cell(fields.text()?).into_owned())
    }
}

/// The index of a workload, of which the column has the name.
impl Field for u16 {
    fn write(&self, row: &mut Writer, names: &Names) {
        row.text(names.workload(*self));
    }

    fn read(fields: &mut Fields<'_>, names: &Names) -> Result<u16, String> {
        let name = String::read(fields, names)?;
        names.index.get(&name).copied().ok_or_else(|| format!("`{name}` is not a workload of this point"))
    }
}

/// The first and the last instant of something; both columns are empty where it never was.
impl Field for Option<(Time, Time)> {
    fn write(&self, row: &mut Writer, names: &Names) {
        self.map(|(first, _)| first).write(row, names);
        self.map(|(_, last)| last).write(row, names);
    }

    fn read(fields: &mut Fields<'_>, names: &Names) -> Result<Option<(Time, Time)>, String> {
        let first = Option::<Time>::read(fields, names)?;
        Ok(first.zip(Field::read(fields, names)?))
    }
}

impl Field for Option<ScheduleTimes> {
    fn write(&self, row: &mut Writer, names: &Names) {
        let moments = self.map(|made| [made.read, made.gathered, made.ready]);
        (0..3).for_each(|moment| moments.map(|moments| moments[moment]).write(row, names));
    }

    fn read(fields: &mut Fields<'_>, names: &Names) -> Result<Option<ScheduleTimes>, String> {
        let mut moment = || Option::<Time>::read(fields, names);
        Ok(match (moment()?, moment()?, moment()?) {
            (Some(read), Some(gathered), Some(ready)) => Some(ScheduleTimes { read, gathered, ready }),
            _ => None,
        })
    }
}

impl Field for Split {
    fn write(&self, row: &mut Writer, names: &Names) {
        let Split { window, recovery, nic, pacer, tier, serialisation, propagation, service } = *self;
        let before = [window, recovery, nic, pacer];
        let after = [serialisation, propagation, service];
        before.into_iter().chain(tier).chain(after).for_each(|part| part.write(row, names));
    }

    fn read(fields: &mut Fields<'_>, names: &Names) -> Result<Split, String> {
        let mut part = || Span::read(fields, names);
        Ok(Split {
            window: part()?,
            recovery: part()?,
            nic: part()?,
            pacer: part()?,
            tier: [part()?, part()?, part()?],
            serialisation: part()?,
            propagation: part()?,
            service: part()?,
        })
    }
}

/// A column whose largest value means that there is none: the column is then empty, and files of earlier versions have
/// the largest integer.
struct EmptyIfLargest;

impl EmptyIfLargest {
    fn write<P: Plain<As = u64> + Copy>(value: &P, row: &mut Writer, names: &Names) {
        Some(*value).filter(|value| value.to_plain() != u64::MAX).write(row, names);
    }

    fn read<P: Plain<As = u64>>(fields: &mut Fields<'_>, names: &Names) -> Result<P, String> {
        Ok(Option::read(fields, names)?.unwrap_or_else(|| P::from_plain(u64::MAX)))
    }
}

/// A last column, which files of earlier versions do not have.
struct AddedLater;

impl AddedLater {
    fn write<P: Plain>(value: &P, row: &mut Writer, names: &Names) {
        value.write(row, names);
    }

    fn read<P: Plain + Default>(fields: &mut Fields<'_>, _: &Names) -> Result<P, String> {
        fields.fields.next().map_or(Ok(P::default()), parse)
    }
}

/// Declares the columns of a record: each field with the name and the meaning of its column, or of its columns. `as`
/// names the type that writes and reads a field in place of [`Field`].
macro_rules! record {
    (
        $record:ident in $file:literal: $about:literal;
        $($field:ident $(as $form:ident)?: $($column:literal $doc:literal),+;)+
    ) => {
        impl Record for $record {
            const FILE: &'static str = $file;
            const ABOUT: &'static str = $about;
            const COLUMNS: &'static [ColumnDoc] = &[$($(($column, $doc)),+),+];

            fn write(&self, row: &mut Writer, names: &Names) {
                let $record { $($field),+ } = self;
                $(record!(@path write $($form)?)($field, row, names);)+
            }

            fn read(fields: &mut Fields<'_>, names: &Names) -> Result<$record, String> {
                Ok($record { $($field: record!(@path read $($form)?)(fields, names)?),+ })
            }
        }
    };
    (@path $what:ident) => { Field::$what };
    (@path $what:ident $form:ident) => { $form::$what };
}

record! {
    MessageRecord in "messages.csv":
        "One row a message: a flow, or a request with its response. The parts from `window_ps` on sum to \
         `completed_ps - created_ps`.";
    workload: "workload" "the workload's name";
    index: "index" "which message of the workload; the same message in every variant";
    query: "query" "the query it belongs to, for a fan-out";
    source: "source" "host that created it";
    destination: "destination" "host at the other end";
    bytes: "bytes" "payload of the flow or of the response";
    created: "created_ps" "when it was created";
    completed: "completed_ps" "when its last byte arrived; empty if the run ended first";
    ideal: "ideal_ps" "completion time on idle links";
    split:
        "window_ps" "in the transport before the last byte was first sent",
        "recovery_ps" "from then to the sending that completed it: losses",
        "nic_ps" "in the NIC queue",
        "pacer_ps" "held by the pacer",
        "tier0_ps" "in queues of the switch tier next to the hosts",
        "tier1_ps" "in queues of the next tier",
        "tier2_ps" "in queues of the topmost tier; in a hybrid network, waiting for a circuit",
        "serialisation_ps" "on the wire, serialising",
        "propagation_ps" "on the wire, propagating",
        "service_ps" "at the server: waiting and being served";
}

record! {
    QueryRecord in "queries.csv": "One row a fan-out query.";
    workload: "workload" "the workload's name";
    index: "index" "which query of the workload; the same query in every variant";
    created: "created_ps" "when it was created";
    completed: "completed_ps" "when the slowest response arrived; empty if the run ended first";
    servers: "servers" "servers asked";
    in_deadline: "in_deadline" "responses strictly within the deadline";
    response_mean: "response_mean_ps" "mean completion time over the servers";
    response_min as EmptyIfLargest: "response_min_ps"
        "completion time of the fastest server; empty if none has answered";
}

record! {
    Observation in "observations.csv":
        "One row a measurement that is no completion time; `point.json` says of each workload what it measures.";
    workload: "workload" "the workload's name";
    index: "index" "which observation of the workload; the same one in every variant";
    host: "host" "host that measured";
    begun: "begun_ps" "when the measurement began";
    value: "value_ps" "what was measured";
}

record! {
    IterationRecord in "iterations.csv":
        "One row an iteration of a job that has ended. The parts from `window_ps` on are those of its critical \
         path, and \
         sum to `took_ps`.";
    workload: "workload" "the workload's name";
    index: "index" "which iteration; that of its query";
    took: "took_ps" "time that it took";
    ideal: "ideal_ps" "the same where each message has idle links, but for the others of its ends";
    bytes: "bytes" "size of a collective operation; of other jobs the payload of all messages";
    bus_bytes: "bus_bytes" "what a link carries at least (nccl-tests); of other jobs that of the rank with the most";
    split:
        "window_ps" "messages in the transport before the last byte was first sent",
        "recovery_ps" "from then to the sending that completed them: losses",
        "nic_ps" "in NIC queues",
        "pacer_ps" "held by pacers",
        "tier0_ps" "in queues of the switch tier next to the hosts",
        "tier1_ps" "in queues of the next tier",
        "tier2_ps" "in queues of the topmost tier; in a hybrid network, waiting for a circuit",
        "serialisation_ps" "on the wire, serialising",
        "propagation_ps" "on the wire, propagating",
        "service_ps" "operations: computation, overheads, and waiting for a stream";
}

record! {
    RankRecord in "ranks.csv":
        "One row a rank, iteration and communication group of a job, of iterations that have ended.";
    workload: "workload" "the workload's name";
    index: "index" "which iteration; that of its query";
    rank: "rank" "number of the rank";
    host: "host" "host that has it";
    group: "group" "number of the group in `point.json`; 0 for all communication";
    took: "took_ps" "from the beginning of the iteration to the end of the rank's last operation";
    computed: "computed_ps" "time in which it computed";
    waited: "waited_ps" "time in which it waited for messages of the group";
    exposed: "exposed_ps" "time of these in which it did not compute";
}

record! {
    OperationRecord in "operations.csv":
        "One row an operation of a job that has ended, where `run.timeline` asks for them.";
    workload: "workload" "the workload's name";
    index: "index" "which iteration; that of its query";
    operation: "operation" "number of the operation, over all ranks";
    rank: "rank" "rank that carried it out";
    stream: "stream" "stream of the rank";
    group: "group" "number of its group in `point.json`; 0 without one";
    action: "action" "0 a computation, 1 a send, 2 a receive";
    peer: "peer" "other rank of a message; empty for a computation";
    bytes: "bytes" "payload of a message";
    began: "began_ps" "when it began; of a receive when it began to wait";
    ended: "ended_ps" "when it ended";
    path: "path" "its place on the critical path of its iteration, from 0; empty if it is not on it";
}

record! {
    PathWait in "path_waits.csv":
        "One row a place where messages on the critical path of a job's iteration waited. Those of an iteration sum to \
         `nic_ps` and the tiers of `iterations.csv`.";
    workload: "workload" "the workload's name";
    index: "index" "which iteration; that of its query";
    at: "at" "link of the port; two with `or` between them that share an account; the tier where ports are not known";
    waited: "waited_ps" "time in its queue";
}

/// One interval of one queue.
pub(super) struct QueueInterval {
    pub(super) queue: u32,
    pub(super) name: String,
    pub(super) port: String,
    pub(super) time: Time,
    pub(super) mean_bytes: Option<f64>,
    pub(super) max_bytes: Option<u64>,
}

record! {
    QueueInterval in "queues.csv":
        "One row an interval of a watched queue; `point.json` has the rate of its link, the length of the interval \
         and the time at each depth.";
    queue: "queue" "number of the queue in `point.json`, from 0";
    name: "name" "the scenario's name for it";
    port: "port" "the port it stands for";
    time: "time_ps" "start of the interval";
    mean_bytes: "mean_bytes" "time average of the bytes waiting; the packet in service does not wait";
    max_bytes: "max_bytes" "most bytes that waited";
}

record! {
    LinkTotals in "links.csv": "One row a direction of a link, from the warm-up to the end of the sending.";
    from: "from" "the node whose port sends on it";
    to: "to" "the node at its far end";
    tier: "tier" "the tiers that it connects";
    rate: "rate_bps" "its rate";
    observed: "observed_ps" "how long it was observed";
    packets: "packets" "packets that completed it";
    bytes: "bytes" "their bytes";
    drops: "drops" "packets that found no room at its port";
    pauses: "pauses" "times that its far end paused it";
    paused: "paused_ps" "time in which at least one priority was paused";
}

record! {
    CircuitUse in "circuits.csv": "One row a circuit while it stood, in a hybrid network.";
    week: "week" "number of the week, from 1";
    configuration: "configuration" "number of the configuration in the run: circuits of the same number stood at once";
    from: "from_ps" "when it was put up";
    until: "until_ps" "when it was taken down, or its week ended, or the run";
    sender: "sender" "the host that sends by it";
    receiver: "receiver" "the host that receives by it";
    first: "first_ps" "when the first packet that it carried reached the circuit switch";
    onset: "onset_ps"
        "when the sender had sent its first data to the receiver, after two weeks at least without any, as of then";
    packets: "packets" "packets that it carried";
    bytes: "bytes" "their bytes";
    rate: "rate_bps" "the rate at which its sender may send by circuits";
}

record! {
    CircuitWeek in "circuit_weeks.csv": "One row a week of the control loop of circuits, in a hybrid network.";
    week: "week" "number of the week, from 0; week 0 has no schedule";
    made:
        "read_ps" "when hosts began to sum up the demand of its schedule",
        "gathered_ps" "when the controller had the demand of all hosts",
        "ready_ps" "when its schedule was ready";
    begins: "begins_ps" "when it began";
    ends: "ends_ps" "when the next week began, or the run ended";
    configurations: "configurations" "configurations of its schedule";
    known_bytes: "known_bytes" "bytes that its schedule was made for: the demand that was read";
    known_sent_bytes: "known_sent_bytes" "how many of them had been sent by its end, by either switch";
    packet_packets: "packet_packets" "packets that passed the packet switch between racks";
    packet_bytes: "packet_bytes" "their bytes";
    lost_dark: "lost_dark" "packets that the circuit switch lost while it was dark";
    lost_unmatched: "lost_unmatched" "packets that it lost because their sender had no circuit to their receiver";
}

record! {
    ConnectionRecord in "connections.csv":
        "One row a connection that carried data, in the order that `series.csv` counts in, from 0.";
    workload: "workload" "the workload's name";
    client: "client" "host that opened it";
    server: "server" "host at the other end";
    delivered: "delivered_bytes" "payload delivered to the applications, both directions";
    active:
        "first_ps" "first delivery; empty if there was none",
        "last_ps" "last delivery; empty if there was none";
    segments: "segments" "data segments sent, retransmissions included";
    retransmissions: "retransmissions" "segments sent again";
    timeouts: "timeouts" "retransmission timeouts";
    marked: "marked" "data segments that arrived with CE";
    pacer_associations: "pacer_associations" "times that the pacer associated it anew";
    pacer_renewals: "pacer_renewals" "times that an association was renewed";
    pacer_dissociations: "pacer_dissociations" "times that an association ran out";
}

record! {
    SeriesPoint in "series.csv": "One row a sample of one connection's sender.";
    time: "time_ps" "when";
    connection: "connection" "row of `connections.csv`, from 0";
    cwnd: "cwnd_bytes" "congestion window";
    ssthresh as EmptyIfLargest: "ssthresh_bytes" "slow start threshold; empty while slow start has no end";
    alpha: "alpha" "DCTCP's estimate of the marked share; 0 for others";
    rate: "rate_bps" "bits acknowledged per second since the last sample";
    retransmissions as AddedLater: "retransmissions" "segments that the sender has retransmitted so far";
    subflow as AddedLater: "subflow" "subflow of an MPTCP connection, from 0; 0 for a plain TCP connection";
}

record! {
    GoodputInterval in "goodput.csv": "One row a workload and interval.";
    time: "time_ps" "start of the interval";
    length: "length_ps" "its length; the run may end within the last";
    workload: "workload" "the workload's name";
    sent: "sent_bytes" "payload sent for the first time by all senders";
    delivered: "delivered_bytes" "payload delivered in order to the applications";
}

/// Code that reads the messages of all points; run by a test, where the library is there.
pub const READERS: &[(&str, &str)] = &[
    (
        "pandas",
        "import glob, pandas\n\
         files = glob.glob('points/*/messages.csv')\n\
         read = lambda file: pandas.read_csv(file, keep_default_na=False, na_values=[''])\n\
         messages = pandas.concat(map(read, files), ignore_index=True).convert_dtypes()",
    ),
    (
        "Polars",
        "import polars\n\
         whole = {'query': polars.Int64, 'completed_ps': polars.Int64}\n\
         messages = polars.read_csv('points/*/messages.csv', infer_schema_length=None, schema_overrides=whole)",
    ),
    ("DuckDB", "SELECT * FROM read_csv('points/*/messages.csv', sample_size=-1)"),
];

/// Returns the documentation of all files and columns, in Markdown; written into every run directory.
pub fn documentation() -> String {
    let mut out = String::from(
        "# Columns\n\nEach point of the run (a variant at one sweep point with one seed) has a folder under \
         `points/` with these files; a file without rows is left out. All points at once:\n\n",
    );
    for (name, how) in READERS {
        out.push_str(&format!("{name}:\n\n```\n{how}\n```\n\n"));
    }
    out.push_str(
        "The options make a reader look at every row before it chooses a column's type. Times are integer \
         picoseconds since the start of the run; columns that are described as mean or share are floating \
         point; an empty field is 'none'. Where a column is empty in a whole file, Polars takes it for text, \
         unless it is told the type.\n\nIn names, control characters and marks of direction are written as \
         `\\u{1b}`, and a name that a spreadsheet would take for a formula (it begins with `=`, `+`, `-` or `@`) \
         has an apostrophe in front.\n\n",
    );
    out.push_str(
        "With `--columns parquet` the files are `points/*/messages.parquet` and so on, with the same columns, \
         whose types they name: `pandas.read_parquet`, `polars.read_parquet` and DuckDB's `read_parquet` need no \
         options, and texts are as the scenario has them.\n\n## In every file\n",
    );
    list(KEY_COLUMNS, &mut out);
    for Table { file, about, columns } in &TABLES {
        out.push_str(&format!("\n## {file}\n{about}\n"));
        list(columns, &mut out);
    }
    out.push_str("\n## Counters of the whole run, in point.json\n");
    let counters: Vec<ColumnDoc> =
        Counters::ALL.iter().map(|counter| (counter.name, counter.about.trim_start())).collect();
    list(&counters, &mut out);
    out
}

fn list(columns: &[ColumnDoc], out: &mut String) {
    out.push('\n');
    for (name, about) in columns {
        out.push_str(&format!("* `{name}`: {about}\n"));
    }
}
