//! `plimsoll compare`: runs side by side, each variant against itself in the first run.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use plimsoll_results::summary::Options;
use plimsoll_results::{PointOutcome, RunDir, Summary};
use plimsoll_stdio::note;

use crate::output::{self, Done, Format};

/// Compare run directories: each variant of the first with the same variant of the others.
///
/// Every paired difference comes with its 95 % interval; where that covers zero, no difference was seen.
#[derive(clap::Args)]
pub struct Args {
    /// The run directory that the others are compared with.
    #[arg(value_name = "RUN")]
    first: PathBuf,
    /// Run directories to compare with it.
    #[arg(required = true, value_name = "RUN")]
    others: Vec<PathBuf>,
    /// In which form to print.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

pub fn compare(args: &Args) -> Done {
    let paths: Vec<&Path> = std::iter::once(&args.first).chain(&args.others).map(PathBuf::as_path).collect();
    let runs: Vec<RunDir> = paths.iter().map(|path| RunDir::open(path)).collect::<Result<_, _>>()?;
    let names = names(&paths);
    let mut points = Vec::new();
    for (run, name) in runs.iter().zip(&names) {
        let missing = run.missing().len();
        if missing > 0 {
            note!("warning: {name} lacks {missing} of {} points", run.manifest().points.len());
        }
        if run.manifest().seed != runs[0].manifest().seed {
            note!(
                "warning: {name} has seed {}, not {}: its messages are not those of {}, so less cancels out \
                 and intervals are wider. Repeat one with the other's `--seed`",
                run.manifest().seed,
                runs[0].manifest().seed,
                names[0]
            );
        }
        points.push(run.read_points()?);
    }
    let summary = side_by_side(points, &names);
    output::print_compared(&summary, &runs.iter().collect::<Vec<_>>(), args.format)?;
    Ok(ExitCode::SUCCESS)
}

/// All runs in one summary, each variant by the name of its run, compared with its like in the first
/// run that has it.
fn side_by_side(runs: Vec<Vec<PointOutcome>>, names: &[String]) -> Summary {
    let mut variants: Vec<String> = Vec::new();
    for point in runs.iter().flatten() {
        if !variants.contains(&point.key.variant) {
            variants.push(point.key.variant.clone());
        }
    }
    let mut by_variant: Vec<Vec<PointOutcome>> = variants.iter().map(|_| Vec::new()).collect();
    for (points, name) in runs.into_iter().zip(names) {
        for mut point in points {
            let group = variants.iter().position(|variant| *variant == point.key.variant).unwrap_or(0);
            point.key.variant = format!("{} ({name})", point.key.variant);
            by_variant[group].push(point);
        }
    }
    let options = Options::default();
    let comparisons: Vec<_> =
        by_variant.iter().flat_map(|points| Summary::of(points, &options).comparisons).collect();
    let all: Vec<PointOutcome> = by_variant.into_iter().flatten().collect();
    Summary { comparisons, ..Summary::of(&all, &options) }
}

/// The folders' names, or the whole paths where two folders have the same.
fn names(paths: &[&Path]) -> Vec<String> {
    let short = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    paths
        .iter()
        .map(|path| {
            let alike = paths.iter().filter(|other| short(other) == short(path)).count();
            short(path).filter(|_| alike == 1).unwrap_or_else(|| path.display().to_string())
        })
        .collect()
}
