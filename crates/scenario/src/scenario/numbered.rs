//! Runs as points: the product of the axes, seeds, ids and digests.

use std::sync::Arc;

use super::{Point, ScenarioBuilder};
use crate::model::Model;
use crate::node::{self, ValueNode};
use crate::overlay::{Setting, SweepAxis};
use crate::{digest, show};

/// One run before it has its seed.
pub(super) struct Merged {
    pub(super) variant: String,
    pub(super) sweep: Vec<Setting>,
    pub(super) tree: Arc<ValueNode>,
    pub(super) model: Model,
}

impl Merged {
    /// Returns the digest of the run's input, before a replicate has its seed.
    pub(super) fn digest(&self) -> u64 {
        digest::digest(&self.model, &show::digested(&self.model))
    }
}

impl ScenarioBuilder {
    /// Seeds, ids and digests.
    pub(super) fn number(&self, merged: Vec<Merged>, replicates: u32) -> Vec<Point> {
        let sources = Arc::new(self.sources.clone());
        let mut points: Vec<Point> = Vec::new();
        let mut ids = std::collections::BTreeSet::new();
        for Merged { variant, sweep, tree, model } in merged {
            let sweep: Vec<(String, String)> =
                sweep.iter().map(|setting| (node::dotted(&setting.path), setting.node.text())).collect();
            for replicate in 0..replicates {
                let mut model = model.clone();
                model.run.seed = replicate_seed(model.run.seed, replicate);
                let wanted = id(&variant, &sweep, replicate);
                let mut id = wanted.clone();
                let mut again = 2;
                while !ids.insert(id.clone()) {
                    id = format!("{wanted}~{again}");
                    again += 1;
                }
                points.push(Point {
                    variant: variant.clone(),
                    sweep: sweep.clone(),
                    replicate,
                    seed: model.run.seed,
                    id,
                    digest: digest::digest(&model, &show::digested(&model)),
                    model,
                    tree: tree.clone(),
                    sources: sources.clone(),
                });
            }
        }
        points
    }
}

/// The Cartesian product of the axes; the last one turns fastest.
pub(super) fn combinations_of(axes: &[SweepAxis]) -> Vec<Vec<Setting>> {
    axes.iter().fold(vec![Vec::new()], |so_far, axis| {
        so_far
            .iter()
            .flat_map(|settings| {
                axis.values.iter().map(move |node| {
                    settings.iter().cloned().chain([Setting::of_sweep(axis, node)]).collect()
                })
            })
            .collect()
    })
}

/// The seed of a replicate: the seed itself for replicate 0, else one step of SplitMix64 from it, cut
/// to the 53 bits that every JSON reader keeps.
pub fn replicate_seed(seed: u64, replicate: u32) -> u64 {
    if replicate == 0 {
        return seed;
    }
    let mut z = seed.wrapping_add(u64::from(replicate).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z ^ (z >> 31)) >> 11
}

/// `HULL_background.load-0.2_r1`: letters, digits, dot, dash and underscore only.
fn id(variant: &str, sweep: &[(String, String)], replicate: u32) -> String {
    let safe = |text: &str| -> String {
        let keep = |c: char| if c.is_ascii_alphanumeric() || ".-".contains(c) { c } else { '-' };
        text.chars().map(keep).take(60).collect::<String>().trim_start_matches('.').to_owned()
    };
    let mut id = safe(variant);
    for (key, value) in sweep {
        let short = key.strip_prefix("workload.").unwrap_or(key);
        id.push_str(&format!("_{}-{}", safe(short), safe(value)));
    }
    if replicate > 0 {
        id.push_str(&format!("_r{replicate}"));
    }
    id
}
