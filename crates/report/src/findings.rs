//! [`Findings`]: the results of an analysis without a run of a scenario, as text, as Markdown and as a page.

use crate::chart::Schemes;
use crate::html::{Article, Figure, PageSection, article};
use crate::table::{Grid, TableStyle};

/// The result of a command that measures: a summary sentence, tables and warnings.
#[derive(Clone, PartialEq, Debug)]
pub struct Findings {
    /// The summary, above the tables.
    pub sentence: String,
    /// The tables, in order.
    pub grids: Vec<Grid>,
    /// A sentence below the tables; it may be empty.
    pub closing: String,
    /// Warnings about the validity of the numbers.
    pub warnings: Vec<String>,
}

/// The further texts and the figures of a page of [`Findings`].
#[derive(Clone, Debug)]
pub struct FindingsPage<'a> {
    /// The kind of page: `Plimsoll bursts`.
    pub kind: &'a str,
    /// The title of the page.
    pub title: &'a str,
    /// The figures above the tables.
    pub figures: Vec<Figure>,
    /// The command that makes the page again.
    pub command: &'a str,
    /// The version of plimsoll that made the page.
    pub version: &'a str,
    /// The commit that plimsoll was built from, where known.
    pub commit: Option<&'a str>,
}

impl Findings {
    /// Writes everything as text for a terminal.
    pub fn to_terminal(&self, style: &TableStyle) -> String {
        let mut text = format!("{}\n\n", self.sentence);
        text.extend(self.grids.iter().map(|grid| grid.to_terminal(style) + "\n"));
        text.extend((!self.closing.is_empty()).then(|| format!("{}\n", self.closing)));
        text.extend(self.warnings.iter().map(|warning| format!("warning: {warning}\n")));
        text
    }

    /// Returns the sentence, the tables and the warnings as Markdown.
    pub fn to_markdown(&self) -> String {
        let grids: Vec<String> = self.grids.iter().map(Grid::to_markdown).collect();
        let mut text = format!("{}\n\n{}", self.sentence, grids.join("\n"));
        text.extend((!self.closing.is_empty()).then(|| format!("\n{}\n", self.closing)));
        text.extend(self.warnings.iter().map(|warning| format!("\n**Warning:** {warning}\n")));
        text
    }

    /// Renders a page with a section for the figures and one for each table.
    pub fn to_page(&self, page: FindingsPage<'_>) -> String {
        let ids: Vec<String> = (0..self.grids.len()).map(|number| format!("table-{number}")).collect();
        let section = |id, name, figures, tables| PageSection { id, name, lead: "", figures, tables };
        let mut sections = vec![section("figures", "Figures", page.figures, Vec::new())];
        let tables = ids.iter().zip(&self.grids);
        sections.extend(tables.map(|(id, grid)| section(id, &grid.title, Vec::new(), vec![grid.clone()])));
        article(&Article {
            kind: page.kind,
            title: page.title,
            description: format!("{} {}", self.sentence, self.closing).trim_end(),
            found: &[],
            warnings: &self.warnings,
            sections: &sections,
            schemes: &Schemes::default(),
            command: page.command,
            seed: None,
            version: page.version,
            commit: page.commit,
            runs: 0,
            scenario: "",
        })
    }
}
