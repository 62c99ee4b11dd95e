//! [`ImportWriting`]: the input of a folder's files, beside the traffic.

use super::network::ImportedNetwork;
use crate::capture::ComparedClass;

/// The form in which a scenario has the traffic: every message, or distributions of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TrafficForm {
    /// Every message that was found, at its time.
    #[default]
    Replay,
    /// Distributions and arrival processes that are fitted to the messages.
    Model,
}

/// What an import writes, beside the traffic.
#[derive(Clone, Debug)]
pub struct ImportWriting<'a> {
    /// The names of the user's files.
    pub sources: &'a str,
    /// The form in which the scenario has the traffic.
    pub form: TrafficForm,
    /// The network of the scenario, with the hosts that were found, by number.
    pub network: ImportedNetwork,
    /// The measurements that a run can be compared with, by class.
    pub compared: &'a [ComparedClass],
    /// The command that makes the folder again.
    pub command: &'a str,
    /// The version of plimsoll.
    pub version: &'a str,
    /// The commit that plimsoll was built from, where known.
    pub commit: Option<&'a str>,
}
