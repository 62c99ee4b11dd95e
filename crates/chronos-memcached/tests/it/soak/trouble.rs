//! Clients that misbehave: they come and go, read late, stop halfway, break off, and send nonsense.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::ops::Range;
use std::time::Duration;

use socket2::Socket;

use crate::common::random::Random;
use crate::soak::book::{Book, Sent};
use crate::soak::client::{Input, Place, wait};
use crate::soak::protocol::{Mode, Protocol};
use crate::soak::values::Size;

/// Connections that send nothing.
const IDLE: usize = 32;
/// Answers that a slow reader asks for at once, each of up to 900 kB.
const SLOW_ANSWERS: usize = 8;
/// Bytes that it reads in a round.
const SLOW_BYTES: usize = 64 << 10;

/// All of these clients, for one server.
#[derive(Debug)]
pub struct Trouble {
    place: Place,
    keys: Range<u32>,
    big: u32,
    idle: Vec<Socket>,
    slow: Option<Slow>,
}

/// A client that reads late.
#[derive(Debug)]
struct Slow {
    socket: Socket,
    protocol: Protocol,
    asked: Vec<Sent>,
    input: Input,
}

fn any_protocol(random: &mut Random) -> Protocol {
    [Protocol::Text, Protocol::Meta, Protocol::Binary][random.below(3) as usize]
}

impl Trouble {
    /// Connects the clients to the server at `place`, and adds their keys to the book.
    pub fn new(place: &Place, book: &mut Book) -> Trouble {
        let (keys, big) = (book.add(200, Size::Small, true), book.add(1, Size::Big, true));
        Trouble { place: place.clone(), keys, big: big.start, idle: Vec::new(), slow: None }
    }

    /// A little of everything.
    pub fn round(&mut self, book: &mut Book, random: &mut Random) -> Result<(), String> {
        self.come_and_go(book, random)?;
        match random.below(4) {
            0 => self.half_close(book, random)?,
            1 | 2 => self.reset(book, random),
            _ => self.garbage(book, random),
        }
        if random.once_in(200) {
            self.flush(book)?;
        }
        self.read_late(book, random)
    }

    fn connect(&self, book: &mut Book) -> Socket {
        book.counts.connections += 1;
        self.place.connect()
    }

    fn key(&self, random: &mut Random) -> u32 {
        self.keys.start + random.below(u64::from(self.keys.end - self.keys.start)) as u32
    }

    /// Ends abruptly: the server may still read the bytes sent, or not.
    fn break_off(&self, socket: Socket, book: &mut Book) {
        book.counts.resets += 1;
        if matches!(self.place, Place::Tcp(_)) {
            socket.set_linger(Some(Duration::ZERO)).expect("an option of TCP");
        }
    }

    /// A connection for a store and a fetch, and one that only stays for a while.
    fn come_and_go(&mut self, book: &mut Book, random: &mut Random) -> Result<(), String> {
        let (mut socket, mut input, protocol) = (self.connect(book), Input::default(), any_protocol(random));
        let key = self.key(random);
        for sent in [book.store(key, Mode::Set, false), book.get(key, false)] {
            let mut output = Vec::new();
            protocol.write(&sent.words, &mut output);
            socket.write_all(&output).expect("it takes requests");
            let answer = wait(&mut socket, &mut input, protocol, &sent.words)?;
            book.check(&sent, &answer)?;
        }
        let socket = self.connect(book);
        self.idle.push(socket);
        if self.idle.len() > IDLE {
            self.idle.swap_remove(random.below(IDLE as u64) as usize);
        }
        Ok(())
    }

    /// Sends requests and ends the sending, then reads all answers and their end.
    fn half_close(&self, book: &mut Book, random: &mut Random) -> Result<(), String> {
        let (mut socket, mut input, protocol) = (self.connect(book), Input::default(), any_protocol(random));
        book.counts.half_closed += 1;
        let (mut asked, mut output) = (Vec::new(), Vec::new());
        for _ in 0..20 {
            let key = self.key(random);
            let sent =
                if random.once_in(3) { book.store(key, Mode::Set, false) } else { book.get(key, false) };
            protocol.write(&sent.words, &mut output);
            asked.push(sent);
        }
        socket.write_all(&output).expect("it takes requests");
        socket.shutdown(Shutdown::Write).expect("a connection");
        while input.fill(&mut socket, 64 << 10) {}
        for sent in asked {
            let answer =
                input.answer(protocol, &sent.words)?.ok_or("an answer is missing after a half-close")?;
            book.check(&sent, &answer)?;
        }
        if input.is_empty() { Ok(()) } else { Err("more answers than requests".to_owned()) }
    }

    /// Requests, half a request perhaps, and a reset before, amid or after the answers.
    fn reset(&self, book: &mut Book, random: &mut Random) {
        let (mut socket, protocol) = (self.connect(book), any_protocol(random));
        let mut output = Vec::new();
        for _ in 0..random.below(20) {
            let key = self.key(random);
            let sent =
                if random.once_in(2) { book.store(key, Mode::Set, false) } else { book.get(key, false) };
            protocol.write(&sent.words, &mut output);
        }
        if random.once_in(4) {
            protocol.write(&book.store(self.big, Mode::Set, false).words, &mut output);
        }
        let cut = random.below(output.len() as u64 + 1) as usize;
        let sent = if random.once_in(2) { &output[..cut] } else { &output[..] };
        socket.write_all(sent).expect("it takes requests");
        if random.once_in(3) && !sent.is_empty() {
            // Some bytes, or none: half a request has no answer.
            socket.set_nonblocking(true).expect("a socket");
            let _ = socket.read(&mut [0; 1000]);
        }
        self.break_off(socket, book);
    }

    /// Bytes without a meaning, and requests with some bytes changed; never a key of the book's.
    fn garbage(&self, book: &mut Book, random: &mut Random) {
        let mut socket = self.connect(book);
        book.counts.garbage += 1;
        let mut output: Vec<u8> = match random.below(4) {
            0 => (0..random.below(3000)).map(|_| random.next() as u8).collect(),
            1 => b"get junk:1 junk:2\r\nset junk:3 0 0 4\r\njunk\r\nmg junk:4 v t k\r\nincr junk:5 1\r\n"
                .repeat(5),
            // A binary header whose body is long, and never comes.
            2 => vec![0x80, 1, 0, 6, 8, 0, 0, 0, 0, 0x0f, 0xff, 0xff, b'j', b'u', b'n', b'k'],
            _ => b"set junk:6 0 0 900000\r\njunk".to_vec(),
        };
        for _ in 0..random.below(4).min(output.len() as u64) {
            let place = random.below(output.len() as u64) as usize;
            output[place] = random.next() as u8;
        }
        // The server may end the connection before it has read all.
        let _ = socket.write_all(&output);
        if random.once_in(2) {
            self.break_off(socket, book);
        }
    }

    fn flush(&self, book: &mut Book) -> Result<(), String> {
        let mut socket = self.connect(book);
        book.counts.flushes += 1;
        socket.write_all(b"flush_all\r\n").expect("it takes requests");
        let mut reply = [0; 4];
        socket.read_exact(&mut reply).map_err(|error| format!("flush_all: {error}"))?;
        if reply == *b"OK\r\n" { Ok(()) } else { Err(format!("flush_all: {}", reply.escape_ascii())) }
    }

    /// Megabytes of answers, read a little a round; or not to the end.
    fn read_late(&mut self, book: &mut Book, random: &mut Random) -> Result<(), String> {
        let Some(slow) = &mut self.slow else {
            let (mut socket, protocol) = (self.connect(book), any_protocol(random));
            let mut output = Vec::new();
            let store = book.store(self.big, Mode::Set, false);
            let mut asked = vec![store];
            asked.extend((0..SLOW_ANSWERS).map(|_| book.get(self.big, false)));
            asked.iter().for_each(|sent| protocol.write(&sent.words, &mut output));
            socket.write_all(&output).expect("it takes requests");
            self.slow = Some(Slow { socket, protocol, asked, input: Input::default() });
            return Ok(());
        };
        if !slow.input.fill(&mut slow.socket, SLOW_BYTES) {
            return Err("a slow reader's connection was ended".to_owned());
        }
        while let Some(sent) = slow.asked.first() {
            let Some(answer) = slow.input.answer(slow.protocol, &sent.words)? else { break };
            book.check(sent, &answer)?;
            book.counts.slow_replies += 1;
            slow.asked.remove(0);
        }
        if slow.asked.is_empty() {
            self.slow = None;
        } else if random.once_in(200)
            && let Some(slow) = self.slow.take()
        {
            self.break_off(slow.socket, book);
        }
        Ok(())
    }
}
