//! Choices that several kinds of workload have in common.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule by which the next server is chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerChoice {
    /// Request k is sent to server k mod n.
    #[default]
    RoundRobin,
    /// Each request draws its server.
    Random,
}

/// The distribution of the gaps between arrivals.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Gaps are drawn from the exponential distribution.
    #[default]
    Poisson,
    /// All gaps have the same length.
    Constant,
}
