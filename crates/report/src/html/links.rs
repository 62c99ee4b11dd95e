//! The utilisation of the links by tier, and the links that dropped packets or were paused: tables whose cells have a
//! stronger colour for a larger number.

use plimsoll_results::Summary;
use plimsoll_results::curves::Curves;
use plimsoll_results::link_map::{LinkMap, LinkQuantity};
use plimsoll_results::summary::{Cell as PointCell, TierSummary};

use super::page::marked;
use crate::chart::Schemes;
use crate::escape::escape;
use crate::plots::{Point, point_name};
use crate::{figures, plots};

/// A table with shaded cells.
struct HeatTable {
    title: String,
    note: &'static str,
    corner: &'static str,
    columns: Vec<String>,
    rows: Vec<(String, Vec<HeatCell>)>,
}

#[derive(Clone)]
struct HeatCell {
    text: String,
    /// 0 for none, 1 for the strongest colour.
    heat: f64,
}

/// Renders the content of the section; it is empty where no links were counted.
pub(super) fn section(summary: &Summary, curves: &Curves) -> String {
    let points: Vec<&Point> = summary
        .sweep_points()
        .into_iter()
        .filter(|point| summary.cells.iter().any(|cell| cell.sweep == **point && !cell.tiers.is_empty()))
        .collect();
    let [first, rest @ ..] = points.as_slice() else { return String::new() };
    let schemes = plots::schemes(summary);
    let inside = |point: &Point| -> String {
        let maps = curves.maps.iter().filter(|map| map.sweep == point).map(of_map);
        tiers(summary, point).into_iter().chain(maps).map(|table| render(&table, &schemes)).collect()
    };
    if rest.is_empty() {
        return inside(first);
    }
    let folded = points.iter().enumerate().map(|(number, point)| {
        // The last point of a sweep, mostly the highest load, is the one to look at.
        let open = if number + 1 == points.len() { " open" } else { "" };
        format!(
            "<details{open}><summary>{}</summary>{}</details>\n",
            escape(&point_name(point)),
            inside(point)
        )
    });
    folded.collect()
}

fn tiers(summary: &Summary, point: &Point) -> Vec<HeatTable> {
    let cells: Vec<&PointCell> = summary.cells.iter().filter(|cell| cell.sweep == point).collect();
    let mut names: Vec<(&str, u64)> = Vec::new();
    for tier in cells.iter().flat_map(|cell| &cell.tiers) {
        if !names.iter().any(|(name, _)| *name == tier.name) {
            names.push((&tier.name, tier.links));
        }
    }
    let table = |title: &str, note, text: fn(&TierSummary) -> String, heat: fn(&TierSummary) -> f64| {
        let row = |(name, links): &(&str, u64)| {
            let of = |cell: &&PointCell| {
                let tier = cell.tiers.iter().find(|tier| tier.name == *name);
                tier.map_or(NOTHING, |tier| HeatCell { text: text(tier), heat: heat(tier) })
            };
            (format!("{name} ({})", figures::count(*links)), cells.iter().map(of).collect())
        };
        HeatTable {
            title: title.to_owned(),
            note,
            corner: "links (how many)",
            columns: cells.iter().map(|cell| cell.variant.clone()).collect(),
            rows: names.iter().map(row).collect(),
        }
    };
    let used = table(
        "Utilisation by tier",
        "Share of the time in which a link sent: the mean over the links of a tier, and the busiest one.",
        |tier| format!("{} (most {})", percent(tier.utilisation), percent(tier.utilisation_most)),
        |tier| tier.utilisation,
    );
    let trouble = table(
        "Drops and pauses by tier",
        "Packets dropped at the ports of a tier over all replicates; how often its links were paused, and for \
         which share of the time, also while packets waited for the end of a pause.",
        |tier| {
            let blocked = match tier.blocked {
                0.0 => String::new(),
                blocked => format!(", with packets waiting {}", percent(blocked)),
            };
            let pauses =
                format!("{} pauses ({}{blocked})", figures::count(tier.pauses), percent(tier.paused));
            let drops = format!("{} drops", figures::count(tier.drops));
            match (tier.drops, tier.pauses) {
                (0, 0) => "none".to_owned(),
                (_, 0) => drops,
                (0, _) => pauses,
                _ => format!("{drops}, {pauses}"),
            }
        },
        |tier| tier.paused,
    );
    let troubled = cells.iter().flat_map(|cell| &cell.tiers).any(|tier| tier.drops + tier.pauses > 0);
    std::iter::once(used).chain(troubled.then_some(trouble)).collect()
}

const NOTHING: HeatCell = HeatCell { text: String::new(), heat: 0.0 };

fn of_map(map: &LinkMap) -> HeatTable {
    let most = map.rows.iter().flat_map(|(_, values)| values).copied().fold(f64::MIN_POSITIVE, f64::max);
    let written = |value: f64| match map.quantity {
        LinkQuantity::Drops if value.fract() == 0.0 => figures::count(value as u64),
        LinkQuantity::Drops => figures::number(value),
        LinkQuantity::Paused => percent(value),
    };
    let cell = |value: &f64| HeatCell { text: written(*value), heat: value / most };
    let mut rows: Vec<(String, Vec<HeatCell>)> =
        map.rows.iter().map(|(link, values)| (link.clone(), values.iter().map(cell).collect())).collect();
    let (others, sums) = &map.rest;
    if *others > 0 {
        let cells = sums.iter().map(|sum| match map.quantity {
            LinkQuantity::Drops => HeatCell { text: written(*sum), heat: 0.0 },
            // The mean is more useful than a sum of shares.
            LinkQuantity::Paused => HeatCell { text: written(sum / *others as f64), heat: 0.0 },
        });
        let label = match map.quantity {
            LinkQuantity::Drops => format!("{} other links, together", figures::count(*others as u64)),
            LinkQuantity::Paused => format!("{} other links, their mean", figures::count(*others as u64)),
        };
        rows.push((label, cells.collect()));
    }
    let (title, note) = match map.quantity {
        LinkQuantity::Drops => {
            ("Drops by link", "Packets that found no room at the port of a link; the mean of a run.")
        }
        LinkQuantity::Paused => {
            ("Pauses by link", "Share of the time in which a link was paused for at least one priority.")
        }
    };
    HeatTable { title: title.to_owned(), note, corner: "link", columns: map.variants.clone(), rows }
}

/// Writes a share as `3.1 %`; a share above zero is never written as zero.
fn percent(share: f64) -> String {
    match share * 100.0 {
        0.0 => "0 %".to_owned(),
        less if less < 0.01 => "< 0.01 %".to_owned(),
        percent => format!("{} %", figures::number(percent)),
    }
}

fn render(table: &HeatTable, schemes: &Schemes) -> String {
    let mut out = format!(
        "<div class=\"card heat\">\n<b>{}</b>\n<p class=\"note\">{}</p>\n<div class=\"scroll\"><table>\n<thead>\
         <tr><th scope=\"col\">{}</th>",
        escape(&table.title),
        escape(table.note),
        escape(table.corner)
    );
    for column in &table.columns {
        let mark = marked(schemes.find(column));
        out.push_str(&format!("<th scope=\"col\">{mark}{}</th>", escape(column)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for (label, cells) in &table.rows {
        out.push_str(&format!("<tr><th scope=\"row\">{}</th>", escape(label)));
        for HeatCell { text, heat } in cells {
            let heat = (heat.clamp(0.0, 1.0) * 100.0).round();
            let style = if heat > 0.0 { format!(" style=\"--heat:{heat}%\"") } else { String::new() };
            let text = if text.is_empty() { "–" } else { text };
            out.push_str(&format!("<td{style}>{}</td>", escape(text)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div></div>\n");
    out
}
