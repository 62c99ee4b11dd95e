//! `report.html`: one file that needs no network, no library and no server.
//!
//! The tables are in the page as they are. The figures are the SVG of [`crate::svg`], each in a wide and in a narrow
//! layout and with a table of its numbers below it; style rules switch sweep points, views and lines, and `charts.js`
//! adds tooltips, the arrow keys and dark colours. Without it the page is a still picture. A content security policy
//! forbids the page to load anything.

mod article;
mod document;
mod explore;
mod links;
mod page;
mod replay;
mod tables;

pub use article::{Article, PageSection, article};
pub use document::{MarkdownPage, document};
pub use explore::{Control, ExplorePage, Knob, explore, results};
pub use replay::{ReplayPage, replay};

use std::collections::HashMap;

use plimsoll_results::by_size::SHARES;
use plimsoll_results::job_timeline::JobTimeline;
use plimsoll_results::stats::Estimate;
use plimsoll_results::{Curves, Summary};

use crate::chart::{Body, Chart, Format};
use crate::circuits;
use crate::escape::escape;
use crate::plots::{self, Panel, Point};
use crate::queues::{self, QueueName};
use crate::svg::{self, Key, Size};
use crate::table::blocks::PickEstimate;
use crate::table::{self, Grid, blocks};
use crate::verdict;
use crate::{approximation, jobs, priorities, processors};

/// The width of a table on the page, in characters.
const TABLE_WIDTH: usize = 128;

const SCRIPT: &str = include_str!("html/charts.js");

/// The texts and numbers that a report is made from.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The scenario's title.
    pub title: &'a str,
    /// Description of the experiment; may be empty.
    pub description: &'a str,
    /// The numbers that the tables show.
    pub summary: &'a Summary,
    /// The curves that the figures draw.
    pub curves: &'a Curves,
    /// The command that repeats the run.
    pub command: &'a str,
    /// The name of the packets' carrier, as in the manifest.
    pub carrier: &'a str,
    /// The seed that the command uses.
    pub seed: u64,
    /// The version of plimsoll that made the report.
    pub version: &'a str,
    /// The commit that plimsoll was built from, where known.
    pub commit: Option<&'a str>,
    /// The text of the scenario with its included files merged; may be empty.
    pub scenario: &'a str,
    /// Warnings in addition to the summary's.
    pub warnings: &'a [String],
}

/// A figure on the page: one chart, or one for each sweep point, and the tables below it.
///
/// Its id is the name by which `plimsoll figure` finds it.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    id: String,
    /// The number of a workload on the vertical axis, as an objective names it: `p99(small)`.
    subject: Option<String>,
    charts: Vec<Chart>,
    tables: Vec<Grid>,
    half_width: bool,
}

/// The layouts of figures: over the page, over half of it, and on a phone.
const FULL: Size = Size { width: 980, plot_height: 300 };
const HALF: Size = Size { width: 464, plot_height: 240 };
const NARROW: Size = Size { width: 320, plot_height: 230 };

impl Figure {
    /// Makes a figure over the whole width of the page. `id` is its element's and unique on the page.
    pub fn new(id: String, chart: Chart, tables: Vec<Grid>) -> Figure {
        Figure { id, subject: None, charts: vec![chart], tables, half_width: false }
    }

    /// Names the number of a workload on the vertical axis, as an objective does: `p99(small)`.
    pub fn showing(self, subject: &str) -> Figure {
        Figure { subject: Some(subject.to_owned()), ..self }
    }

    /// Returns the id of its element, unique on the page: `time-small`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the number of a workload on the vertical axis, as an objective names it; `None` where the axis has
    /// another quantity.
    pub fn subject(&self) -> Option<&str> {
        self.subject.as_deref()
    }

    /// Returns its charts: one, or one for each sweep point.
    pub fn charts(&self) -> &[Chart] {
        &self.charts
    }

    /// Builds the legend: every name of any of the charts once.
    fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = Vec::new();
        for key in self.charts.iter().flat_map(svg::keys) {
            if keys.iter().all(|known| known.name != key.name) {
                keys.push(key);
            }
        }
        keys
    }

    fn render(&self) -> String {
        let Some(first) = self.charts.first() else { return String::new() };
        let keys = self.keys();
        let names_of = |chart: &Chart| chart.views().iter().map(|(name, _)| *name).collect::<Vec<_>>();
        let views = self.charts.iter().map(names_of).max_by_key(Vec::len).unwrap_or_default();
        let mut out = format!(
            "<figure class=\"card\" id=\"{}\">\n<figcaption>{}</figcaption>\n<p class=\"note\">{}</p>\n{}\
             <div class=\"plot\">\n",
            self.id,
            escape(&first.title),
            escape(&first.note),
            page::controls(&self.id, &keys, &views)
        );
        let names: Vec<String> = keys.into_iter().map(|key| key.name).collect();
        let wide = if self.half_width { HALF } else { FULL };
        for (point, chart) in self.charts.iter().enumerate() {
            let at = if self.charts.len() > 1 { format!(" class=\"at at-{point}\"") } else { String::new() };
            out.push_str(&format!("<div{at}>"));
            let shown = chart.views();
            for (number, (_, view)) in shown.iter().enumerate() {
                let class = if shown.len() > 1 { format!(" class=\"view-{number}\"") } else { String::new() };
                out.push_str(&format!("<div{class}>"));
                out.push_str(&svg::inline(view, wide, "wide", &names));
                out.push_str(&svg::inline(view, NARROW, "narrow", &names));
                out.push_str("</div>");
            }
            out.push_str("</div>\n");
        }
        out.push_str("</div>\n");
        if !self.tables.is_empty() {
            out.push_str("<details><summary>As a table</summary>\n");
            self.tables.iter().for_each(|grid| out.push_str(&page::table(grid, false)));
            out.push_str("</details>\n");
        }
        out + "</figure>\n"
    }
}

/// Returns the figures of a report in the order of its page.
pub fn figures(summary: &Summary, curves: &Curves) -> Vec<Figure> {
    let queues = queues::all(summary.cells.iter());
    groups(summary, curves, &queues).into_iter().flat_map(|(_, _, figures)| figures).collect()
}

/// Makes the figure of a number over the sweep, by the name that an objective has for it. There is a chart for each
/// combination of values of the keys that are not the axis, which the second list names.
pub fn sweep_figure(
    summary: &Summary,
    name: &str,
    quantity: &str,
    format: Format,
    value: impl Fn(&str, &Point) -> Option<Estimate>,
) -> (Figure, Vec<String>) {
    let panels = plots::panels(summary);
    let chart = |panel| plots::sweep_chart(summary, panel, name.to_owned(), quantity, format, &value);
    let charts = panels.iter().map(chart).collect();
    let values = |panel: &Panel<'_>| {
        let values: Vec<&str> = panel.at.iter().map(|(_, value)| value.as_str()).collect();
        values.join(", ")
    };
    let (id, subject) = (name.to_owned(), Some(name.to_owned()));
    let figure = Figure { id, subject, charts, tables: Vec::new(), half_width: false };
    (figure, panels.iter().map(values).collect())
}

/// Returns the figures by sections, each with its id and its name. The first section is the sweep, if there is one.
fn groups(
    summary: &Summary,
    curves: &Curves,
    queues: &[QueueName<'_>],
) -> [(&'static str, &'static str, Vec<Figure>); 9] {
    let swept = summary.sweep_points().len() > 1;
    [
        ("sweep", "Sweep", if swept { sweep_figures(summary, queues) } else { Vec::new() }),
        ("trade", "Who pays", trade_figure(summary)),
        ("time", "Where the time went", time_figures(summary)),
        ("distributions", "Distributions", distribution_figures(summary, curves)),
        ("over-time", "Over time", over_time_figures(summary, curves)),
        ("slowdown", "Slowdown", slowdown_figures(summary, curves)),
        ("queues", "Queues", queue_figures(summary, curves, queues)),
        ("circuits", "Circuits", circuit_figures(summary, curves)),
        ("ranks", "Ranks", job_figures(summary, curves)),
    ]
}

/// Renders a report as one HTML file.
pub fn render(page: &Page<'_>) -> String {
    let summary = page.summary;
    let swept = summary.sweep_points().len() > 1;
    let groups = groups(summary, page.curves, &queues::shown(summary));
    let links = links::section(summary, page.curves);

    let mut sections: Vec<(&str, &str)> = vec![("numbers", "Numbers")];
    let filled = groups.iter().filter(|(_, _, figures)| !figures.is_empty());
    sections.extend(filled.map(|(id, name, _)| (*id, *name)));
    if !links.is_empty() {
        sections.push(("links", "Links"));
    }
    sections.push(("repeat", "Repeat"));

    let texts = table::alarms(summary).chain(page.warnings.iter().cloned());
    let schemes = plots::schemes(summary);
    let mut out = page::head(&page::PageHead {
        kind: "Plimsoll report",
        title: page.title,
        description: page.description,
        found: &verdict::sentences(summary),
        warnings: &texts.collect::<Vec<_>>(),
        sections: &sections,
        schemes: &schemes,
        is_served: false,
        rules: &rules(groups.iter().flat_map(|(_, _, figures)| figures.iter())),
    });
    if swept {
        out.push_str(&page::section("sweep", "Over the sweep", "", &place(&groups[0].2)));
    }
    out.push_str(&numbers(summary, swept));
    if swept {
        out.push_str(&point_chooser(summary));
    }
    for (id, _, figures) in &groups[1..] {
        if !figures.is_empty() {
            out.push_str(&section(summary, id, figures));
        }
    }
    if !links.is_empty() {
        out.push_str(&page::section("links", "Links", LINKS_LEAD, &links));
    }
    out.push_str(&page::section("repeat", "How to repeat this", "", &page::repeat(page)));
    ended(out)
}

/// Renders figures below the heading of their section, which describes them; the heading of the queues also has the
/// number of hidden ones.
fn section(summary: &Summary, id: &str, figures: &[Figure]) -> String {
    let (title, lead) = heading(id);
    let mut lead = lead.to_owned();
    for sentence in queues::not_shown(summary).iter().filter(|_| id == "queues") {
        lead.push_str(&format!(" {sentence}"));
    }
    page::section(id, title, &lead, &place(figures))
}

const LINKS_LEAD: &str = "From the warm-up to the end of the sending. The stronger the colour, the more.";

/// Adds the end of the page: the explanations of intervals and of bold type, each where there is any, and the script.
fn ended(page: String) -> String {
    let is_needed = [page.contains(" .. "), page.contains(page::BEST_VALUE)];
    let notes = [table::INTERVALS, table::BEST].into_iter().zip(is_needed).filter(|(_, needed)| *needed);
    let notes: Vec<String> = notes.map(|(note, _)| escape(note)).collect();
    let foot = match notes.is_empty() {
        true => String::new(),
        false => format!("<footer><main>{}</main></footer>\n", notes.join(" ")),
    };
    format!("{page}</main>\n{foot}<script>\n{SCRIPT}</script>\n</body>\n</html>\n")
}

/// Writes the style rules that show one sweep point and one view, and hide the lines that a reader switches off.
fn rules<'a>(figures: impl Iterator<Item = &'a Figure>) -> String {
    let (mut points, mut names) = (0, 0);
    for figure in figures {
        points = points.max(figure.charts.len());
        names = names.max(figure.keys().len());
    }
    let mut out = String::new();
    for n in 0..points {
        out.push_str(&format!(
            "body:has(#point > :nth-child({}):checked) .at-{n} {{ display: block; }}\n",
            n + 1
        ));
    }
    for n in 0..names {
        out.push_str(&format!(
            "figure:has(.keys > :nth-child({}) > input:not(:checked)) .g{n} {{ display: none; }}\n",
            n + 1
        ));
    }
    out
}

fn heading(id: &str) -> (&'static str, &'static str) {
    match id {
        "trade" => (
            "Who pays and who gains",
            "What is compared carried the same messages, so each message is compared with itself; what happens to both \
             cancels out.",
        ),
        "time" => (
            "Where the time went",
            "Every message's completion time splits exactly into the places where it was spent.",
        ),
        "distributions" => (
            "Distributions",
            "Point at a share to compare the variants there. The tail shows what is left above, decade by decade.",
        ),
        "over-time" => (
            "Over time",
            "Latency by slot of time. A slot has percentiles where at least a hundred messages were created in it.",
        ),
        "slowdown" => (
            "Slowdown by size",
            "Completion time over that on idle links, for messages of about one size, and in bins of equally many \
             messages by the rank of their size: 1x is as fast as the network can be. A percentile is left out where \
             a size or a bin has too few messages for it.",
        ),
        "circuits" => (
            "Circuits",
            "Which circuits stood when in the first replicate, and what they carried. A receiver has one colour in all \
             of these figures.",
        ),
        "ranks" => (
            "Ranks of jobs",
            "What each rank did in the slowest iteration of the first replicate. The line is the critical path: from \
             the end back, each operation or message for which the next one waited last.",
        ),
        _ => ("Queues", "The delay that a packet meets when it arrives at a watched port."),
    }
}

/// Renders the tables of all numbers: in sight for one point, folded for each of a sweep.
fn numbers(summary: &Summary, swept: bool) -> String {
    let mut inside = String::new();
    for point in summary.sweep_points() {
        let cells: Vec<_> = summary.cells.iter().filter(|cell| cell.sweep == point).collect();
        let grid = blocks::variants_grid(summary, &cells);
        let table: String = grid.split(TABLE_WIDTH).iter().map(|part| page::table(part, false)).collect();
        if swept {
            let name = escape(&plots::point_name(point));
            inside.push_str(&format!("<details><summary>{name}</summary>{table}</details>\n"));
        } else {
            inside.push_str(&table);
        }
    }
    let others = [
        circuits::summary_grid(summary),
        processors::summary_grid(summary),
        priorities::summary_grid(summary),
    ];
    let lists = approximation::summary_grids(summary).into_iter().chain(jobs::summary_grids(summary));
    for grid in lists.chain(others.into_iter().flatten()) {
        let parts = grid.split(TABLE_WIDTH);
        inside.extend(parts.iter().enumerate().map(|(number, part)| page::table(part, number == 0)));
    }
    for line in table::mechanisms(summary) {
        inside.push_str(&format!("<p class=\"note\">{}</p>\n", page::with_code(&line)));
    }
    let lead = if swept { "One table for each point of the sweep." } else { "" };
    page::section("numbers", "Numbers", lead, &format!("<div class=\"card\">\n{inside}</div>\n"))
}

fn point_chooser(summary: &Summary) -> String {
    let options: String = summary
        .sweep_points()
        .iter()
        .map(|point| format!("<option>{}</option>", escape(&plots::point_name(point))))
        .collect();
    format!(
        "<p class=\"points\"><label for=\"point\">Figures below at</label><select id=\"point\">{options}</select></p>\n"
    )
}

/// Makes the id of a figure: its kind and the name of its subject, or its number where a name has other characters than
/// an id.
fn id(kind: &str, subject: &str, number: usize) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !subject.is_empty() && subject.chars().all(plain) {
        format!("{kind}-{subject}")
    } else {
        format!("{kind}-{number}")
    }
}

/// Makes the figures of a sweep, with a panel for each value of the keys that are not the axis.
fn sweep_figures(summary: &Summary, queues: &[QueueName<'_>]) -> Vec<Figure> {
    let panels = plots::panels(summary);
    let mut figures = Vec::new();
    let mut push = |id: &str,
                    subject: Option<String>,
                    chart: &dyn Fn(&Panel<'_>) -> Option<Chart>,
                    mut table: Option<Grid>| {
        for (number, panel) in panels.iter().enumerate() {
            let Some(chart) = chart(panel) else { continue };
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let id = match &panel.at[..] {
                [] => id.to_owned(),
                [(_, value)] if value.chars().all(is_plain) => format!("{id}-at-{value}"),
                _ => format!("{id}-at-{number}"),
            };
            let (charts, tables) = (vec![chart], table.take().into_iter().collect());
            figures.push(Figure { id, subject: subject.clone(), charts, tables, half_width: true });
        }
    };
    for (number, workload) in summary.workloads().into_iter().enumerate() {
        let id = id("sweep", workload, number);
        let mut table = Some(blocks::sweep_grid(summary, workload));
        let statistics: [(&str, &str, PickEstimate); 3] =
            [("p99", "p99", |d| d.p99), ("p50", "p50", |d| d.p50), ("mean", "Mean", |d| d.mean)];
        for (metric, name, pick) in statistics {
            let chart = |panel: &Panel<'_>| Some(plots::over_sweep(summary, panel, workload, name, pick));
            push(&format!("{id}-{metric}"), Some(format!("{metric}({workload})")), &chart, table.take());
        }
        let slowdown = |panel: &Panel<'_>| plots::slowdown_over_sweep(summary, panel, workload);
        push(&format!("{id}-slowdown"), None, &slowdown, None);
    }
    let ids = queue_ids(summary, "sweep-queue");
    for &queue in queues {
        let id = &ids[&queue];
        let table = blocks::sweep_queue_grid(summary, queue);
        let p99 =
            |panel: &Panel<'_>| Some(plots::queue_over_sweep(summary, panel, queue, "p99", |q| q.p99_us));
        let mean =
            |panel: &Panel<'_>| Some(plots::queue_over_sweep(summary, panel, queue, "Mean", |q| q.mean_us));
        push(&format!("{id}-p99"), None, &p99, Some(table));
        push(&format!("{id}-mean"), None, &mean, None);
    }
    figures
}

fn trade_figure(summary: &Summary) -> Vec<Figure> {
    let charts: Vec<Chart> =
        summary.sweep_points().into_iter().filter_map(|point| plots::who_pays(summary, point)).collect();
    if charts.is_empty() {
        return Vec::new();
    }
    vec![Figure {
        id: "who-pays".to_owned(),
        subject: None,
        charts,
        tables: vec![table::differences(summary)],
        half_width: false,
    }]
}

fn time_figures(summary: &Summary) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (number, workload) in summary.workloads().into_iter().enumerate() {
        let charts: Vec<Chart> = summary
            .sweep_points()
            .into_iter()
            .filter_map(|point| plots::time_split(summary, workload, point))
            .collect();
        if !charts.is_empty() {
            let (id, tables) = (id("time", workload, number), vec![tables::times(summary, workload)]);
            figures.push(Figure { id, subject: None, charts, tables, half_width: false });
        }
    }
    figures
}

fn distribution_figures(summary: &Summary, curves: &Curves) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (number, workload) in summary.workloads().into_iter().enumerate() {
        if !curves.cdfs.iter().any(|cdf| cdf.workload == workload) {
            continue;
        }
        let charts = summary
            .sweep_points()
            .into_iter()
            .map(|point| plots::distribution(summary, curves, workload, point))
            .collect();
        let (id, tables) =
            (id("distribution", workload, number), vec![tables::percentiles(summary, workload)]);
        figures.push(Figure { id, subject: None, charts, tables, half_width: true });
    }
    figures
}

/// Makes the latency over time of each workload that has enough messages.
fn over_time_figures(summary: &Summary, curves: &Curves) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (number, workload) in summary.workloads().into_iter().enumerate() {
        if !curves.latencies.iter().any(|line| line.workload == workload) {
            continue;
        }
        let points = summary.sweep_points().into_iter();
        figures.push(Figure {
            id: id("over-time", workload, number),
            subject: Some(format!("p99({workload})")),
            charts: points.map(|point| plots::over_time(summary, curves, workload, point)).collect(),
            tables: vec![tables::over_time(summary, curves, workload)],
            half_width: false,
        });
    }
    figures
}

/// Makes the figures of each workload whose messages differ in size: p99 over the whole width with the table, then p50
/// and p95.
fn slowdown_figures(summary: &Summary, curves: &Curves) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (number, workload) in summary.workloads().into_iter().enumerate() {
        if !curves.slowdowns.iter().any(|slowdown| slowdown.workload == workload) {
            continue;
        }
        for (share, (_, name)) in SHARES.iter().enumerate().rev() {
            let charts = summary
                .sweep_points()
                .into_iter()
                .map(|point| plots::slowdown(summary, curves, workload, point, share))
                .collect();
            if !curves.slowdowns.iter().any(|found| {
                found.workload == workload
                    && found.buckets.iter().any(|bucket| bucket.slowdown[share].is_some())
            }) {
                continue;
            }
            figures.push(Figure {
                id: format!("{}-{name}", id("slowdown", workload, number)),
                subject: None,
                charts,
                tables: vec![tables::slowdowns(summary, curves, workload, share)],
                half_width: share + 1 < SHARES.len(),
            });
        }
        figures.extend(rank_figures(summary, curves, workload, number));
    }
    figures
}

/// Makes the figures of a workload's slowdown by rank: the highest percentile over the whole width with the table of
/// all, then the others.
fn rank_figures(summary: &Summary, curves: &Curves, workload: &str, number: usize) -> Vec<Figure> {
    let mine = || curves.ranks.iter().filter(|found| found.workload == workload);
    let is_known =
        |share: usize| mine().any(|found| found.bins.iter().any(|bin| bin.slowdown[share].is_some()));
    let known: Vec<usize> = (0..SHARES.len()).rev().filter(|share| is_known(*share)).collect();
    let figure = |(place, &share): (usize, &usize)| {
        let points = summary.sweep_points().into_iter();
        Figure {
            id: format!("{}-{}", id("slowdown-by-rank", workload, number), SHARES[share].1),
            subject: None,
            charts: points.map(|at| plots::slowdown_by_rank(summary, curves, workload, at, share)).collect(),
            tables: (place == 0)
                .then(|| tables::slowdowns_by_rank(summary, curves, workload))
                .into_iter()
                .collect(),
            half_width: place > 0,
        }
    };
    known.iter().enumerate().map(figure).collect()
}

fn queue_figures(summary: &Summary, curves: &Curves, queues: &[QueueName<'_>]) -> Vec<Figure> {
    let ids = queue_ids(summary, "queue");
    let is_known = |chart: &Chart| matches!(&chart.body, Body::Lines(lines) if !lines.series.is_empty());
    let mut figures = Vec::new();
    for &queue in queues {
        let charts: Vec<Chart> = summary
            .sweep_points()
            .into_iter()
            .map(|point| plots::timeline(summary, curves, queue, point))
            .collect();
        if charts.iter().any(is_known) {
            let (id, tables) = (ids[&queue].clone(), vec![tables::queue(summary, queue)]);
            figures.push(Figure { id, subject: None, charts, tables, half_width: false });
        }
    }
    figures
}

/// Returns the ids of the figures of all queues: the name, and the queue's number where others have the same name.
fn queue_ids<'a>(summary: &'a Summary, kind: &str) -> HashMap<QueueName<'a>, String> {
    let all = queues::all(summary.cells.iter());
    let mut counts: HashMap<&str, usize> = HashMap::new();
    all.iter().for_each(|queue| *counts.entry(queue.name).or_default() += 1);
    let id_of = |(number, queue): (usize, &QueueName<'a>)| {
        let id = id(kind, queue.name, number);
        (*queue, if counts[queue.name] > 1 { format!("{id}.{number}") } else { id })
    };
    all.iter().enumerate().map(id_of).collect()
}

/// Makes two figures of the circuits of each variant: the first weeks circuit by circuit, and the bytes of all weeks.
fn circuit_figures(summary: &Summary, curves: &Curves) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (number, variant) in summary.variants.iter().enumerate() {
        let known: Vec<_> = curves.circuits.iter().filter(|curves| curves.variant == *variant).collect();
        if known.is_empty() {
            continue;
        }
        let receivers = circuits::Receivers::of(curves);
        let mut push = |name: &str, charts: Vec<Chart>, tables| {
            let id = id(name, variant, number);
            figures.push(Figure { id, subject: None, charts, tables, half_width: false });
        };
        let timetables = known.iter().map(|curves| circuits::timetable(curves, &receivers)).collect();
        push("timetable", timetables, known.iter().map(|curves| circuits::pairs_grid(curves)).collect());
        let bytes = known.iter().map(|curves| circuits::bytes_by_week(curves, &receivers)).collect();
        push("circuit-bytes", bytes, known.iter().map(|curves| circuits::weeks_grid(curves)).collect());
    }
    figures
}

/// Makes a figure of the slowest iteration of each job with a timeline, for each variant.
fn job_figures(summary: &Summary, curves: &Curves) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (job, workload) in summary.workloads().into_iter().enumerate() {
        for (number, variant) in summary.variants.iter().enumerate() {
            let is_own = |one: &&JobTimeline| one.workload == workload && one.variant == *variant;
            let own: Vec<&JobTimeline> = curves.jobs.iter().filter(is_own).collect();
            let Some(first) = own.first() else { continue };
            // A point at which no iteration has ended has an empty chart.
            let at = |point: &Point| own.iter().find(|one| one.sweep == *point).copied();
            let none =
                JobTimeline { bars: Vec::new(), path: Vec::new(), rows: Vec::new(), ..(*first).clone() };
            let points = summary.sweep_points().into_iter();
            let name = match summary.variants.len() {
                1 => workload.to_owned(),
                _ => format!("{workload}-{variant}"),
            };
            figures.push(Figure {
                id: id("ranks", &name, job * summary.variants.len() + number),
                subject: None,
                charts: points.map(|point| jobs::ranks(at(point).unwrap_or(&none))).collect(),
                tables: own.iter().map(|one| jobs::steps_grid(one)).collect(),
                half_width: false,
            });
        }
    }
    figures
}

/// Renders the figures with their tables; figures of half width are side by side.
fn place(figures: &[Figure]) -> String {
    let mut out = String::new();
    for pair in figures.chunk_by(|a, b| a.half_width && b.half_width) {
        let rendered: String = pair.iter().map(Figure::render).collect();
        if pair[0].half_width {
            out.push_str(&format!("<div class=\"pair\">\n{rendered}</div>\n"));
        } else {
            out.push_str(&rendered);
        }
    }
    out
}

#[cfg(test)]
mod tests;
