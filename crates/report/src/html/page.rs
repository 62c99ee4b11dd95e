//! The parts of the page that are not figures.

use plimsoll_results::run_dir::SIMULATOR;

use super::Page;
use crate::chart::{Color, Schemes};
use crate::escape::escape;
use crate::svg::{self, Glyph, Key};
use crate::table::{Column, Grid, TableCell};

const STYLE: &str = include_str!("style.css");

/// The content before the first section.
pub(super) struct PageHead<'a> {
    /// The kind of page, in words.
    pub(super) kind: &'a str,
    pub(super) title: &'a str,
    /// Description of the experiment; may be empty.
    pub(super) description: &'a str,
    /// Sentences, each with the name of a variant and a colon before it.
    pub(super) found: &'a [String],
    pub(super) warnings: &'a [String],
    /// The id and the name of each section.
    pub(super) sections: &'a [(&'a str, &'a str)],
    /// The colours of the variants, whose marks are drawn before their names.
    pub(super) schemes: &'a Schemes,
    /// The style rules of the page's figures.
    pub(super) rules: &'a str,
    /// A server has the page, which may ask that server and no other.
    pub(super) is_served: bool,
}

/// Renders everything before the first section: head, title, findings, warnings.
pub(super) fn head(head: &PageHead<'_>) -> String {
    let title = escape(head.title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'; img-src data:{}\">\n<title>{title}</title>\n<style>\n{STYLE}{}{}\
         </style>\n</head>\n\
         <body>\n<header><div>\n<div class=\"bar\">{MARK}<span>{}</span><nav>",
        if head.is_served { "; connect-src 'self'; frame-src 'self'" } else { "" },
        colors(),
        head.rules,
        escape(head.kind)
    );
    for (id, name) in head.sections {
        out.push_str(&format!("<a href=\"#{id}\">{}</a>", escape(name)));
    }
    out.push_str("</nav><button id=\"theme\" type=\"button\" title=\"Switch colours\">Dark</button></div>\n");
    out.push_str(&format!("<h1>{title}</h1>\n"));
    if !head.description.trim().is_empty() {
        out.push_str(&format!("<p class=\"about\">{}</p>\n", escape(head.description.trim())));
    }
    out.push_str(&found(head.found, head.schemes));
    out.push_str("</div></header>\n<main>\n");
    out.push_str(&warnings(head.warnings));
    out
}

/// Writes the style rules of all colours.
fn colors() -> String {
    let rule = |color: Color| {
        format!(".{} {{ color: light-dark({}, {}); }}\n", color.class(), color.hex(), color.dark())
    };
    Color::all().map(rule).collect()
}

/// Renders the legend of a figure, whose entries hide their lines, and the choice between its views.
pub(super) fn controls(id: &str, keys: &[Key], views: &[&str]) -> String {
    if keys.is_empty() && views.len() < 2 {
        return String::new();
    }
    let mut out = String::from(
        "<div class=\"controls\"><div class=\"keys\" role=\"group\" aria-label=\"Show or hide\">",
    );
    for Key { name, color, glyph } in keys {
        out.push_str(&format!(
            "<label><input type=\"checkbox\" checked>{}<span>{}</span></label>",
            svg::glyph(*color, *glyph),
            escape(name)
        ));
    }
    out.push_str("</div>");
    if views.len() > 1 {
        out.push_str("<div class=\"views\" role=\"radiogroup\" aria-label=\"View\">");
        for (number, name) in views.iter().enumerate() {
            let checked = if number == 0 { " checked" } else { "" };
            out.push_str(&format!(
                "<label><input type=\"radio\" name=\"view-{id}\"{checked}><span>{name}</span></label>"
            ));
        }
        out.push_str("</div>");
    }
    out + "</div>\n"
}

/// The Plimsoll mark: a ring and the line through it.
const MARK: &str = "<svg class=\"mark\" viewBox=\"0 0 20 20\" aria-hidden=\"true\"><circle cx=\"10\" cy=\"10\" \
                    r=\"6.2\" fill=\"none\" stroke=\"var(--accent)\" stroke-width=\"2\"/><path d=\"M0 10h20\" \
                    stroke=\"var(--accent)\" stroke-width=\"2\"/></svg>";

pub(super) fn found(sentences: &[String], schemes: &Schemes) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let mut out = String::from("<ul class=\"found\">\n");
    for sentence in sentences {
        let (variant, rest) = sentence.split_once(':').unwrap_or(("", sentence));
        let mark = marked(schemes.find(variant));
        out.push_str(&format!("<li>{mark}<b>{}</b>:{}</li>\n", escape(variant), escape(rest)));
    }
    out.push_str("</ul>\n");
    out
}

/// Renders the marker before the name of a scheme.
pub(super) fn marked(scheme: Option<Color>) -> String {
    scheme.map_or_else(String::new, |color| svg::glyph(color, Glyph::Marker))
}

pub(super) fn warnings(texts: &[String]) -> String {
    if texts.is_empty() {
        return String::new();
    }
    let items: String = texts.iter().map(|text| format!("<li>{}</li>\n", with_code(text))).collect();
    let title = if texts.len() == 1 { "One thing to know first" } else { "Things to know first" };
    format!("<div class=\"card warnings\" role=\"note\"><b>{title}</b>\n<ul>\n{items}</ul></div>\n")
}

/// Escapes a text and renders the parts between backticks as code.
pub(super) fn with_code(text: &str) -> String {
    let mut out = String::new();
    for (part, text) in text.split('`').enumerate() {
        if part % 2 == 1 {
            out.push_str(&format!("<code>{}</code>", escape(text)));
        } else {
            out.push_str(&escape(text));
        }
    }
    out
}

/// Renders a section with its heading and one sentence.
pub(super) fn section(id: &str, title: &str, lead: &str, inside: &str) -> String {
    let lead =
        if lead.is_empty() { String::new() } else { format!("<p class=\"lead\">{}</p>\n", escape(lead)) };
    format!("<section id=\"{id}\">\n<h2>{}</h2>\n{lead}{inside}</section>\n", escape(title))
}

/// The texts that say how to make the page again.
pub(super) struct Again<'a> {
    pub(super) command: &'a str,
    /// The seed of the runs; `None` where nothing was run.
    pub(super) seed: Option<u64>,
    pub(super) version: &'a str,
    pub(super) commit: Option<&'a str>,
    /// The number of runs, in words.
    pub(super) runs: String,
    /// Further HTML after the list.
    pub(super) more: String,
    /// The scenario's text; it may be empty.
    pub(super) scenario: &'a str,
}

/// Renders the command that repeats the runs, and their digests.
pub(super) fn repeat(page: &Page<'_>) -> String {
    let runs: usize = page.summary.cells.iter().map(|cell| cell.runs.len()).sum();
    let events: u64 = page.summary.cells.iter().map(|cell| cell.counters.events).sum();
    let schemes = crate::plots::schemes(page.summary);
    let mut rows = String::new();
    for cell in &page.summary.cells {
        for run in &cell.runs {
            rows.push_str(&format!(
                "<tr><th scope=\"row\">{}{}</th><td>{}</td><td>{}</td><td>{}</td><td><code>{}</code></td></tr>\n",
                marked(schemes.find(&cell.variant)),
                escape(&cell.variant),
                escape(&crate::plots::point_name(&cell.sweep)),
                run.replicate,
                run.seed,
                run.digest
            ));
        }
    }
    let which = if page.carrier == SIMULATOR { "the same on every machine" } else { "of these runs alone" };
    again(&Again {
        command: page.command,
        seed: Some(page.seed),
        version: page.version,
        commit: page.commit,
        runs: format!("{runs}, {} events in all, on {}", crate::figures::count(events), page.carrier),
        more: format!(
            "<details><summary>Digests: {which}</summary><div class=\"scroll\"><table>\n\
             <thead><tr><th scope=\"col\">variant</th><th scope=\"col\">point</th><th scope=\"col\">replicate</th>\
             <th scope=\"col\">seed</th><th scope=\"col\">digest</th></tr></thead>\n<tbody>\n{rows}</tbody></table>\
             </div></details>\n"
        ),
        scenario: page.scenario,
    })
}

/// Renders the command that makes the page again.
pub(super) fn again(again: &Again<'_>) -> String {
    let seed = again.seed.map_or_else(String::new, |seed| format!("<dt>Seed</dt><dd>{seed}</dd>\n"));
    let mut out = format!(
        "<div class=\"card\">\n<pre><code>{}</code></pre>\n<dl>\n{seed}<dt>Plimsoll</dt><dd>{}",
        escape(again.command),
        escape(again.version)
    );
    if let Some(commit) = again.commit {
        out.push_str(&format!(", commit <code>{}</code>", escape(commit)));
    }
    out.push_str("</dd>\n");
    if again.seed.is_some() {
        out.push_str(&format!("<dt>Runs</dt><dd>{}</dd>\n", escape(&again.runs)));
    }
    out.push_str(&format!("</dl>\n{}", again.more));
    if !again.scenario.is_empty() {
        out.push_str(&format!(
            "<details><summary>The scenario</summary><pre><code>{}</code></pre></details>\n",
            escape(again.scenario)
        ));
    }
    out.push_str("</div>\n");
    out
}

/// Renders a table with its footnotes.
pub(super) fn table(grid: &Grid, with_title: bool) -> String {
    let mut out = String::from("<div class=\"scroll\"><table>\n");
    if with_title {
        out.push_str(&format!("<caption>{}</caption>\n", escape(&grid.title)));
    }
    let groups: Vec<_> = grid.columns.chunk_by(|a, b| a.group == b.group).collect();
    out.push_str("<thead>\n");
    if grid.columns.iter().any(|column| !column.group.is_empty()) {
        out.push_str("<tr><td></td>");
        for group in &groups {
            let Column { group: name, scheme, .. } = &group[0];
            out.push_str(&format!(
                "<th class=\"of first\" scope=\"colgroup\" colspan=\"{}\">{}{}</th>",
                group.len(),
                marked(*scheme),
                escape(name)
            ));
        }
        out.push_str("</tr>\n");
    }
    // Columns that begin a group have a line at their left.
    let first: Vec<&str> =
        groups.iter().flat_map(|group| (0..group.len()).map(|i| if i == 0 { "first" } else { "" })).collect();
    out.push_str(&format!("<tr><th scope=\"col\">{}</th>", escape(&grid.corner)));
    for (column, class) in grid.columns.iter().zip(&first) {
        out.push_str(&format!("<th scope=\"col\"{}>{}</th>", class_of(&[class]), escape(&column.name)));
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    for row in &grid.rows {
        out.push_str(&format!("<tr><th scope=\"row\">{}{}</th>", marked(row.scheme), escape(&row.label)));
        for (cell, class) in row.cells.iter().zip(&first) {
            out.push_str(&table_cell(cell, class));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
    for note in &grid.notes {
        out.push_str(&format!("<p class=\"footnote\">{}</p>\n", with_code(note)));
    }
    out
}

fn table_cell(cell: &TableCell, first: &str) -> String {
    let class = class_of(&[first, if cell.best { "best" } else { "" }]);
    if cell.value.is_empty() {
        return format!("<td{class}>–</td>");
    }
    let spread = if cell.spread.is_empty() {
        String::new()
    } else {
        format!(" <span class=\"spread\">{}</span>", escape(&cell.spread))
    };
    format!("<td{class}><span class=\"value\">{}</span>{spread}</td>", escape(&cell.value))
}

/// The beginning of the best value of a column, which is bold.
pub(super) const BEST_VALUE: &str = "best\"><span class=\"value\">";

fn class_of(classes: &[&str]) -> String {
    let named: Vec<&str> = classes.iter().copied().filter(|class| !class.is_empty()).collect();
    if named.is_empty() { String::new() } else { format!(" class=\"{}\"", named.join(" ")) }
}
