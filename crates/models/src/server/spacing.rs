//! [`Spacing`]: how gaps vary, for requests and for slices.

use plimsoll_traffic::distribution::{exponential, uniform};
use plimsoll_units::Stream;
use serde::Deserialize;

/// The spacing of a client's requests, or of a neighbour's slices.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Spacing {
    /// Exponentially distributed gaps.
    Poisson,
    /// Gaps that are uniform between zero and twice the mean.
    Uniform,
    /// Equal gaps, with a random phase.
    Constant,
}

impl Spacing {
    /// Returns a gap, in means.
    pub(super) fn draw(self, stream: &mut Stream) -> f64 {
        match self {
            Spacing::Poisson => exponential(stream),
            Spacing::Uniform => 2.0 * uniform(stream),
            Spacing::Constant => 1.0,
        }
    }
}
