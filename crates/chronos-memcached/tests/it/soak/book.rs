//! The expected state of each key: the book against which answers are checked.
//!
//! A key has one client that changes it, over one connection at a time. That client knows the result of a fetch: the
//! version that it stored last, or nothing if that was evicted; and an evicted version does not return. Every other
//! client finds a version no older than the last that was acknowledged before it asked, and no newer than the last that
//! was sent. Keys whose changes may be late (sent before a reset, in a datagram that was lost) are *loose*: any version
//! that was ever sent is allowed.

use crate::soak::protocol::{Answer, Item, Mode, Words};
use crate::soak::values::{Size, value, version};

/// The result that a fetch by the key's own client must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Expected {
    Gone,
    /// This version, or nothing.
    Version(u32),
}

/// The expectations of a key.
#[derive(Clone, Debug)]
struct Entry {
    size: Size,
    /// The last version that was sent.
    issued: u32,
    /// The last version that was acknowledged, and the same at the start of the round.
    acknowledged: u32,
    floor: u32,
    expected: Expected,
    /// Its cas value, if no later command may change it.
    cas: Option<u64>,
    /// Changes that were sent.
    changes: u32,
    is_loose: bool,
}

/// All keys of one server, by number.
#[derive(Debug)]
pub struct Book {
    entries: Vec<Entry>,
    changed: Vec<u32>,
    pub counts: Counts,
}

/// The numbers of answers by their kind.
#[derive(Clone, Default, Debug)]
pub struct Counts {
    pub operations: u64,
    pub hits: u64,
    pub misses: u64,
    pub refused: u64,
    pub connections: u64,
    pub resets: u64,
    pub half_closed: u64,
    pub garbage: u64,
    pub slow_replies: u64,
    pub datagrams: u64,
    pub datagrams_lost: u64,
    pub flushes: u64,
}

/// A command that was sent, with the expectations for its answer.
#[derive(Clone, Debug)]
pub struct Sent {
    pub words: Words,
    what: What,
}

#[derive(Clone, Debug)]
enum What {
    Store { key: u32, version: u32, mode: Mode, expired: bool },
    Get { key: u32, is_own: bool, changes: u32 },
    GetMany { keys: Vec<u32>, own: Vec<bool> },
    Delete(u32),
    Touch(u32),
}

fn name(key: u32) -> String {
    format!("soak-{key}")
}

impl Book {
    /// Creates a book without keys.
    pub fn new() -> Book {
        Book { entries: Vec::new(), changed: Vec::new(), counts: Counts::default() }
    }

    /// Adds `count` more keys, and returns their numbers.
    pub fn add(&mut self, count: u32, size: Size, is_loose: bool) -> std::ops::Range<u32> {
        let first = self.entries.len() as u32;
        let expected = Expected::Gone;
        let entry =
            Entry { size, issued: 0, acknowledged: 0, floor: 0, expected, cas: None, changes: 0, is_loose };
        self.entries.resize(self.entries.len() + count as usize, entry);
        first..first + count
    }

    /// Returns the number of keys.
    pub fn len(&self) -> u32 {
        self.entries.len() as u32
    }

    /// The size of a key's values.
    pub fn size(&self, key: u32) -> Size {
        self.entries[key as usize].size
    }

    /// The cas value of a key, if it is known.
    pub fn cas(&self, key: u32) -> Option<u64> {
        self.entries[key as usize].cas
    }

    /// A store of the next version.
    pub fn store(&mut self, key: u32, mode: Mode, expired: bool) -> Sent {
        let entry = self.change(key);
        entry.issued += 1;
        let (version, size) = (entry.issued, entry.size);
        let value = value(key, version, size);
        let words = Words::Store { mode, key: name(key), flags: version ^ key, expired, value };
        Sent { words, what: What::Store { key, version, mode, expired } }
    }

    /// A fetch, by the client that changes the key (`is_own`) or by another.
    pub fn get(&self, key: u32, is_own: bool) -> Sent {
        let changes = self.entries[key as usize].changes;
        Sent { words: Words::Get(name(key)), what: What::Get { key, is_own, changes } }
    }

    /// A fetch of several keys, each once.
    pub fn get_many(&self, keys: Vec<u32>, own: Vec<bool>) -> Sent {
        let names = keys.iter().copied().map(name).collect();
        Sent { words: Words::GetMany(names), what: What::GetMany { keys, own } }
    }

    /// Notes that a key is being deleted.
    pub fn delete(&mut self, key: u32) -> Sent {
        self.change(key);
        Sent { words: Words::Delete(name(key)), what: What::Delete(key) }
    }

    /// A touch, without an end.
    pub fn touch(&mut self, key: u32) -> Sent {
        self.change(key);
        Sent { words: Words::Touch(name(key)), what: What::Touch(key) }
    }

    fn change(&mut self, key: u32) -> &mut Entry {
        let entry = &mut self.entries[key as usize];
        entry.changes += 1;
        entry.cas = None;
        entry
    }

    /// Notes that the time at which this command runs is unknown, and so is whether it runs.
    pub fn lose(&mut self, sent: &Sent) {
        match sent.what {
            What::Store { key, .. } | What::Delete(key) | What::Touch(key) => {
                self.entries[key as usize].is_loose = true;
            }
            What::Get { .. } | What::GetMany { .. } => {}
        }
    }

    /// Ends a round: every later fetch must find the versions that were acknowledged until now.
    pub fn end_round(&mut self) {
        for key in self.changed.drain(..) {
            let entry = &mut self.entries[key as usize];
            entry.floor = entry.acknowledged;
        }
    }

    /// Checks an answer against the book.
    ///
    /// # Errors
    /// If the answer is wrong; the error describes it.
    pub fn check(&mut self, sent: &Sent, answer: &Answer) -> Result<(), String> {
        self.counts.operations += 1;
        self.counts.refused += u64::from(*answer == Answer::NoMemory);
        let result = match &sent.what {
            What::Store { key, version, mode, expired } => {
                self.stored(*key, *version, *mode, *expired, answer)
            }
            What::Get { key, is_own, changes } => match answer {
                Answer::Items(items) => self.fetched(&[*key], &[*is_own], items).map(|()| {
                    let entry = &mut self.entries[*key as usize];
                    let is_fresh = entry.changes == *changes && *is_own && !entry.is_loose;
                    entry.cas = items.first().filter(|_| is_fresh).map(|item| item.cas);
                }),
                _ => Err("no items".to_owned()),
            },
            What::GetMany { keys, own } => match answer {
                Answer::Items(items) => self.fetched(keys, own, items),
                _ => Err("no items".to_owned()),
            },
            What::Delete(key) => self.settled(*key, answer, false),
            What::Touch(key) => self.settled(*key, answer, true),
        };
        result.map_err(|wrong| {
            let (what, mut shown) = (&sent.what, format!("{answer:?}"));
            shown.truncate(300);
            format!("{what:?} was answered {shown}: {wrong}")
        })
    }

    fn stored(
        &mut self,
        key: u32,
        version: u32,
        mode: Mode,
        expired: bool,
        answer: &Answer,
    ) -> Result<(), String> {
        let entry = &mut self.entries[key as usize];
        let was_there = entry.expected != Expected::Gone;
        let is_possible = match (mode, answer) {
            (Mode::Set | Mode::Add, Answer::Done) => true,
            (Mode::Replace | Mode::Cas(_), Answer::Done) => was_there,
            (Mode::Add, Answer::NotStored) => was_there,
            (Mode::Replace, Answer::NotStored) | (Mode::Cas(_), Answer::NotFound) => true,
            (_, Answer::NoMemory) => true,
            _ => false,
        };
        if !is_possible && !entry.is_loose {
            return Err(format!("with {:?} there", entry.expected));
        }
        match (mode, answer) {
            (_, Answer::Done) if expired => entry.expected = Expected::Gone,
            (_, Answer::Done) => {
                entry.expected = Expected::Version(version);
                entry.acknowledged = version;
                self.changed.push(key);
            }
            // The present item stays.
            (Mode::Add, Answer::NotStored) | (Mode::Replace | Mode::Cas(_), Answer::NoMemory) => {}
            _ => entry.expected = Expected::Gone,
        }
        Ok(())
    }

    /// Checks the answer to a delete or a touch.
    fn settled(&mut self, key: u32, answer: &Answer, stays: bool) -> Result<(), String> {
        let entry = &mut self.entries[key as usize];
        match answer {
            Answer::NotFound => entry.expected = Expected::Gone,
            Answer::Done if entry.expected == Expected::Gone && !entry.is_loose => {
                return Err("it was gone".to_owned());
            }
            Answer::Done if stays => {}
            Answer::Done => entry.expected = Expected::Gone,
            _ => return Err("no such answer".to_owned()),
        }
        Ok(())
    }

    fn fetched(&mut self, keys: &[u32], own: &[bool], items: &[Item]) -> Result<(), String> {
        let mut items = items.iter().peekable();
        for (&key, &is_own) in keys.iter().zip(own) {
            let entry = &mut self.entries[key as usize];
            let Some(item) = items.next_if(|item| item.key == name(key)) else {
                self.counts.misses += 1;
                if is_own {
                    entry.expected = Expected::Gone;
                }
                continue;
            };
            self.counts.hits += 1;
            let found =
                version(key, entry.size, &item.value).map_err(|wrong| format!("key {key}: {wrong}"))?;
            let is_right = match (entry.is_loose, is_own) {
                (true, _) => found <= entry.issued,
                (false, true) => entry.expected == Expected::Version(found),
                (false, false) => (entry.floor..=entry.issued).contains(&found),
            };
            if !is_right || item.flags != found ^ key {
                return Err(format!(
                    "key {key}: version {found}, flags {}, with {entry:?} (own: {is_own})",
                    item.flags
                ));
            }
        }
        items.next().map_or(Ok(()), |item| Err(format!("{} was not asked for, or not there", item.key)))
    }
}
