//! The figures of breakdowns.

use plimsoll_breakdown::{Layer, LayerReport, Report};

use super::SLOWEST_SHOWN;
use crate::chart::{Chart, Color, StackPart, StackRow};
use crate::html::Figure;

/// Makes the figures of the page.
pub(super) fn figures(report: &Report) -> Vec<Figure> {
    let charts = [("layers", of_layers(report)), ("slowest-requests", of_slowest(report))];
    charts.map(|(id, chart)| Figure::new(id.to_owned(), chart, Vec::new())).into()
}

/// Charts the mean request beside the mean of the slowest 1 %.
fn of_layers(report: &Report) -> Chart {
    let slowest_mean = report.slowest_mean_ns;
    let row = |label: &str, mean: f64, share: fn(&LayerReport) -> f64| {
        StackRow::plain(label, report.layers.iter().map(|layer| share(layer) * mean / 1e3).collect())
    };
    let rows = vec![
        row("all requests", report.latency.mean_ns, |layer| layer.share),
        row("slowest 1 %", slowest_mean, |layer| layer.share_of_slowest),
    ];
    stacked(
        "Layers of the mean request",
        "The mean over the requests; the layers add up to the latency.",
        rows,
    )
}

/// Charts each of the slowest requests.
fn of_slowest(report: &Report) -> Chart {
    let rows = report.slowest.iter().take(SLOWEST_SHOWN).enumerate().map(|(number, slow)| {
        let mut values = vec![0.0; Layer::ALL.len()];
        for (part, ns) in slow.parts() {
            values[part.layer() as usize] += ns as f64 / 1e3;
        }
        StackRow::plain(&(number + 1).to_string(), values)
    });
    stacked("The slowest requests", "One bar a request, the slowest first.", rows.collect())
}

fn stacked(title: &str, note: &str, rows: Vec<StackRow>) -> Chart {
    let parts = Layer::ALL.into_iter().enumerate().map(|(number, layer)| StackPart {
        name: layer.name().to_owned(),
        color: if layer == Layer::Remainder { Color::Reference } else { Color::Scheme(number) },
    });
    Chart::times(title, note, "time in the server", parts.collect(), rows)
}
