//! [`Scenario`]: a file, the layers over it, and the runs that result.

mod builder;
mod numbered;
mod shared;
mod twice;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Report, ScenarioError, ScenarioWarning};
use crate::files;
use crate::model::Model;
use crate::node::ValueNode;
use crate::registry::Registry;
use crate::source::ScenarioTexts;
use crate::{digest, show};

use builder::ScenarioBuilder;
pub use numbered::replicate_seed;

/// The settings that the command line lays over a file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Overrides {
    /// `key=value`, in order, after those of the file's own `set`; the value is TOML, and any other value
    /// is a text.
    pub set: Vec<String>,
    /// The seed that replaces `run.seed` (`--seed`).
    pub seed: Option<u64>,
    /// Runs of each point with different seeds; 0 leaves it to the file's `replicates`, or 1.
    pub replicates: u32,
    /// Texts that are read in place of files on the disk, by the names that the scenario has for them. Each has to be
    /// read, and the scenario's own table `files` may not have that name.
    pub files: BTreeMap<String, String>,
    /// The names of the variants that are checked and run; all if empty. The others have their value of a key that is
    /// set here, which need not be valid in them.
    pub variants: Vec<String>,
}

impl Overrides {
    /// Returns whether the variant of this name is checked and run.
    fn has(&self, variant: &str) -> bool {
        self.variants.is_empty() || self.variants.iter().any(|name| name == variant)
    }
}

/// A checked scenario: all its runs are possible.
#[derive(Clone, Debug)]
pub struct Scenario {
    name: String,
    text: String,
    base_dir: PathBuf,
    overrides: Overrides,
    registry: Registry,
    self_contained: String,
    points: Vec<Point>,
    objectives: Vec<(String, String)>,
    warnings: Vec<ScenarioWarning>,
}

/// One run: a variant at one sweep point with one seed.
#[derive(Clone, Debug)]
pub struct Point {
    /// The variant's name; `base` where the file has none.
    pub variant: String,
    /// The swept keys and their values as text, in file order.
    pub sweep: Vec<(String, String)>,
    /// Which replicate; 0 runs with the seed itself.
    pub replicate: u32,
    /// The seed of this run, the same as `model.run.seed`.
    pub seed: u64,
    /// The checked model that the run executes.
    pub model: Model,
    /// Unique within the scenario, stable, and fit for a file name.
    pub id: String,
    /// Digest of the merged file in its canonical form and of the files that it reads (graphs, distributions, flow
    /// lists): the same digest means the same run.
    pub digest: u64,
    tree: Arc<ValueNode>,
    sources: Arc<ScenarioTexts>,
}

impl Point {
    /// The merged file with a comment after each value saying where it comes from.
    pub fn show(&self) -> String {
        show::render(&self.model, Some((&self.tree, &self.sources)))
    }

    /// The merged file without comments; it parses back to the same model.
    pub fn canonical(&self) -> String {
        show::render(&self.model, None)
    }

    /// The settings of the file, one key a line, in canonical form: the seed, and no defaults.
    pub fn settings(&self) -> String {
        show::settings(&self.model, &self.tree)
    }

    /// A digest of the settings and the inputs of the file, and not of defaults: unlike [`Point::digest`], it
    /// stays when the format gains a key. The same digest means the same run for as long as no default changes.
    pub fn settings_digest(&self) -> u64 {
        digest::digest(&self.model, &self.settings())
    }

    /// The variant and the swept values in words: `HULL, workload.background.load = 0.2`.
    pub fn label(&self) -> String {
        let sweep = self.sweep.iter().map(|(key, value)| format!(", {key} = {value}"));
        std::iter::once(self.variant.clone()).chain(sweep).collect()
    }
}

impl Scenario {
    /// Reads and checks a file.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load(path: impl AsRef<Path>) -> Result<Scenario, Vec<ScenarioError>> {
        Scenario::load_with(path, &Overrides::default())
    }

    /// Reads and checks a file with overrides.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn load_with(path: impl AsRef<Path>, overrides: &Overrides) -> Result<Scenario, Vec<ScenarioError>> {
        Scenario::load_from(&Registry::default(), path, overrides)
    }

    /// Reads and checks a file that may name the mechanisms of `registry`.
    ///
    /// # Errors
    /// Returns everything that is wrong with the file.
    pub fn load_from(
        registry: &Registry,
        path: impl AsRef<Path>,
        overrides: &Overrides,
    ) -> Result<Scenario, Vec<ScenarioError>> {
        let path = path.as_ref();
        let name = path.display().to_string();
        let text = files::read_scenario(path).map_err(|error| {
            let message = format!("cannot read {name}: {error}");
            let report = Report::of_file(name.clone(), message);
            vec![ScenarioError(match error.kind() {
                ErrorKind::NotFound => {
                    report.help("`plimsoll scenario new NAME` writes a scenario to start from")
                }
                _ => report,
            })]
        })?;
        let base_dir = path.parent().unwrap_or_else(|| Path::new("."));
        Scenario::parse_from(registry, &name, &text, base_dir, overrides)
    }

    /// Checks a text. `name` is what errors call it; paths in it are relative to `base_dir`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(name: &str, text: &str, base_dir: &Path) -> Result<Scenario, Vec<ScenarioError>> {
        Scenario::parse_with(name, text, base_dir, &Overrides::default())
    }

    /// Checks a text with overrides.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse_with(
        name: &str,
        text: &str,
        base_dir: &Path,
        overrides: &Overrides,
    ) -> Result<Scenario, Vec<ScenarioError>> {
        Scenario::parse_from(&Registry::default(), name, text, base_dir, overrides)
    }

    /// Checks a text that may name the mechanisms of `registry`.
    ///
    /// # Errors
    /// Returns everything that is wrong with the text.
    pub fn parse_from(
        registry: &Registry,
        name: &str,
        text: &str,
        base_dir: &Path,
        overrides: &Overrides,
    ) -> Result<Scenario, Vec<ScenarioError>> {
        let mut builder = ScenarioBuilder::new(base_dir, registry);
        let points = builder.points(name, text, overrides);
        if !builder.errors.is_empty() {
            return Err(builder.errors.reports().map(ScenarioError).collect());
        }
        Ok(Scenario {
            name: name.to_owned(),
            text: text.to_owned(),
            base_dir: base_dir.to_owned(),
            overrides: overrides.clone(),
            registry: registry.clone(),
            self_contained: files::self_contained(
                text,
                &builder.flag_places,
                &builder.flags,
                &builder.files.into_read(),
            ),
            points,
            objectives: builder.objectives,
            warnings: builder.warnings.reports().map(ScenarioWarning).collect(),
        })
    }

    /// The same file with other overrides, as a search for the load line needs.
    ///
    /// # Errors
    /// Everything that is wrong with the result.
    pub fn with_overrides(&self, overrides: &Overrides) -> Result<Scenario, Vec<ScenarioError>> {
        Scenario::parse_from(&self.registry, &self.name, &self.text, &self.base_dir, overrides)
    }

    /// Returns the name of the file, as messages print it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text of the file as it was read, without its included files.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The file with all that it depends on: the overrides as its keys `set` and `replicates`, and the
    /// files that it includes and reads in its table `files`. It gives the same points anywhere. A
    /// scenario that depends on nothing is returned as it was read.
    pub fn self_contained(&self) -> &str {
        &self.self_contained
    }

    /// Returns the overrides with which the file was read.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Returns the title of the experiment (key `title`).
    pub fn title(&self) -> &str {
        self.points.first().map_or("", |point| &point.model.title)
    }

    /// The runs: variants in file order, in each the sweep points, in each the replicates.
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The objectives of its table `slo`: a name, and a text such as `p99(query) < 1ms` that is not read
    /// here.
    pub fn objectives(&self) -> &[(String, String)] {
        &self.objectives
    }

    /// The warnings: values that are allowed and probably not intended.
    pub fn warnings(&self) -> &[ScenarioWarning] {
        &self.warnings
    }
}
