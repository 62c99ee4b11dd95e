//! [`NdpParams`]: the `transport.ndp` table of a scenario.

use plimsoll_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::transports::entropy::{EntropyChoice, EntropyParams};

/// NDP, for the kind of transport `ndp`. Of the other keys of `[transport]`, `segment` (9000 B in the paper's
/// simulator), `header` (64 B there), `connections` and `priority` apply.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NdpParams {
    /// The packets that a connection sends at once, before it has heard anything: 1 or more. Default 23.
    #[schemars(range(min = 1))]
    pub initial_window: u32,
    /// Bytes of an acknowledgement, a negative one or a pull on the wire: 1 to 256 B. Default 64 B.
    pub control_size: Bytes,
    /// The bytes for whose time a pull keeps the next one waiting: more than 0. Default absent: `segment`, as in the
    /// paper's simulator, which is a little less than a packet has on the wire; Broadcom's successor has the packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pull_bytes: Option<Bytes>,
    /// The share of its NIC's rate that a receiver pulls: more than 0, at most 1. Default 1; Broadcom's successor has
    /// 0.99.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub pull_share: f64,
    /// The order in which lost packets are repeated. Default `arrival`.
    pub repeat_order: RepeatOrder,
    /// Whether a sender keeps the pulls that found nothing to send, for packets that it learns later to be lost.
    /// Default false; Broadcom's successor: true.
    pub keeps_pulls: bool,
    /// The time without an answer after which a packet is sent again; doubled with each timeout in a row, up to 64
    /// times: more than 0. Sixteen times as long is the wait for a pull. The paper's simulator has none, as its
    /// switches drop nothing. Default 5 ms.
    pub min_rto: Span,
    /// How the packets of a connection choose their paths.
    pub paths: NdpPaths,
}

impl Default for NdpParams {
    fn default() -> NdpParams {
        NdpParams {
            initial_window: 23,
            control_size: Bytes::new(64),
            pull_bytes: None,
            pull_share: 1.0,
            repeat_order: RepeatOrder::Arrival,
            keeps_pulls: false,
            min_rto: Span::from_ms(5),
            paths: NdpPaths::default(),
        }
    }
}

/// The order in which a sender repeats lost packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatOrder {
    /// As their negative acknowledgements arrive; packets that were sent back, or timed out, come first.
    Arrival,
    /// The lowest number first, as in Broadcom's successor.
    Number,
}

/// The choice of paths by the sender.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NdpPaths {
    /// `permutation`: all paths in a random order, shuffled anew each pass. `penalties`: the same, without the paths
    /// whose packets are trimmed more often than those of others. `random`: each drawn by itself. `flow`: one path. The
    /// choices of `transport.uet.paths` need `values`. Default `permutation`.
    pub choice: EntropyChoice,
    /// The number of values that switches hash to choose a path: a power of two, 1 to 4096. Default absent: a value for
    /// each path, which it names, as in a source route; where a path has more than two choices between links, or one
    /// between more than 128, and in graphs, 256 values that are hashed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<u16>,
}

impl Default for NdpPaths {
    fn default() -> NdpPaths {
        NdpPaths { choice: EntropyChoice::Permutation, values: None }
    }
}

impl NdpPaths {
    /// Returns the choice among values that are hashed.
    pub(super) fn hashed(&self) -> EntropyParams {
        let values = self.values.unwrap_or(HASHED_VALUES);
        EntropyParams { choice: self.choice, values, ..EntropyParams::default() }
    }
}

impl NdpParams {
    /// Returns whether every key has its default, so that a scenario need not write the table.
    pub fn is_default(&self) -> bool {
        *self == NdpParams::default()
    }

    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        use InvalidParam as Invalid;
        let window = self.initial_window;
        Invalid::unless(window >= 1, "ndp.initial_window", window, "1 packet or more")?;
        let ok = (1..=256).contains(&self.control_size.get());
        Invalid::unless(ok, "ndp.control_size", self.control_size, "1 B to 256 B")?;
        if let Some(bytes) = self.pull_bytes {
            Invalid::unless(bytes > Bytes::ZERO, "ndp.pull_bytes", bytes, "more than 0 B")?;
        }
        let share = self.pull_share;
        Invalid::unless(share > 0.0 && share <= 1.0, "ndp.pull_share", share, "more than 0 and at most 1")?;
        Invalid::unless(!self.min_rto.is_zero(), "ndp.min_rto", self.min_rto, "more than 0")?;
        self.paths.hashed().validate("ndp.paths.values")?;
        let NdpPaths { choice, values } = self.paths;
        let ok = values.is_some() || choice.takes_labels();
        let name = format!("{choice:?}").to_lowercase();
        let allowed = "permutation, penalties, random or flow, unless `ndp.paths.values` is given";
        Invalid::unless(ok, "ndp.paths.choice", name, allowed)
    }
}

/// The values that are hashed where labels cannot name all paths.
const HASHED_VALUES: u16 = 256;
