//! Tables whose keys are priorities: `"5"`, or `"0..4"` with the last one included.

use std::collections::BTreeMap;

use crate::InvalidParam;

/// The number of 802.1p priorities.
pub(crate) const PRIORITIES: usize = 8;

/// Checks each entry of the table `priority` by `check`.
///
/// # Errors
/// The first that does not fit, with the name of its entry.
pub(crate) fn check_entries<T>(
    table: &BTreeMap<String, T>,
    check: impl Fn(&T) -> Result<(), InvalidParam>,
) -> Result<(), InvalidParam> {
    let of_entry =
        |(name, entry): (&String, &T)| check(entry).map_err(|invalid| invalid.within(&["priority", name]));
    table.iter().try_for_each(of_entry)
}

/// Returns the entry of `table` for each priority, as the entry's number in the order of the table.
///
/// # Errors
/// A name that is neither a priority nor a range of them, or a priority with two entries.
pub(crate) fn by_priority<T>(
    table: &BTreeMap<String, T>,
) -> Result<[Option<usize>; PRIORITIES], InvalidParam> {
    let mut entries = [None; PRIORITIES];
    for (entry, name) in table.keys().enumerate() {
        let allowed = "one of 0 to 7, or a range such as `0..4`, each priority once";
        let invalid =
            || InvalidParam { tables: Vec::new(), key: "priority", value: format!("`{name}`"), allowed };
        let (first, last) = name.split_once("..").unwrap_or((name, name));
        let number = |text: &str| text.parse::<usize>().ok().filter(|number| *number < PRIORITIES);
        let (first, last) = number(first).zip(number(last)).ok_or_else(invalid)?;
        if first > last || entries[first..=last].iter().any(Option::is_some) {
            return Err(invalid());
        }
        entries[first..=last].fill(Some(entry));
    }
    Ok(entries)
}
