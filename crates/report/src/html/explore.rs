//! The page of `plimsoll explore`: the keys of a scenario as controls, with the results of its runs beside them.
//!
//! The server renders everything, also the results, each time that it has better ones; `explore.js` sends the reader's
//! changes and puts the new results in their place.

use plimsoll_results::{Curves, Summary};

use super::{
    SCRIPT, distribution_figures, numbers, page, queue_figures, rules, section, time_figures, trade_figure,
};
use crate::chart::Schemes;
use crate::escape::escape;
use crate::{plots, queues, table, verdict};

const EXPLORE: &str = include_str!("explore.js");
const STYLE: &str = include_str!("explore.css");

/// A key of the scenario as a control.
#[derive(Clone, PartialEq, Debug)]
pub struct Knob {
    /// The dotted key, as `--set` takes it.
    pub key: String,
    /// The table that the key is in: `workload.small`.
    pub group: String,
    /// The explanation of the key, as docs/reference/scenario.md has it.
    pub help: String,
    /// The value of the scenario, as `--set` takes it.
    pub value: String,
    /// The control by which the value is changed.
    pub control: Control,
    /// The variants that have the key, where not all have.
    pub variants: Vec<String>,
    /// The scenario sets the key; otherwise its value is the default.
    pub is_set: bool,
}

/// The control by which a value is changed.
#[derive(Clone, PartialEq, Debug)]
pub enum Control {
    /// A number, with a slider between two ends.
    Number {
        /// The number of the scenario.
        value: f64,
        /// The unit behind the number, and the units that may replace it; empty for a plain number.
        unit: String,
        /// The units that may replace it.
        units: Vec<String>,
        /// The least value of the slider.
        low: f64,
        /// The largest value of the slider.
        high: f64,
        /// The slider's steps are factors instead of sums.
        by_factors: bool,
        /// The value is a whole number.
        whole: bool,
    },
    /// One of several words.
    Choice(Vec<String>),
    /// A box to tick: yes or no.
    Switch,
    /// Anything else that TOML can write.
    Text,
}

/// The contents of the page that `plimsoll explore` serves, before any result.
#[derive(Clone, Copy, Debug)]
pub struct ExplorePage<'a> {
    /// The scenario's title.
    pub title: &'a str,
    /// Description of the experiment; may be empty.
    pub description: &'a str,
    /// The keys, the ones of a group one after the other.
    pub knobs: &'a [Knob],
    /// The names of the variants, in order.
    pub variants: &'a [String],
    /// The objectives of the scenario, which a search of the load line can take; may be empty.
    pub objectives: &'a [String],
    /// The names of the workloads.
    pub workloads: &'a [String],
    /// When the first replay begins, as a text with its unit.
    pub replay_from: &'a str,
    /// Facts that the reader must know, such as that a sweep is shown at its first point.
    pub notes: &'a [String],
}

/// Renders the page, without results.
pub fn explore(page: &ExplorePage<'_>) -> String {
    let mut out = page::head(&page::PageHead {
        kind: "Plimsoll explore",
        title: page.title,
        description: page.description,
        found: &[],
        warnings: page.notes,
        sections: &[("results", "Results"), ("line", "Load line"), ("replay", "Replay"), ("keep", "Keep")],
        schemes: &Schemes::default(),
        rules: STYLE,
        is_served: true,
    });
    out.push_str("<div class=\"explore\">\n<aside><details id=\"knobs\" open><summary>Scenario</summary>\n");
    out.push_str("<p class=\"note\"><button id=\"reset\" type=\"button\">Reset all</button></p>\n");
    for group in page.knobs.chunk_by(|a, b| a.group == b.group) {
        out.push_str(&group_of(group));
    }
    out.push_str("</details></aside>\n<div class=\"beside\">\n");
    out.push_str(
        "<div class=\"card status\" role=\"status\"><b id=\"stage\">Starting</b> <span id=\"stage-more\"></span>\
         <progress id=\"progress\" max=\"1\" value=\"0\"></progress>\n<p id=\"error\" class=\"error\" \
         hidden></p></div>\n\
         <div id=\"results\" aria-live=\"off\"><p class=\"note\">The first results appear here.</p></div>\n",
    );
    out.push_str(&line_section(page));
    out.push_str(&replay_section(page));
    out.push_str(KEEP);
    out.push_str("</div>\n</div>\n");
    let script = format!("<script>\n{SCRIPT}{EXPLORE}</script>\n</body>\n</html>\n");
    out + "</main>\n<footer><main>" + &escape(table::INTERVALS) + "</main></footer>\n" + &script
}

/// Renders the results of the runs: sentences, table, and figures. Where the same text is shown again, it is the same.
/// For runs that longer ones follow (`is_early`), only the differences that they show are named.
pub fn results(summary: &Summary, curves: &Curves, is_early: bool) -> String {
    let groups = [
        ("time", time_figures(summary)),
        ("distributions", distribution_figures(summary, curves)),
        ("trade", trade_figure(summary)),
        ("queues", queue_figures(summary, curves, &queues::shown(summary))),
    ];
    let schemes = plots::schemes(summary);
    let mut out = format!("<style>{}</style>\n", rules(groups.iter().flat_map(|(_, figures)| figures)));
    let found = if is_early { verdict::sentences_so_far(summary) } else { verdict::sentences(summary) };
    out.push_str(&page::found(&found, &schemes));
    out.push_str(&page::warnings(&table::alarms(summary).collect::<Vec<_>>()));
    out.push_str(&numbers(summary, false));
    for (id, figures) in groups.iter().filter(|(_, figures)| !figures.is_empty()) {
        out.push_str(&section(summary, id, figures));
    }
    out
}

/// Renders the controls of one group: the keys that the scenario sets, and the defaults folded below them.
fn group_of(knobs: &[Knob]) -> String {
    let Some(first) = knobs.first() else { return String::new() };
    let (set, defaults): (Vec<&Knob>, Vec<&Knob>) = knobs.iter().partition(|knob| knob.is_set);
    let render = |knobs: &[&Knob]| knobs.iter().map(|knob| knob.render()).collect::<String>();
    let mut out = format!("<fieldset><legend>{}</legend>\n{}", escape(&first.group), render(&set));
    if !defaults.is_empty() {
        let count = defaults.len();
        out.push_str(&format!(
            "<details><summary>{count} defaults</summary>\n{}</details>",
            render(&defaults)
        ));
    }
    out + "</fieldset>\n"
}

impl Knob {
    fn render(&self) -> String {
        let name = self.key.strip_prefix(&format!("{}.", self.group)).unwrap_or(&self.key);
        let (key, value) = (escape(&self.key), escape(&self.value));
        let of = if self.variants.is_empty() {
            String::new()
        } else {
            format!(" <small>{}</small>", escape(&self.variants.join(", ")))
        };
        let label = format!("aria-label=\"{key}\"");
        let control = match &self.control {
            Control::Number { value, unit, units, low, high, by_factors, whole } => {
                let step = if *whole { "1" } else { "any" };
                let units: String = units
                    .iter()
                    .map(|one| {
                        let selected = if one == unit { " selected" } else { "" };
                        format!("<option{selected}>{}</option>", escape(one))
                    })
                    .collect();
                let units = if units.is_empty() {
                    String::new()
                } else {
                    format!("<select class=\"unit\" aria-label=\"unit of {key}\">{units}</select>")
                };
                format!(
                    "<span class=\"fields\"><input class=\"number\" type=\"number\" step=\"{step}\" \
                    value=\"{value}\" \
                     {label}>{units}</span><input class=\"slider\" type=\"range\" min=\"0\" max=\"1000\" \
                     data-low=\"{low}\" data-high=\"{high}\" data-factors=\"{by_factors}\" data-whole=\"{whole}\" \
                     aria-label=\"slider of {key}\">"
                )
            }
            Control::Choice(options) => {
                let options: String = options
                    .iter()
                    .map(|option| {
                        let selected = if *option == self.value { " selected" } else { "" };
                        format!("<option{selected}>{}</option>", escape(option))
                    })
                    .collect();
                format!("<select class=\"choice\" {label}>{options}</select>")
            }
            Control::Switch => {
                let checked = if self.value == "true" { " checked" } else { "" };
                format!("<input class=\"switch\" type=\"checkbox\"{checked} {label}>")
            }
            Control::Text => format!("<input class=\"text\" type=\"text\" value=\"{value}\" {label}>"),
        };
        format!(
            "<div class=\"knob\" data-key=\"{key}\" data-value=\"{value}\"><span class=\"name\" \
            title=\"{}\">{}{of}</span>\
             {control}</div>\n",
            escape(&self.help),
            escape(name).replace('.', ".<wbr>").replace('_', "_<wbr>")
        )
    }
}

fn line_section(page: &ExplorePage<'_>) -> String {
    let first = page.objectives.first().cloned();
    let example = || page.workloads.first().map(|name| format!("p99({name}) < 1ms"));
    let objective = first.or_else(example).unwrap_or_default();
    format!(
        "<section id=\"line\"><h2>Load line</h2>\n<p class=\"lead\">The highest load at which the objective is met, \
        by \
         bisection over seeds. It takes longer than a first look, and another value stops it.</p>\n\
         <form id=\"line-form\" class=\"card ask\"><label>Objective <input id=\"slo\" type=\"text\" value=\"{}\" \
         size=\"24\" \
         required></label><button type=\"submit\">Find the line</button> <span id=\"line-state\" \
         class=\"note\"></span>\
         </form>\n<div id=\"line-result\"></div></section>\n",
        escape(&objective)
    )
}

fn replay_section(page: &ExplorePage<'_>) -> String {
    let variants: String =
        page.variants.iter().map(|name| format!("<option>{}</option>", escape(name))).collect();
    format!(
        "<section id=\"replay\"><h2>Replay</h2>\n<p class=\"lead\">Every packet of a moment, as it moves.</p>\n\
         <form id=\"replay-form\" class=\"card ask\"><label>Variant <select \
         id=\"replay-variant\">{variants}</select></label>\
         <label>from <input id=\"replay-from\" type=\"text\" value=\"{}\" size=\"7\" required></label>\
         <button id=\"replay-worst\" class=\"plain\" type=\"button\" disabled>the message delayed most</button>\
         <label>for <input id=\"replay-for\" type=\"text\" value=\"200us\" size=\"7\" required></label>\
         <button type=\"submit\">Draw</button> <span id=\"replay-state\" class=\"note\"></span></form>\n\
         <div id=\"replay-result\"></div></section>\n",
        escape(page.replay_from)
    )
}

const KEEP: &str = "<section id=\"keep\"><h2>Keep what is shown</h2>\n\
    <div class=\"card\"><p class=\"lead\">The scenario with the values above. Its runs have the same digest \
    anywhere.</p>\n\
    <p class=\"buttons\"><button id=\"save\" type=\"button\">Save the scenario</button> \
    <button id=\"copy-link\" type=\"button\">Copy a link</button> \
    <button id=\"copy-command\" type=\"button\">Copy the command</button> <span id=\"kept\" \
    class=\"note\"></span></p>\n\
    <pre><code id=\"command\"></code></pre>\n<dl><dt>Digest of all runs</dt><dd><code \
    id=\"digest\">-</code></dd></dl>\
    </div></section>\n";
