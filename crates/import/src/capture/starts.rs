//! [`judge`]: whether a client's requests wait for responses, or come at their own times.
//!
//! An open loop with the same rate would meet an open request now and then: with n requests on a connection over T,
//! each open for a latency l, the expected number is `sum(l) n / T`. A client that waits never does. And where a client
//! waits, a slower response delays the next request: over requests, the time to the next start rises with the latency,
//! with slope 1, and with slope 0 in an open loop (also where a pool of connections keeps requests apart).

use std::collections::BTreeMap;

use plimsoll_units::Span;

use super::collected::SeenExchange;

/// How the requests of a class start.
pub(super) struct StartVerdict {
    /// Requests wait for the response before.
    pub(super) waits: bool,
    /// The reason, in words.
    pub(super) why: String,
}

/// Expected meetings below this number say nothing.
const EXPECTED: f64 = 5.0;
/// A client waits if at most this share of the expected requests have met an open one.
const SHARE: f64 = 0.25;
/// A slope is known if its standard error is below this.
const ERROR: f64 = 0.2;

/// Sums over the requests of one connection: latency x, and time y to the next start.
#[derive(Default)]
struct LatencySums {
    last: Option<(Span, Span)>,
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

/// Judges the requests of a class, in order of their start; `overlaps` is how often one has met an open one.
pub(super) fn judge(exchanges: &[&SeenExchange], overlaps: u64) -> StartVerdict {
    let mut connections: BTreeMap<u32, LatencySums> = BTreeMap::new();
    for seen in exchanges {
        let sums = connections.entry(seen.connection).or_default();
        let start = Span::from_ps(seen.start.as_ps());
        if let Some((before, latency)) = sums.last.replace((start, seen.latency)) {
            let (x, y) = (latency.as_secs_f64(), start.saturating_sub(before).as_secs_f64());
            sums.n += 1.0;
            (sums.x, sums.y) = (sums.x + x, sums.y + y);
            (sums.xx, sums.xy, sums.yy) = (sums.xx + x * x, sums.xy + x * y, sums.yy + y * y);
        }
    }
    let mut expected = 0.0;
    let (mut n, mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0, 0.0);
    for sums in connections.values().filter(|sums| sums.n > 0.0) {
        expected += sums.x * sums.n / sums.y.max(1e-12);
        // Around the means of the connection.
        n += sums.n - 1.0;
        xx += sums.xx - sums.x * sums.x / sums.n;
        xy += sums.xy - sums.x * sums.y / sums.n;
        yy += sums.yy - sums.y * sums.y / sums.n;
    }
    let slope = xy / xx;
    let error = ((yy - slope * xy).max(0.0) / (n - 1.0).max(1.0) / xx).sqrt();
    let is_known = n >= 8.0 && xx > 0.0 && error < ERROR;
    let never_meets = expected >= EXPECTED && overlaps as f64 <= SHARE * expected;
    let waits = never_meets && (!is_known || slope > 0.5);
    let slope = if is_known { format!(", slope {slope:.2}") } else { String::new() };
    let how = if waits {
        "requests wait for the response before and keep their think times"
    } else {
        "requests keep their times"
    };
    let why = format!(
        "{how} ({overlaps} met an open one on their connection, where independent ones would {expected:.0} \
         times{slope})"
    );
    StartVerdict { waits, why }
}
