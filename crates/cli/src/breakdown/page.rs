//! The HTML page of `plimsoll breakdown`.

use plimsoll_breakdown::{Layer, Report};
use plimsoll_report::chart::{Axis, Body, Chart, Color, Format, Schemes, StackPart, StackRow, Stacked};
use plimsoll_report::html::{Article, Figure, Section, article};

use super::shown::Shown;
use super::tables;
use crate::output;

/// Renders the page, with so many of the slowest requests in its table.
pub(super) fn render(shown: &Shown, command: &str, slowest: usize) -> String {
    let report = &shown.report;
    let figures = vec![
        Figure::new("layers".to_owned(), of_layers(report), Vec::new()),
        Figure::new("slowest-requests".to_owned(), of_slowest(report), Vec::new()),
    ];
    let grids = tables::grids(shown, slowest.max(SLOWEST_SHOWN));
    let ids: Vec<String> = (0..grids.len()).map(|number| format!("table-{number}")).collect();
    let mut sections =
        vec![Section { id: "figures", name: "Figures", lead: "", figures, tables: Vec::new() }];
    sections.extend(ids.iter().zip(&grids).map(|(id, grid)| Section {
        id,
        name: &grid.title,
        lead: "",
        figures: Vec::new(),
        tables: vec![grid.clone()],
    }));
    article(&Article {
        kind: "Plimsoll breakdown",
        title: &format!("Where the requests of {} spend their time", shown.target.name),
        description: &format!("{} {}", tables::sentence(shown), tables::cost(shown)),
        found: &[],
        warnings: &tables::warnings(shown),
        sections: &sections,
        schemes: &Schemes::default(),
        command,
        seed: None,
        version: output::VERSION,
        commit: output::commit(),
        runs: 0,
        scenario: "",
    })
}

/// Charts the mean request beside the mean of the slowest 1 %.
fn of_layers(report: &Report) -> Chart {
    let slowest_mean = report.slowest_mean_ns;
    let row = |label: &str, mean: f64, share: fn(&plimsoll_breakdown::LayerReport) -> f64| StackRow {
        group: String::new(),
        label: label.to_owned(),
        scheme: None,
        values: report.layers.iter().map(|layer| share(layer) * mean / 1e3).collect(),
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
        StackRow { group: String::new(), label: format!("{}", number + 1), scheme: None, values }
    });
    stacked("The slowest requests", "One bar a request, the slowest first.", rows.collect())
}

fn stacked(title: &str, note: &str, rows: Vec<StackRow>) -> Chart {
    let parts = Layer::ALL.into_iter().enumerate().map(|(number, layer)| StackPart {
        name: layer.name().to_owned(),
        color: if layer == Layer::Remainder { Color::Reference } else { Color::Scheme(number) },
    });
    Chart {
        title: title.to_owned(),
        note: note.to_owned(),
        body: Body::Stacked(Stacked {
            x: Axis::from_zero("time in the server", Format::Time),
            shares: false,
            parts: parts.collect(),
            rows,
        }),
    }
}

/// The slowest requests on the page, at least.
const SLOWEST_SHOWN: usize = 50;
