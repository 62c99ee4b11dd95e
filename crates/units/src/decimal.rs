//! Writes quantities in decimal.

use std::fmt;

/// Writes `value / unit` with exactly its decimals.
pub(crate) fn write_decimal(f: &mut fmt::Formatter<'_>, value: u64, unit: u64) -> fmt::Result {
    let (whole, rest) = (value / unit, value % unit);
    write!(f, "{whole}")?;
    if rest > 0 {
        let width = unit.ilog10() as usize;
        let decimals = format!("{rest:0width$}");
        write!(f, ".{}", decimals.trim_end_matches('0'))?;
    }
    Ok(())
}
