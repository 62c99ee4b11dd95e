//! Handles input: parses replies, checks values, ends operations.

use std::mem;

use plimsoll_units::Time;

use super::{Failure, Generator};
use crate::book::Book;
use crate::link::{Pending, ServerLink};
use crate::protocol::{Answer, DatagramFrame, Parsed, Protocol, RequestKind, excerpt};
use crate::setup::{Pace, Setup};

/// The effect of the head of some input on a request.
enum ReplyEffect {
    /// The reply is not complete.
    Incomplete { consumed: usize },
    /// The input completed the reply.
    Ended { consumed: usize, failure: Option<Failure> },
    /// The input is not a reply.
    Bad(String),
}

impl Generator {
    /// Handles `input` of connection `link`. An error states why the connection must be closed.
    ///
    /// # Errors
    /// Returns an error if the server sent something that is not a reply.
    pub fn receive(&mut self, link: usize, now: Time, input: &[u8]) -> Result<(), String> {
        let mut kept = mem::take(&mut self.links[link].input);
        if kept.is_empty() {
            let consumed = self.receive_whole(link, now, input)?;
            kept.extend_from_slice(&input[consumed..]);
        } else {
            kept.extend_from_slice(input);
            let consumed = self.receive_whole(link, now, &kept)?;
            kept.drain(..consumed);
        }
        self.links[link].input = kept;
        Ok(())
    }

    fn receive_whole(&mut self, link: usize, now: Time, input: &[u8]) -> Result<usize, String> {
        let mut consumed = 0;
        while consumed < input.len() {
            let Self { setup, links, book, .. } = self;
            let Some(pending) = links[link].front() else {
                return Err(format!("`{}` was received without a request", excerpt(&input[consumed..])));
            };
            match take(setup, book, pending, &input[consumed..]) {
                ReplyEffect::Incomplete { consumed: done } => return Ok(consumed + done),
                ReplyEffect::Ended { consumed: done, failure } => {
                    consumed += done;
                    let ended = links[link].take_front().expect("it was at the front");
                    self.end_request(ended, now, failure);
                }
                ReplyEffect::Bad(reason) => return Err(reason),
            }
        }
        Ok(consumed)
    }

    /// Handles a datagram that was received on the socket of `link`.
    pub fn receive_datagram(&mut self, link: usize, now: Time, datagram: &[u8]) {
        let Self { setup, links, book, .. } = self;
        let Some((frame, body)) = DatagramFrame::split(datagram) else {
            book.counts.late += 1;
            book.example(|| format!("a datagram without a frame: `{}`", excerpt(datagram)));
            return;
        };
        let Some((number, pending)) = links[link].named(frame.request) else {
            book.counts.late += 1;
            return;
        };
        let joined;
        let body = if frame.total == 1 {
            body
        } else {
            match join(pending, frame, body) {
                None => return,
                Some(whole) => {
                    joined = whole;
                    &joined
                }
            }
        };
        let failure = match take(setup, book, pending, body) {
            // memcached 1.6 sends each value of a get of many keys as if it were the whole reply.
            ReplyEffect::Incomplete { consumed } if consumed > 0 && consumed == body.len() => return,
            ReplyEffect::Ended { consumed, failure } if consumed == body.len() => failure,
            ReplyEffect::Bad(reason) => {
                book.example(|| reason);
                Some(Failure::Refused)
            }
            ReplyEffect::Ended { .. } | ReplyEffect::Incomplete { .. } => {
                book.example(|| format!("`{}` is not one whole reply", excerpt(body)));
                Some(Failure::Refused)
            }
        };
        let ended = links[link].take(number).expect("it was found by its number");
        self.end_request(ended, now, failure);
    }

    /// Closes connection `link`; all its outstanding requests are lost.
    pub fn close(&mut self, link: usize, now: Time, reason: &str) {
        if mem::replace(&mut self.links[link].closed, true) {
            return;
        }
        let servers = self.setup.placement.servers() as usize;
        self.clients[link / servers].broken = true;
        self.book.counts.closed += 1;
        self.book.example(|| format!("connection {link}: {reason}"));
        let ServerLink { out, ends, input, .. } = &mut self.links[link];
        out.clear();
        ends.clear();
        input.clear();
        while let Some(pending) = self.links[link].take_front() {
            self.end_request(pending, now, Some(Failure::Lost));
        }
    }

    /// Times out requests that were sent longer ago than the timeout.
    pub(super) fn give_up(&mut self, now: Time) {
        for link in 0..self.links.len() {
            while let Some(front) = self.links[link].front()
                && front.sent.saturating_add(self.setup.timeout) <= now
            {
                let lost = self.links[link].take_front().expect("it was at the front");
                self.end_request(lost, now, Some(Failure::Lost));
            }
        }
    }

    fn end_request(&mut self, pending: Pending, now: Time, failure: Option<Failure>) {
        if matches!(self.phase.pace, Pace::Load(_)) && failure == Some(Failure::Lost) {
            self.again.push(pending.request.keys[0]);
        }
        let is_given_up = self.is_given_up(pending.operation, pending.copy);
        self.end_part(pending.operation, now, failure, is_given_up);
    }
}

/// Consumes the part of `input` that belongs to the reply to `pending`.
fn take(setup: &Setup, book: &mut Book, pending: &mut Pending, input: &[u8]) -> ReplyEffect {
    let mut consumed = 0;
    loop {
        let rest = &input[consumed..];
        match setup.protocol.parse(&pending.request, pending.passed, &setup.texts, rest) {
            Parsed::Incomplete => return ReplyEffect::Incomplete { consumed },
            Parsed::Bad(reason) => return ReplyEffect::Bad(reason),
            Parsed::Value { consumed: done, position, value } => {
                consumed += done;
                pending.passed = position + 1;
                pending.hits += 1;
                book.counts.hits += 1;
                let key = pending.request.keys[position];
                if let Err(reason) = setup.check(key, value) {
                    book.counts.wrong += 1;
                    pending.wrong = true;
                    book.example(|| wrong_value(setup, key, &reason, value));
                }
            }
            Parsed::Over { consumed: done, answer } => {
                consumed += done;
                if pending.request.kind == RequestKind::Get && answer == Answer::Done {
                    book.counts.misses += (pending.request.keys.len() - pending.hits) as u64;
                }
                let failure = match answer {
                    Answer::Refused(reason) => {
                        book.example(|| format!("the server rejected a request: {reason}"));
                        Some(Failure::Refused)
                    }
                    Answer::Done => pending.wrong.then_some(Failure::Wrong),
                };
                return ReplyEffect::Ended { consumed, failure };
            }
        }
    }
}

fn wrong_value(setup: &Setup, key: u64, reason: &str, value: &[u8]) -> String {
    let mut text = Vec::new();
    setup.texts.keys.write(key, &mut text);
    let got = if setup.protocol == Protocol::Search {
        excerpt(value)
    } else {
        excerpt(&value[..value.len().min(24)])
    };
    format!("wrong value of key `{}` (number {key}): {reason}; it starts with `{got}`", text.escape_ascii())
}

/// Returns the whole reply, once its last datagram has arrived.
fn join(pending: &mut Pending, frame: DatagramFrame, body: &[u8]) -> Option<Vec<u8>> {
    let total = usize::from(frame.total);
    if pending.parts.len() != total {
        pending.parts = vec![None; total];
    }
    pending.parts[usize::from(frame.sequence)] = Some(body.into());
    let whole: Option<Vec<&[u8]>> = pending.parts.iter().map(Option::as_deref).collect();
    whole.map(|parts| parts.concat())
}
