//! `manifest.json`: the identity of a run, and the way to repeat it.

use plimsoll_text::printable_json;
use serde::{Deserialize, Serialize};

use super::seal;
use super::table_form::Columns;
use crate::digest::Digest;
use crate::point::PointKey;

/// Version of the layout of a run directory.
pub const FORMAT: u32 = 3;

/// The name of the manifest in its run directory.
pub(super) const MANIFEST: &str = "manifest.json";

/// Description of a run before it starts.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RunPlan {
    /// The scenario's title.
    pub title: String,
    /// The scenario's description; may be empty.
    pub description: String,
    /// The carrier of the packets, such as [`SIMULATOR`]: points of one run have one carrier.
    pub carrier: String,
    /// The version of plimsoll that wrote the manifest.
    pub version: String,
    /// The commit from which that version of plimsoll was built, where known.
    pub commit: Option<String>,
    /// The command that repeats the run.
    pub command: String,
    /// The seed that all others derive from.
    pub seed: u64,
    /// The scenario with all that it depends on; written as `scenario.toml`.
    pub scenario: String,
    /// The part of the points that this process runs (`--shard 2/4` is `(2, 4)`).
    pub shard: Option<(u32, u32)>,
    /// Every point of the whole run, including points of other shards.
    pub points: Vec<PlannedPoint>,
    /// Facts that the reader must know before relying on a number.
    pub warnings: Vec<String>,
    /// The form in which the points' records are kept.
    pub columns: Columns,
}

/// The name of the simulator as a carrier ([`RunPlan::carrier`]).
pub const SIMULATOR: &str = "the simulator";

fn simulator() -> String {
    SIMULATOR.to_owned()
}

/// A point that is to be run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PlannedPoint {
    /// The key that names the point.
    pub key: PointKey,
    /// The seed of the point's run.
    pub seed: u64,
}

/// `manifest.json`. Written when a run starts and again when it ends; in between, the folders under `points/` show
/// which points are done, also after the process was killed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the run directory's layout.
    pub format: u32,
    /// The scenario's title.
    pub title: String,
    /// The scenario's description; may be empty.
    #[serde(default)]
    pub description: String,
    /// The carrier of the packets, such as [`SIMULATOR`].
    #[serde(default = "simulator")]
    pub carrier: String,
    /// The version of plimsoll that ran the points.
    pub plimsoll: String,
    /// The commit from which that version of plimsoll was built, where known.
    pub commit: Option<String>,
    /// The command that repeats the run.
    pub command: String,
    /// The seed that all others derive from.
    pub seed: u64,
    /// The digest of the file `scenario.toml` of the run directory.
    pub scenario_digest: Digest,
    /// The part of the points that was run here.
    pub shard: Option<(u32, u32)>,
    /// Facts that the reader must know before relying on a number.
    pub warnings: Vec<String>,
    /// Every point of the whole run, points of other shards included.
    pub points: Vec<ManifestPoint>,
    /// Checksum of the file ([`seal`]). None in format 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksum: Option<String>,
}

/// A point of the run in the manifest, finished or not.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ManifestPoint {
    /// The name of the point's folder under `points/`.
    pub id: String,
    /// The key that names the point.
    #[serde(flatten)]
    pub key: PointKey,
    /// The seed of the point's run.
    pub seed: u64,
    /// Digest of its outcome; `None` while it is not done.
    pub digest: Option<Digest>,
}

impl Manifest {
    pub(super) fn of(plan: &RunPlan) -> Manifest {
        Manifest {
            format: FORMAT,
            title: plan.title.clone(),
            description: plan.description.clone(),
            carrier: plan.carrier.clone(),
            plimsoll: plan.version.clone(),
            commit: plan.commit.clone(),
            command: plan.command.clone(),
            seed: plan.seed,
            scenario_digest: Digest::of_text(&plan.scenario),
            shard: plan.shard,
            warnings: plan.warnings.clone(),
            points: each_once(plan.points.iter().map(|point| ManifestPoint {
                id: point_id(&point.key),
                key: point.key.clone(),
                seed: point.seed,
                digest: None,
            })),
            checksum: seal::open(),
        }
    }

    /// Writes the manifest as its file holds it.
    pub(super) fn text(&self) -> String {
        let open = Manifest { format: FORMAT, checksum: seal::open(), ..self.clone() };
        let mut json = serde_json::to_string_pretty(&open).expect("a manifest has text keys only");
        json.push('\n');
        seal::sealed(&printable_json(&json))
    }

    /// Parses the file.
    ///
    /// # Errors
    /// If it is not as it was written; the error is a text.
    pub(super) fn read(text: &str) -> Result<Manifest, String> {
        let mut manifest: Manifest = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if manifest.checksum.is_some() || manifest.format >= FORMAT {
            seal::check(text)?;
        }
        manifest.points = each_once(manifest.points);
        Ok(manifest)
    }

    /// Takes over the warnings about the builds of existing points, and adds one for the points of `before` if they are
    /// from another commit.
    pub(super) fn go_on_with(&mut self, before: &Manifest) -> Option<String> {
        let said = before.warnings.iter().filter(|warning| warning.contains(OTHER_BUILD));
        self.warnings.extend(said.cloned());
        if self.commit == before.commit {
            return None;
        }
        let name = |commit: &Option<String>| commit.clone().unwrap_or_else(|| "an unknown commit".to_owned());
        let warning = format!(
            "{OTHER_BUILD} {}, and others by one of {}; run all again with `--force` if the \
             simulator differs between them",
            name(&before.commit),
            name(&self.commit)
        );
        self.warnings.push(warning.clone());
        Some(warning)
    }

    /// Returns the reason why results of the two must not be compared, in words; `None` if there is none.
    pub(super) fn conflict_with(&self, other: &Manifest) -> Option<String> {
        if self.scenario_digest != other.scenario_digest {
            Some("its scenario is another".to_owned())
        } else if self.carrier != other.carrier {
            Some(format!("its packets were carried by {}, not by {}", self.carrier, other.carrier))
        } else if self.seed != other.seed {
            Some(format!("its seed is {}, not {}", self.seed, other.seed))
        } else if self.plimsoll != other.plimsoll {
            Some(format!("it was made by plimsoll {}, this is {}", self.plimsoll, other.plimsoll))
        } else {
            None
        }
    }
}

/// Drops the records of a point that was listed already: a run is one sample, however often a plan names it.
fn each_once(points: impl IntoIterator<Item = ManifestPoint>) -> Vec<ManifestPoint> {
    let mut known = std::collections::BTreeSet::new();
    points.into_iter().filter(|point| known.insert((point.key.clone(), point.seed))).collect()
}

/// Beginning of the warning about points of another build.
const OTHER_BUILD: &str = "some points were run by a build of";

/// The name of a point's folder: readable, and unique by a digest of the whole key.
pub fn point_id(key: &PointKey) -> String {
    let mut words = vec![slug(&key.variant)];
    words.extend(key.sweep.iter().map(|(_, value)| slug(value)));
    words.push(format!("r{}", key.replicate));
    let mut exact = format!("{}\n{}", key.variant, key.replicate);
    for (swept, value) in &key.sweep {
        exact.push_str(&format!("\n{swept}\n{value}"));
    }
    let digest = Digest::of_text(&exact).to_string();
    let readable: String = words.join("-").chars().take(80).collect();
    format!("{readable}-{}", &digest[..8])
}

fn slug(text: &str) -> String {
    let keep = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '_' { c } else { '_' };
    let slug: String = text.chars().map(keep).collect();
    // A name must not start with a dot: such folders are taken for unfinished ones.
    slug.trim_start_matches('.').to_owned()
}
