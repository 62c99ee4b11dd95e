//! Executes meta requests, and answers them with the values of the flags that ask for one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::key;
use crate::clock::Clock;
use crate::partition::{Outcome, Partition};
use crate::request::{Bits, Request, Verb};
use crate::store::{Header, ItemRef, ItemState, Meta};
use crate::text::words::{Tokens, push_number};

/// Runs `request` and appends its answer.
pub fn execute(partition: &mut Partition, request: &Request<'_>, clock: Clock, reply: &mut Vec<u8>) {
    let mut decoded = None;
    let key = key(request, &mut decoded);
    match request.head.verb {
        Verb::Get => get(partition, request, key, clock.second, reply),
        Verb::Delete => delete(partition, request, key, clock.second, reply),
        Verb::Increment | Verb::Decrement => arithmetic(partition, request, key, clock.second, reply),
        Verb::Inspect => inspect(partition, request, key, clock.second, reply),
        _ => set(partition, request, key, clock.second, reply),
    }
}

fn get(partition: &mut Partition, request: &Request<'_>, key: &[u8], second: u32, reply: &mut Vec<u8>) {
    let head = &request.head;
    let found = partition.find(head.hash, key, second);
    let mut created = false;
    let item = match found {
        None if head.has(Bits::VIVIFY) => {
            created = true;
            let meta = Meta { flags: 0, expiry: 0, state: 0 };
            partition.store.put(head.hash, key, [b"", b""], meta, second).ok()
        }
        found => found,
    };
    partition.count_meta_get(head, item.is_some());
    let Some(item) = item else {
        if !head.has(Bits::QUIET) {
            reply.extend_from_slice(b"EN");
            push_key_and_opaque(request, key, reply);
            reply.extend_from_slice(b"\r\n");
        }
        return;
    };
    let won = apply(partition, item, request, created, second, reply);
    let header = partition.store.header_mut(item);
    let state = header.state;
    if state & ItemState::TOKEN_SENT != 0 {
        reply.extend_from_slice(b" Z");
    }
    if state & ItemState::STALE != 0 {
        reply.extend_from_slice(b" X");
    }
    if won || (state & ItemState::STALE != 0 && state & ItemState::TOKEN_SENT == 0) {
        reply.extend_from_slice(b" W");
        header.state |= ItemState::TOKEN_SENT;
    }
    reply.extend_from_slice(b"\r\n");
    if head.has(Bits::VALUE) {
        reply.extend_from_slice(partition.store.item(item).2);
        reply.extend_from_slice(b"\r\n");
    }
    if !head.has(Bits::NO_UPDATE) {
        partition.store.fetched(item, second);
    }
}

/// Writes the head of a hit's answer, flag by flag, each with the item's state at its turn. True if the client won.
fn apply(
    partition: &mut Partition,
    item: ItemRef,
    request: &Request<'_>,
    created: bool,
    second: u32,
    reply: &mut Vec<u8>,
) -> bool {
    let head = &request.head;
    let value_bytes = partition.store.header(item).value_bytes.get();
    if head.has(Bits::VALUE) {
        reply.extend_from_slice(b"VA ");
        push_number(reply, value_bytes);
    } else {
        reply.extend_from_slice(b"HD");
    }
    let mut won = false;
    for token in Tokens(request.tokens) {
        let header = partition.store.header_mut(item);
        match token[0] {
            b'T' => header.expiry.set(head.expiry),
            b'N' if created => {
                header.expiry.set(head.vivify_expiry);
                won = true;
            }
            b'R' => {
                let expiry = header.expiry.get();
                let sent = header.state & ItemState::TOKEN_SENT != 0;
                won |= !sent && !created && expiry != 0 && expiry < head.recache;
            }
            b's' => push_flag(reply, b's', value_bytes),
            b't' => push_time_left(reply, header, second),
            b'c' => push_flag(reply, b'c', header.cas.get()),
            b'f' => push_flag(reply, b'f', header.flags.get()),
            b'l' => push_flag(reply, b'l', second.wrapping_sub(header.time.get())),
            b'h' => push_flag(reply, b'h', u32::from(header.state & ItemState::FETCHED != 0)),
            b'O' => push_opaque(reply, token),
            b'k' => {
                let (header, key, _) = partition.store.item(item);
                push_key(reply, key, header.state & ItemState::KEY_BINARY != 0);
            }
            _ => {}
        }
    }
    won
}

fn set(partition: &mut Partition, request: &Request<'_>, key: &[u8], second: u32, reply: &mut Vec<u8>) {
    let (word, item): (&[u8], _) = match partition.store(&request.head, key, request.value, second) {
        Outcome::Stored(_) if request.head.has(Bits::QUIET) => return,
        Outcome::Stored(item) => (b"HD", Some(item)),
        Outcome::Exists => (b"EX", None),
        Outcome::NotFound => (b"NF", None),
        Outcome::NotStored => (b"NS", None),
        _ => {
            reply.extend_from_slice(b"SERVER_ERROR out of memory storing object\r\n");
            return;
        }
    };
    reply.extend_from_slice(word);
    for token in Tokens(request.tokens) {
        match token[0] {
            b'O' => push_opaque(reply, token),
            b'k' => push_key(reply, key, request.head.has(Bits::KEY_BINARY)),
            b'c' => {
                let cas = item.map_or(0, |item| partition.store.header(item).cas.get());
                push_flag(reply, b'c', cas);
            }
            _ => {}
        }
    }
    reply.extend_from_slice(b"\r\n");
}

fn delete(partition: &mut Partition, request: &Request<'_>, key: &[u8], second: u32, reply: &mut Vec<u8>) {
    let head = &request.head;
    let quiet = head.has(Bits::QUIET);
    let word: &[u8] = match partition.find(head.hash, key, second) {
        None => {
            partition.counters.delete_misses += 1;
            b"NF"
        }
        Some(item) if head.has(Bits::CAS) && partition.store.header(item).cas.get() != head.cas => {
            partition.counters.delete_misses += 1;
            b"EX"
        }
        Some(item) => {
            if head.has(Bits::STALE) {
                let cas = partition.store.next_cas();
                let header = partition.store.header_mut(item);
                if head.has(Bits::EXPIRY) {
                    header.expiry.set(head.expiry);
                }
                header.state = (header.state | ItemState::STALE) & !ItemState::TOKEN_SENT;
                header.cas.set(cas);
            } else {
                partition.delete(item);
            }
            if quiet {
                return;
            }
            b"HD"
        }
    };
    reply.extend_from_slice(word);
    push_key_and_opaque(request, key, reply);
    reply.extend_from_slice(b"\r\n");
}

fn arithmetic(
    partition: &mut Partition,
    request: &Request<'_>,
    key: &[u8],
    second: u32,
    reply: &mut Vec<u8>,
) {
    let head = &request.head;
    let error: &[u8] = match partition.arithmetic(head, key, second) {
        Outcome::Number(item, number) => {
            return number_answer(partition, request, key, item, number, false, second, reply);
        }
        Outcome::Created(item) => {
            return number_answer(partition, request, key, item, head.initial, true, second, reply);
        }
        Outcome::NotFound => b"NF",
        Outcome::Exists => b"EX",
        Outcome::NonNumeric => {
            reply.extend_from_slice(b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n");
            return;
        }
        _ => {
            reply.extend_from_slice(b"SERVER_ERROR out of memory\r\n");
            return;
        }
    };
    reply.extend_from_slice(error);
    push_key_and_opaque(request, key, reply);
    reply.extend_from_slice(b"\r\n");
}

fn number_answer(
    partition: &mut Partition,
    request: &Request<'_>,
    key: &[u8],
    item: ItemRef,
    number: u64,
    created: bool,
    second: u32,
    reply: &mut Vec<u8>,
) {
    let head = &request.head;
    let start = reply.len();
    let mut buffer = itoa::Buffer::new();
    let digits = buffer.format(number).as_bytes();
    if head.has(Bits::VALUE) {
        reply.extend_from_slice(b"VA ");
        push_number(reply, digits.len());
    } else {
        reply.extend_from_slice(b"HD");
    }
    for token in Tokens(request.tokens) {
        let header = partition.store.header_mut(item);
        match token[0] {
            b'c' => push_flag(reply, b'c', header.cas.get()),
            b't' => push_time_left(reply, header, second),
            b'T' => header.expiry.set(head.expiry),
            b'N' if created => header.expiry.set(head.vivify_expiry),
            b'O' => push_opaque(reply, token),
            b'k' => push_key(reply, key, head.has(Bits::KEY_BINARY)),
            _ => {}
        }
    }
    reply.extend_from_slice(b"\r\n");
    if head.has(Bits::VALUE) {
        reply.extend_from_slice(digits);
        reply.extend_from_slice(b"\r\n");
    }
    if head.has(Bits::QUIET) && !created {
        reply.truncate(start);
    }
}

fn inspect(partition: &mut Partition, request: &Request<'_>, key: &[u8], second: u32, reply: &mut Vec<u8>) {
    partition.counters.meta_commands += 1;
    let Some(item) = partition.find(request.head.hash, key, second) else {
        reply.extend_from_slice(b"EN\r\n");
        return;
    };
    let (class, bytes) = partition.store.footprint(item);
    let (header, key, _) = partition.store.item(item);
    reply.extend_from_slice(b"ME ");
    if header.state & ItemState::KEY_BINARY != 0 {
        push_base64(reply, key);
    } else {
        reply.extend_from_slice(key);
    }
    let expiry = match header.expiry.get() {
        0 => -1,
        expiry => i64::from(second) - i64::from(expiry),
    };
    let (last, cas) = (second.wrapping_sub(header.time.get()), header.cas.get());
    let fetched = if header.state & ItemState::FETCHED != 0 { "yes" } else { "no" };
    let line =
        format!(" exp={expiry} la={last} cas={cas} fetch={fetched} cls={} size={bytes}\r\n", class + 1);
    reply.extend_from_slice(line.as_bytes());
}

/// Appends the flags that are returned in any case.
fn push_key_and_opaque(request: &Request<'_>, key: &[u8], reply: &mut Vec<u8>) {
    for token in Tokens(request.tokens) {
        match token[0] {
            b'O' => push_opaque(reply, token),
            b'k' => push_key(reply, key, request.head.has(Bits::KEY_BINARY)),
            _ => {}
        }
    }
}

fn push_opaque(reply: &mut Vec<u8>, token: &[u8]) {
    reply.push(b' ');
    reply.extend_from_slice(token);
}

fn push_flag(reply: &mut Vec<u8>, letter: u8, number: impl itoa::Integer) {
    reply.extend_from_slice(&[b' ', letter]);
    push_number(reply, number);
}

fn push_time_left(reply: &mut Vec<u8>, header: &Header, second: u32) {
    match header.expiry.get() {
        0 => reply.extend_from_slice(b" t-1"),
        expiry => push_flag(reply, b't', expiry.wrapping_sub(second)),
    }
}

fn push_key(reply: &mut Vec<u8>, key: &[u8], binary: bool) {
    reply.extend_from_slice(b" k");
    if binary {
        push_base64(reply, key);
        reply.extend_from_slice(b" b");
    } else {
        reply.extend_from_slice(key);
    }
}

fn push_base64(reply: &mut Vec<u8>, key: &[u8]) {
    let mut encoded = [0; 344];
    let bytes = STANDARD.encode_slice(key, &mut encoded).expect("keys have 250 bytes at most");
    reply.extend_from_slice(&encoded[..bytes]);
}
