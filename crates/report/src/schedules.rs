//! The schedules of circuits and the comparison of their schedulers, as tables, JSON and figures.

use plimsoll_circuits::{Compared, Comparison, Demand, Schedule, SchedulerKind, Switching};
use plimsoll_units::Span;
use serde_json::{Value, json};

use crate::chart::{
    Axis, Body, Chart, Color, Format as AxisFormat, Gantt, GanttRow, GanttSpan, StackPart, StackRow,
};
use crate::table::{Format, Listing};

/// Writes a schedule of a demand by a scheduler. `compute_us` measures how long computing it takes, in us, for the
/// forms that have it.
pub fn schedule(
    schedule: &Schedule,
    demand: &Demand,
    scheduler: SchedulerKind,
    night: Span,
    compute_us: impl FnOnce() -> f64,
    format: Format,
) -> String {
    let (total, configurations) = (schedule.total(night), &schedule.configurations);
    if format == Format::Json {
        let each = configurations
            .iter()
            .map(|each| json!({"duration_ps": each.duration.as_ps(), "matching": each.matching.receivers()}));
        let whole = json!({
            "configurations": each.collect::<Vec<Value>>(),
            "residue": schedule.residue.rows().collect::<Vec<_>>(),
            "total_ps": total.as_ps(),
            "compute_us": compute_us(),
            "phi": demand.diameter(),
        });
        return format!("{whole}\n");
    }
    let is_csv = format == Format::Csv;
    let rows = configurations.iter().zip(1..).map(|(each, number): (_, u32)| {
        let day = if is_csv { each.duration.as_ps().to_string() } else { each.duration.to_string() };
        vec![number.to_string(), day, each.matching.to_string()]
    });
    let day = if is_csv { "duration_ps" } else { "day" };
    let mut text = Listing::labelled(&["configuration", day, "circuits"], rows.collect()).written(format);
    if format == Format::Table {
        let (left, ports) = (schedule.residue.total(), demand.ports());
        text += &format!(
            "\n{ports} ports, {scheduler}: {} B by circuits, {left} B by packets, {total} with nights, computed in \
             {:.1} us\n",
            demand.total() - left,
            compute_us(),
        );
    }
    text
}

/// Writes a comparison of schedulers; `seed` is that of generated demands.
pub fn comparison(comparison: &Comparison, seed: Option<u64>, format: Format) -> String {
    let Comparison { ports, demands, bounds_ms, schedulers } = comparison;
    if format == Format::Json {
        let each = schedulers.iter().map(|each| {
            json!({
                "scheduler": each.scheduler.name(),
                "circuit_utilisation": each.circuit_utilisation,
                "packet_utilisation": each.packet_utilisation,
                "time_to_serve_ms": each.time_to_serve_ms,
                "configurations": each.configurations,
                "compute_us": each.compute_us,
                "times_lb_c": each.times_bounds[0],
                "times_lb_h": each.times_bounds[1],
                "times_lb_f": each.times_bounds[2],
            })
        });
        let whole = json!({
            "ports": ports,
            "demands": demands,
            "seed": seed,
            "lb_c_ms": bounds_ms[0],
            "lb_h_ms": bounds_ms[1],
            "lb_f_ms": bounds_ms[2],
            "schedulers": each.collect::<Vec<Value>>(),
        });
        return format!("{whole:#}\n");
    }
    let is_csv = format == Format::Csv;
    let none = if is_csv { "" } else { "-" };
    let share = |share: f64| if is_csv { format!("{share:.4}") } else { format!("{:.1} %", share * 100.0) };
    let ms = |ms: f64| if is_csv { format!("{ms:.6}") } else { format!("{ms:.3} ms") };
    let never = if is_csv { "" } else { "never" };
    let us = |us: f64| if is_csv { format!("{us:.2}") } else { format!("{us:.1} us") };
    let times = |times: Option<f64>| times.map_or_else(|| none.to_owned(), |times| format!("{times:.3}"));
    // Each column has its name in CSV, its name elsewhere, and its cells.
    let columns: [(&str, &str, Cell<'_>); 9] = [
        ("scheduler", "scheduler", &|each| each.scheduler.to_string()),
        ("circuit_utilisation", "circuits used", &|each| share(each.circuit_utilisation)),
        ("packet_utilisation", "packets used", &|each| share(each.packet_utilisation)),
        ("time_to_serve_ms", "time to serve", &|each| {
            each.time_to_serve_ms.map_or_else(|| never.to_owned(), ms)
        }),
        ("configurations", "configurations", &|each| format!("{:.1}", each.configurations)),
        ("compute_us", "computed in", &|each| us(each.compute_us)),
        ("times_lb_c", "/ LB_c", &|each| times(each.times_bounds[0])),
        ("times_lb_h", "/ LB_h", &|each| times(each.times_bounds[1])),
        ("times_lb_f", "/ LB_f", &|each| times(each.times_bounds[2])),
    ];
    let row = |each: &Compared| columns.iter().map(|(.., write)| write(each)).collect();
    let mut rows: Vec<Vec<String>> = schedulers.iter().map(row).collect();
    for (name, bound) in BOUNDS.iter().zip(bounds_ms) {
        let cells = columns.iter().map(|(column, ..)| match *column {
            "scheduler" => (*name).to_owned(),
            "time_to_serve_ms" => ms(*bound),
            _ => none.to_owned(),
        });
        rows.push(cells.collect());
    }
    let names = columns.map(|(csv, words, _)| if is_csv { csv } else { words });
    Listing::labelled(&names, rows).written(format)
}

/// A function that writes a cell of a scheduler.
type Cell<'a> = &'a dyn Fn(&Compared) -> String;

/// The names of the bounds, in the order of [`Comparison::bounds_ms`].
const BOUNDS: [&str; 3] = ["LB_c", "LB_h", "LB_f"];

/// Returns a chart of the schedule over time: a row for each sending port, a span for each of its circuits.
pub fn of_schedule(kind: SchedulerKind, schedule: &Schedule, switching: &Switching) -> Chart {
    let ports = schedule.residue.ports();
    let mut rows: Vec<GanttRow> =
        (0..ports).map(|port| GanttRow { label: format!("port {port}"), spans: Vec::new() }).collect();
    let mut now = Span::ZERO;
    for configuration in &schedule.configurations {
        let from = (now + switching.night).as_us_f64();
        for (sender, receiver) in configuration.matching.circuits() {
            let color = Color::Scheme(receiver);
            let length = configuration.duration.as_us_f64();
            rows[sender].spans.push(GanttSpan { from, length, color, text: receiver.to_string() });
        }
        now = now + switching.night + configuration.duration;
    }
    Chart {
        title: format!("Circuits of {ports} ports by {kind}"),
        note: format!(
            "Each bar is a day of the sender's circuit to the port whose number it has; nights of {} are between them.",
            switching.night
        ),
        body: Body::Gantt(Gantt { x: Axis::from_zero("time", AxisFormat::Time), rows }),
    }
}

/// Draws the time to serve of each scheduler, above the bounds.
pub fn of_times(comparison: &Comparison, switching: &Switching) -> Chart {
    let part = |name: &str, color| StackPart { name: name.to_owned(), color };
    let row = |label: &str, ms: [f64; 4]| StackRow::plain(label, ms.map(|ms| ms * 1e3).to_vec());
    let served = comparison.schedulers.iter().filter_map(|each| Some((each, each.time_to_serve_ms?)));
    let served = served.map(|(each, time)| {
        let nights = each.configurations * switching.night.as_ms_f64();
        let used = each.circuit_utilisation * time.max(switching.window.as_ms_f64());
        row(each.scheduler.name(), [used, (time - nights - used).max(0.0), nights, 0.0])
    });
    let bounds = BOUNDS.iter().zip(comparison.bounds_ms).map(|(name, ms)| row(name, [0.0, 0.0, 0.0, ms]));
    let parts = vec![
        part("days, circuits in use", Color::Scheme(0)),
        part("days, circuits without demand", Color::Scheme(4)),
        part("nights", Color::Scheme(7)),
        part("lower bound", Color::Reference),
    ];
    let note =
        "LB_c bounds circuits alone, LB_h both switches, LB_f with a night a flow; means over the demands.";
    let title = format!("Time to serve, {} ports", comparison.ports);
    Chart::times(title, note, "time to serve", parts, served.chain(bounds).collect())
}
