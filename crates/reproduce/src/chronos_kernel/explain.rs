//! Why a claim is in the other order here: by mechanism, never by number.

use crate::study::Explanation;

/// Every known deviation.
pub(super) const EXPLANATIONS: &[Explanation] = &[];
