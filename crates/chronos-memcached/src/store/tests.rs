//! The store against a map, with every byte accounted for.

use std::collections::BTreeMap;
use std::sync::Arc;

use plimsoll_chronos::{KeyHash, PagePool};
use proptest::prelude::*;

use super::*;

pub const HASH: KeyHash = KeyHash::new(1);

pub fn layout(evict: bool) -> Arc<Layout> {
    Arc::new(Layout {
        classes: ChunkClasses::new(16 << 10, 1.06, 48),
        page_bytes: 16 << 10,
        pool: PagePool::new(16 << 10),
        pages_floor: 2,
        evict,
    })
}

#[derive(Clone, Debug)]
enum Action {
    Put { store: usize, key: u8, bytes: usize, expiry: u32 },
    Extend { store: usize, key: u8, bytes: usize },
    Find { store: usize, key: u8 },
    Remove { store: usize, key: u8 },
    Pass { seconds: u32 },
    Flush { store: usize },
    Tidy { store: usize },
}

fn action() -> impl Strategy<Value = Action> {
    // Small items in several classes, and large ones.
    let bytes = prop_oneof![4 => 0_usize..3000, 1 => 4000_usize..40_000];
    let store = 0_usize..2;
    prop_oneof![
        8 => (store.clone(), any::<u8>(), bytes.clone(), prop_oneof![Just(0_u32), 1_u32..20])
            .prop_map(|(store, key, bytes, expiry)| Action::Put { store, key, bytes, expiry }),
        2 => (store.clone(), any::<u8>(), bytes).prop_map(|(store, key, bytes)| Action::Extend { store, key, bytes }),
        4 => (store.clone(), any::<u8>()).prop_map(|(store, key)| Action::Find { store, key }),
        2 => (store.clone(), any::<u8>()).prop_map(|(store, key)| Action::Remove { store, key }),
        1 => (1_u32..30).prop_map(|seconds| Action::Pass { seconds }),
        1 => store.clone().prop_map(|store| Action::Flush { store }),
        1 => store.prop_map(|store| Action::Tidy { store }),
    ]
}

fn key(number: u8) -> Vec<u8> {
    format!("key-{number}").repeat(1 + usize::from(number % 5)).into_bytes()
}

fn value(number: u8, bytes: usize) -> Vec<u8> {
    (0..bytes).map(|place| number.wrapping_add(place as u8)).collect()
}

/// A store with its expected contents: it may have lost items, but never holds others.
struct Pair {
    store: ItemStore,
    model: BTreeMap<u8, (Vec<u8>, u32)>,
}

impl Pair {
    fn find(&mut self, number: u8, second: u32) -> Option<Vec<u8>> {
        let key = key(number);
        match self.store.find(HASH.hash(&key), &key, second) {
            Lookup::Hit(item) => {
                self.store.fetched(item, second);
                let (_, found, value) = self.store.item(item);
                assert_eq!(found, key);
                Some(value.to_vec())
            }
            _ => None,
        }
    }

    /// Every byte that the store counts is one of an item that can be found, or of a dead one.
    fn check(&mut self, evicting: bool, second: u32) {
        let numbers: Vec<u8> = self.model.keys().copied().collect();
        for number in numbers {
            let found = self.find(number, second);
            let (expected, expiry) = &self.model[&number];
            let alive = *expiry == 0 || *expiry > second;
            match found {
                Some(value) => assert!(alive && value == *expected, "key {number}"),
                None if alive => assert!(evicting, "key {number} is lost"),
                None => {}
            }
        }
    }
}

fn run(actions: Vec<Action>, limit: u64, evict: bool) {
    let budget = Arc::new(ItemBudget::new(limit, 48 << 10));
    let mut pairs: Vec<Pair> = (0..2)
        .map(|number| Pair {
            store: ItemStore::new(layout(evict), Arc::clone(&budget), number + 1, 2),
            model: BTreeMap::new(),
        })
        .collect();
    let mut second = 100;
    let roomy = limit > 100 << 20;
    // Nothing that was stored is ever lost.
    let keeps = roomy || !evict;
    for action in actions {
        match action {
            Action::Put { store, key: number, bytes, expiry } => {
                let Pair { store, model } = &mut pairs[store];
                let (key, value) = (key(number), value(number, bytes));
                let meta = Meta { flags: 0, expiry: if expiry == 0 { 0 } else { second + expiry }, state: 0 };
                match store.put(HASH.hash(&key), &key, [&value, b""], meta, second) {
                    Ok(_) => drop(model.insert(number, (value, meta.expiry))),
                    Err(NoMemory) => assert!(!roomy),
                }
            }
            Action::Extend { store, key: number, bytes } => {
                let Pair { store, model } = &mut pairs[store];
                let (key, more) = (key(number), value(number, bytes));
                if let Lookup::Hit(item) = store.find(HASH.hash(&key), &key, second)
                    && store.extend(HASH.hash(&key), item, &more, true, second).is_ok()
                {
                    model.get_mut(&number).expect("it was stored").0.extend_from_slice(&more);
                }
            }
            Action::Find { store, key } => {
                let pair = &mut pairs[store];
                let found = pair.find(key, second);
                let expected = pair.model.get(&key).filter(|(_, expiry)| *expiry == 0 || *expiry > second);
                assert!(found.is_none() || found == expected.map(|(value, _)| value.clone()));
                assert!(!keeps || found.is_some() == expected.is_some(), "key {key}");
            }
            Action::Remove { store, key: number } => {
                let Pair { store, model } = &mut pairs[store];
                let key = key(number);
                if let Lookup::Hit(item) = store.find(HASH.hash(&key), &key, second) {
                    store.remove(item);
                }
                model.remove(&number);
            }
            Action::Pass { seconds } => second += seconds,
            Action::Flush { store } => {
                pairs[store].store.flush(second, second);
                pairs[store].model.clear();
            }
            Action::Tidy { store } => {
                for _ in 0..100 {
                    if !pairs[store].store.housekeeping(second, true) {
                        break;
                    }
                }
            }
        }
        pairs.iter_mut().for_each(|pair| pair.store.settle());
        assert!(budget.taken() <= limit, "{} of {limit}", budget.taken());
        let floor = 2 * (2 * (16 << 10));
        let held: u64 = pairs.iter().map(|pair| pair.store.bytes_held()).sum();
        assert!(held <= budget.taken() && budget.taken() <= held + floor, "{held} {}", budget.taken());
    }
    for pair in &mut pairs {
        pair.check(!keeps, second);
        pair.store.forget_taken(second);
        pair.store.settle();
        let counted: u64 = (0..=255_u8)
            .filter_map(|number| {
                let key = key(number);
                let item = pair.store.peek(HASH.hash(&key), &key)?;
                Some((HEADER_BYTES + key.len()) as u64 + u64::from(pair.store.header(item).value_bytes.get()))
            })
            .sum();
        assert_eq!(counted, pair.store.bytes());
    }
}

proptest! {
    #[test]
    fn is_a_map_that_forgets_when_memory_is_short(actions in proptest::collection::vec(action(), 1..600)) {
        run(actions, 400 << 10, true);
    }

    #[test]
    fn is_a_map_when_memory_is_not(actions in proptest::collection::vec(action(), 1..600)) {
        run(actions, 200 << 20, true);
    }

    #[test]
    fn refuses_instead_of_evicting(actions in proptest::collection::vec(action(), 1..600)) {
        run(actions, 400 << 10, false);
    }
}

pub fn put(store: &mut ItemStore, number: u32, bytes: usize) -> Result<ItemRef, NoMemory> {
    let key = format!("key-{number}");
    let hash = HASH.hash(key.as_bytes());
    store.put(hash, key.as_bytes(), [&vec![b'x'; bytes], b""], Meta { flags: 0, expiry: 0, state: 0 }, 100)
}

pub fn has(store: &mut ItemStore, number: u32) -> bool {
    let key = format!("key-{number}");
    store.peek(HASH.hash(key.as_bytes()), key.as_bytes()).is_some()
}

#[test]
fn what_is_fetched_twice_stays() {
    let mut store = ItemStore::new(layout(true), Arc::new(ItemBudget::new(1 << 20, 0)), 1, 1);
    for number in 0..3000 {
        put(&mut store, number, 1000).expect("evicts");
        // Two items that are fetched again and again.
        for wanted in [0, 1] {
            let key = format!("key-{wanted}");
            if let Lookup::Hit(item) = store.find(HASH.hash(key.as_bytes()), key.as_bytes(), 100) {
                store.fetched(item, 100);
            }
        }
    }
    assert!(has(&mut store, 0) && has(&mut store, 1) && has(&mut store, 2999) && !has(&mut store, 500));
    assert!(store.counts().evicted > 1500 && store.counts().evicted_active == 0);
}

#[test]
fn memory_moves_between_sizes() {
    let budget = Arc::new(ItemBudget::new(1 << 20, 0));
    let mut store = ItemStore::new(layout(true), Arc::clone(&budget), 1, 1);
    for (first, bytes) in [(0, 100), (100_000, 3000), (200_000, 10_000), (300_000, 20)] {
        for number in first..first + 20_000_000 / (bytes as u32 + 100) / 10 {
            put(&mut store, number, bytes).expect("evicts what has another size");
        }
        assert!(budget.taken() <= 1 << 20);
    }
}

/// Expired items leave a small store with the next second's sweep, and a large one within a minute.
#[test]
fn expired_items_leave_sooner_where_there_are_few() {
    for (others, seconds) in [(10, 1), (20_000, 20)] {
        let mut store = ItemStore::new(layout(true), Arc::new(ItemBudget::new(64 << 20, 0)), 1, 1);
        for number in 0..others {
            put(&mut store, number, 10).expect("there is room");
        }
        while store.housekeeping(100, true) {}
        let key = b"gone";
        let meta = Meta { flags: 0, expiry: 101, state: 0 };
        store.put(HASH.hash(key), key, [b"x", b""], meta, 100).expect("there is room");
        let mut left = Vec::new();
        for second in 101..=100 + seconds {
            while store.housekeeping(second, true) {}
            left.push(store.count_items() - u64::from(others));
        }
        let (last, before) = left.split_last().expect("a second");
        assert!(*last == 0 && before.iter().all(|&count| count == 1), "{others}: {left:?}");
    }
}
