//! [`Claims`]: rows that a study computes from others, by expressions in its file.
//!
//! ```text
//! [[claims]]
//! each = [["base", "kernel", "simulated"], ["x", "10", "20"]]      every row below for each base and x, in this order
//! rows = [{ series = "HULL", x = "{x}", metric = "of_dctcp", unit = "x",
//!           is = "p99('fig1', 'HULL', '{x}') / p99('fig1', 'DCTCP', '{x}')", holds = "< 1" }]
//! ```
//!
//! [[claims.groups]] are claims that have these names, too; `best` is a name whose value an expression chooses.
//!
//! Names that change together are one, with `|` between them and between their values: `["a|b", "1|2", "3|4"]`.
//!
//! `METRIC('FIGURE', 'SERIES', 'X')` is the number of a row of the same base; of several X, their sum. A row of which a
//! number is missing is left out. With `interval`, the row's interval follows from that of the first number. It is
//! as suspect as the numbers behind it.

use plimsoll_results::stats::expression::Operator;
use serde::Deserialize;

use crate::expression::{Number, RowExpression};
use crate::published::{Published, PublishedKind};
use crate::row::StudyRow;

/// Rows that a study file computes from measured and published values, for each combination of names.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claims {
    /// A name whose value is a choice.
    best: Option<BestChoice>,
    /// Names and their values: the rows are computed for each combination, the first name outermost. Without `base`,
    /// they are of the study's first base.
    #[serde(default)]
    each: Vec<Vec<String>>,
    #[serde(default)]
    rows: Vec<Claim>,
    /// Further rows of each combination, which have its names.
    #[serde(default)]
    groups: Vec<Claims>,
}

/// A name that has the value for which an expression is the least.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct BestChoice {
    name: String,
    among: Vec<String>,
    least: String,
    /// Whether the choice waits until every value has its number.
    #[serde(default)]
    needs_all: bool,
    /// The value if nothing can be chosen; without it, the rows are then left out.
    otherwise: Option<String>,
}

/// A name of `each` and one of its values.
type NameValue<'a> = (&'a str, &'a str);

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
    /// An expression whose numbers make the row as suspect as those behind it do.
    doubts: Option<String>,
    /// Whether the published value is the order of two numbers, of which this is the ratio: it holds where the whole
    /// interval is above 1, and does not where it is below, or within a tenth of 1.
    #[serde(default)]
    order: bool,
    /// The conditions that the number has to meet, such as `>= 80` or `> published`.
    #[serde(default)]
    holds: Vec<String>,
    /// The figure, series and x of the published value, where they are not the row's.
    said: Option<[String; 3]>,
    /// The bases that are held to the published values; all of them if empty.
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
        self.check_with(bases, &mut vec![("base", bases[0])])
    }

    fn check_with<'a>(&'a self, bases: [&str; 2], names: &mut Vec<NameValue<'a>>) -> Result<(), String> {
        let (outer, parts) = (names.len(), |text: &String| text.split('|').count());
        let is_wrong =
            |each: &&Vec<String>| each.len() < 2 || each.iter().any(|value| parts(value) != parts(&each[0]));
        if let Some(each) = self.each.iter().find(is_wrong) {
            return Err(format!(
                "`each` has {each:?}; allowed: a name and its values, each of as many parts"
            ));
        }
        if let Some(BestChoice { name, among, least, .. }) = &self.best {
            names.extend(among.first().into_iter().flat_map(|value| named(name, value)));
            RowExpression::read(&filled(least, names))?;
        }
        names.extend(self.each.iter().flat_map(|each| named(&each[0], &each[1])));
        let asked = self.each.iter().filter(|each| each[0] == "base").flat_map(|each| &each[1..]);
        let held = self.rows.iter().flat_map(|claim| &claim.held);
        if let Some(base) = asked.chain(held).find(|base| !bases.contains(&base.as_str())) {
            return Err(format!("there is no base `{base}`; allowed: {}", bases.join(", ")));
        }
        self.rows.iter().try_for_each(|claim| claim.check(names))?;
        self.groups.iter().try_for_each(|group| group.check_with(bases, names))?;
        names.truncate(outer);
        Ok(())
    }

    /// Computes the rows from the rows of figures.
    pub(crate) fn rows(&self, first_base: &str, published: &Published, rows: &[StudyRow]) -> Vec<StudyRow> {
        let mut computed = Vec::new();
        self.walk(rows, &mut vec![("base", first_base)], &mut |claim, names| {
            computed.extend(claim.row(published, rows, names));
        });
        computed
    }

    /// Returns the expressions of which `rows` has no number, whatever the values of their names.
    #[cfg(test)]
    pub(crate) fn without_rows(
        &self,
        first_base: &str,
        published: &Published,
        rows: &[StudyRow],
    ) -> Vec<String> {
        let mut found = std::collections::BTreeMap::new();
        self.walk(rows, &mut vec![("base", first_base)], &mut |claim, names| {
            *found.entry(claim.is.clone()).or_insert(false) |= claim.row(published, rows, names).is_some();
        });
        found.into_iter().filter(|(_, is_found)| !is_found).map(|(text, _)| text).collect()
    }

    /// Calls `with` for each row and combination of values.
    fn walk<'a>(
        &'a self,
        rows: &[StudyRow],
        names: &mut Vec<NameValue<'a>>,
        with: &mut dyn FnMut(&'a Claim, &[NameValue<'a>]),
    ) {
        let outer = names.len();
        if let Some(best) = &self.best {
            let Some(value) = best.value(rows, names) else { return };
            names.extend(named(&best.name, value));
        }
        self.walk_each(&self.each, rows, names, with);
        names.truncate(outer);
    }

    fn walk_each<'a>(
        &'a self,
        each: &'a [Vec<String>],
        rows: &[StudyRow],
        names: &mut Vec<NameValue<'a>>,
        with: &mut dyn FnMut(&'a Claim, &[NameValue<'a>]),
    ) {
        let Some((first, rest)) = each.split_first() else {
            self.rows.iter().for_each(|claim| with(claim, names));
            self.groups.iter().for_each(|group| group.walk(rows, names, with));
            return;
        };
        let outer = names.len();
        for value in &first[1..] {
            names.extend(named(&first[0], value));
            self.walk_each(rest, rows, names, with);
            names.truncate(outer);
        }
    }
}

impl BestChoice {
    /// Returns the value whose expression is the least, the first of several.
    fn value(&self, rows: &[StudyRow], names: &[NameValue<'_>]) -> Option<&str> {
        let cost = |value: &String| {
            let own: Vec<NameValue<'_>> = names.iter().copied().chain(named(&self.name, value)).collect();
            number(&self.least, rows, &own)
        };
        let costs: Vec<(&String, f64)> =
            self.among.iter().filter_map(|value| Some((value, cost(value)?.value))).collect();
        let is_any = !self.needs_all || costs.len() == self.among.len();
        let best = costs.iter().filter(|_| is_any).min_by(|(_, a), (_, b)| a.total_cmp(b));
        best.map(|(value, _)| *value).or(self.otherwise.as_ref()).map(String::as_str)
    }
}

/// Returns the base of the innermost names.
fn base<'a>(names: &[NameValue<'a>]) -> &'a str {
    names.iter().rev().find(|(name, _)| *name == "base").map_or("", |(_, base)| base)
}

/// Computes an expression of rows of the names' base; `None` where a row is missing.
fn number(text: &str, rows: &[StudyRow], names: &[NameValue<'_>]) -> Option<Number> {
    let base = base(names);
    let find = |metric: &str, [figure, series, x]: [&str; 3]| {
        let is = |row: &&StudyRow| {
            row.base == base
                && (row.figure.as_str(), row.series.as_str()) == (figure, series)
                && (row.x.as_str(), row.metric.as_str()) == (x, metric)
        };
        let row = rows.iter().find(is)?;
        Some(Number { value: row.measured, interval: row.ci, is_suspect: row.suspect })
    };
    let expression = RowExpression::read(&filled(text, names)).expect("checked when the study was read");
    expression.number(&find).filter(|number| number.value.is_finite())
}

impl Claim {
    fn check(&self, names: &[NameValue<'_>]) -> Result<(), String> {
        let texts = [&self.figure, &self.series, &self.x, &self.metric, &self.unit, &self.is];
        let texts = texts.into_iter().chain(&self.doubts).chain(self.said.iter().flatten());
        for text in texts {
            if filled(text, names).contains('{') {
                return Err(format!("`{text}` has a name without values; allowed: base and those of `each`"));
            }
        }
        for text in std::iter::once(&self.is).chain(&self.doubts) {
            RowExpression::read(&filled(text, names))?;
        }
        self.holds.iter().try_for_each(|text| condition(text).map(drop))
    }

    fn row(&self, values: &Published, rows: &[StudyRow], names: &[NameValue<'_>]) -> Option<StudyRow> {
        let filled = |text: &str| filled(text, names);
        let base = base(names);
        let doubts = self.doubts.as_ref().and_then(|text| number(text, rows, names));
        let number = number(&self.is, rows, names)?;
        let [figure, series, x, metric, unit] =
            [&self.figure, &self.series, &self.x, &self.metric, &self.unit].map(|t| filled(t));
        let mut row = StudyRow::new(&figure, base, &series, &x, &metric, &unit);
        row.measured = number.value;
        row.suspect = number.is_suspect || doubts.is_some_and(|doubts| doubts.is_suspect);
        row.ci = number.interval.filter(|_| self.interval);
        if !self.held.is_empty() && !self.held.iter().any(|held| held == base) {
            return Some(row);
        }
        let said =
            self.said.as_ref().map_or([figure, series, x], |said| said.each_ref().map(|text| filled(text)));
        let [figure, series, x] = said.each_ref().map(String::as_str);
        let said = |kind| values.value(kind, figure, series, x, &metric);
        let (about, least, most) =
            (said(PublishedKind::About), said(PublishedKind::AtLeast), said(PublishedKind::AtMost));
        let published = about.or(least).or(most);
        let mut row = row.compare(published, said(PublishedKind::Original), about.and(self.tolerance));
        let measured = row.measured;
        row.order_only = self.order;
        if self.order {
            row.within = row.ci.filter(|_| !row.suspect).and_then(decided);
        } else if !self.holds.is_empty() {
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

/// Pairs names that change together with their values.
fn named<'a>(names: &'a str, values: &'a str) -> impl Iterator<Item = NameValue<'a>> {
    names.split('|').zip(values.split('|'))
}

/// Returns whether the interval of a ratio is above 1; none if it leaves that open.
fn decided((low, high): (f64, f64)) -> Option<bool> {
    let is_none = low >= 1.0 / NEGLIGIBLE && high <= NEGLIGIBLE;
    (low > 1.0).then_some(true).or((high < 1.0 || is_none).then_some(false))
}

/// The factor within which the whole interval of a ratio has to lie for there to be no order.
const NEGLIGIBLE: f64 = 1.1;

/// Puts the values of names into a text, also into values; of two names of one spelling, the inner one's.
fn filled(text: &str, names: &[NameValue<'_>]) -> String {
    let mut text = text.to_owned();
    // Values have names of others in them, but never their own.
    for _ in names {
        if !text.contains('{') {
            break;
        }
        for (name, value) in names.iter().rev() {
            text = text.replace(&format!("{{{name}}}"), value);
        }
    }
    text
}

/// Reads a condition: its operator and its limit, `None` for the published value.
fn condition(text: &str) -> Result<(Operator, Option<f64>), String> {
    let read = Operator::split(text).filter(|(before, ..)| before.trim().is_empty());
    let wrong = || format!("`{text}` is no condition; allowed: < <= > >= == and a number, or `published`");
    let (_, operator, limit) = read.ok_or_else(wrong)?;
    match limit.trim() {
        "published" => Ok((operator, None)),
        limit => limit.parse().map(|limit| (operator, Some(limit))).map_err(|_| wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::studies::study;

    fn row(figure: &str, series: &str, metric: &str, measured: f64, half: f64) -> StudyRow {
        let ci = Some((measured - half, measured + half));
        StudyRow { measured, ci, ..StudyRow::new(figure, "kernel", series, "160", metric, "x") }
    }

    /// The order and the factor of the reader/writer lock's mean over that of steering, where the ratios of the rounds
    /// are this.
    fn claimed(ratio: f64, half: f64, is_suspect: bool) -> [StudyRow; 2] {
        let means = ["reader/writer lock", "steering"].map(|series| {
            // Intervals of the machine, which are much wider than the intervals of the rounds' ratios.
            let mean = row("fig5.3", series, "latency_us_mean", 200.0, 150.0);
            StudyRow { suspect: is_suspect && series == "reader/writer lock", ..mean }
        });
        let ratio = row("fig5.3", "steering", "mean_of_lock", ratio, half);
        let rows = study("chronos-kernel").computed(&[&means[..], &[ratio]].concat());
        rows.try_into().expect("the claim has two rows")
    }

    #[test]
    fn an_order_is_held_where_the_ratios_of_rounds_leave_one() {
        let [order, factor] = claimed(0.5, 0.1, false);
        assert_eq!((order.measured, order.published, order.within), (2.0, Some(1.0), Some(true)));
        assert!(order.order_only && !factor.order_only);
        assert_eq!((factor.measured, factor.published, factor.within), (2.0, Some(2.5), None));
        let (low, high) = order.ci.expect("a ratio of rounds has an interval");
        assert!((low - 1.0 / 0.6).abs() < 1e-9 && (high - 1.0 / 0.4).abs() < 1e-9, "{low} .. {high}");
        let within = |ratio, half, is_suspect| claimed(ratio, half, is_suspect)[0].within;
        assert_eq!(within(2.0, 0.5, false), Some(false));
        assert_eq!(within(0.9, 0.2, false), None);
        assert_eq!(within(1.0, 0.05, false), Some(false), "no order, and that for sure");
        assert_eq!(within(0.5, 0.1, true), None, "a suspect row decides nothing");
    }

    #[test]
    fn rows_without_the_choice_need_no_sweep() {
        let mut rows = Vec::from(applications("apps", "ideal", "shared", 1.0, 1.0));
        rows.extend(applications("apps", "hadoop", "shared", 1.0, 1.0));
        rows.extend(applications("apps", "TCP", "shared", 0.5, 3.0));
        rows.iter_mut().for_each(|row| row.base = "source".to_owned());
        let computed = study("qjump").computed(&rows);
        let fig7: Vec<(&str, f64)> = computed
            .iter()
            .filter(|row| row.figure == "fig7")
            .map(|row| (row.series.as_str(), row.measured))
            .collect();
        assert_eq!(fig7, [("contended", 2.0), ("contended", 3.0), ("contended", 3.0)]);
        assert!(computed.iter().all(|row| row.metric != "wred_min"));
    }

    #[test]
    fn names_that_change_together_have_as_many_values() {
        let claims = |each: &str| -> Claims {
            toml::from_str(&format!("each = {each}\nrows = []")).expect("the keys are known")
        };
        assert_eq!(claims(r#"[["a|b", "1|2", "3|4"]]"#).check(["kernel", "simulated"]), Ok(()));
        let error =
            claims(r#"[["a|b", "1|2", "3"]]"#).check(["kernel", "simulated"]).expect_err("one is missing");
        assert!(error.contains("each of as many parts"), "{error}");
    }

    /// Returns the applications under a scheme: the job at `share` of its rate, the others `times` as long as alone.
    fn applications(figure: &str, scheme: &str, x: &str, share: f64, times: f64) -> [StudyRow; 3] {
        [("hadoop_gbps", share), ("ptp_us_rms", 10.0 * times), ("memcached_us_rms", 50.0 * times)].map(
            |(metric, measured)| StudyRow {
                measured,
                ..StudyRow::new(figure, "kernel", scheme, x, metric, "")
            },
        )
    }

    #[test]
    fn a_choice_is_made_once_all_are_measured() {
        let study = study("qjump-kernel");
        let ecn = |rows: &[StudyRow]| -> Vec<f64> {
            let of_ecn = |row: &StudyRow| row.figure == "fig7" && row.series == "ECN";
            study.computed(rows).into_iter().filter(of_ecn).map(|row| row.measured).collect()
        };
        let mut rows = Vec::from(applications("apps", "ideal", "shared", 1.0, 1.0));
        rows.extend(applications("apps", "hadoop", "shared", 1.0, 1.0));
        rows.extend(applications("apps", "ECN", "shared", 0.5, 3.0));
        let sweep = study.figure("fig7-wred").expect("the study has the figure");
        for (number, x) in sweep.cases.iter().map(|case| case.x.as_str()).enumerate() {
            assert_eq!(ecn(&rows), [2.0, 3.0, 3.0], "{x} is missing");
            // The fourth is the best: less is better than none, and a ratio below 1 gains nothing.
            let times = if number == 3 { 1.5 } else { 2.0 + number as f64 };
            rows.extend(applications("fig7-wred", "ECN", x, 0.8, times));
        }
        assert_eq!(ecn(&rows), [1.25, 1.5, 1.5]);
        let best = study.computed(&rows).into_iter().find(|row| row.metric == "wred_min");
        assert_eq!(best.map(|row| row.measured), Some(40.0));
    }
}
