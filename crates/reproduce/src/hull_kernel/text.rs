//! The words of the page.

pub(super) const HEAD: &str = "
# HULL on this kernel\n
";

pub(super) const READING: &str = "\n";

pub(super) const CLOSING: &str = "\n";
