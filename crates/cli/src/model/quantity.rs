//! Parses the quantities of the options.

/// Parses an option that is a quantity with its unit.
pub(super) fn quantity<T: std::str::FromStr>(text: &str) -> Result<T, T::Err> {
    text.parse()
}
