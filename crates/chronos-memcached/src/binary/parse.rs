//! Parses packets into requests, or answers them at once.

use std::sync::atomic::Ordering;

use plimsoll_chronos::{PartitionId, Step};
use zerocopy::FromBytes;

use super::{Echo, Failure, HEADER_BYTES, Header, MAGIC_REQUEST, login, opcode};
use crate::clock::Clock;
use crate::request::{Arguments, Bits, Command, ReplyStyle, Request, RequestHead, Verb};
use crate::server::Memcached;
use crate::session::Session;
use crate::text::KEY_BYTES_MAX;

/// A packet whose extras and key have arrived.
pub(super) struct Packet<'a> {
    pub echo: Echo,
    pub cas: u64,
    pub extras: &'a [u8],
    pub key: &'a [u8],
    /// Bytes that follow the key.
    pub value_bytes: usize,
    /// Bytes of header, extras and key.
    pub head_bytes: usize,
}

/// Returns the key of the packet at the head of `input`.
#[inline]
pub fn glance(input: &[u8]) -> Option<&[u8]> {
    let (header, rest) = Header::ref_from_prefix(input).ok()?;
    let key_bytes = usize::from(header.key_bytes.get());
    let key = rest.get(usize::from(header.extras_bytes)..)?.get(..key_bytes)?;
    (key_bytes <= KEY_BYTES_MAX).then_some(key)
}

/// Reads the head of `input`.
pub fn parse<'a>(
    server: &Memcached,
    session: &mut Session,
    clock: Clock,
    input: &'a [u8],
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    let Ok((header, rest)) = Header::read_from_prefix(input) else {
        return Step::Incomplete { total: HEADER_BYTES };
    };
    if header.magic != MAGIC_REQUEST {
        return Step::Close;
    }
    let (extras_bytes, key_bytes) = (usize::from(header.extras_bytes), usize::from(header.key_bytes.get()));
    let head_bytes = HEADER_BYTES + extras_bytes + key_bytes;
    if input.len() < head_bytes {
        return Step::Incomplete { total: head_bytes };
    }
    let echo = Echo { opcode: header.opcode, opaque: header.opaque };
    let body_bytes = header.body_bytes.get() as usize;
    if extras_bytes + key_bytes > body_bytes {
        return refuse(session, echo, Failure::Unknown, head_bytes, reply);
    }
    if server.settings.sasl && !session.authenticated && !login::is_open(header.opcode) {
        return refuse(session, echo, Failure::Login, head_bytes, reply);
    }
    if key_bytes > KEY_BYTES_MAX {
        return refuse(session, echo, Failure::Invalid, head_bytes, reply);
    }
    let (extras, rest) = rest.split_at(extras_bytes);
    let packet = Packet {
        echo,
        cas: header.cas.get(),
        extras,
        key: &rest[..key_bytes],
        value_bytes: body_bytes - extras_bytes - key_bytes,
        head_bytes,
    };
    let step = dispatch(server, session, clock, input, &packet, reply);
    match step {
        Step::Run { consumed, request, .. } if server.settings.by_vbucket => {
            let partition = PartitionId(u32::from(header.status.get()) % server.settings.partitions);
            Step::Run { consumed, partition, request }
        }
        step => step,
    }
}

/// Answers with an error and closes the connection.
fn refuse<'a>(
    session: &mut Session,
    echo: Echo,
    failure: Failure,
    consumed: usize,
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    echo.fail(reply, failure);
    session.close = true;
    Step::Done { consumed }
}

fn dispatch<'a>(
    server: &Memcached,
    session: &mut Session,
    clock: Clock,
    input: &'a [u8],
    packet: &Packet<'a>,
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    use opcode::*;
    let Packet { echo, head_bytes, value_bytes, .. } = *packet;
    let (extras, key) = (packet.extras.len(), packet.key.len());
    if let Some(command) = Command::of_opcode(echo.opcode) {
        return on_key(server, session, clock, input, packet, command, reply);
    }
    let bare = extras == 0 && key == 0 && value_bytes == 0;
    let valid = match echo.opcode {
        VERSION | NOOP | QUIT | QUIT_QUIET | SASL_LIST => bare,
        FLUSH | FLUSH_QUIET => key == 0 && value_bytes == 0 && (extras == 0 || extras == 4),
        SASL_AUTH | SASL_STEP => extras == 0 && key != 0,
        STAT => extras == 0,
        _ => {
            echo.fail(reply, Failure::Unknown);
            // As memcached, which has consumed extras and key already, and then consumes the whole body.
            session.skip = extras + key + value_bytes;
            return Step::Done { consumed: head_bytes };
        }
    };
    if !valid {
        return refuse(session, echo, Failure::Invalid, head_bytes, reply);
    }
    match echo.opcode {
        VERSION => {
            echo.push(reply, 0, 0, [b"", b"", crate::stats::VERSION.as_bytes()]);
            Step::Done { consumed: head_bytes }
        }
        NOOP => {
            echo.push(reply, 0, 0, [b"", b"", b""]);
            Step::Done { consumed: head_bytes }
        }
        QUIT | QUIT_QUIET => {
            if echo.opcode == QUIT {
                echo.push(reply, 0, 0, [b"", b"", b""]);
            }
            session.close = true;
            Step::Done { consumed: head_bytes }
        }
        FLUSH | FLUSH_QUIET => flush(server, clock, packet, reply),
        STAT => super::report::parse(server, session, clock, packet, reply),
        _ => login::login(server, session, input, packet, reply),
    }
}

fn flush<'a>(
    server: &Memcached,
    clock: Clock,
    packet: &Packet<'a>,
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    if !server.settings.flush {
        packet.echo.fail(reply, Failure::Login);
        return Step::Done { consumed: packet.head_bytes };
    }
    let delay = packet.extras.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    let mut head = head(packet, Verb::Flush);
    head.bits = if packet.echo.opcode == opcode::FLUSH_QUIET { Bits::QUIET } else { 0 };
    head.expiry = if delay > 0 { clock.expiry_unsigned(delay) } else { clock.second };
    Step::Everywhere { consumed: packet.head_bytes, request: Request::new(head, &[]) }
}

/// Reads a command that names a key, by its row in the table of commands.
fn on_key<'a>(
    server: &Memcached,
    session: &mut Session,
    clock: Clock,
    input: &'a [u8],
    packet: &Packet<'a>,
    command: Command,
    reply: &mut Vec<u8>,
) -> Step<Request<'a>> {
    let Packet { cas, extras, key, value_bytes, head_bytes, .. } = *packet;
    let (extras_bytes, takes_value) = match command.arguments {
        Arguments::Keys | Arguments::Key => (0, false),
        Arguments::Expiry | Arguments::ExpiryAndKeys => (4, false),
        Arguments::Number => (20, false),
        Arguments::Value => (8, true),
        Arguments::Piece => (0, true),
    };
    // Where only an expiry time is taken, the bytes after the key are the next packet, as in memcached.
    let has_value = value_bytes > 0 && !takes_value && extras_bytes != 4;
    if extras.len() != extras_bytes || key.is_empty() || has_value {
        return refuse(session, packet.echo, Failure::Invalid, head_bytes, reply);
    }
    let number = |at: usize| u64::read_from_prefix(&extras[at..]).map_or(0, |(number, _)| number.to_be());
    let short = |at: usize| u32::read_from_prefix(&extras[at..]).map_or(0, |(number, _)| number.to_be());
    let mut head = head(packet, command.verb);
    head.bits = command.bits;
    match command.arguments {
        Arguments::Keys | Arguments::Key | Arguments::Piece => {}
        Arguments::Expiry | Arguments::ExpiryAndKeys => head.expiry = clock.expiry_unsigned(short(0)),
        Arguments::Number => {
            (head.delta, head.initial) = (number(0), number(8));
            let expiry = short(16);
            if expiry != u32::MAX {
                head.bits |= Bits::CREATE;
                head.expiry = clock.expiry_unsigned(expiry);
            }
        }
        Arguments::Value => {
            (head.client_flags, head.expiry) = (short(0), clock.expiry_unsigned(short(4)));
            if cas != 0 {
                head.verb = Verb::Cas;
            }
        }
    }
    if !takes_value {
        return server.run(head_bytes, Request::new(head, key), key);
    }
    if server.is_too_large(key.len(), head.client_flags, value_bytes) {
        server.shared.too_large.fetch_add(1, Ordering::Relaxed);
        packet.echo.fail(reply, Failure::TooLarge);
        session.skip = value_bytes;
        if command.verb != Verb::Set {
            return Step::Done { consumed: head_bytes };
        }
        head.verb = Verb::Evict;
        return server.run(head_bytes, Request::new(head, key), key);
    }
    let total = head_bytes + value_bytes;
    let Some(value) = input.get(head_bytes..total) else { return Step::Incomplete { total } };
    server.run(total, Request { head, key, tokens: &[], value }, key)
}

/// Returns a head with the fields that a reply to `packet` repeats.
pub(super) fn head(packet: &Packet<'_>, verb: Verb) -> RequestHead {
    let mut head = RequestHead::new(verb, ReplyStyle::Binary);
    head.mode = packet.echo.opcode;
    head.opaque = packet.echo.opaque;
    head.cas = packet.cas;
    head
}
