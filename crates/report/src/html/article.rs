//! [`Article`]: a page of figures and tables from another source than a [`plimsoll_results::Summary`], with the same
//! style.

use super::{Figure, ended, page, place, rules};
use crate::chart::Schemes;
use crate::table::Grid;

/// A page of figures and tables with its texts.
#[derive(Clone, Copy, Debug)]
pub struct Article<'a> {
    /// The kind of page: `Plimsoll report`.
    pub kind: &'a str,
    /// The scenario's title.
    pub title: &'a str,
    /// Description of the experiment; may be empty.
    pub description: &'a str,
    /// The findings: sentences, each with the name of a variant and a colon before it.
    pub found: &'a [String],
    /// Warnings about the validity of the numbers.
    pub warnings: &'a [String],
    /// The sections, in order.
    pub sections: &'a [PageSection<'a>],
    /// The colours and markers of the variants, the same in all figures of the page.
    pub schemes: &'a Schemes,
    /// The command that makes the page again.
    pub command: &'a str,
    /// The seed that the command uses; `None` for a page without runs.
    pub seed: Option<u64>,
    /// The version of plimsoll that made the page.
    pub version: &'a str,
    /// The commit that plimsoll was built from, where known.
    pub commit: Option<&'a str>,
    /// The number of runs behind the page.
    pub runs: usize,
    /// The text of the scenario, which the page includes; may be empty.
    pub scenario: &'a str,
}

/// A section of a page with its figures and tables.
#[derive(Clone, PartialEq, Debug)]
pub struct PageSection<'a> {
    /// The id of its element, unique on the page.
    pub id: &'a str,
    /// The heading of the section.
    pub name: &'a str,
    /// One sentence below the heading; may be empty.
    pub lead: &'a str,
    /// Figures, each with its tables folded below it.
    pub figures: Vec<Figure>,
    /// Tables that are shown unfolded.
    pub tables: Vec<Grid>,
}

/// Renders a page. It needs no network, no library and no server.
pub fn article(article: &Article<'_>) -> String {
    let names = article.sections.iter().map(|section| (section.id, section.name));
    let names: Vec<(&str, &str)> = names.chain([("repeat", "Repeat")]).collect();
    let mut out = page::head(&page::PageHead {
        kind: article.kind,
        title: article.title,
        description: article.description,
        found: article.found,
        warnings: article.warnings,
        sections: &names,
        schemes: article.schemes,
        is_served: false,
        rules: &rules(article.sections.iter().flat_map(|section| &section.figures)),
    });
    for section in article.sections {
        let mut inside = place(&section.figures);
        if !section.tables.is_empty() {
            let tables: String = section.tables.iter().map(|grid| page::table(grid, false)).collect();
            inside.push_str(&format!("<div class=\"card\">\n{tables}</div>\n"));
        }
        out.push_str(&page::section(section.id, section.name, section.lead, &inside));
    }
    let again = page::again(&page::Again {
        command: article.command,
        seed: article.seed,
        version: article.version,
        commit: article.commit,
        runs: crate::figures::count(article.runs as u64),
        more: String::new(),
        scenario: article.scenario,
    });
    out.push_str(&page::section("repeat", "How to repeat this", "", &again));
    ended(out)
}
