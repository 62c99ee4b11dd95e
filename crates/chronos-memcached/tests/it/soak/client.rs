//! Connections, and the client that keeps one for a long time.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::common::random::Random;
use crate::soak::book::{Book, Sent};
use crate::soak::protocol::{Answer, Mode, Protocol, Words};
use crate::soak::values::Size;

/// The time after which an answer counts as lost.
const PATIENCE: Duration = Duration::from_secs(60);
/// The number of commands in a batch.
const BATCH: usize = 40;
/// Bytes of requests, and of answers, after which a batch ends: the server stops reading a client that leaves 1 MiB
/// unread.
const BATCH_BYTES: usize = 128 << 10;

/// The place at which a server listens.
#[derive(Clone, Debug)]
pub enum Place {
    Tcp(u16),
    Unix(PathBuf),
}

impl Place {
    /// Opens a connection to the server.
    pub fn connect(&self) -> Socket {
        let (domain, address) = match self {
            Place::Tcp(port) => {
                (Domain::IPV4, std::net::SocketAddr::from((Ipv4Addr::LOCALHOST, *port)).into())
            }
            Place::Unix(path) => (Domain::UNIX, SockAddr::unix(path).expect("a path")),
        };
        let socket = Socket::new(domain, Type::STREAM, None).expect("a socket");
        socket.connect(&address).expect("it listens");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        socket.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        socket
    }
}

/// Bytes that arrived and are not parsed yet.
#[derive(Debug, Default)]
pub struct Input(Vec<u8>);

impl Input {
    /// Reads once; false at the end of the connection.
    pub fn fill(&mut self, socket: &mut Socket, bytes_max: usize) -> bool {
        let before = self.0.len();
        self.0.resize(before + bytes_max, 0);
        let got = socket.read(&mut self.0[before..]).expect("an answer in time");
        self.0.truncate(before + got);
        got > 0
    }

    /// The next answer, if it is whole.
    pub fn answer(&mut self, protocol: Protocol, words: &Words) -> Result<Option<Answer>, String> {
        let Some((answer, used)) = protocol.read(words, &self.0)? else { return Ok(None) };
        self.0.drain(..used);
        Ok(Some(answer))
    }

    /// True if nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The answer to `words`, waited for.
pub fn wait(
    socket: &mut Socket,
    input: &mut Input,
    protocol: Protocol,
    words: &Words,
) -> Result<Answer, String> {
    loop {
        if let Some(answer) = input.answer(protocol, words)? {
            return Ok(answer);
        }
        if !input.fill(socket, 64 << 10) {
            return Err(format!("the connection ended before the answer to {words:.200?}"));
        }
    }
}

/// A client that keeps its connection, sends batches, and is answered in full.
#[derive(Debug)]
pub struct Client {
    socket: Socket,
    protocol: Protocol,
    small: Range<u32>,
    middle: Range<u32>,
    big: Range<u32>,
    counter: Counter,
    chain: Chain,
    /// The commands that wait for answers.
    sent: Vec<Task>,
    input: Input,
    output: Vec<u8>,
}

#[derive(Debug)]
enum Task {
    Book(Sent),
    Counter(Words),
    Chain(Words),
}

/// A number that only this client increments.
#[derive(Debug)]
struct Counter {
    key: String,
    /// The present number, if it exists.
    number: Option<u64>,
    /// In text, a missing number is created by a store.
    is_missing: bool,
}

/// A value to which only this client adds pieces at both ends.
#[derive(Debug)]
struct Chain {
    key: String,
    /// The present value, if it exists.
    value: Option<Vec<u8>>,
}

impl Counter {
    fn next(&mut self) -> Words {
        let key = self.key.clone();
        if !std::mem::take(&mut self.is_missing) {
            return Words::Increment(key);
        }
        Words::Store { mode: Mode::Add, key, flags: 0, expired: false, value: b"1".to_vec() }
    }
}

impl Chain {
    fn next(&self, random: &mut Random) -> Words {
        let piece: Vec<u8> = (0..random.below(100)).map(|_| random.next() as u8).collect();
        let mode = match random.below(16) {
            0 => Mode::Set,
            1..6 => Mode::Append,
            6..11 => Mode::Prepend,
            _ => return Words::Get(self.key.clone()),
        };
        Words::Store { mode, key: self.key.clone(), flags: 0, expired: false, value: piece }
    }

    fn check(&mut self, words: &Words, answer: &Answer) -> Result<(), String> {
        match (words, answer, &mut self.value) {
            (Words::Store { mode: Mode::Set, value, .. }, Answer::Done, there) => {
                *there = Some(value.clone());
            }
            (Words::Store { mode: Mode::Set, .. }, Answer::NoMemory, there) => *there = None,
            (Words::Store { mode: Mode::Append, value, .. }, Answer::Done, Some(there)) => {
                there.extend_from_slice(value);
            }
            (Words::Store { mode: Mode::Prepend, value, .. }, Answer::Done, Some(there)) => {
                there.splice(0..0, value.iter().copied());
            }
            // The item was evicted, or the budget has no memory for more of it.
            (Words::Store { .. }, Answer::NotStored | Answer::NoMemory, _) => {}
            (Words::Get(_), Answer::Items(items), there) => match (&items[..], &there) {
                ([], _) => *there = None,
                ([item], Some(value)) if item.value == *value => {}
                _ => return Err(format!("{items:?} in place of {there:?}")),
            },
            (_, _, there) => return Err(format!("{words:?} was answered {answer:?}, with {there:?} there")),
        }
        Ok(())
    }
}

impl Client {
    /// Connects, and adds the client's keys to the book.
    pub fn new(place: &Place, protocol: Protocol, number: usize, book: &mut Book) -> Client {
        book.counts.connections += 1;
        Client {
            socket: place.connect(),
            protocol,
            small: book.add(1500, Size::Small, false),
            middle: book.add(20, Size::Middle, false),
            big: book.add(2, Size::Big, false),
            counter: Counter { key: format!("counter-{number}"), number: None, is_missing: false },
            chain: Chain { key: format!("chain-{number}"), value: None },
            sent: Vec::new(),
            input: Input::default(),
            output: Vec::new(),
        }
    }

    /// Stores every key once.
    pub fn fill(&mut self, book: &mut Book) -> Result<(), String> {
        for key in self.small.start..self.big.end {
            let sent = book.store(key, Mode::Set, false);
            self.push(Task::Book(sent));
            if self.output.len() > BATCH_BYTES {
                self.send();
                self.check(book)?;
            }
        }
        self.send();
        self.check(book)
    }

    /// Sends a batch of commands.
    pub fn start(&mut self, book: &mut Book, random: &mut Random) {
        if random.once_in(20) {
            let key = pick(&self.big, random);
            let sent =
                if random.once_in(2) { book.store(key, Mode::Set, false) } else { book.get(key, true) };
            self.push(Task::Book(sent));
        }
        let mut answer_bytes = 0;
        while self.sent.len() < BATCH && self.output.len().max(answer_bytes) < BATCH_BYTES {
            answer_bytes += self.add(book, random);
        }
        self.send();
    }

    /// Adds a command, and returns the largest size of its answer.
    fn add(&mut self, book: &mut Book, random: &mut Random) -> usize {
        let (key, answer_bytes) = match random.below(16) {
            0 => (pick(&self.middle, random), 60_000),
            // Keys that are fetched often, and stay.
            1..8 => (self.small.start + random.below(100) as u32, 2000),
            _ => (pick(&self.small, random), 2000),
        };
        let sent = match random.below(100) {
            0..35 => book.get(key, true),
            35..50 => {
                // Perhaps of another client; big ones are only for their own.
                let other = random.below(u64::from(book.len())) as u32;
                let other = if book.size(other) == Size::Big { key } else { other };
                let is_own = (self.small.start..self.big.end).contains(&other);
                self.push(Task::Book(book.get(other, is_own)));
                return if book.size(other) == Size::Small { 2000 } else { 60_000 };
            }
            50..55 => {
                let mut keys: Vec<u32> =
                    (0..random.below(10) + 2).map(|_| random.below(u64::from(book.len())) as u32).collect();
                keys.retain(|&key| book.size(key) == Size::Small);
                keys.push(key);
                keys.sort_unstable();
                keys.dedup();
                let own = keys.iter().map(|key| (self.small.start..self.big.end).contains(key)).collect();
                let answer_bytes = answer_bytes + 2000 * keys.len();
                self.push(Task::Book(book.get_many(keys, own)));
                return answer_bytes;
            }
            55..77 => book.store(key, Mode::Set, false),
            77..81 => book.store(key, Mode::Add, false),
            81..85 => book.store(key, Mode::Replace, false),
            85..89 => match book.cas(key) {
                Some(cas) => book.store(key, Mode::Cas(cas), false),
                None => book.get(key, true),
            },
            89..92 => book.delete(key),
            92..94 => book.touch(key),
            94..95 => book.store(key, Mode::Set, true),
            95..97 => {
                let words = self.chain.next(random);
                self.push(Task::Chain(words));
                return 10_000;
            }
            _ => {
                let words = self.counter.next();
                self.push(Task::Counter(words));
                return 30;
            }
        };
        self.push(Task::Book(sent));
        answer_bytes
    }

    fn push(&mut self, task: Task) {
        let words = match &task {
            Task::Book(sent) => &sent.words,
            Task::Counter(words) | Task::Chain(words) => words,
        };
        self.protocol.write(words, &mut self.output);
        self.sent.push(task);
    }

    fn send(&mut self) {
        self.socket.write_all(&self.output).expect("it takes requests");
        self.output.clear();
    }

    /// Reads the answers to the batch, and checks them against the book.
    pub fn check(&mut self, book: &mut Book) -> Result<(), String> {
        for task in std::mem::take(&mut self.sent) {
            match &task {
                Task::Book(sent) => {
                    let answer = wait(&mut self.socket, &mut self.input, self.protocol, &sent.words)?;
                    book.check(sent, &answer)?;
                }
                Task::Counter(words) => {
                    let answer = wait(&mut self.socket, &mut self.input, self.protocol, words)?;
                    book.counts.operations += 1;
                    self.counted(words, &answer)?;
                }
                Task::Chain(words) => {
                    let answer = wait(&mut self.socket, &mut self.input, self.protocol, words)?;
                    book.counts.operations += 1;
                    self.chain.check(words, &answer)?;
                }
            }
        }
        if self.input.is_empty() { Ok(()) } else { Err("more answers than requests".to_owned()) }
    }

    fn counted(&mut self, words: &Words, answer: &Answer) -> Result<(), String> {
        let Counter { number, is_missing, .. } = &mut self.counter;
        match (words, answer) {
            (Words::Increment(_), Answer::Number(sum)) => {
                let begins = self.protocol != Protocol::Text && *sum == 1;
                if !begins && *number != Some(sum - 1) {
                    return Err(format!("{number:?} and 1 came to {sum}"));
                }
                *number = Some(*sum);
            }
            (Words::Increment(_), Answer::NotFound) if self.protocol == Protocol::Text => {
                (*number, *is_missing) = (None, true);
            }
            (Words::Store { .. }, Answer::Done) => *number = Some(1),
            (_, Answer::NoMemory) => {}
            _ => return Err(format!("{words:?} was answered {answer:?}")),
        }
        Ok(())
    }
}

fn pick(range: &Range<u32>, random: &mut Random) -> u32 {
    range.start + random.below(u64::from(range.end - range.start)) as u32
}
