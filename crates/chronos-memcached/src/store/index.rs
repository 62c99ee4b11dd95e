//! The place of each item: open addressing with linear probing, 8 bytes an entry: half of the key's hash (the tag), and
//! the item's [`ItemRef`] plus 1.
//!
//! A line of the cache has eight entries and probes rarely leave it; a tag that differs spares the item's line. The
//! table doubles a few entries at a time, so that no request waits for all of it.

use plimsoll_memory::prefetch;
use zerocopy::IntoBytes;

use super::item::ItemRef;

/// Entries of a fresh table.
const ENTRIES_MIN: usize = 64;
/// Entries moved to the new table with each insertion while it grows.
const MOVED_PER_INSERT: usize = 16;

/// The index of one partition.
#[derive(Debug)]
pub struct Index {
    table: Table,
    /// The table before it grew, and the number of its entries that are moved.
    old: Option<(Table, usize)>,
    count: usize,
}

#[derive(Debug)]
struct Table {
    entries: Vec<u64>,
    mask: usize,
}

impl Index {
    /// Creates an empty index.
    pub fn new() -> Index {
        Index { table: Table::new(ENTRIES_MIN), old: None, count: 0 }
    }

    /// Prefetches the entries where `tag` is looked up.
    #[inline]
    pub fn prefetch(&self, tag: u32) {
        self.table.prefetch(tag);
        if let Some((old, _)) = &self.old {
            old.prefetch(tag);
        }
    }

    /// Returns the first item with `tag`, which is the right one except once in many millions of lookups.
    #[inline]
    pub fn guess(&self, tag: u32) -> Option<ItemRef> {
        self.find(tag, |_| true)
    }

    /// Returns the item with `tag` for which `is_it` is true.
    #[inline]
    pub fn find(&self, tag: u32, mut is_it: impl FnMut(ItemRef) -> bool) -> Option<ItemRef> {
        let found = self.table.find(tag, &mut is_it).map(|(_, item)| item);
        match (&found, &self.old) {
            (None, Some((old, _))) => old.find(tag, &mut is_it).map(|(_, item)| item),
            _ => found,
        }
    }

    /// Adds `item`, which must not be here yet.
    pub fn insert(&mut self, tag: u32, item: ItemRef) {
        if self.old.is_none() && (self.count + 1) * 4 > self.table.entries.len() * 3 {
            let bigger = Table::new(self.table.entries.len() * 2);
            self.old = Some((std::mem::replace(&mut self.table, bigger), 0));
        }
        if let Some((old, at)) = &mut self.old {
            let end = (*at + MOVED_PER_INSERT).min(old.entries.len());
            while *at < end {
                match old.entries[*at] {
                    0 => *at += 1,
                    entry => {
                        old.remove_at(*at);
                        self.table.insert(entry);
                    }
                }
            }
            if end == old.entries.len() {
                self.old = None;
            }
        }
        self.table.insert((u64::from(tag) << 32) | u64::from(item.0 + 1));
        self.count += 1;
    }

    /// Removes `item` from the index.
    pub fn remove(&mut self, tag: u32, item: ItemRef) {
        let place = self.table.find(tag, |other| other == item);
        match (place, &mut self.old) {
            (Some((place, _)), _) => self.table.remove_at(place),
            (None, Some((old, _))) => {
                let (place, _) =
                    old.find(tag, |other| other == item).expect("an item is in the index while it lives");
                old.remove_at(place);
            }
            (None, None) => unreachable!("an item is in the index while it lives"),
        }
        self.count -= 1;
    }

    /// Returns the number of items.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Returns the bytes of the tables.
    pub fn bytes(&self) -> usize {
        8 * (self.table.entries.len() + self.old.as_ref().map_or(0, |(old, _)| old.entries.len()))
    }
}

impl Table {
    fn new(entries: usize) -> Table {
        Table { entries: vec![0; entries], mask: entries - 1 }
    }

    #[inline]
    fn prefetch(&self, tag: u32) {
        let place = tag as usize & self.mask;
        prefetch(self.entries[place..=place].as_bytes());
    }

    #[inline]
    fn find(&self, tag: u32, mut is_it: impl FnMut(ItemRef) -> bool) -> Option<(usize, ItemRef)> {
        let mut place = tag as usize & self.mask;
        loop {
            let entry = self.entries[place];
            if entry == 0 {
                return None;
            }
            let item = ItemRef((entry as u32).wrapping_sub(1));
            if (entry >> 32) as u32 == tag && is_it(item) {
                return Some((place, item));
            }
            place = (place + 1) & self.mask;
        }
    }

    fn insert(&mut self, entry: u64) {
        let mut place = (entry >> 32) as usize & self.mask;
        while self.entries[place] != 0 {
            place = (place + 1) & self.mask;
        }
        self.entries[place] = entry;
    }

    /// Empties `place`, and moves entries up that would not be found any more.
    fn remove_at(&mut self, place: usize) {
        let (mut hole, mut next) = (place, place);
        loop {
            next = (next + 1) & self.mask;
            let entry = self.entries[next];
            if entry == 0 {
                break;
            }
            let home = (entry >> 32) as usize & self.mask;
            // The hole lies between the entry's home and the entry, in circular order.
            if next.wrapping_sub(home) & self.mask >= next.wrapping_sub(hole) & self.mask {
                self.entries[hole] = entry;
                hole = next;
            }
        }
        self.entries[hole] = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn is_a_map(steps in proptest::collection::vec((any::<bool>(), 0_u32..400), 1..2000)) {
            let mut index = Index::new();
            let mut model = BTreeMap::new();
            for (number, (insert, key)) in steps.into_iter().enumerate() {
                // Few homes, at the table's end too, so that probes collide and wrap around.
                let tag = (key % 7).wrapping_mul(0x1111_1111).wrapping_sub(key & 1);
                match model.get(&key).copied() {
                    Some(item) if !insert => {
                        index.remove(tag, item);
                        model.remove(&key);
                    }
                    None if insert => {
                        index.insert(tag, ItemRef(number as u32));
                        model.insert(key, ItemRef(number as u32));
                    }
                    _ => {}
                }
                prop_assert_eq!(index.count(), model.len());
                let expected = model.get(&key).copied();
                prop_assert_eq!(index.find(tag, |item| Some(item) == expected), expected);
            }
        }
    }
}
