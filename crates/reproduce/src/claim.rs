//! [`Claims`]: rows that a study computes from others, by expressions in its file.
//!
//! ```text
//! [[claims]]
//! each = [["base", "kernel", "simulated"], ["x", "10", "20"]]      every row below for each base and x, in this order
//! rows = [{ series = "HULL", x = "{x}", metric = "of_dctcp", unit = "x",
//!           is = "p99('fig1', 'HULL', '{x}') / p99('fig1', 'DCTCP', '{x}')", holds = "< 1" }]
//! ```
//!
//! `METRIC('FIGURE', 'SERIES', 'X')` is the number of a row of the same base; of several X, their sum. A row of which a
//! number is missing is left out. With `interval`, the row has what the interval of the first number makes of it. It is
//! as suspect as the numbers behind it.

use plimsoll_results::stats::expression::Operator;
use serde::Deserialize;

use crate::expression::{Expression, Number};
use crate::published::{Kind, Published};
use crate::row::Row;

/// Rows that are computed together.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claims {
    /// Names and their values: the rows are computed for each combination, the first name outermost. Without `base`,
    /// they are of the study's first base.
    #[serde(default)]
    each: Vec<Vec<String>>,
    rows: Vec<Claim>,
}

/// A name of `each` and one of its values.
type Named<'a> = (&'a str, &'a str);

/// A row that is computed from others, before its names have values.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Claim {
    #[serde(default = "claims")]
    figure: String,
    series: String,
    x: String,
    metric: String,
    unit: String,
    /// The expression, before its names have values.
    is: String,
    /// Whether the row has an interval.
    #[serde(default)]
    interval: bool,
    /// The factor within which the number counts as about the published one.
    tolerance: Option<f64>,
    /// What the number has to meet, such as `>= 80` or `> published`.
    #[serde(default)]
    holds: Vec<String>,
    /// The figure, series and x of the published value, where they are not the row's.
    said: Option<[String; 3]>,
    /// The bases that are held to what is published; all of them if empty.
    #[serde(default)]
    held: Vec<String>,
}

fn claims() -> String {
    "claims".to_owned()
}

impl Claims {
    /// Checks that all expressions can be read, that all names have values, and that the study has the `bases`.
    ///
    /// # Errors
    /// Returns the first that is wrong, and why.
    pub(crate) fn check(&self, bases: [&str; 2]) -> Result<(), String> {
        if let Some(each) = self.each.iter().find(|each| each.len() < 2) {
            return Err(format!("`each` has {each:?}; allowed: a name and its values"));
        }
        let names: Vec<Named<'_>> =
            self.each.iter().map(|each| (each[0].as_str(), each[1].as_str())).collect();
        let asked = self.each.iter().filter(|each| each[0] == "base").flat_map(|each| &each[1..]);
        let held = self.rows.iter().flat_map(|claim| &claim.held);
        if let Some(base) = asked.chain(held).find(|base| !bases.contains(&base.as_str())) {
            return Err(format!("there is no base `{base}`; allowed: {}", bases.join(", ")));
        }
        self.rows.iter().try_for_each(|claim| {
            let texts = [&claim.figure, &claim.series, &claim.x, &claim.metric, &claim.is].into_iter();
            for text in texts.chain(claim.said.iter().flatten()) {
                let filled = filled(text, &[&[("base", bases[0])], &names[..]].concat());
                if filled.contains('{') {
                    return Err(format!(
                        "`{text}` has a name without values; allowed: base and those of `each`"
                    ));
                }
            }
            Expression::read(&filled(&claim.is, &names)).map(drop)?;
            claim.holds.iter().try_for_each(|text| condition(text).map(drop))
        })
    }

    /// Computes the rows from those of figures.
    pub(crate) fn rows(&self, first_base: &str, published: &Published, rows: &[Row]) -> Vec<Row> {
        let mut computed = Vec::new();
        let mut names = vec![("base", first_base)];
        self.walk(&self.each, &mut names, &mut |names| {
            computed.extend(self.rows.iter().filter_map(|claim| claim.row(published, rows, names)));
        });
        computed
    }

    /// Returns the expressions of which `rows` has no number, whatever the values of their names.
    #[cfg(test)]
    pub(crate) fn without_rows(&self, first_base: &str, published: &Published, rows: &[Row]) -> Vec<&str> {
        let is_lost = |claim: &&Claim| {
            let alone = Claims { each: self.each.clone(), rows: vec![(*claim).clone()] };
            alone.rows(first_base, published, rows).is_empty()
        };
        self.rows.iter().filter(is_lost).map(|claim| claim.is.as_str()).collect()
    }

    /// Calls `with` for each combination of the values of `each`.
    fn walk<'a>(
        &self,
        each: &'a [Vec<String>],
        names: &mut Vec<Named<'a>>,
        with: &mut dyn FnMut(&[Named<'a>]),
    ) {
        let Some((first, rest)) = each.split_first() else { return with(names) };
        for value in &first[1..] {
            names.push((&first[0], value));
            self.walk(rest, names, with);
            names.pop();
        }
    }
}

impl Claim {
    fn row(&self, values: &Published, rows: &[Row], names: &[Named<'_>]) -> Option<Row> {
        let filled = |text: &str| filled(text, names);
        let base = names.iter().rev().find(|(name, _)| *name == "base").map(|(_, base)| *base)?;
        let find = |metric: &str, [figure, series, x]: [&str; 3]| {
            let is = |row: &&Row| {
                row.base == base
                    && (row.figure.as_str(), row.series.as_str()) == (figure, series)
                    && (row.x.as_str(), row.metric.as_str()) == (x, metric)
            };
            let row = rows.iter().find(is)?;
            Some(Number { value: row.measured, interval: row.ci, is_suspect: row.suspect })
        };
        let is = Expression::read(&filled(&self.is)).expect("checked when the study was read");
        let number = is.number(&find).filter(|number| number.value.is_finite())?;
        let [figure, series, x, metric] =
            [&self.figure, &self.series, &self.x, &self.metric].map(|t| filled(t));
        let mut row = Row::new(&figure, base, &series, &x, &metric, &self.unit);
        (row.measured, row.suspect) = (number.value, number.is_suspect);
        row.ci = number.interval.filter(|_| self.interval);
        if !self.held.is_empty() && !self.held.iter().any(|held| held == base) {
            return Some(row);
        }
        let said =
            self.said.as_ref().map_or([figure, series, x], |said| said.each_ref().map(|text| filled(text)));
        let [figure, series, x] = said.each_ref().map(String::as_str);
        let said = |kind| values.value(kind, figure, series, x, &metric);
        let (about, least, most) = (said(Kind::About), said(Kind::AtLeast), said(Kind::AtMost));
        let published = about.or(least).or(most);
        let mut row = row.compare(published, said(Kind::Original), about.and(self.tolerance));
        let measured = row.measured;
        if !self.holds.is_empty() {
            let conditions = self.holds.iter().map(|text| condition(text).expect("checked before"));
            let met =
                conditions.map(|(operator, limit)| Some(operator.holds(measured, limit.or(published)?)));
            row.within = met.collect::<Option<Vec<bool>>>().map(|met| met.into_iter().all(|met| met));
        } else if least.or(most).is_some() {
            let within =
                least.is_none_or(|least| measured >= least) && most.is_none_or(|most| measured <= most);
            row.within = Some(within);
        }
        Some(row)
    }
}

/// Puts the values of names into a text; of two names of one spelling, the inner one's.
fn filled(text: &str, names: &[Named<'_>]) -> String {
    names
        .iter()
        .rev()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// Reads a condition: its operator and its limit, `None` for the published value.
fn condition(text: &str) -> Result<(Operator, Option<f64>), String> {
    let read = Operator::split(text).filter(|(before, ..)| before.trim().is_empty());
    let wrong = || format!("`{text}` is no condition; allowed: < <= > >= and a number, or `published`");
    let (_, operator, limit) = read.ok_or_else(wrong)?;
    match limit.trim() {
        "published" => Ok((operator, None)),
        limit => limit.parse().map(|limit| (operator, Some(limit))).map_err(|_| wrong()),
    }
}
