//! A client over UDP: one command in each datagram, several in flight, and datagrams without a meaning.

use std::net::{Ipv4Addr, UdpSocket};
use std::ops::Range;
use std::time::Duration;

use crate::common::random::Random;
use crate::soak::book::{Book, Sent};
use crate::soak::protocol::{Mode, Protocol};
use crate::soak::values::Size;

/// Datagrams in flight at a time.
const WINDOW: usize = 8;
/// The time after which a datagram counts as lost.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of memcached's frame header.
const FRAME_BYTES: usize = 8;

/// The client that sends datagrams.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    keys: Range<u32>,
    id: u16,
}

/// A command that was sent and has no whole answer yet.
#[derive(Debug)]
struct Flight {
    id: u16,
    protocol: Protocol,
    sent: Sent,
    /// The datagrams of the answer that have arrived, and their total number.
    parts: Vec<(u16, Vec<u8>)>,
    count: u16,
}

impl Datagrams {
    /// A client of the server on `port`; its keys come into the book.
    pub fn new(port: u16, book: &mut Book) -> Datagrams {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        socket.connect((Ipv4Addr::LOCALHOST, port)).expect("an address");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Datagrams { socket, keys: book.add(500, Size::Small, false), id: 0 }
    }

    /// One window of commands, answered, and one datagram of garbage.
    pub fn round(&mut self, book: &mut Book, random: &mut Random) -> Result<(), String> {
        let mut flights: Vec<Flight> = Vec::new();
        // Each key once: datagrams need not be handled in their order.
        let first = random.below(u64::from(self.keys.end - self.keys.start) - WINDOW as u64) as u32;
        for key in (self.keys.start + first..).take(WINDOW) {
            let sent = match random.below(8) {
                0..3 => book.get(key, true),
                3 => book.get_many((key..self.keys.end).step_by(WINDOW).take(4).collect(), vec![false; 4]),
                4..7 => book.store(key, Mode::Set, false),
                _ => book.delete(key),
            };
            let protocol = [Protocol::Text, Protocol::Meta, Protocol::Binary][random.below(3) as usize];
            self.id = self.id.wrapping_add(1);
            let mut datagram = [&self.id.to_be_bytes()[..], &[0, 0, 0, 1, 0, 0]].concat();
            protocol.write(&sent.words, &mut datagram);
            self.socket.send(&datagram).expect("it takes datagrams");
            flights.push(Flight { id: self.id, protocol, sent, parts: Vec::new(), count: 0 });
        }
        book.counts.datagrams += flights.len() as u64;
        self.answers(flights, book)?;
        // One in several datagrams, too short a frame, or no request: the answer is an error, or nothing.
        let garbage: Vec<u8> = (0..random.below(60)).map(|_| random.next() as u8).collect();
        self.socket.send(&garbage).expect("it takes datagrams");
        Ok(())
    }

    fn answers(&mut self, mut flights: Vec<Flight>, book: &mut Book) -> Result<(), String> {
        let mut datagram = [0; 2048];
        while !flights.is_empty() {
            let Ok(bytes) = self.socket.recv(&mut datagram) else {
                book.counts.datagrams_lost += flights.len() as u64;
                flights.iter().for_each(|flight| book.lose(&flight.sent));
                return Ok(());
            };
            let Some((header, part)) = datagram[..bytes].split_first_chunk::<FRAME_BYTES>() else {
                return Err(format!("a datagram of {bytes} bytes"));
            };
            let number = |place: usize| u16::from_be_bytes([header[place], header[place + 1]]);
            // A late datagram, or an answer to garbage, belongs to no request here.
            let Some(place) = flights.iter().position(|flight| flight.id == number(0)) else { continue };
            let flight = &mut flights[place];
            flight.parts.push((number(2), part.to_vec()));
            flight.count = number(4);
            if flight.parts.len() == usize::from(flight.count) {
                let mut flight = flights.swap_remove(place);
                flight.parts.sort_unstable();
                let whole: Vec<u8> = flight.parts.into_iter().flat_map(|(_, part)| part).collect();
                match flight.protocol.read(&flight.sent.words, &whole)? {
                    Some((answer, used)) if used == whole.len() => book.check(&flight.sent, &answer)?,
                    _ => return Err(format!("{:?}: {}", flight.sent.words, whole.escape_ascii())),
                }
            }
        }
        Ok(())
    }
}
