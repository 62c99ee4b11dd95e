//! The registry of workload kinds: one line a kind. The enum [`Workload`], the names, the schema and the dispatch to
//! [`Kind`] follow from it.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::kind::Kind;

/// Makes the enum of all kinds from `Parameters "name" in module` lines.
macro_rules! workloads {
    ($($kind:ident $name:tt in $module:ident;)*) => {
        $(pub use crate::$module::$kind;)*

        /// A source of traffic.
        // A variant needs no comment: the description of its parameters is the description of the kind.
        #[allow(missing_docs)]
        #[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
        #[serde(tag = "kind", deny_unknown_fields)]
        pub enum Workload {
            $(#[serde(rename = $name)] $kind($kind),)*
        }

        /// The shape that the scenario's own deserialiser reads, which tags kinds by the key `kind`.
        #[derive(Deserialize)]
        #[serde(remote = "Workload")]
        enum InFile {
            $(#[serde(rename = $name)] $kind($kind),)*
        }

        impl Workload {
            /// Returns the `kind` in a file.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(Workload::$kind(_) => $name,)*
                }
            }

            /// Returns the parameters.
            pub fn params(&self) -> &dyn Kind {
                match self {
                    $(Workload::$kind(params) => params,)*
                }
            }

            /// Returns the parameters, to be checked and completed.
            pub fn params_mut(&mut self) -> &mut dyn Kind {
                match self {
                    $(Workload::$kind(params) => params,)*
                }
            }
        }
    };
}

workloads! {
    Flows "flows" in flows;
    Rpc "rpc" in rpc;
    Transfer "transfer" in transfer;
    FanOut "fan-out" in fan_out;
    AllToAll "all-to-all" in all_to_all;
    Permutation "permutation" in permutation;
    Incast "incast" in incast;
    FlowList "flow-list" in flow_list;
    Packets "packets" in packets;
    Ping "ping" in ping;
    ClosedLoop "closed-loop" in closed_loop;
    Shuffle "shuffle" in shuffle;
    Barrier "barrier" in barrier;
    Commit "commit" in commit;
    Pages "pages" in pages;
    Ptp "ptp" in ptp;
}

impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Workload, D::Error> {
        InFile::deserialize(deserializer)
    }
}
