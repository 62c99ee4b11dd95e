//! The words of the page.

pub(super) const HEAD: &str = "
# QJump on this kernel\n\n";
pub(super) const READING: &str = "\n";
pub(super) const CLOSING: &str = "\n";
pub(super) const ORDERINGS: &str = "\n## Pairs in the other order\n\n";
