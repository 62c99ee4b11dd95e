//! Reads `study.toml`, `published.csv` and the sections of the page into a [`Study`].
//!
//! The structs below are the file's keys. Errors name the file, the key and the allowed values.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_experiment::Measure;
use plimsoll_servers::Parameters;
use plimsoll_units::Span;
use serde::Deserialize;

use crate::claim::Claims;
use crate::derived::DerivedFigure;
use crate::exact::ExactRun;
use crate::metric::FigureMetric;
use crate::ns2::{PairArrivals, RoundRobinTransfers};
use crate::published::Published;
use crate::registry::{self, EXACT, RUN_ROWS, SUMMARY};
use crate::row_filter::RowFilter;
use crate::sources::{self, Source};
use crate::study::{
    Base, Case, Explanation, PageTable, Point, Runs, Study, StudyFigure, StudySources, Tolerance,
};

/// A study's file that cannot be used: its path, and the error with its place.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {problem}")]
pub struct StudyError {
    file: String,
    problem: String,
}

/// The files of a folder, by name.
pub(crate) type StudyFiles = &'static [(&'static str, &'static str)];

/// The keys of `study.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct StudyFile {
    /// The words that ask for it on the command line, after `plimsoll reproduce`.
    command: String,
    /// Its subject, for the command's help; none where another study of the same word has it.
    about: Option<String>,
    /// The base that is held to the published values, and the one printed beside it.
    bases: [Base; 2],
    /// The publications behind it, by their keys in `studies/sources.toml`.
    source: SourceFile,
    /// The figures whose schemes are not compared.
    #[serde(default)]
    unordered: Vec<String>,
    /// The number of seeds beside the first with which an experiment that is off is run.
    #[serde(default)]
    other_seeds: u64,
    /// Whether `published.csv` has values of an original paper too.
    #[serde(default)]
    has_original: bool,
    /// Rows that are computed by the functions of these names in `registry.rs`.
    #[serde(default)]
    computed: Computed,
    /// The servers, real or modelled, that the figures' tasks name.
    #[serde(default)]
    servers: toml::Table,
    /// The metrics, by the names under which figures ask for them.
    #[serde(default)]
    metrics: BTreeMap<String, MetricFile>,
    /// The figures, in the page's order.
    figure: Vec<FigureFile>,
    /// The short runs whose numbers theory settles.
    #[serde(default)]
    exact: Vec<ExactRun>,
    /// The rows that are computed from others, in their order.
    #[serde(default)]
    claims: Vec<Claims>,
    /// The tables of rows that belong to no figure.
    #[serde(default)]
    table: Vec<PageTable>,
    /// The known deviations.
    #[serde(default)]
    explanation: Vec<Explanation>,
    /// The rows whose published value was given to a model or is a formula's.
    #[serde(default)]
    inputs: Vec<RowFilter>,
    /// The rows beside a published value that another figure reproduces: it counts there.
    #[serde(default)]
    repeats: Vec<RowFilter>,
    /// The rows of mechanisms that are not built: each has a published value beside a bound, and is open in any case.
    #[serde(default)]
    not_built: Vec<RowFilter>,
    /// The rows whose bound or tolerance is ours: the paper says it in words only.
    #[serde(default)]
    bounds_of_ours: Vec<RowFilter>,
    /// The deviations that are not understood.
    #[serde(default)]
    open: Vec<Explanation>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SourceFile {
    /// The publication whose evaluation is reproduced.
    of: String,
    /// The part of it that is reproduced, if not all.
    part: Option<String>,
    /// The papers that describe the evaluated system.
    #[serde(default)]
    papers: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Computed {
    /// Rows of a finished run, beyond its figure's metrics.
    run_rows: Option<String>,
    /// Rows whose value theory or raw data settle.
    exact: Option<String>,
    /// Rows made of all others.
    summary: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct MetricFile {
    /// The name in rows, where it is not the key.
    name: Option<String>,
    unit: String,
    /// The measure: `p99(small)`.
    of: Measure,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct FigureFile {
    id: String,
    title: String,
    /// The scenario that a point runs, a file of `scenarios/STUDY`.
    scenario: Option<String>,
    /// The task that a point runs instead, by its name in `registry.rs`.
    task: Option<String>,
    /// The keys for the task; `plimsoll-servers` says how a scheme or a point has its own.
    #[serde(default)]
    with: toml::Table,
    /// The figure of another study that a point of the simulated base runs instead.
    simulated: Option<toml::Table>,
    /// How the model of the machine runs the points that are measured.
    model: Option<toml::Table>,
    /// The points that a scheme does not have.
    #[serde(default)]
    without: BTreeMap<String, Vec<String>>,
    bases: Vec<Base>,
    /// The label of the x axis.
    #[serde(default)]
    axis: String,
    /// Whether the y axis is logarithmic in any case.
    #[serde(default)]
    log: bool,
    /// The metrics that are drawn.
    #[serde(default)]
    drawn: Vec<String>,
    /// The points of a quick look; if empty, the first, a middle and the last.
    #[serde(default)]
    quick: Vec<String>,
    /// Whether the standard base is always as short as in a quick look.
    #[serde(default)]
    standard_is_quick: bool,
    /// The schemes: variants of the scenario.
    series: Vec<String>,
    /// The metrics, by their keys.
    #[serde(default)]
    metrics: Vec<String>,
    /// The factors within which rows count as reproduced; the first that fits holds.
    #[serde(default)]
    tolerance: Vec<ToleranceFile>,
    /// The flows of ns-2's scripts, at the load that x names.
    arrivals: Option<ArrivalsFile>,
    /// The transfers of HULL's scripts, at the Mb/s that x names, in place of the workload `background`.
    transfers: Option<TransfersFile>,
    /// Points that differ by their x alone.
    #[serde(default)]
    xs: Vec<String>,
    /// Points that have keys of their own, after the others.
    #[serde(default)]
    point: Vec<PointFile>,
    /// The settings of every point that has none of its own, as `--set` takes them; `{x}` is the point's x.
    set: Option<Vec<String>>,
    /// The further settings of a quick look.
    quick_set: Option<Vec<String>>,
    /// The time that is cut from the beginning.
    warmup: Option<Span>,
    /// How long the workloads run in full, and in a quick look.
    duration: Option<(Span, Span)>,
    /// How many flows there are in full, and in a quick look.
    flows: Option<(u64, u64)>,
    /// Metrics of the same runs whose rows have another x.
    #[serde(default)]
    also: Vec<AlsoFile>,
    /// The figure in whose runs `also` is measured, where this one runs nothing.
    of: Option<String>,
    /// What the figure shows of another figure's runs: `shows.distribution`, `shows.timeline`, `shows.queue-in-time` or
    /// `shows.ranks`.
    shows: Option<DerivedFigure>,
}

/// A point, whose keys replace the figure's.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PointFile {
    x: String,
    set: Option<Vec<String>>,
    quick_set: Option<Vec<String>>,
    warmup: Option<Span>,
    duration: Option<(Span, Span)>,
    flows: Option<(u64, u64)>,
    /// What is added to the seed of the page's runs: points that differ in it alone are draws of one experiment.
    #[serde(default)]
    seed: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ToleranceFile {
    series: Option<Vec<String>>,
    x: Option<Vec<String>>,
    metric: Option<Vec<String>>,
    /// The largest published value that it is for.
    up_to: Option<f64>,
    /// The factor either way; without it, the rows are held to nothing.
    factor: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ArrivalsFile {
    hosts: u64,
    mean_packets: f64,
    /// A bundled distribution, a file of `scenarios/cdf`.
    sizes: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct TransfersFile {
    servers: u64,
    /// The mean seconds between queries, which the scripts draw first.
    query_gap: f64,
    /// How long requests are created, in seconds.
    seconds: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct AlsoFile {
    x: String,
    metrics: Vec<String>,
}

/// Reads the study `id` from the files of its folder, with its scenarios and the bundled distributions.
///
/// # Errors
/// At the first file, key or name that is wrong.
pub(crate) fn load(
    id: &str,
    files: StudyFiles,
    scenarios: StudyFiles,
    cdfs: StudyFiles,
) -> Result<Study, StudyError> {
    let find = |name: &str| files.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
    let wrong = |name: &str, problem: String| StudyError { file: format!("studies/{id}/{name}"), problem };
    let text = find(STUDY).ok_or_else(|| wrong(STUDY, "the file is missing".to_owned()))?;
    let file: StudyFile = toml::from_str(text).map_err(|error| wrong(STUDY, error.to_string()))?;
    let published = Published::parse(find(PUBLISHED).unwrap_or(NOTHING_PUBLISHED));
    let published = published.map_err(|problem| wrong(PUBLISHED, problem))?;
    let section = |name: &str, before: &str, after: &str| {
        find(name).map_or_else(String::new, |text| format!("{before}{}{after}", text.trim_matches('\n')))
    };
    let built = build(file, scenarios, cdfs).map_err(|problem| wrong(STUDY, problem))?;
    Ok(Study {
        id: id.to_owned(),
        published,
        scenarios,
        head: section("head.md", "\n", "\n\n"),
        reading: section("reading.md", "\n", "\n"),
        closing: section("closing.md", "\n", "\n"),
        orderings: section("orderings.md", "\n", "\n\n"),
        ..built
    })
}

const STUDY: &str = "study.toml";
const PUBLISHED: &str = "published.csv";
const NOTHING_PUBLISHED: &str = "figure,series,x,metric,kind,value,text\n";

fn build(file: StudyFile, scenarios: StudyFiles, cdfs: StudyFiles) -> Result<Study, String> {
    let StudyFile { computed, metrics, figure, table, explanation, open, source, .. } = file;
    let metrics = metrics.into_iter().map(|(key, file)| {
        let of = file.of.in_unit(&file.unit).map_err(|problem| format!("metric `{key}`: {problem}"))?;
        let name = file.name.unwrap_or_else(|| key.clone());
        Ok((key, FigureMetric { name, unit: file.unit, of }))
    });
    let metrics = metrics.collect::<Result<BTreeMap<String, FigureMetric>, String>>()?;
    let known = KnownNames { metrics: &metrics, servers: &file.servers, scenarios, cdfs, bases: file.bases };
    let figures = figure
        .into_iter()
        .map(|figure| {
            let id = figure.id.clone();
            known.figure(figure).map_err(|problem| format!("figure `{id}`: {problem}"))
        })
        .collect::<Result<Vec<StudyFigure>, String>>()?;
    for (figure, of) in figures.iter().filter_map(|figure| figure.of.as_ref().map(|of| (figure, of))) {
        one_of("figure", of, figures.iter().map(|figure| figure.id.as_str()))
            .map_err(|problem| format!("figure `{}`: {problem}", figure.id))?;
    }
    let bases = file.bases.map(Base::name);
    file.claims
        .iter()
        .try_for_each(|claims| claims.check(bases))
        .map_err(|problem| format!("claims: {problem}"))?;
    Ok(Study {
        id: String::new(),
        command: file.command,
        about: file.about,
        bases: file.bases,
        sources: StudySources {
            of: named_source(&source.of)?,
            part: source.part,
            papers: source.papers.iter().map(|key| named_source(key)).collect::<Result<_, _>>()?,
        },
        scenarios: &[],
        figures,
        published: Published::default(),
        run_rows: computed.run_rows.map(|name| registry::find("run-rows", &name, RUN_ROWS)).transpose()?,
        exact: computed.exact.map(|name| registry::find("exact", &name, EXACT)).transpose()?,
        summary: computed.summary.map(|name| registry::find("summary", &name, SUMMARY)).transpose()?,
        exact_runs: file
            .exact
            .into_iter()
            .map(|run| {
                one_of("scenario", &run.scenario, scenarios.iter().map(|(name, _)| *name))?;
                run.checked()
            })
            .collect::<Result<_, String>>()?,
        claims: file.claims,
        unordered: file.unordered,
        other_seeds: file.other_seeds,
        tables: table,
        has_original: file.has_original,
        inputs: file.inputs,
        repeats: file.repeats,
        not_built: file.not_built,
        bounds_of_ours: file.bounds_of_ours,
        explanations: explanation,
        open,
        head: String::new(),
        reading: String::new(),
        closing: String::new(),
        orderings: String::new(),
    })
}

/// Finds a source by its key.
fn named_source(key: &str) -> Result<&'static Source, String> {
    one_of("source", key, sources::keys())?;
    Ok(sources::find(key).expect("it is one of them"))
}

/// The names that a figure may use.
struct KnownNames<'a> {
    metrics: &'a BTreeMap<String, FigureMetric>,
    servers: &'a toml::Table,
    scenarios: StudyFiles,
    cdfs: StudyFiles,
    bases: [Base; 2],
}

impl KnownNames<'_> {
    fn figure(&self, mut file: FigureFile) -> Result<StudyFigure, String> {
        let parameters = |with| Parameters { with, servers: self.servers.clone() };
        let model = file.model.take().map(parameters);
        let simulated = file.simulated.take().map(parameters);
        let parameters = parameters(std::mem::take(&mut file.with));
        let runs = match (file.scenario.take(), file.task.take()) {
            (Some(_), Some(_)) => return Err("it has `scenario` and `task`; allowed: one of them".to_owned()),
            (Some(name), None) => {
                one_of("scenario", &name, self.scenarios.iter().map(|(name, _)| *name))?;
                Runs::Scenario(name)
            }
            (None, Some(name)) => {
                let make = registry::task(&name, parameters.clone(), simulated)?;
                let without = std::mem::take(&mut file.without);
                let has = move |point: &Point<'_>| {
                    !without.get(point.series).is_some_and(|xs| xs.iter().any(|x| x == point.x))
                };
                Runs::Task(Arc::new(move |point| if has(point) { make(point) } else { None }))
            }
            (None, None) => Runs::Nothing,
        };
        for base in &file.bases {
            one_of("base", base.name(), self.bases.map(Base::name).into_iter())?;
        }
        let points = std::mem::take(&mut file.point);
        let xs = std::mem::take(&mut file.xs).into_iter().map(|x| PointFile { x, ..PointFile::default() });
        let cases: Vec<Case> =
            xs.chain(points).map(|point| self.case(point, &file)).collect::<Result<_, _>>()?;
        for x in &file.quick {
            one_of("quick point", x, cases.iter().map(|case| case.x.as_str()))?;
        }
        if let (Runs::Nothing, false) = (&runs, cases.is_empty()) {
            return Err("it has points and nothing to run; allowed: `scenario` or `task`".to_owned());
        }
        if let (Runs::Scenario(_) | Runs::Task(_), Some(of)) = (&runs, &file.of) {
            return Err(format!("it runs something and has `of = \"{of}\"`; allowed: one of them"));
        }
        let also = file.also.into_iter().map(|AlsoFile { x, metrics }| Ok((x, self.metrics(&metrics)?)));
        let tolerance = |ToleranceFile { series, x, metric, up_to, factor }| {
            let rows = RowFilter { series, x, metric, ..RowFilter::default() };
            Tolerance { rows, up_to, factor }
        };
        Ok(StudyFigure {
            id: file.id,
            title: file.title,
            runs,
            parameters,
            model,
            bases: file.bases,
            axis: file.axis,
            log: file.log,
            cases,
            quick: file.quick,
            standard_is_quick: file.standard_is_quick,
            series: file.series,
            metrics: self.metrics(&file.metrics)?,
            also: also.collect::<Result<_, String>>()?,
            of: file.of,
            shows: file.shows,
            drawn: file.drawn,
            tolerance: file.tolerance.into_iter().map(tolerance).collect(),
        })
    }

    fn metrics(&self, keys: &[String]) -> Result<Vec<FigureMetric>, String> {
        let metric = |key: &String| {
            one_of("metric", key, self.metrics.keys().map(String::as_str))?;
            Ok(self.metrics[key].clone())
        };
        keys.iter().map(metric).collect()
    }

    fn case(&self, own: PointFile, all: &FigureFile) -> Result<Case, String> {
        let x = own.x;
        let arrivals = all.arrivals.as_ref().map(|arrivals| self.arrivals(arrivals, &x)).transpose()?;
        let transfers = all.transfers.as_ref().map(|of| transfers(of, &x)).transpose()?.flatten();
        let set = own.set.or_else(|| all.set.clone()).unwrap_or_default();
        Ok(Case {
            set: set.iter().map(|setting| setting.replace("{x}", &x)).collect(),
            quick_set: own.quick_set.or_else(|| all.quick_set.clone()).unwrap_or_default(),
            seed: own.seed,
            warmup: own.warmup.or(all.warmup).unwrap_or(Span::ZERO),
            duration: own.duration.or(all.duration),
            flows: own.flows.or(all.flows),
            arrivals,
            transfers,
            x,
        })
    }

    fn arrivals(&self, of: &ArrivalsFile, x: &str) -> Result<PairArrivals, String> {
        let load = number_of_load(x)?;
        let file = format!("{}.csv", of.sizes);
        one_of("file of sizes", &file, self.cdfs.iter().map(|(name, _)| *name))?;
        let (_, sizes) = self.cdfs.iter().find(|(name, _)| *name == file).expect("it is one of them");
        Ok(PairArrivals { hosts: of.hosts, load, mean_packets: of.mean_packets, sizes })
    }
}

/// Returns the transfers at the load `x`; at a load of nothing, there are none.
fn transfers(of: &TransfersFile, x: &str) -> Result<Option<RoundRobinTransfers>, String> {
    let TransfersFile { servers, query_gap, seconds } = *of;
    let mbps = number_of_load(x)?;
    Ok((mbps > 0.0).then_some(RoundRobinTransfers { servers, query_gap: Some(query_gap), mbps, seconds }))
}

fn number_of_load(x: &str) -> Result<f64, String> {
    x.parse().map_err(|_| format!("x `{x}` is no load; allowed: a number"))
}

/// Checks that a name is known.
fn one_of<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let known: Vec<&str> = known.collect();
    if known.contains(&name) {
        return Ok(());
    }
    Err(format!("there is no {what} `{name}`; allowed: {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDY_FILE: &str = r#"
command = "one"
bases = ["source", "standard"]
source = { of = "kapoor", part = "chapter 3", papers = ["chronos"] }
[metrics]
wait = { unit = "us", of = "p99(ping)" }
[[figure]]
id = "fig1"
title = "Waiting"
scenario = "one.toml"
bases = ["source"]
series = ["TCP"]
metrics = ["wait"]
tolerance = [{ series = ["TCP"], factor = 1.5 }]
duration = ["2s", "1s"]
set = ['topology.delay="{x}us"']
xs = ["5"]
[[figure.point]]
x = "far"
set = ['topology.delay="1ms"']
warmup = "1s"
"#;

    fn read(from: &str, to: &str) -> Result<Study, StudyError> {
        assert!(STUDY_FILE.contains(from), "{from}");
        let text: &'static str = STUDY_FILE.replacen(from, to, 1).leak();
        let files: StudyFiles = vec![("study.toml", text), ("head.md", "# One\n")].leak();
        load("one", files, &[("one.toml", "")], &[])
    }

    #[test]
    fn points_have_their_own_settings_or_those_of_all() {
        let study = read("TCP", "TCP").expect("it is a study");
        let [near, far] = &study.figures[0].cases[..] else { panic!("{study:?}") };
        assert_eq!((near.set[0].as_str(), near.warmup), ("topology.delay=\"5us\"", Span::ZERO));
        assert_eq!((far.set[0].as_str(), far.warmup), ("topology.delay=\"1ms\"", Span::from_secs(1)));
        assert_eq!(far.duration, Some((Span::from_secs(2), Span::from_secs(1))));
        assert_eq!((study.head.as_str(), study.closing.as_str()), ("\n# One\n\n", ""));
    }

    #[test]
    fn errors_name_the_file_the_key_and_what_is_allowed() {
        let cases = [
            ("\nxs =", "\nxss =", "unknown field `xss`"),
            ("[\"wait\"]", "[\"delay\"]", "figure `fig1`: there is no metric `delay`; allowed: wait"),
            ("one.toml", "two.toml", "figure `fig1`: there is no scenario `two.toml`; allowed: one.toml"),
            ("scenario = \"one.toml\"", "task = \"one\"", "figure `fig1`: there is no task `one`; allowed: "),
            (
                "bases = [\"source\"]",
                "bases = [\"kernel\"]",
                "there is no base `kernel`; allowed: source, standard",
            ),
            ("p99(ping)", "p99s(ping)", "allowed: p and a plain decimal number"),
            (
                "unit = \"us\"",
                "unit = \"Mb/s\"",
                "metric `wait`: `p99(ping)` is not in `Mb/s`; allowed: us, ms",
            ),
            (
                "[metrics]",
                "claims = [{ rows = [{ series = \"A\", x = \"1\", metric = \"m\", unit = \"\", is = \"1 +\" }] }]\n\
                 [metrics]",
                "claims: `1 +`: `` is wrong here; allowed: a number",
            ),
            ("series = [\"TCP\"], factor", "serie = [\"TCP\"], factor", "unknown field `serie`"),
            ("\"2s\"", "\"2\"", "line 15"),
            ("\"chronos\"", "\"chrono\"", "there is no source `chrono`; allowed: atlahs, bullettrains, "),
            (
                "series = [\"TCP\"]\n",
                "series = [\"TCP\"]\nof = \"fig2\"\n",
                "it runs something and has `of = \"fig2\"`; allowed: one of them",
            ),
            ("scenario = \"one.toml\"", "of = \"fig2\"", "it has points and nothing to run"),
            ("[metrics]", "computed.exact = \"two\"\n[metrics]", "there is no exact `two`; allowed: "),
        ];
        for (from, to, expected) in cases {
            let error = read(from, to).expect_err(to).to_string();
            assert!(error.starts_with("studies/one/study.toml: "), "{error}");
            assert!(error.contains(expected), "{to}: {error}");
        }
    }

    #[test]
    fn every_shipped_study_reads_and_publishes_of_figures_that_it_has() {
        for study in crate::studies::every() {
            let is_table = |id: &str| study.tables.iter().any(|table| table.figure == id);
            let unknown = study.published.figures().find(|id| study.figure(id).is_none() && !is_table(id));
            assert_eq!(unknown, None, "{}", study.id);
            for figure in &study.figures {
                let own = figure.metrics.iter().map(|metric| metric.name.as_str());
                let shown = figure.shows.iter().flat_map(DerivedFigure::metrics);
                let also = figure.also.iter().flat_map(|(_, metrics)| metrics);
                let also = also.map(|metric| metric.name.as_str());
                let names: Vec<&str> = own.chain(shown).chain(also).collect();
                let stray =
                    figure.drawn.iter().find(|drawn| !names.is_empty() && !names.contains(&drawn.as_str()));
                assert_eq!(stray, None, "{} {}", study.id, figure.id);
            }
        }
    }
}
