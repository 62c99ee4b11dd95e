//! Measured latencies on the command line: `[NAME=]FILE`, which names a workload.

use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use plimsoll_files::Origin;
use plimsoll_models::measured::{Hints, MeasuredLatencies, read};
use plimsoll_models::questions::{FILE_BYTES_MAX, UnitName};
use plimsoll_process::note;
use plimsoll_scenario::Point;
use plimsoll_text::printable_lines;
use plimsoll_text::spelling::did_you_mean;
use plimsoll_units::Span;

/// What the files of latencies do not say themselves.
#[derive(clap::Args)]
pub struct FileHints {
    /// Unit of the numbers in the measured files; by default ns for encoded histograms, ms for wrk2, s for Prometheus,
    /// and us.
    #[arg(long, value_enum, requires = "measured")]
    unit: Option<UnitName>,
    /// Part of a measured file: the tag of an interval log, the verb of memtier_benchmark, the direction of fio, or the
    /// name of a Prometheus histogram.
    #[arg(long, value_name = "TAG", requires = "measured")]
    tag: Option<String>,
    /// Column of a CSV file that has the latencies.
    #[arg(long, value_name = "NAME", requires = "measured")]
    column: Option<String>,
}

impl FileHints {
    /// Reads the file of an option and returns the workload that it measures. The name may be left out where there is
    /// one workload. No latency may be longer than `run`.
    pub fn read(
        &self,
        option: &str,
        text: &str,
        workloads: &[&str],
        run: Option<Span>,
    ) -> anyhow::Result<(String, MeasuredLatencies)> {
        let (workload, path) = split(option, text, workloads)?;
        let name = path.display();
        let bytes = plimsoll_files::read(&path, Origin::Argument, FILE_BYTES_MAX)
            .with_context(|| format!("{option}: cannot read {name}"))?;
        let hints = Hints {
            unit: self.unit.map(Into::into),
            column: self.column.as_deref(),
            tag: self.tag.as_deref(),
            run_us: run.map(Span::as_us_f64),
        };
        let latencies = read(&bytes, hints).map_err(|error| anyhow!("{option} {name}: {error}"))?;
        for reason in &latencies.suspect {
            note!("warning: {name} is marked SUSPECT: {}", printable_lines(reason));
        }
        Ok((workload, latencies))
    }
}

/// Returns the longest time from the beginning to the end of a run of these points; `None` where a run ends by itself.
pub fn longest_run<'a>(mut points: impl Iterator<Item = &'a Point>) -> Option<Span> {
    let of = |point: &Point| Some(point.model.run.duration? + point.model.run.drain);
    points.try_fold(Span::ZERO, |longest, point| Some(longest.max(of(point)?))).filter(|run| !run.is_zero())
}

/// Splits `[NAME=]FILE`. A prefix that names no workload is part of the file's name if that file exists.
fn split(option: &str, text: &str, workloads: &[&str]) -> anyhow::Result<(String, PathBuf)> {
    match text.split_once('=') {
        Some((name, path)) if workloads.contains(&name) => Ok((name.to_owned(), PathBuf::from(path))),
        Some((name, _)) if !PathBuf::from(text).exists() => {
            let help = did_you_mean(name, workloads.iter().copied())
                .map_or_else(String::new, |help| format!("; {help}"));
            bail!("{option} {text}: no workload `{name}`; allowed: {}{help}", workloads.join(", "))
        }
        _ => match workloads {
            [only] => Ok(((*only).to_owned(), PathBuf::from(text))),
            _ => {
                bail!("{option} {text}: name its workload, as NAME={text}; allowed: {}", workloads.join(", "))
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_its_workload_unless_there_is_one() {
        let of = |text: &str, workloads: &[&str]| {
            split("--measured", text, workloads).map_err(|error| error.to_string())
        };
        assert_eq!(of("get.hlog", &["get"]), Ok(("get".to_owned(), PathBuf::from("get.hlog"))));
        assert_eq!(of("get=a=b", &["get", "set"]), Ok(("get".to_owned(), PathBuf::from("a=b"))));
        assert!(
            of("get.hlog", &["get", "set"])
                .is_err_and(|said| said.contains("NAME=get.hlog; allowed: get, set"))
        );
        assert!(
            of("gte=x", &["get"])
                .is_err_and(|said| said.contains("no workload `gte`") && said.contains("get"))
        );
    }
}
