//! The records of an outcome as columns, lossless: records read back have the same digest.
//!
//! Every file starts with the columns `variant`, `replicate` and one for each swept key, so that all points of a run
//! can be read at once (`points/*/messages.csv`). Times are integer picoseconds since the start of the run; an empty
//! field is 'none'. A column holds one type: estimates always have a decimal point, so that a reader that samples some
//! rows never takes them for integers, and 'no limit' is empty instead of the largest integer, which no signed column
//! holds.

use std::collections::BTreeMap;
use std::str::FromStr;

use csv::{StringRecord, StringRecordIter};
use plimsoll_fabric::net::HostId;
use plimsoll_text::from_csv_cell;
use plimsoll_units::{Bytes, Rate, Span, Time};

use super::csv::Writer;
use crate::outcome::{
    CircuitUse, CircuitWeek, Connection, GoodputInterval, LinkTotals, Message, Observation, Query,
    ScheduleTimes, SeriesPoint, Split,
};

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
    let texts = ["variant", "workload", "name", "port", "from", "to", "tier"];
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
pub(super) const TABLES: [Table; 10] = [
    table::<Message>(),
    table::<Query>(),
    table::<Observation>(),
    table::<QueueInterval>(),
    table::<LinkTotals>(),
    table::<CircuitUse>(),
    table::<CircuitWeek>(),
    table::<Connection>(),
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

    pub(super) fn text(&mut self) -> Result<&'a str, String> {
        self.fields.next().ok_or_else(|| "a field is missing".to_owned())
    }

    pub(super) fn parse<T: FromStr>(&mut self) -> Result<T, String> {
        let text = self.text()?;
        text.parse().map_err(|_| format!("`{text}` is not a number of its column"))
    }

    pub(super) fn maybe<T: FromStr>(&mut self) -> Result<Option<T>, String> {
        match self.text()? {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| format!("`{text}` is not a number of its column")),
        }
    }

    /// A last field, which rows of earlier versions do not have.
    fn last<T: FromStr>(&mut self) -> Result<Option<T>, String> {
        let Some(text) = self.fields.next() else { return Ok(None) };
        text.parse().map(Some).map_err(|_| format!("`{text}` is not a number of its column"))
    }

    fn time(&mut self) -> Result<Time, String> {
        self.parse().map(Time::from_ps)
    }

    fn span(&mut self) -> Result<Span, String> {
        self.parse().map(Span::from_ps)
    }

    /// A text as it was before it became a cell.
    fn name(&mut self) -> Result<String, String> {
        Ok(from_csv_cell(self.text()?).into_owned())
    }

    fn workload(&mut self, names: &Names) -> Result<u16, String> {
        let name = self.name()?;
        names.index.get(&name).copied().ok_or_else(|| format!("`{name}` is not a workload of this point"))
    }
}

impl Record for Message {
    const FILE: &'static str = "messages.csv";
    const ABOUT: &'static str = "One row a message: a flow, or a request with its response. The parts \
                                 from `window_ps` on sum to `completed_ps - created_ps`.";
    const COLUMNS: &'static [ColumnDoc] = &[
        ("workload", "the workload's name"),
        ("index", "which message of the workload; the same message in every variant"),
        ("query", "the query it belongs to, for a fan-out"),
        ("source", "host that created it"),
        ("destination", "host at the other end"),
        ("bytes", "payload of the flow or of the response"),
        ("created_ps", "when it was created"),
        ("completed_ps", "when its last byte arrived; empty if the run ended first"),
        ("ideal_ps", "completion time on idle links"),
        ("window_ps", "in the transport before the last byte was first sent"),
        ("recovery_ps", "from then to the sending that completed it: losses"),
        ("nic_ps", "in the NIC queue"),
        ("pacer_ps", "held by the pacer"),
        ("tier0_ps", "in queues of the switch tier next to the hosts"),
        ("tier1_ps", "in queues of the next tier"),
        ("tier2_ps", "in queues of the topmost tier; in a hybrid network, waiting for a circuit"),
        ("serialisation_ps", "on the wire, serialising"),
        ("propagation_ps", "on the wire, propagating"),
        ("service_ps", "at the server: waiting and being served"),
    ];

    fn write(&self, row: &mut Writer, names: &Names) {
        let Message { workload, index, query, source, destination, bytes, created, completed, ideal, split } =
            *self;
        row.text(names.workload(workload));
        row.plain(index);
        row.maybe(query);
        row.plain(source);
        row.plain(destination);
        row.plain(bytes);
        row.plain(created.as_ps());
        row.maybe(completed.map(Time::as_ps));
        row.plain(ideal.as_ps());
        let Split { window, recovery, nic, pacer, tier, serialisation, propagation, service } = split;
        let before = [window, recovery, nic, pacer];
        let after = [serialisation, propagation, service];
        before.into_iter().chain(tier).chain(after).for_each(|part| row.plain(part.as_ps()));
    }

    fn read(fields: &mut Fields<'_>, names: &Names) -> Result<Message, String> {
        Ok(Message {
            workload: fields.workload(names)?,
            index: fields.parse()?,
            query: fields.maybe()?,
            source: fields.parse()?,
            destination: fields.parse()?,
            bytes: fields.parse()?,
            created: fields.time()?,
            completed: fields.maybe()?.map(Time::from_ps),
            ideal: fields.span()?,
            split: Split {
                window: fields.span()?,
                recovery: fields.span()?,
                nic: fields.span()?,
                pacer: fields.span()?,
                tier: [fields.span()?, fields.span()?, fields.span()?],
                serialisation: fields.span()?,
                propagation: fields.span()?,
                service: fields.span()?,
            },
        })
    }
}

impl Record for Query {
    const FILE: &'static str = "queries.csv";
    const ABOUT: &'static str = "One row a fan-out query.";
    const COLUMNS: &'static [ColumnDoc] = &[
        ("workload", "the workload's name"),
        ("index", "which query of the workload; the same query in every variant"),
        ("created_ps", "when it was created"),
        ("completed_ps", "when the slowest response arrived; empty if the run ended first"),
        ("servers", "servers asked"),
        ("in_deadline", "responses strictly within the deadline"),
        ("response_mean_ps", "mean completion time over the servers"),
        ("response_min_ps", "completion time of the fastest server; empty if none has answered"),
    ];

    fn write(&self, row: &mut Writer, names: &Names) {
        let Query { workload, index, created, completed, servers, in_deadline, response_mean, response_min } =
            *self;
        row.text(names.workload(workload));
        row.plain(index);
        row.plain(created.as_ps());
        row.maybe(completed.map(Time::as_ps));
        row.plain(servers);
        row.plain(in_deadline);
        row.plain(response_mean.as_ps());
        row.maybe(Some(response_min).filter(|&fastest| fastest != Span::MAX).map(Span::as_ps));
    }

    fn read(fields: &mut Fields<'_>, names: &Names) -> Result<Query, String> {
        Ok(Query {
            workload: fields.workload(names)?,
            index: fields.parse()?,
            created: fields.time()?,
            completed: fields.maybe()?.map(Time::from_ps),
            servers: fields.parse()?,
            in_deadline: fields.parse()?,
            response_mean: fields.span()?,
            // Files of earlier versions have the largest integer.
            response_min: fields.maybe()?.map_or(Span::MAX, Span::from_ps),
        })
    }
}

impl Record for Observation {
    const FILE: &'static str = "observations.csv";
    const ABOUT: &'static str = "One row a measurement that is no completion time; `point.json` says of each \
                                 workload what it measures.";
    const COLUMNS: &'static [ColumnDoc] = &[
        ("workload", "the workload's name"),
        ("index", "which observation of the workload; the same one in every variant"),
        ("host", "host that measured"),
        ("begun_ps", "when the measurement began"),
        ("value_ps", "what was measured"),
    ];

    fn write(&self, row: &mut Writer, names: &Names) {
        let Observation { workload, index, host, begun, value } = *self;
        row.text(names.workload(workload));
        row.plain(index);
        row.plain(host);
        row.plain(begun.as_ps());
        row.plain(value.as_ps());
    }

    fn read(fields: &mut Fields<'_>, names: &Names) -> Result<Observation, String> {
        Ok(Observation {
            workload: fields.workload(names)?,
            index: fields.parse()?,
            host: fields.parse()?,
            begun: fields.time()?,
            value: fields.span()?,
        })
    }
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

impl Record for QueueInterval {
    const FILE: &'static str = "queues.csv";
    const ABOUT: &'static str = "One row an interval of a watched queue; `point.json` has the rate of \
                                 its link, the length of the interval and the time at each depth.";
    const COLUMNS: &'static [ColumnDoc] = &[
        ("queue", "number of the queue in `point.json`, from 0"),
        ("name", "the scenario's name for it"),
        ("port", "the port it stands for"),
        ("time_ps", "start of the interval"),
        ("mean_bytes", "time average of the bytes waiting; the packet in service does not wait"),
        ("max_bytes", "most bytes that waited"),
    ];

    fn write(&self, row: &mut Writer, _: &Names) {
        let QueueInterval { queue, name, port, time, mean_bytes, max_bytes } = self;
        row.plain(queue);
        row.text(name);
        row.text(port);
        row.plain(time.as_ps());
        row.maybe_float(*mean_bytes);
        row.maybe(*max_bytes);
    }

    fn read(fields: &mut Fields<'_>, _: &Names) -> Result<QueueInterval, String> {
        Ok(QueueInterval {
            queue: fields.parse()?,
            name: fields.name()?,
            port: fields.name()?,
            time: fields.time()?,
            mean_bytes: fields.maybe()?,
            max_bytes: fields.maybe()?,
        })
    }
}

impl Record for LinkTotals {
    const FILE: &'static str = "links.csv";
    const ABOUT: &'static str = "One row a direction of a link, from the warm-up to the end of the sending.";
    const COLUMNS: &'static [ColumnDoc] = &[
        ("from", "the node whose port sends on it"),
        ("to", "the node at its far end"),
        ("tier", "the tiers that it connects"),
        ("rate_bps", "its rate"),
        ("observed_ps", "how long it was observed"),
        ("packets", "packets that completed it"),
        ("bytes", "their bytes"),
        ("drops", "packets that found no room at its port"),
        ("pauses", "times that its far end paused it"),
        ("paused_ps", "time in which at least one priority was paused"),
    ];

    fn write(&self, row: &mut Writer, _: &Names) {
        let LinkTotals { from, to, tier, rate, observed, packets, bytes, drops, pauses, paused } = self;
        [from, to, tier].into_iter().for_each(|text| row.text(text));
        let counts = [rate.as_bps(), observed.as_ps(), *packets, *bytes, *drops, *pauses, paused.as_ps()];
        counts.into_iter().for_each(|count| row.plain(count));
    }

    fn read(fields: &mut Fields<'_>, _: &Names) -> Result<LinkTotals, String> {
        Ok(LinkTotals {
            from: fields.name()?,
            to: fields.name()?,
            tier: fields.name()?,
            rate: Rate::from_bps(fields.parse()?),
            observed: fields.span()?,
            packets: fields.parse()?,
            bytes: fields.parse()?,
            drops: fields.parse()?,
            pauses: fields.parse()?,
            paused: fields.span()?,
        })
    }
}

impl Record for CircuitUse {
    const FILE: &'static str = "circuits.csv";
    const ABOUT: &'static str = "One row a circuit while it stood, in a hybrid network.";
    const COLUMNS: &'static [ColumnDoc] = &[
        ("week", "number of the week, from 1"),
        (
            "configuration",
            "number of the configuration in the run: circuits of the same number stood at once",
        ),
        ("from_ps", "when it was put up"),
        ("until_ps", "when it was taken down, or its week ended, or the run"),
        ("sender", "the host that sends by it"),
        ("receiver", "the host that receives by it"),
        ("first_ps", "when the first packet that it carried reached the circuit switch"),
        (
            "onset_ps",
            "when the sender had sent its first data to the receiver, after two weeks at least without any, as of then",
        ),
        ("packets", "packets that it carried"),
        ("bytes", "their bytes"),
        ("rate_bps", "the rate at which its sender may send by circuits"),
    ];

    fn write(&self, row: &mut Writer, _: &Names) {
        let CircuitUse {
            week,
            configuration,
            from,
            until,
            sender,
            receiver,
            first,
            onset,
            packets,
            bytes,
            rate,
        } = *self;
        [week, configuration, from.as_ps(), until.as_ps()].into_iter().for_each(|number| row.plain(number));
        [sender.0, receiver.0].into_iter().for_each(|host| row.plain(host));
        [first, onset].into_iter().for_each(|time| row.maybe(time.map(Time::as_ps)));
        [packets, bytes, rate.as_bps()].into_iter().for_each(|number| row.plain(number));
    }

    fn read(fields: &mut Fields<'_>, _: &Names) -> Result<CircuitUse, String> {
        Ok(CircuitUse {
            week: fields.parse()?,
            configuration: fields.parse()?,
            from: fields.time()?,
            until: fields.time()?,
            sender: HostId(fields.parse()?),
            receiver: HostId(fields.parse()?),
            first: fields.maybe()?.map(Time::from_ps),
            onset: fields.maybe()?.map(Time::from_ps),
            packets: fields.parse()?,
            bytes: fields.parse()?,
            rate: Rate::from_bps(fields.parse()?),
        })
    }
}

impl Record for CircuitWeek {
    const FILE: &'static str = "circuit_weeks.csv";
    const ABOUT: &'static str = "One row a week of the control loop of circuits, in a hybrid network.";
    const COLUMNS: &'static [ColumnDoc] = &[
        ("week", "number of the week, from 0; week 0 has no schedule"),
        ("read_ps", "when hosts began to sum up the demand of its schedule"),
        ("gathered_ps", "when the controller had the demand of all hosts"),
        ("ready_ps", "when its schedule was ready"),
        ("begins_ps", "when it began"),
        ("ends_ps", "when the next week began, or the run ended"),
        ("configurations", "configurations of its schedule"),
        ("known_bytes", "bytes that its schedule was made for: the demand that was read"),
        ("known_sent_bytes", "how many of them had been sent by its end, by either switch"),
        ("packet_packets", "packets that passed the packet switch between racks"),
        ("packet_bytes", "their bytes"),
        ("lost_dark", "packets that the circuit switch lost while it was dark"),
        ("lost_unmatched", "packets that it lost because their sender had no circuit to their receiver"),
    ];

    fn write(&self, row: &mut Writer, _: &Names) {
        row.plain(self.week);
        let made = self.made.map(|made| [made.read, made.gathered, made.ready]);
        (0..3).for_each(|moment| row.maybe(made.map(|made| made[moment].as_ps())));
        let CircuitWeek { begins, ends, configurations, known_bytes, known_sent_bytes, .. } = *self;
        let numbers = [begins.as_ps(), ends.as_ps(), configurations, known_bytes, known_sent_bytes];
        numbers.into_iter().for_each(|number| row.plain(number));
        let CircuitWeek { packet_packets, packet_bytes, lost_dark, lost_unmatched, .. } = *self;
        let counts = [packet_packets, packet_bytes, lost_dark, lost_unmatched];
        counts.into_iter().for_each(|count| row.plain(count));
    }

    fn read(fields: &mut Fields<'_>, _: &Names) -> Result<CircuitWeek, String> {
        let week = fields.parse()?;
        let mut moment = || Ok::<_, String>(fields.maybe()?.map(Time::from_ps));
        let made = match (moment()?, moment()?, moment()?) {
            (Some(read), Some(gathered), Some(ready)) => Some(ScheduleTimes { read, gathered, ready }),
            _ => None,
        };
        Ok(CircuitWeek {
            week,
            made,
            begins: fields.time()?,
            ends: fields.time()?,
            configurations: fields.parse()?,
            known_bytes: fields.parse()?,
            known_sent_bytes: fields.parse()?,
            packet_packets: fields.parse()?,
            packet_bytes: fields.parse()?,
            lost_dark: fields.parse()?,
            lost_unmatched: fields.parse()?,
        })
    }
}

impl Record for Connection {
    const FILE: &'static str = "connections.csv";
    const ABOUT: &'static str = "One row a connection that carried data, in the order that `series.csv` \
                                 counts in, from 0.";
    const COLUMNS: &'static [ColumnDoc] = &[
        ("workload", "the workload's name"),
        ("client", "host that opened it"),
        ("server", "host at the other end"),
        ("delivered_bytes", "payload delivered to the applications, both directions"),
        ("first_ps", "first delivery; empty if there was none"),
        ("last_ps", "last delivery; empty if there was none"),
        ("segments", "data segments sent, retransmissions included"),
        ("retransmissions", "segments sent again"),
        ("timeouts", "retransmission timeouts"),
        ("marked", "data segments that arrived with CE"),
        ("pacer_associations", "times that the pacer associated it anew"),
        ("pacer_renewals", "times that an association was renewed"),
        ("pacer_dissociations", "times that an association ran out"),
    ];

    fn write(&self, row: &mut Writer, names: &Names) {
        let Connection { workload, client, server, delivered, active, segments, retransmissions, .. } = self;
        let Connection { timeouts, marked, pacer_associations, pacer_renewals, .. } = self;
        row.text(names.workload(*workload));
        row.plain(client);
        row.plain(server);
        row.plain(delivered);
        row.maybe(active.map(|(first, _)| first.as_ps()));
        row.maybe(active.map(|(_, last)| last.as_ps()));
        for counter in [segments, retransmissions, timeouts, marked, pacer_associations, pacer_renewals] {
            row.plain(counter);
        }
        row.plain(self.pacer_dissociations);
    }

    fn read(fields: &mut Fields<'_>, names: &Names) -> Result<Connection, String> {
        Ok(Connection {
            workload: fields.workload(names)?,
            client: fields.parse()?,
            server: fields.parse()?,
            delivered: fields.parse()?,
            active: {
                let (first, last): (Option<u64>, Option<u64>) = (fields.maybe()?, fields.maybe()?);
                first.zip(last).map(|(first, last)| (Time::from_ps(first), Time::from_ps(last)))
            },
            segments: fields.parse()?,
            retransmissions: fields.parse()?,
            timeouts: fields.parse()?,
            marked: fields.parse()?,
            pacer_associations: fields.parse()?,
            pacer_renewals: fields.parse()?,
            pacer_dissociations: fields.parse()?,
        })
    }
}

impl Record for SeriesPoint {
    const FILE: &'static str = "series.csv";
    const ABOUT: &'static str = "One row a sample of one connection's sender.";
    const COLUMNS: &'static [ColumnDoc] = &[
        ("time_ps", "when"),
        ("connection", "row of `connections.csv`, from 0"),
        ("cwnd_bytes", "congestion window"),
        ("ssthresh_bytes", "slow start threshold; empty while slow start has no end"),
        ("alpha", "DCTCP's estimate of the marked share; 0 for others"),
        ("rate_bps", "bits acknowledged per second since the last sample"),
        ("retransmissions", "segments that the sender has retransmitted so far"),
        ("subflow", "subflow of an MPTCP connection, from 0; 0 for a plain TCP connection"),
    ];

    fn write(&self, row: &mut Writer, _: &Names) {
        let SeriesPoint { time, connection, cwnd, ssthresh, alpha, rate, retransmissions, subflow } = *self;
        row.plain(time.as_ps());
        row.plain(connection);
        row.plain(cwnd);
        row.maybe(Some(ssthresh).filter(|&bytes| bytes != SeriesPoint::NO_SSTHRESH));
        row.maybe_float(Some(alpha));
        row.plain(rate.as_bps());
        row.plain(retransmissions);
        row.plain(subflow);
    }

    fn read(fields: &mut Fields<'_>, _: &Names) -> Result<SeriesPoint, String> {
        Ok(SeriesPoint {
            time: fields.time()?,
            connection: fields.parse()?,
            cwnd: fields.parse()?,
            ssthresh: fields.maybe()?.unwrap_or(SeriesPoint::NO_SSTHRESH),
            alpha: fields.parse()?,
            rate: Rate::from_bps(fields.parse()?),
            // Files of earlier versions end here.
            retransmissions: fields.last()?.unwrap_or(0),
            subflow: fields.last()?.unwrap_or(0),
        })
    }
}

impl Record for GoodputInterval {
    const FILE: &'static str = "goodput.csv";
    const ABOUT: &'static str = "One row a workload and interval.";
    const COLUMNS: &'static [ColumnDoc] = &[
        ("time_ps", "start of the interval"),
        ("length_ps", "its length; the run may end within the last"),
        ("workload", "the workload's name"),
        ("sent_bytes", "payload sent for the first time by all senders"),
        ("delivered_bytes", "payload delivered in order to the applications"),
    ];

    fn write(&self, row: &mut Writer, names: &Names) {
        let GoodputInterval { time, length, workload, sent, delivered } = *self;
        row.plain(time.as_ps());
        row.plain(length.as_ps());
        row.text(names.workload(workload));
        row.plain(sent.get());
        row.plain(delivered.get());
    }

    fn read(fields: &mut Fields<'_>, names: &Names) -> Result<GoodputInterval, String> {
        Ok(GoodputInterval {
            time: fields.time()?,
            length: fields.span()?,
            workload: fields.workload(names)?,
            sent: Bytes::new(fields.parse()?),
            delivered: Bytes::new(fields.parse()?),
        })
    }
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
    out
}

fn list(columns: &[ColumnDoc], out: &mut String) {
    out.push('\n');
    for (name, about) in columns {
        out.push_str(&format!("* `{name}`: {about}\n"));
    }
}
