//! [`MechanismSummary`]: the uses of a mechanism in the runs of a variant, and the sentence about one that never acted.

use std::fmt;

use plimsoll_text::grouped;
use plimsoll_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::outcome::MechanismUse;
use crate::point::PointOutcome;

/// A mechanism in all runs of a variant.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct MechanismSummary {
    /// The name of the variant.
    pub variant: String,
    /// Sums of all runs, and the highest peaks.
    #[serde(flatten)]
    pub used: MechanismUse,
}

impl MechanismSummary {
    /// Merges the uses of each mechanism in all runs of each of `variants`.
    pub(super) fn of(points: &[PointOutcome], variants: &[String]) -> Vec<MechanismSummary> {
        let mut all: Vec<MechanismSummary> = Vec::new();
        for variant in variants {
            let first = all.len();
            let of_variant = points.iter().filter(|point| point.key.variant == *variant);
            for used in of_variant.flat_map(|point| &point.outcome.mechanisms) {
                match all[first..].iter_mut().find(|known| known.used.key == used.key) {
                    Some(known) => known.used.merge(used),
                    None => {
                        all.push(MechanismSummary { variant: variant.clone(), used: used.clone() });
                    }
                }
            }
        }
        all
    }

    /// Returns whether a report has a line about the mechanism: it never acted, or its buffers have more to say than
    /// counters do.
    pub fn is_notable(&self) -> bool {
        let MechanismUse { acted, headroom, dropped, dropped_lossy, .. } = self.used;
        acted == 0 || headroom > 0 || dropped > 0 || dropped_lossy > 0
    }
}

impl fmt::Display for MechanismSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MechanismSummary { variant, used } = self;
        let MechanismUse {
            key, acted, action, headroom_peak, headroom, dropped, missing, dropped_lossy, ..
        } = used;
        let count = |number: u64| grouped(&number.to_string());
        write!(f, "{variant}: `{key}` ")?;
        match acted {
            0 => f.write_str("never acted")?,
            acted => write!(f, "{action} {} times", count(*acted))?,
        }
        // Without an action the peak says how far it was from one; lossy packets are dropped without any.
        match used.peak.filter(|peak| *acted == 0 || *peak > 0.0) {
            Some(peak) if peak.is_finite() => write!(f, ": at most {:.0} % of its threshold", 100.0 * peak)?,
            Some(_) => f.write_str(": its threshold fell to 0")?,
            None => return Ok(()),
        }
        if *acted == 0 {
            f.write_str(" was used")?;
        } else if *headroom > 0 {
            let (used, all) = (Bytes::new(*headroom_peak), Bytes::new(*headroom));
            write!(f, ", and {used} of a headroom of {all}")?;
        }
        if *dropped > 0 {
            let missing = Bytes::new(*missing);
            write!(f, "; {} lossless packets were dropped, for up to {missing} too little", count(*dropped))?;
        }
        if *dropped_lossy > 0 && dropped_lossy != acted {
            write!(f, "; {} lossy packets were dropped", count(*dropped_lossy))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(acted: u64, peak: Option<f64>) -> MechanismUse {
        MechanismUse {
            key: "lossless".into(),
            action: "paused a sender".into(),
            acted,
            peak,
            ..Default::default()
        }
    }

    #[test]
    fn sentences() {
        let said = |used: MechanismUse| MechanismSummary { variant: "A".into(), used }.to_string();
        assert_eq!(
            said(used(0, Some(0.412))),
            "A: `lossless` never acted: at most 41 % of its threshold was used"
        );
        assert_eq!(said(used(0, None)), "A: `lossless` never acted");
        let mut full = used(1_200, Some(1.04));
        (full.headroom_peak, full.headroom) = (3_100, 17_084);
        let sentence = "A: `lossless` paused a sender 1,200 times: at most 104 % of its threshold, and 3.1KB of \
                        a headroom of 17.084KB";
        assert_eq!(said(full.clone()), sentence);
        (full.dropped, full.missing) = (12, 84);
        let lost = "; 12 lossless packets were dropped, for up to 84B too little";
        assert_eq!(said(full.clone()), format!("{sentence}{lost}"));
        full.dropped_lossy = 5_000;
        assert_eq!(said(full), format!("{sentence}{lost}; 5,000 lossy packets were dropped"));
        let lossy = MechanismUse { dropped_lossy: 11_634, ..used(11_634, Some(0.0)) };
        let lossy = MechanismUse { action: "dropped a lossy packet".into(), ..lossy };
        assert_eq!(said(lossy), "A: `lossless` dropped a lossy packet 11,634 times");
    }

    #[test]
    fn drops_without_a_pause_are_said() {
        let used = MechanismUse { dropped: 1_735, missing: 1_500, ..used(0, Some(0.96)) };
        let sentence = "A: `lossless` never acted: at most 96 % of its threshold was used; 1,735 lossless packets \
                        were dropped, for up to 1.5KB too little";
        assert_eq!(MechanismSummary { variant: "A".into(), used }.to_string(), sentence);
    }

    /// Without headroom there is none to report, and the drops are reported.
    #[test]
    fn drops_are_notable() {
        let notable = |used: MechanismUse| MechanismSummary { variant: "A".into(), used }.is_notable();
        assert!(!notable(used(103, Some(1.0))) && notable(used(0, Some(0.5))));
        assert!(notable(MechanismUse { dropped: 1, ..used(103, Some(1.0)) }));
        assert!(notable(MechanismUse { dropped_lossy: 1, ..used(103, Some(1.0)) }));
    }

    #[test]
    fn uses_add_up_and_peaks_do_not() {
        let mut sum = used(2, Some(0.5));
        sum.merge(&MechanismUse {
            headroom_peak: 7,
            headroom: 9,
            dropped: 1,
            missing: 3,
            ..used(3, Some(1.5))
        });
        assert_eq!((sum.acted, sum.peak, sum.headroom_peak, sum.headroom), (5, Some(1.5), 7, 9));
        assert_eq!((sum.dropped, sum.missing), (1, 3));
        // The headroom that was filled further, of whatever size.
        sum.merge(&MechanismUse { headroom_peak: 8, headroom: 20, ..used(0, None) });
        assert_eq!((sum.headroom_peak, sum.headroom), (7, 9));
        sum.merge(&used(0, None));
        assert_eq!((sum.acted, sum.peak), (5, Some(1.5)));
    }
}
