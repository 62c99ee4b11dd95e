//! The records of runs as Arrow columns, which other libraries take without a copy by Arrow's C interface.
//!
//! Columns are those of the run directory's files (`columns.md` there), after the columns `variant`, `replicate` and
//! one for each swept key. Messages and queries also have their completion time in microseconds, and queues the mean
//! delay.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array};
use arrow_array::{RecordBatch, RecordBatchIterator, StringArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use plimsoll_results::outcome::SeriesPoint;
use plimsoll_results::{Outcome, PointOutcome};
use plimsoll_units::{Span, Time};
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList};

use crate::errors::{DefectError, PlimsollError};

/// Records of one kind from all runs: a batch for each run.
#[pyclass(frozen, module = "plimsoll._plimsoll")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

/// Writes the columns of the records of one run.
type WriteColumns = fn(&Outcome, &mut NamedColumns);

/// The kinds of records, and what writes their columns.
const KINDS: &[(&str, WriteColumns)] = &[
    ("messages", messages),
    ("queries", queries),
    ("observations", observations),
    ("queues", queues),
    ("links", links),
    ("circuits", circuits),
    ("connections", connections),
    ("series", series),
    ("goodput", goodput),
];

/// Returns the records of one kind.
pub(crate) fn of(points: &[PointOutcome], kind: &str) -> PyResult<Table> {
    let Some((_, write)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        let kinds: Vec<&str> = KINDS.iter().map(|(name, _)| *name).collect();
        let message = format!("there are no records {kind:?}; allowed: {}", kinds.join(", "));
        return Err(PlimsollError::new_err(message));
    };
    let keys = RunColumns::of(points);
    let batch = |point: &PointOutcome| {
        let mut columns = NamedColumns::default();
        write(&point.outcome, &mut columns);
        let rows = columns.rows();
        columns.behind(keys.columns(point, rows))
    };
    let batches = points.iter().map(batch).collect::<Result<Vec<_>, ArrowError>>();
    let batches = batches.map_err(|error| DefectError::new_err(error.to_string()))?;
    let schema = batches.first().map_or_else(|| Arc::new(Schema::empty()), RecordBatch::schema);
    Ok(Table { schema, batches })
}

#[pymethods]
impl Table {
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    #[getter]
    fn num_rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __len__(&self) -> usize {
        self.num_rows()
    }

    /// Arrow's C interface: a capsule with the schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref());
        let schema = schema.map_err(|error| DefectError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Arrow's C interface: a capsule with a stream of record batches. A requested schema is ignored, as the interface
    /// allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// Returns the columns as lists by their names; None where there is no value.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for (index, field) in self.schema.fields().iter().enumerate() {
            let list = PyList::empty(py);
            for batch in &self.batches {
                append(batch.column(index).as_ref(), &list)?;
            }
            columns.set_item(field.name(), list)?;
        }
        Ok(columns)
    }

    /// Returns a `pandas.DataFrame` with the columns, by pyarrow where that is installed.
    fn to_pandas<'py>(slf: &Bound<'py, Table>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let pandas = py.import("pandas").map_err(|error| {
            let wrapped = PyImportError::new_err("to_pandas() needs pandas: pip install pandas");
            wrapped.set_cause(py, Some(error));
            wrapped
        })?;
        match py.import("pyarrow") {
            Ok(arrow) => arrow.call_method1("table", (slf,))?.call_method0("to_pandas"),
            Err(_) => pandas.call_method1("DataFrame", (slf.get().to_dict(py)?,)),
        }
    }
}

fn append(column: &dyn Array, list: &Bound<'_, PyList>) -> PyResult<()> {
    match column.data_type() {
        DataType::Int64 => column.as_primitive::<Int64Type>().iter().try_for_each(|value| list.append(value)),
        DataType::Float64 => {
            column.as_primitive::<Float64Type>().iter().try_for_each(|value| list.append(value))
        }
        _ => {
            let column = column.as_dictionary::<Int32Type>();
            let names = column.values().as_string::<i32>();
            column.keys().iter().try_for_each(|key| list.append(key.map(|key| names.value(key as usize))))
        }
    }
}

/// Columns with their names, all of the same length.
#[derive(Default)]
struct NamedColumns(Vec<(String, ArrayRef)>);

impl NamedColumns {
    fn rows(&self) -> usize {
        self.0.first().map_or(0, |(_, column)| column.len())
    }

    fn add(&mut self, name: &str, column: impl Array + 'static) {
        self.0.push((name.to_owned(), Arc::new(column)));
    }

    /// Adds whole numbers. What no signed number holds, such as the end of time, is the largest one.
    fn whole<N: TryInto<i64>>(&mut self, name: &str, values: impl Iterator<Item = N>) {
        self.add(name, values.map(|value| Some(signed(value))).collect::<Int64Array>());
    }

    fn maybe<N: TryInto<i64>>(&mut self, name: &str, values: impl Iterator<Item = Option<N>>) {
        self.add(name, values.map(|value| value.map(signed)).collect::<Int64Array>());
    }

    fn float(&mut self, name: &str, values: impl Iterator<Item = Option<f64>>) {
        self.add(name, values.collect::<Float64Array>());
    }

    fn times(&mut self, name: &str, values: impl Iterator<Item = Time>) {
        self.whole(name, values.map(Time::as_ps));
    }

    fn spans(&mut self, name: &str, values: impl Iterator<Item = Span>) {
        self.whole(name, values.map(Span::as_ps));
    }

    /// Adds texts that are the elements of `names` at these indices.
    fn names<'a>(
        &mut self,
        name: &str,
        names: impl Iterator<Item = &'a str>,
        indices: impl Iterator<Item = usize>,
    ) {
        let keys = indices.map(|index| Some(index as i32)).collect::<Int32Array>();
        self.add(name, DictionaryArray::new(keys, Arc::new(names.map(Some).collect::<StringArray>())));
    }

    /// Makes a batch of these columns, which come after `keys`.
    fn behind(self, keys: NamedColumns) -> Result<RecordBatch, ArrowError> {
        let (names, columns): (Vec<String>, Vec<ArrayRef>) = keys.0.into_iter().chain(self.0).unzip();
        let field = |(name, column): (&String, &ArrayRef)| Field::new(name, column.data_type().clone(), true);
        let fields: Vec<Field> = names.iter().zip(&columns).map(field).collect();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
    }
}

fn signed<N: TryInto<i64>>(value: N) -> i64 {
    value.try_into().unwrap_or(i64::MAX)
}

/// The columns that say of which run a row is.
struct RunColumns<'a> {
    variants: Vec<&'a str>,
    /// Each swept key, and its values as text in the order of their first run.
    swept: Vec<(&'a str, Vec<&'a str>)>,
}

impl<'a> RunColumns<'a> {
    fn of(points: &'a [PointOutcome]) -> RunColumns<'a> {
        let mut keys = RunColumns { variants: Vec::new(), swept: Vec::new() };
        for PointOutcome { key, .. } in points {
            if !keys.variants.contains(&key.variant.as_str()) {
                keys.variants.push(&key.variant);
            }
            for (swept, value) in &key.sweep {
                let known = keys.swept.iter_mut().find(|(name, _)| name == swept);
                match known {
                    Some((_, values)) if values.contains(&value.as_str()) => {}
                    Some((_, values)) => values.push(value),
                    None => keys.swept.push((swept, vec![value])),
                }
            }
        }
        keys
    }

    fn columns(&self, point: &PointOutcome, rows: usize) -> NamedColumns {
        let key = &point.key;
        let mut columns = NamedColumns::default();
        let at = self.variants.iter().position(|variant| *variant == key.variant).unwrap_or(0);
        columns.names("variant", self.variants.iter().copied(), std::iter::repeat_n(at, rows));
        columns.whole("replicate", std::iter::repeat_n(key.replicate, rows));
        for (swept, values) in &self.swept {
            let value = key.sweep.iter().find(|(name, _)| name == swept).map_or("", |(_, value)| value);
            // A key that is swept over numbers is a column of numbers.
            if values.iter().all(|value| value.parse::<f64>().is_ok()) {
                columns.float(swept, std::iter::repeat_n(value.parse().ok(), rows));
            } else {
                let at = values.iter().position(|known| *known == value).unwrap_or(0);
                columns.names(swept, values.iter().copied(), std::iter::repeat_n(at, rows));
            }
        }
        columns
    }
}

fn workloads(columns: &mut NamedColumns, outcome: &Outcome, indices: impl Iterator<Item = u16>) {
    let names = outcome.workloads.iter().map(|workload| workload.name.as_str());
    columns.names("workload", names, indices.map(usize::from));
}

fn messages(outcome: &Outcome, columns: &mut NamedColumns) {
    let all = || outcome.messages.iter();
    workloads(columns, outcome, all().map(|message| message.workload));
    columns.whole("index", all().map(|message| message.index));
    columns.maybe("query", all().map(|message| message.query));
    columns.whole("source", all().map(|message| message.source));
    columns.whole("destination", all().map(|message| message.destination));
    columns.whole("bytes", all().map(|message| message.bytes));
    columns.times("created_ps", all().map(|message| message.created));
    columns.maybe("completed_ps", all().map(|message| message.completed.map(Time::as_ps)));
    columns.spans("ideal_ps", all().map(|message| message.ideal));
    columns.spans("window_ps", all().map(|message| message.split.window));
    columns.spans("recovery_ps", all().map(|message| message.split.recovery));
    columns.spans("nic_ps", all().map(|message| message.split.nic));
    columns.spans("pacer_ps", all().map(|message| message.split.pacer));
    for tier in 0..3 {
        columns.spans(&format!("tier{tier}_ps"), all().map(|message| message.split.tier[tier]));
    }
    columns.spans("serialisation_ps", all().map(|message| message.split.serialisation));
    columns.spans("propagation_ps", all().map(|message| message.split.propagation));
    columns.spans("service_ps", all().map(|message| message.split.service));
    columns.float("completion_us", all().map(|message| message.latency().map(Span::as_us_f64)));
    let slowdown = |latency: Span, ideal: Span| latency.as_us_f64() / ideal.as_us_f64();
    columns.float("slowdown", all().map(|message| Some(slowdown(message.latency()?, message.ideal))));
}

fn queries(outcome: &Outcome, columns: &mut NamedColumns) {
    let all = || outcome.queries.iter();
    workloads(columns, outcome, all().map(|query| query.workload));
    columns.whole("index", all().map(|query| query.index));
    columns.times("created_ps", all().map(|query| query.created));
    columns.maybe("completed_ps", all().map(|query| query.completed.map(Time::as_ps)));
    columns.whole("servers", all().map(|query| query.servers));
    columns.whole("in_deadline", all().map(|query| query.in_deadline));
    columns.spans("response_mean_ps", all().map(|query| query.response_mean));
    columns.spans("response_min_ps", all().map(|query| query.response_min));
    columns.float("completion_us", all().map(|query| Some((query.completed? - query.created).as_us_f64())));
}

fn observations(outcome: &Outcome, columns: &mut NamedColumns) {
    let all = || outcome.observations.iter();
    workloads(columns, outcome, all().map(|observation| observation.workload));
    columns.whole("index", all().map(|observation| observation.index));
    columns.whole("host", all().map(|observation| observation.host));
    columns.times("begun_ps", all().map(|observation| observation.begun));
    columns.spans("value_ps", all().map(|observation| observation.value));
}

fn queues(outcome: &Outcome, columns: &mut NamedColumns) {
    let intervals = |queue: &plimsoll_results::outcome::QueueObservation| queue.mean_bytes.len();
    let all = || {
        let queues = outcome.queues.iter().enumerate();
        queues.flat_map(move |(number, queue)| (0..intervals(queue)).map(move |at| (number, queue, at)))
    };
    let texts =
        |text: fn(&plimsoll_results::outcome::QueueObservation) -> &str| outcome.queues.iter().map(text);
    columns.whole("queue", all().map(|(number, ..)| number));
    columns.names("name", texts(|queue| &queue.name), all().map(|(number, ..)| number));
    columns.names("port", texts(|queue| &queue.port), all().map(|(number, ..)| number));
    columns.times("time_ps", all().map(|(_, queue, at)| queue.from + queue.every * at as u64));
    columns.float("mean_bytes", all().map(|(_, queue, at)| Some(queue.mean_bytes[at])));
    columns.maybe("max_bytes", all().map(|(_, queue, at)| queue.max_bytes.get(at).copied()));
    let delay_us = |bytes: f64, bps: u64| bytes * 8e6 / bps as f64;
    let mean = all().map(|(_, queue, at)| Some(delay_us(queue.mean_bytes[at], queue.rate.as_bps())));
    columns.float("mean_delay_us", mean);
}

fn links(outcome: &Outcome, columns: &mut NamedColumns) {
    let all = || outcome.links.iter();
    columns.names("from", all().map(|link| link.from.as_str()), 0..all().len());
    columns.names("to", all().map(|link| link.to.as_str()), 0..all().len());
    columns.names("tier", all().map(|link| link.tier.as_str()), 0..all().len());
    columns.whole("rate_bps", all().map(|link| link.rate.as_bps()));
    columns.spans("observed_ps", all().map(|link| link.observed));
    columns.whole("packets", all().map(|link| link.packets));
    columns.whole("bytes", all().map(|link| link.bytes));
    columns.whole("drops", all().map(|link| link.drops));
    columns.whole("pauses", all().map(|link| link.pauses));
    columns.spans("paused_ps", all().map(|link| link.paused));
}

fn circuits(outcome: &Outcome, columns: &mut NamedColumns) {
    let all = || outcome.circuits.iter();
    columns.whole("week", all().map(|circuit| circuit.week));
    columns.whole("configuration", all().map(|circuit| circuit.configuration));
    columns.times("from_ps", all().map(|circuit| circuit.from));
    columns.times("until_ps", all().map(|circuit| circuit.until));
    columns.whole("sender", all().map(|circuit| circuit.sender.0));
    columns.whole("receiver", all().map(|circuit| circuit.receiver.0));
    columns.maybe("first_ps", all().map(|circuit| circuit.first.map(Time::as_ps)));
    columns.maybe("onset_ps", all().map(|circuit| circuit.onset.map(Time::as_ps)));
    columns.whole("packets", all().map(|circuit| circuit.packets));
    columns.whole("bytes", all().map(|circuit| circuit.bytes));
    columns.whole("rate_bps", all().map(|circuit| circuit.rate.as_bps()));
}

fn connections(outcome: &Outcome, columns: &mut NamedColumns) {
    let all = || outcome.connections.iter();
    workloads(columns, outcome, all().map(|connection| connection.workload));
    columns.whole("client", all().map(|connection| connection.client));
    columns.whole("server", all().map(|connection| connection.server));
    columns.whole("delivered_bytes", all().map(|connection| connection.delivered));
    columns.maybe("first_ps", all().map(|connection| connection.active.map(|(first, _)| first.as_ps())));
    columns.maybe("last_ps", all().map(|connection| connection.active.map(|(_, last)| last.as_ps())));
    columns.whole("segments", all().map(|connection| connection.segments));
    columns.whole("retransmissions", all().map(|connection| connection.retransmissions));
    columns.whole("timeouts", all().map(|connection| connection.timeouts));
    columns.whole("marked", all().map(|connection| connection.marked));
    columns.whole("pacer_associations", all().map(|connection| connection.pacer_associations));
    columns.whole("pacer_renewals", all().map(|connection| connection.pacer_renewals));
    columns.whole("pacer_dissociations", all().map(|connection| connection.pacer_dissociations));
}

fn series(outcome: &Outcome, columns: &mut NamedColumns) {
    let all = || outcome.series.iter();
    columns.times("time_ps", all().map(|sample| sample.time));
    columns.whole("connection", all().map(|sample| sample.connection));
    columns.whole("cwnd_bytes", all().map(|sample| sample.cwnd));
    let ssthresh =
        |sample: &SeriesPoint| Some(sample.ssthresh).filter(|&bytes| bytes != SeriesPoint::NO_SSTHRESH);
    columns.maybe("ssthresh_bytes", all().map(ssthresh));
    columns.float("alpha", all().map(|sample| Some(sample.alpha)));
    columns.whole("rate_bps", all().map(|sample| sample.rate.as_bps()));
    columns.whole("retransmissions", all().map(|sample| sample.retransmissions));
    columns.whole("subflow", all().map(|sample| sample.subflow));
}

fn goodput(outcome: &Outcome, columns: &mut NamedColumns) {
    let all = || outcome.goodput.iter();
    columns.times("time_ps", all().map(|interval| interval.time));
    columns.spans("length_ps", all().map(|interval| interval.length));
    workloads(columns, outcome, all().map(|interval| interval.workload));
    columns.whole("sent_bytes", all().map(|interval| interval.sent.get()));
    columns.whole("delivered_bytes", all().map(|interval| interval.delivered.get()));
}
