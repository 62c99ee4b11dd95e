//! The HTML page of `plimsoll bursts`.

use plimsoll_bursts::Report;
use plimsoll_report::chart::Schemes;
use plimsoll_report::html::{Article, Figure, Section, article};

use super::{figure, tables};
use crate::output;

/// Renders the page.
pub(super) fn render(
    report: &Report,
    names: &[&str],
    command: &str,
    pairs: usize,
    ended: Option<&str>,
) -> String {
    let figure = |id: &str, chart| Figure::new(id.to_owned(), chart, Vec::new());
    let mut figures = vec![
        figure("packets", figure::of_packets(report, pairs)),
        figure("bytes", figure::of_bytes(report)),
        figure("times", figure::of_times(report)),
    ];
    figures.extend(figure::of_losses(report).map(|chart| figure("losses", chart)));
    let grids = tables::grids(report, pairs);
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
    let mut warnings = tables::warnings(report);
    warnings.extend(ended.map(|ended| format!("analysed up to there: {ended}")));
    article(&Article {
        kind: "Plimsoll bursts",
        title: &format!("Bursts of {}", names.join(", ")),
        description: &tables::sentence(report),
        found: &[],
        warnings: &warnings,
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
