//! Why a row is outside what is asked of it: by mechanism, never by number.

use crate::study::Explanation;

/// Every known deviation.
pub(super) const EXPLANATIONS: &[Explanation] = &[];
