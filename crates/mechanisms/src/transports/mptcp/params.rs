//! [`MptcpParams`]: the `transport.mptcp` table of a scenario.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;

/// MPTCP (RFC 8684): connections of two or more subflows, each of which is as the other keys of `[transport]` say.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MptcpParams {
    /// Subflows of each connection: 1 to 8. Default 2.
    #[schemars(range(min = 1, max = 8))]
    pub subflows: u32,
    /// How the congestion windows of the subflows depend on each other: `lia` (RFC 6356, for `kind = "tcp"`) or
    /// `uncoupled`, where each subflow has the controller that `kind` names to itself. Default `lia`.
    pub coupling: Coupling,
    /// The subflow that sends the next segment, among the ones with room in their windows: `default` the one with the
    /// lowest RTT, `round-robin` each in turn, `active-path` only the one whose path is active: the circuit's while one
    /// is open, else the packet switch's (with `paths = "classes"`). Default `default`.
    pub scheduler: SubflowScheduler,
    /// How subflows get different paths: `hash` gives each a port number of its own, which may hash to another's path;
    /// `distinct` chooses the port numbers so that the paths share as few links between switches as can be; `classes`
    /// binds, in a hybrid network, subflow 0 to the packet switch and subflow 1 to the circuits. Default `hash`.
    pub paths: SubflowPaths,
    /// The workloads whose connections are MPTCP's; all others have plain TCP. Default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workloads: Option<Vec<String>>,
}

impl Default for MptcpParams {
    fn default() -> MptcpParams {
        MptcpParams {
            subflows: 2,
            coupling: Coupling::Lia,
            scheduler: SubflowScheduler::Default,
            paths: SubflowPaths::Hash,
            workloads: None,
        }
    }
}

impl MptcpParams {
    /// The greatest number of subflows of a connection.
    pub const SUBFLOWS_MAX: u32 = 8;

    /// Returns whether the connections of `workload` are MPTCP's.
    pub fn is_for(&self, workload: &str) -> bool {
        self.workloads.as_ref().is_none_or(|names| names.iter().any(|name| name == workload))
    }

    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        let subflows = self.subflows;
        let in_range = (1..=Self::SUBFLOWS_MAX).contains(&subflows);
        InvalidParam::unless(in_range, "mptcp.subflows", subflows, "1 to 8")?;
        let by_class = self.paths == SubflowPaths::Classes;
        InvalidParam::unless(
            !by_class || subflows == 2,
            "mptcp.subflows",
            subflows,
            "2 with `paths = \"classes\"`: one for the packet switch, one for the circuits",
        )?;
        InvalidParam::unless(
            by_class || self.scheduler != SubflowScheduler::ActivePath,
            "mptcp.scheduler",
            "active-path",
            "`default` or `round-robin`, unless `paths = \"classes\"`",
        )
    }
}

/// How the congestion windows of a connection's subflows depend on each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Coupling {
    /// Linked increases (RFC 6356): together no more aggressive than one TCP connection on the best path.
    Lia,
    /// Each subflow is as aggressive as a TCP connection.
    Uncoupled,
}

/// The rule by which a subflow is chosen for the next segment, among the ones with room in their windows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SubflowScheduler {
    /// The one with the lowest smoothed RTT; one that has not measured it yet counts as the lowest.
    Default,
    /// Each in turn.
    RoundRobin,
    /// Only the one whose path is active.
    ActivePath,
}

/// How the subflows of a connection get different paths.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "SubflowPaths")]
pub enum SubflowPaths {
    /// The hash of a port number that each has to itself.
    Hash,
    /// A port number that is chosen so that it hashes to a path of its own.
    Distinct,
    /// The packet switch and the circuits of a hybrid network.
    Classes,
}
