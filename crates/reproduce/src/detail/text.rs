//! The words of the page.

pub(super) const HEAD: &str = "\n# DeTail, reproduced\n\n";
pub(super) const READING: &str = "\n";
pub(super) const CLOSING: &str = "";
