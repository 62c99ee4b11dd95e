//! One partition, and the operations of commands on it, whatever the protocol.

use crate::request::{Bits, ReplyStyle, Request, RequestHead, Verb};
use crate::settings::ItemLimit;
use crate::stats::{Counters, Gauges, Prefixed, Prefixes};
use crate::store::{ItemRef, ItemState, ItemStore, Lookup, Meta};
use crate::text::words;
use crate::{binary, text};

/// A partition: its items, and its counters.
#[derive(Debug)]
pub struct Partition {
    /// The number of the partition; the first counts the requests that go to all.
    pub number: u32,
    /// The largest item that appending and prepending may make.
    pub item_limit: ItemLimit,
    /// The items of the partition.
    pub store: ItemStore,
    /// The counters of the partition.
    pub counters: Counters,
    /// The counts of `stats detail`.
    pub prefixes: Prefixes,
}

/// Result of a request on a key, which each protocol writes in its own words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The item to fetch, if there is one.
    Fetched(Option<ItemRef>),
    /// The item exists, and has the value that it had.
    Found(ItemRef),
    /// The item was stored in the partition.
    Stored(ItemRef),
    /// The item has this number now.
    Number(ItemRef, u64),
    /// The item did not exist, and was created with the request's number.
    Created(ItemRef),
    /// The item was deleted.
    Deleted,
    /// The partition has no item with the key.
    NotFound,
    /// The cas value was wrong.
    Exists,
    /// The item exists (for add), or does not exist (for replace).
    NotStored,
    /// The value is not a number.
    NonNumeric,
    /// The budget has no memory for the item.
    NoMemory,
    /// The budget has no memory to create the number.
    NoMemoryToCreate,
    /// The budget has no memory for the result of arithmetic.
    NoMemoryForNumber,
}

/// Values longer than this are not numbers: memcached keeps such values in several chunks.
const NUMBER_BYTES_MAX: usize = 512 << 10;
/// Seconds after which arithmetic renews an item's time.
const RENEW_SECONDS: u32 = 60;

impl Partition {
    /// Runs a request of text or binary.
    #[inline]
    pub fn execute(&mut self, request: &Request<'_>, second: u32) -> Outcome {
        let (head, key) = (&request.head, request.key);
        match head.verb {
            Verb::Get => Outcome::Fetched(self.fetch(head.hash, key, second, true)),
            Verb::GetTouch => Outcome::Fetched(self.touch(head, key, second)),
            Verb::Touch => self.touch(head, key, second).map_or(Outcome::NotFound, Outcome::Found),
            Verb::Delete => match self.find(head.hash, key, second) {
                Some(item) if head.cas != 0 && head.cas != self.store.header(item).cas.get() => {
                    Outcome::Exists
                }
                Some(item) => {
                    self.delete(item);
                    Outcome::Deleted
                }
                None => {
                    self.counters.delete_misses += 1;
                    Outcome::NotFound
                }
            },
            Verb::Increment | Verb::Decrement => self.arithmetic(head, key, second),
            _ => self.store(head, key, request.value, second),
        }
    }

    /// Looks a key up for a fetch, and counts; `update` notes that it was fetched.
    #[inline]
    pub fn fetch(&mut self, hash: u64, key: &[u8], second: u32, update: bool) -> Option<ItemRef> {
        self.counters.get_commands += 1;
        match self.store.find(hash, key, second) {
            Lookup::Hit(item) => {
                self.store.count(item).get_hits += 1;
                if update {
                    self.store.fetched(item, second);
                }
                return Some(item);
            }
            Lookup::Miss => {}
            Lookup::Expired => self.counters.get_expired += 1,
            Lookup::Flushed => self.counters.get_flushed += 1,
        }
        self.counters.get_misses += 1;
        None
    }

    /// Appends the answer to a get of text or binary that found `item`, or none.
    pub fn answer_get(&self, request: &Request<'_>, item: Option<ItemRef>, reply: &mut Vec<u8>) {
        match request.head.style {
            ReplyStyle::Binary => binary::answer_get(self, request, item, reply),
            ReplyStyle::Text | ReplyStyle::Meta => text::answer_get(self, &request.head, item, reply),
        }
    }

    /// Looks a key up to set its expiry time, and counts.
    fn touch(&mut self, head: &RequestHead, key: &[u8], second: u32) -> Option<ItemRef> {
        self.counters.touch_commands += 1;
        let found = self.find(head.hash, key, second);
        match found {
            Some(item) => {
                self.store.fetched(item, second);
                self.store.header_mut(item).expiry.set(head.expiry);
                self.counters.touch_hits += 1;
                self.store.count(item).touch_hits += 1;
            }
            None => self.counters.touch_misses += 1,
        }
        found
    }

    /// Counts a meta get. As in memcached, it is a touch where it finds an item and sets its expiry time.
    pub fn count_meta_get(&mut self, head: &RequestHead, is_hit: bool) {
        if is_hit && head.has(Bits::EXPIRY) {
            self.counters.touch_commands += 1;
            self.counters.touch_hits += 1;
        } else {
            self.counters.get_commands += 1;
            self.counters.get_misses += u64::from(!is_hit);
        }
    }

    /// Looks a key up. memcached counts expired items here too, for every command.
    pub fn find(&mut self, hash: u64, key: &[u8], second: u32) -> Option<ItemRef> {
        match self.store.find(hash, key, second) {
            Lookup::Hit(item) => return Some(item),
            Lookup::Miss => {}
            Lookup::Expired => self.counters.get_expired += 1,
            Lookup::Flushed => self.counters.get_flushed += 1,
        }
        None
    }

    /// Runs a store command.
    #[inline]
    pub fn store(&mut self, head: &RequestHead, key: &[u8], value: &[u8], second: u32) -> Outcome {
        let stored = self.try_store(head, key, value, second);
        if !matches!(stored, Outcome::Stored(_)) {
            self.store.count_set(key.len(), value.len());
        }
        stored
    }

    #[inline]
    fn try_store(&mut self, head: &RequestHead, key: &[u8], value: &[u8], second: u32) -> Outcome {
        self.counters.set_commands += 1;
        let mut meta = Meta { flags: head.client_flags, expiry: head.expiry, state: 0 };
        if head.has(Bits::KEY_BINARY) {
            meta.state |= ItemState::KEY_BINARY;
        }
        // Most stores do not depend on the present item; the store finds it by itself.
        if head.verb == Verb::Set && head.cas == 0 {
            return self.put(head, key, value, meta, second);
        }
        let Some(old) = self.find(head.hash, key, second) else {
            return match head.verb {
                Verb::Add | Verb::Set => self.put(head, key, value, meta, second),
                Verb::Cas => {
                    self.counters.cas_misses += 1;
                    Outcome::NotFound
                }
                _ => Outcome::NotStored,
            };
        };
        let header = self.store.header(old);
        let (old_cas, expiry, state) = (header.cas.get(), header.expiry.get(), header.state);
        let (client_flags, value_bytes) = (header.flags.get(), header.value_bytes.get() as usize);
        match head.verb {
            Verb::Add => {
                self.renew(old, second);
                Outcome::NotStored
            }
            Verb::Cas if head.cas != 0 && head.cas == old_cas => {
                self.counters.cas_hits += 1;
                self.store.count(old).cas_hits += 1;
                self.put(head, key, value, meta, second)
            }
            Verb::Cas if head.has(Bits::STALE) && head.cas != 0 && head.cas < old_cas => {
                meta.expiry = expiry;
                meta.state |= ItemState::STALE | (state & ItemState::TOKEN_SENT);
                self.put(head, key, value, meta, second)
            }
            Verb::Cas => {
                self.counters.cas_wrong += 1;
                self.store.count(old).cas_badval += 1;
                Outcome::Exists
            }
            Verb::Append | Verb::Prepend if head.cas != 0 && head.cas != old_cas => Outcome::Exists,
            Verb::Append | Verb::Prepend
                if self.item_limit.is_exceeded(key.len(), client_flags, value_bytes + value.len()) =>
            {
                Outcome::NotStored
            }
            Verb::Append | Verb::Prepend => {
                match self.store.extend(head.hash, old, value, head.verb == Verb::Append, second) {
                    Ok(item) => Outcome::Stored(item),
                    Err(_) => Outcome::NotStored,
                }
            }
            _ => self.put(head, key, value, meta, second),
        }
    }

    fn put(&mut self, head: &RequestHead, key: &[u8], value: &[u8], meta: Meta, second: u32) -> Outcome {
        match self.store.put(head.hash, key, [value, b""], meta, second) {
            Ok(item) => Outcome::Stored(item),
            Err(_) => {
                self.counters.no_memory += 1;
                // The present value would be out of date.
                if head.verb == Verb::Set
                    && let Some(old) = self.store.peek(head.hash, key)
                {
                    self.store.remove(old);
                }
                Outcome::NoMemory
            }
        }
    }

    /// Adds `delta` to the number that `key` has, or subtracts it.
    pub fn arithmetic(&mut self, head: &RequestHead, key: &[u8], second: u32) -> Outcome {
        let Some(item) = self.find(head.hash, key, second) else { return self.create(head, key, second) };
        let (header, _, value) = self.store.item(item);
        let (bytes, flags, expiry) = (value.len(), header.flags.get(), header.expiry.get());
        if value.is_empty() || bytes > NUMBER_BYTES_MAX {
            return Outcome::NonNumeric;
        }
        if head.cas != 0 && header.cas.get() != head.cas {
            return Outcome::Exists;
        }
        let Some(number) = words::unsigned_64(value) else { return Outcome::NonNumeric };
        let number = if head.verb == Verb::Increment {
            self.counters.increment_hits += 1;
            self.store.count(item).incr_hits += 1;
            number.wrapping_add(head.delta)
        } else {
            self.counters.decrement_hits += 1;
            self.store.count(item).decr_hits += 1;
            number.saturating_sub(head.delta)
        };
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(number).as_bytes();
        if digits.len() <= bytes {
            let cas = self.store.next_cas();
            let value = self.store.value_mut(item);
            value[..digits.len()].copy_from_slice(digits);
            value[digits.len()..].fill(b' ');
            self.store.header_mut(item).cas.set(cas);
            self.renew(item, second);
            return Outcome::Number(item, number);
        }
        let meta = Meta { flags, expiry, state: 0 };
        match self.store.put(head.hash, key, [digits, b""], meta, second) {
            Ok(item) => {
                // Arithmetic is not a command that stores.
                self.store.count(item).cmd_set -= 1;
                Outcome::Number(item, number)
            }
            Err(_) => Outcome::NoMemoryForNumber,
        }
    }

    /// Deletes `item`, which was found, and counts.
    pub fn delete(&mut self, item: ItemRef) {
        self.counters.delete_hits += 1;
        self.store.count(item).delete_hits += 1;
        self.store.remove(item);
    }

    /// Creates the number that arithmetic did not find, or counts the miss.
    fn create(&mut self, head: &RequestHead, key: &[u8], second: u32) -> Outcome {
        if !head.has(Bits::CREATE | Bits::VIVIFY) {
            let is_increment = head.verb == Verb::Increment;
            self.counters.increment_misses += u64::from(is_increment);
            self.counters.decrement_misses += u64::from(!is_increment);
            return Outcome::NotFound;
        }
        // Meta commands set the expiry time afterwards, flag by flag.
        let expiry = if head.has(Bits::CREATE) { head.expiry } else { 0 };
        let mut buffer = itoa::Buffer::new();
        let digits = buffer.format(head.initial).as_bytes();
        let meta = Meta { flags: 0, expiry, state: 0 };
        let created = self.store.put(head.hash, key, [digits, b""], meta, second);
        created.map_or(Outcome::NoMemoryToCreate, Outcome::Created)
    }

    /// Counts `request` for the prefix of `key`.
    pub fn count_prefix(&mut self, request: &Request<'_>, key: &[u8], delimiter: u8, second: u32) {
        let what = match request.head.verb {
            Verb::Get | Verb::GetTouch => {
                let live = self.find(request.head.hash, key, second);
                Prefixed::Get { hit: live.is_some() }
            }
            Verb::Set | Verb::Add | Verb::Replace | Verb::Append | Verb::Prepend | Verb::Cas => Prefixed::Set,
            Verb::Delete => Prefixed::Delete,
            _ => return,
        };
        self.prefixes.count(key, delimiter, what);
    }

    /// Returns the sizes that `stats` reports.
    pub fn gauges(&self, second: u32) -> Gauges {
        let (sweeps, is_sweeping) = self.store.sweeps(second);
        Gauges {
            items: self.store.count_items(),
            items_total: self.store.total_items(),
            bytes: self.store.bytes(),
            index_bytes: self.store.index_bytes(),
            sweeps,
            sweeping: is_sweeping.into(),
            pages_moved: self.store.pages_moved(),
            counts: self.store.counts(),
        }
    }

    fn renew(&mut self, item: ItemRef, second: u32) {
        let header = self.store.header_mut(item);
        if header.time.get() + RENEW_SECONDS < second {
            header.time.set(second);
        }
    }
}
