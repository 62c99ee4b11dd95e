//! The flow of memory between partitions, and between small items and large ones.

use std::sync::Arc;

use plimsoll_chronos::KeyHash;

use super::tests::{HASH, has, layout, put};
use super::*;

const MEBIBYTE: u64 = 1 << 20;
/// A value that does not fit a page of 16 KiB.
const LARGE: usize = 20_000;

fn budget(bytes: u64, reserve: usize) -> Arc<ItemBudget> {
    Arc::new(ItemBudget::new(bytes, reserve as u64))
}

fn stores<const N: usize>(budget: &Arc<ItemBudget>) -> [ItemStore; N] {
    std::array::from_fn(|number| {
        ItemStore::new(layout(true), Arc::clone(budget), number as u64 + 1, N as u64)
    })
}

/// Reports whether a client would get `number`, and notes that one did.
fn fetch(store: &mut ItemStore, number: u32) -> bool {
    let key = format!("key-{number}");
    let found = store.find(HASH.hash(key.as_bytes()), key.as_bytes(), 100);
    if let Lookup::Hit(item) = found {
        store.fetched(item, 100);
        assert!(store.item(item).2.iter().all(|&byte| byte == b'x'));
    }
    store.settle();
    matches!(found, Lookup::Hit(_))
}

fn store_all(store: &mut ItemStore, numbers: std::ops::Range<u32>, bytes: usize) {
    for number in numbers {
        if put(store, number, bytes).is_err() {
            let oldest = store.arena.oldest_large();
            let (budget, pages) = (&store.arena.budget, store.arena.pages_held());
            let (taken, large) = (budget.taken(), budget.large_values.bytes());
            panic!(
                "nothing to evict for {number}: {taken} bytes taken, {large} by large values, {pages} by \
                 pages here, {oldest:?}"
            );
        }
        store.settle();
    }
}

fn count(store: &mut ItemStore, numbers: std::ops::Range<u32>) -> usize {
    numbers.filter(|&number| fetch(store, number)).count()
}

#[test]
fn large_values_that_are_wanted_stay() {
    let budget = budget(2 * MEBIBYTE, LARGE);
    let [mut store] = stores(&budget);
    store_all(&mut store, 0..20, LARGE);
    for round in 0..400 {
        assert_eq!(count(&mut store, 0..5), 5, "round {round}");
        // One large value and many small ones that are never fetched.
        store_all(&mut store, 1000 + round..1001 + round, LARGE);
        let first = 100_000 + round * 50;
        store_all(&mut store, first..first + 50, 100);
        assert!(budget.taken() <= 2 * MEBIBYTE);
    }
    assert_eq!(count(&mut store, 5..20), 0, "the others made room");
    assert!(store.counts().evicted_active == 0 && store.counts().evicted > 400);
}

#[test]
fn large_values_leave_half_of_the_memory_to_small_items() {
    let budget = budget(4 * MEBIBYTE, LARGE);
    let mut stores: [ItemStore; 2] = stores(&budget);
    // More than fits in the budget.
    for store in &mut stores {
        store_all(store, 0..50_000, 100);
    }
    let before: usize = stores.iter_mut().map(|store| count(store, 0..50_000)).sum();
    for round in 0..2000 {
        for store in &mut stores {
            store_all(store, 100_000 + round..100_001 + round, LARGE);
            store.housekeeping(100, true);
        }
    }
    let after: usize = stores.iter_mut().map(|store| count(store, 0..50_000)).sum();
    assert!(after * 5 > before * 2 && after * 5 < before * 3, "{after} of {before} small items");
    let large: usize = stores.iter_mut().map(|store| count(store, 100_000..102_000)).sum();
    assert!(large * LARGE > 1_800_000, "{large} large values have the other half");
}

#[test]
fn small_items_get_half_of_the_memory_from_large_values() {
    let budget = budget(4 * MEBIBYTE, LARGE);
    let [mut store] = stores(&budget);
    store_all(&mut store, 0..400, LARGE);
    let before = count(&mut store, 0..400);
    assert!(before * LARGE > 3_500_000, "{before}");
    store_all(&mut store, 100_000..150_000, 100);
    let after = count(&mut store, 0..400);
    assert!(after * LARGE > 1_900_000 && after * LARGE < 2_200_000, "{after} of {before}");
    // The oldest was evicted.
    assert!(has(&mut store, 399) && !has(&mut store, 200));
}

#[test]
fn every_partition_stores_values_above_its_share() {
    const BYTES: usize = 400_000;
    let budget = budget(4 * MEBIBYTE, BYTES);
    let mut stores: [ItemStore; 16] = stores(&budget);
    let mut last = Vec::new();
    for number in 0..2000 {
        let store = (KeyHash::new(7).hash(&u32::to_le_bytes(number)) % 16) as usize;
        store_all(&mut stores[store], number..number + 1, BYTES);
        assert!(budget.taken() <= 4 * MEBIBYTE);
        last.push((store, number));
    }
    // As many as fit, and those stored last.
    for &(store, number) in &last[1995..] {
        assert!(fetch(&mut stores[store], number), "{number}");
    }
    for store in &mut stores {
        store.forget_taken(100);
        store.settle();
    }
    let held: u64 = stores.iter().map(ItemStore::count_items).sum();
    assert!((8..=10).contains(&held), "{held} values of {BYTES} bytes");
    let evicted: u64 = stores.iter_mut().map(|store| store.counts().evicted).sum();
    assert_eq!(evicted, 2000 - held);
}

#[test]
fn a_partition_stores_a_large_value_when_others_hold_everything() {
    let budget = budget(MEBIBYTE, 100_000);
    let mut stores: [ItemStore; 2] = stores(&budget);
    store_all(&mut stores[0], 0..2000, 1000);
    store_all(&mut stores[1], 0..1, 90_000);
    store_all(&mut stores[1], 1..2, 90_000);
    assert!(!fetch(&mut stores[1], 0), "the reserve has room for one");
    let mut tidied = 0;
    while budget.is_short() {
        stores[0].housekeeping(100, true);
        tidied += 1;
        assert!(tidied < 1000, "the first store gives pages back");
    }
    store_all(&mut stores[1], 2..3, 90_000);
    assert_eq!(count(&mut stores[1], 0..3), 2);
}

#[test]
fn nothing_is_evicted_while_tidying_up_if_nothing_may_be() {
    let budget = budget(MEBIBYTE, 100_000);
    let [mut first, mut second] =
        [1, 2].map(|cas| ItemStore::new(layout(false), Arc::clone(&budget), cas, 2));
    let stored: Vec<u32> = (0..2000).filter(|&number| put(&mut first, number, 1000).is_ok()).collect();
    assert!((700..2000).contains(&stored.len()), "{} items", stored.len());
    assert!(put(&mut second, 0, 90_000).is_ok() && put(&mut second, 1, 90_000).is_err());
    for _ in 0..100 {
        first.housekeeping(100, true);
        second.housekeeping(100, true);
    }
    assert!(stored.iter().all(|&number| fetch(&mut first, number)) && fetch(&mut second, 0));
}

#[test]
fn threads_find_room_in_each_others_partitions() {
    const BYTES: usize = 300_000;
    let budget = budget(4 * MEBIBYTE, BYTES);
    std::thread::scope(|scope| {
        for mut store in stores::<4>(&budget) {
            scope.spawn(move || {
                for number in 0..2000 {
                    store_all(&mut store, number..number + 1, BYTES);
                    // Others may have taken any of them, but none has another item's bytes.
                    fetch(&mut store, number / 2);
                    store.housekeeping(100, true);
                }
            });
        }
    });
    assert!(budget.taken() <= 4 * MEBIBYTE);
}

#[test]
fn a_lowered_limit_is_reached() {
    let budget = budget(4 * MEBIBYTE, LARGE);
    let mut stores: [ItemStore; 2] = stores(&budget);
    store_all(&mut stores[0], 0..20_000, 100);
    store_all(&mut stores[1], 0..400, LARGE);
    budget.set_limit(MEBIBYTE);
    for _ in 0..1000 {
        for store in &mut stores {
            store.housekeeping(100, true);
        }
    }
    assert!(budget.taken() <= MEBIBYTE, "{}", budget.taken());
    assert!(count(&mut stores[0], 0..20_000) > 0 && count(&mut stores[1], 0..400) > 0);
}
