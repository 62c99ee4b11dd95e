//! The figures of `plimsoll circuits`.

use plimsoll_circuits::{Schedule, SchedulerKind, Switching};
use plimsoll_report::chart::{
    Axis, Body, Chart, Color, Format, Gantt, GanttRow, GanttSpan, StackPart, StackRow, Stacked,
};
use plimsoll_units::Span;

use super::compare::Compared;

/// Draws who sends to whom, when.
pub(super) fn of_schedule(kind: SchedulerKind, schedule: &Schedule, switching: &Switching) -> Chart {
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
        body: Body::Gantt(Gantt { x: Axis::from_zero("time", Format::Time), rows }),
    }
}

/// Draws the time to serve of each scheduler, above the bounds.
pub(super) fn of_times(
    title: &str,
    all: &[Compared],
    bounds: &[(&str, f64); 3],
    switching: &Switching,
) -> Chart {
    let part = |name: &str, color| StackPart { name: name.to_owned(), color };
    let row = |label: &str, values| StackRow {
        group: String::new(),
        label: label.to_owned(),
        scheme: None,
        values,
    };
    let window = switching.window.as_ms_f64();
    let served = all.iter().filter_map(|each| Some((each, each.time_ms?)));
    let mut rows: Vec<StackRow> = served
        .map(|(each, time)| {
            let nights = each.configurations * switching.night.as_ms_f64();
            let used = each.circuit * time.max(window);
            let unused = (time - nights - used).max(0.0);
            let us = [used, unused, nights, 0.0].map(|ms| ms * 1e3);
            row(each.kind.name(), us.to_vec())
        })
        .collect();
    rows.extend(bounds.iter().map(|(name, ms)| row(name, vec![0.0, 0.0, 0.0, ms * 1e3])));
    let parts = vec![
        part("days, circuits in use", Color::Scheme(0)),
        part("days, circuits without demand", Color::Scheme(4)),
        part("nights", Color::Scheme(7)),
        part("lower bound", Color::Reference),
    ];
    Chart {
        title: title.to_owned(),
        note: "LB_c bounds circuits alone, LB_h both switches, LB_f with a night a flow; means over the demands."
            .to_owned(),
        body: Body::Stacked(Stacked {
            x: Axis::from_zero("time to serve", Format::Time),
            shares: false,
            parts,
            rows,
        }),
    }
}
