//! [`HomaParams`]: the `transport.homa` table of a scenario.

use plimsoll_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::config::LEVELS;
use crate::InvalidParam;

/// Homa, for the kind of transport `homa`. Of the other keys of `[transport]`, `segment` (1472 B there: Homa's header
/// and data), `header` (66 B: IP, UDP and Ethernet with preamble and gap) and `connections` (`per-message`) apply.
/// Switches need `order = "priorities"`. Priorities are 0 to 7; control packets have 7.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HomaParams {
    /// The bytes on the wire that the host's link carries in a round trip, one full packet one way and the grant back:
    /// more than `control_size`, at most 1 GB. So much of a message is sent unscheduled, and so much of it is in
    /// flight. Default 10,000 B.
    pub rtt_bytes: Bytes,
    /// The priorities of scheduled packets, the lowest of the eight: 1 to 7. Default 7.
    pub scheduled_levels: u8,
    /// The senders to which a host grants at a time (overcommitment): 1 or more. Default absent: `scheduled_levels`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub degree: Option<u32>,
    /// The bytes left of a message up to which its unscheduled packets have priority 7, 6, and so on, in ascending
    /// order: at most 7 less `scheduled_levels`. Default absent: computed from the distribution of the workload's sizes
    /// where that has a `cdf`; otherwise all unscheduled packets have priority 7.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cutoffs: Option<Vec<Bytes>>,
    /// Whether the last `rtt_bytes` of a scheduled message have the priority of unscheduled packets. Default true.
    pub tail_boost: bool,
    /// Homa's header of unscheduled packets: at most 200 B, less than `segment`. Default 30 B.
    pub unscheduled_header: Bytes,
    /// Homa's header of scheduled packets: at most 200 B, less than `segment`. Default 16 B.
    pub scheduled_header: Bytes,
    /// Bytes of a grant, an acknowledgement, a RESEND or a probe on the wire: 1 to 256 B. Default 84 B.
    pub control_size: Bytes,
    /// Bytes of the shortest packet on the wire: at most 256 B. Default 84 B.
    pub shortest_frame: Bytes,
    /// Whether receivers acknowledge messages and ask again for missing bytes. False is for networks that lose nothing,
    /// as the authors' simulator. Default true.
    pub repair: bool,
    /// The silence after which a receiver asks for the granted bytes that it misses, and a sender asks whether the
    /// message has arrived: more than 0. Default 5 ms.
    pub resend_after: Span,
}

impl Default for HomaParams {
    fn default() -> HomaParams {
        HomaParams {
            rtt_bytes: Bytes::new(10_000),
            scheduled_levels: 7,
            degree: None,
            cutoffs: None,
            tail_boost: true,
            unscheduled_header: Bytes::new(30),
            scheduled_header: Bytes::new(16),
            control_size: Bytes::new(84),
            shortest_frame: Bytes::new(84),
            repair: true,
            resend_after: Span::from_ms(5),
        }
    }
}

impl HomaParams {
    /// Returns whether every key has its default, so that a scenario need not write the table.
    pub fn is_default(&self) -> bool {
        *self == HomaParams::default()
    }

    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        use InvalidParam as Invalid;
        let ok = (1..=256).contains(&self.control_size.get());
        Invalid::unless(ok, "homa.control_size", self.control_size, "1 B to 256 B")?;
        let ok = self.rtt_bytes > self.control_size && self.rtt_bytes <= Bytes::new(1_000_000_000);
        Invalid::unless(ok, "homa.rtt_bytes", self.rtt_bytes, "more than `control_size`, at most 1 GB")?;
        let levels = self.scheduled_levels;
        Invalid::unless((1..LEVELS).contains(&levels), "homa.scheduled_levels", levels, "1 to 7")?;
        let degree = self.degree.unwrap_or(1);
        Invalid::unless(degree >= 1, "homa.degree", degree, "1 or more")?;
        let cutoffs = self.cutoffs.as_deref().unwrap_or_default();
        let most = LEVELS - 1 - levels;
        let ok = cutoffs.len() <= usize::from(most);
        Invalid::unless(ok, "homa.cutoffs", cutoffs.len(), "at most 7 sizes less `homa.scheduled_levels`")?;
        let written = || cutoffs.iter().map(Bytes::to_string).collect::<Vec<_>>().join(", ");
        let ok = cutoffs.is_sorted();
        Invalid::unless(ok, "homa.cutoffs", written(), "sizes in ascending order")?;
        for (key, header) in [
            ("homa.unscheduled_header", self.unscheduled_header),
            ("homa.scheduled_header", self.scheduled_header),
        ] {
            Invalid::unless(header.get() <= 200, key, header, "at most 200 B")?;
        }
        let frame = self.shortest_frame;
        Invalid::unless(frame.get() <= 256, "homa.shortest_frame", frame, "at most 256 B")?;
        Invalid::unless(!self.resend_after.is_zero(), "homa.resend_after", self.resend_after, "more than 0")
    }
}
