//! Requests that are sent more than once, so that one slow server does not decide: replicated reads, hedges, and
//! timeouts with retries.
//!
//! ```text
//! S(x) = 1 - F(x), the share of latencies above x
//! replicas   P(> x) = S(x)^r                                     load r
//! hedges     P(> x) = S(x) S(x - d) S(x - 2d) ...                load 1 + S(d) + S(2d) S(d) + ...
//! retries    P(> x) = S(t)^j S(x - jt), j = floor(x / t) <= n    load 1 + S(t) + ... + S(t)^n
//! ```
//!
//! Copies go to servers whose latencies are independent, and do not slow any of them down. The effect of copies on
//! servers that have to serve them as well is a matter of queues, which no formula of one latency covers.
//!
//! Replicas and hedges take the first reply, whichever copy it is to. A retry gives the request before it up, as a
//! client does that closes the connection: a reply after the timeout is lost. The last retry is waited for.

use crate::integral;
use crate::law::Law;

/// Number of copies of a request, and their times.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum CopyPolicy {
    /// The request is sent once.
    Once,
    /// Copies are sent to several servers at once, and the first reply counts.
    Replicas {
        /// The number of copies, 1 to [`COPIES_MAX`].
        copies: u32,
    },
    /// A further copy is sent each time that there was no reply for a while, and the first reply counts.
    Hedge {
        /// The time between two copies in us, 0 or more.
        after_us: f64,
        /// The most copies, the first among them, 1 to [`COPIES_MAX`].
        copies: u32,
    },
    /// A request without a reply in time is given up and sent again.
    Retry {
        /// The time after which a request is given up in us, more than 0.
        timeout_us: f64,
        /// The most requests after the first, 0 to [`COPIES_MAX`]; the last of them has no timeout.
        retries: u32,
    },
}

/// The most copies of a request.
pub const COPIES_MAX: u32 = 64;

/// A parameter of a policy that is outside its range.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{key} {value}: expected {allowed}")]
pub struct CopyPolicyError {
    /// The key whose value is not allowed.
    pub key: &'static str,
    /// The value that was given.
    pub value: f64,
    /// The values that are allowed.
    pub allowed: &'static str,
}

impl CopyPolicy {
    fn check(self) -> Result<(), CopyPolicyError> {
        let unless = |is_ok: bool, key, value, allowed| {
            if is_ok { Ok(()) } else { Err(CopyPolicyError { key, value, allowed }) }
        };
        let copied =
            |copies: u32| unless((1..=COPIES_MAX).contains(&copies), "copies", f64::from(copies), "1 to 64");
        match self {
            CopyPolicy::Once => Ok(()),
            CopyPolicy::Replicas { copies } => copied(copies),
            CopyPolicy::Hedge { after_us, copies } => {
                unless(after_us >= 0.0 && after_us.is_finite(), "after", after_us, "0 us or more")?;
                copied(copies)
            }
            CopyPolicy::Retry { timeout_us, retries } => {
                unless(timeout_us > 0.0 && timeout_us.is_finite(), "timeout", timeout_us, "more than 0 us")?;
                unless(retries <= COPIES_MAX, "retries", f64::from(retries), "0 to 64")
            }
        }
    }
}

/// The latency of requests under a policy, when each copy has the latency of a law.
#[derive(Clone, PartialEq, Debug)]
pub struct Redundant {
    law: Law,
    policy: CopyPolicy,
}

impl Redundant {
    /// Sends requests whose copies have the latencies of `law`, by `policy`.
    ///
    /// # Errors
    /// Names the parameter of the policy that is outside its range.
    pub fn new(law: Law, policy: CopyPolicy) -> Result<Redundant, CopyPolicyError> {
        policy.check()?;
        Ok(Redundant { law, policy })
    }

    /// Computes the share of requests that take longer than `x` us.
    pub fn above(&self, x: f64) -> f64 {
        let above = |x: f64| 1.0 - self.law.cdf(x);
        match self.policy {
            CopyPolicy::Once => above(x),
            CopyPolicy::Replicas { copies } => libm::pow(above(x), f64::from(copies)),
            CopyPolicy::Hedge { after_us, copies } => {
                let sent = (0..copies).map(|copy| (copy, x - f64::from(copy) * after_us));
                sent.take_while(|(copy, x)| *copy == 0 || *x >= 0.0).map(|(_, x)| above(x)).product()
            }
            CopyPolicy::Retry { timeout_us, retries } => {
                let given_up = (x / timeout_us).floor().clamp(0.0, f64::from(retries));
                libm::pow(above(timeout_us), given_up) * above(x - given_up * timeout_us)
            }
        }
    }

    /// Computes the share of requests that take up to `x` us.
    pub fn cdf(&self, x: f64) -> f64 {
        1.0 - self.above(x)
    }

    /// Computes the mean number of requests that servers get for each request.
    pub fn load(&self) -> f64 {
        let above = |x: f64| 1.0 - self.law.cdf(x);
        match self.policy {
            CopyPolicy::Once => 1.0,
            CopyPolicy::Replicas { copies } => f64::from(copies),
            CopyPolicy::Hedge { after_us, copies } => {
                // A copy is sent if none of the earlier ones has its reply by then.
                let is_sent = |copy: u32| {
                    (1..=copy).map(|earlier| above(f64::from(earlier) * after_us)).product::<f64>()
                };
                (0..copies).map(is_sent).sum()
            }
            CopyPolicy::Retry { timeout_us, retries } => {
                (0..=retries).map(|retry| libm::pow(above(timeout_us), f64::from(retry))).sum()
            }
        }
    }

    /// Computes the share of requests whose last copy takes longer than the timeout; none without timeouts.
    pub fn timed_out(&self) -> Option<f64> {
        match self.policy {
            CopyPolicy::Retry { timeout_us, retries } => {
                Some(libm::pow(1.0 - self.law.cdf(timeout_us), f64::from(retries) + 1.0))
            }
            _ => None,
        }
    }

    /// Computes the least latency in us that a share of `share` of the requests does not exceed, 0 < `share` < 1.
    pub fn quantile(&self, share: f64) -> f64 {
        let one = self.law.quantile(share);
        let (low, high) = match self.policy {
            CopyPolicy::Once => return one,
            CopyPolicy::Replicas { copies } => {
                return self.law.quantile(-libm::expm1(libm::log1p(-share) / f64::from(copies)));
            }
            // Copies only make it shorter.
            CopyPolicy::Hedge { .. } => (self.law.quantile(SMALLEST).min(0.0), one),
            CopyPolicy::Retry { timeout_us, retries } => {
                // A little more, since the sum is rounded.
                let last = (one + f64::from(retries) * timeout_us) * (1.0 + 1e-12);
                (self.law.quantile(SMALLEST).min(0.0), last)
            }
        };
        self.halve(low, high, share)
    }

    /// Finds the least latency between two by halving, to the last bit.
    fn halve(&self, mut low: f64, mut high: f64, share: f64) -> f64 {
        loop {
            let middle = low + (high - low) / 2.0;
            if middle <= low || middle >= high {
                return high;
            }
            if self.cdf(middle) < share {
                low = middle;
            } else {
                high = middle;
            }
        }
    }

    /// Computes the latency in us up to which the last of `width` replies is there with probability `share`.
    pub fn quantile_of_last(&self, width: u32, share: f64) -> f64 {
        self.quantile(libm::exp(libm::log(share) / f64::from(width)))
    }

    /// Computes the mean latency in us.
    pub fn mean(&self) -> f64 {
        if self.policy == CopyPolicy::Once {
            return self.law.moments().0;
        }
        let knots = self.knots();
        knots[0] + integral::of_pieces(&knots, |x| self.above(x)).sum::<f64>()
    }

    /// Returns latencies that rise strictly, between which [`Redundant::above`] is a polynomial, or nearly so.
    pub(crate) fn knots(&self) -> Vec<f64> {
        let of_one = self.law.knots();
        let (copies, apart) = match self.policy {
            CopyPolicy::Once | CopyPolicy::Replicas { .. } => return of_one,
            CopyPolicy::Hedge { after_us, copies } => (copies, after_us),
            CopyPolicy::Retry { timeout_us, retries } => (retries + 1, timeout_us),
        };
        let (first, last) = (of_one[0], of_one[of_one.len() - 1]);
        let is_retry = matches!(self.policy, CopyPolicy::Retry { .. });
        let mut knots = Vec::new();
        for copy in 0..copies {
            let begin = f64::from(copy) * apart;
            // A copy after the longest latency of one is not sent; a retried request ends at its timeout.
            if copy > 0 && apart >= last || !is_retry && begin >= last {
                break;
            }
            let is_last = copy + 1 == copies;
            let ends = if is_retry && !is_last { begin + apart } else { f64::INFINITY };
            knots.extend(of_one.iter().map(|knot| knot + begin).filter(|knot| *knot < ends));
            knots.extend([begin, ends].into_iter().filter(|knot| knot.is_finite() && *knot >= first));
        }
        if !is_retry {
            // A request never takes longer than its first copy.
            knots.retain(|knot| *knot <= last);
        }
        integral::sorted(knots)
    }
}

/// A share below all others.
const SMALLEST: f64 = 1e-13;

#[cfg(test)]
mod tests;
