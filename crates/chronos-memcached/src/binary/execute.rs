//! Requests of the binary protocol run, and are answered.

use super::{Echo, Failure};
use crate::clock::Clock;
use crate::partition::{Partition, Stored, Sum};
use crate::request::{Bits, Head, Request, Verb};
use crate::store::{ItemRef, Meta};

pub(super) fn echo(head: &Head) -> Echo {
    Echo { opcode: head.mode, opaque: head.opaque }
}

/// Answers a request that went everywhere and is no report.
pub fn merge(request: &Request<'_>, reply: &mut Vec<u8>) {
    if !request.head.has(Bits::QUIET) {
        echo(&request.head).push(reply, 0, 0, [b"", b"", b""]);
    }
}

/// Runs `request` and appends its answer. Quiet requests are answered only with errors, a quiet get only with a hit.
pub fn execute(partition: &mut Partition, request: &Request<'_>, clock: Clock, reply: &mut Vec<u8>) {
    let (head, key, second) = (&request.head, request.key, clock.second);
    let echo = echo(head);
    let quiet = head.has(Bits::QUIET);
    let outcome = match head.verb {
        Verb::Get | Verb::GetTouch | Verb::Touch => return fetch(partition, request, second, reply),
        Verb::Delete => delete(partition, head, key, second),
        Verb::Increment | Verb::Decrement => return arithmetic(partition, head, key, second, reply),
        _ => store(partition, request, second),
    };
    match outcome {
        Ok(_) if quiet => {}
        Ok(cas) => echo.push(reply, 0, cas, [b"", b"", b""]),
        Err(failure) => echo.fail(reply, failure),
    }
}

fn fetch(partition: &mut Partition, request: &Request<'_>, second: u32, reply: &mut Vec<u8>) {
    let (head, key) = (&request.head, request.key);
    let found = match head.verb {
        Verb::Get => partition.fetch(head.hash, key, second, true),
        _ => partition.touch(head.hash, key, second, head.expiry),
    };
    answer_get(partition, request, found, reply);
}

/// Appends the answer to a fetch that found an item, or none.
pub fn answer_get(partition: &Partition, request: &Request<'_>, found: Option<ItemRef>, reply: &mut Vec<u8>) {
    let (head, key) = (&request.head, request.key);
    let (echo, with_key) = (echo(head), head.has(Bits::VALUE));
    let key: &[u8] = if with_key { key } else { b"" };
    match found {
        Some(item) => {
            let (header, _, value) = partition.store.item(item);
            let flags = header.flags.get().to_be_bytes();
            let value = if head.verb == Verb::Touch { b"" } else { value };
            echo.push(reply, 0, header.cas.get(), [&flags, key, value]);
        }
        None if head.has(Bits::QUIET) => {}
        None if with_key => echo.push(reply, Failure::NotFound.status().0, 0, [b"", key, b""]),
        None => echo.fail(reply, Failure::NotFound),
    }
}

fn store(partition: &mut Partition, request: &Request<'_>, second: u32) -> Result<u64, Failure> {
    let head = &request.head;
    match partition.store(head, request.key, request.value, second) {
        Stored::Stored(item) => Ok(partition.store.header(item).cas.get()),
        Stored::Exists => Err(Failure::Exists),
        Stored::NotFound => Err(Failure::NotFound),
        Stored::NotStored => Err(match head.verb {
            Verb::Add => Failure::Exists,
            Verb::Replace => Failure::NotFound,
            _ => Failure::NotStored,
        }),
        Stored::NoMemory => Err(Failure::NoMemory("Out of memory allocating item")),
    }
}

fn delete(partition: &mut Partition, head: &Head, key: &[u8], second: u32) -> Result<u64, Failure> {
    let Some(item) = partition.find(head.hash, key, second) else {
        partition.counters.delete_misses += 1;
        return Err(Failure::NotFound);
    };
    if head.cas != 0 && head.cas != partition.store.header(item).cas.get() {
        return Err(Failure::Exists);
    }
    partition.delete(item);
    Ok(0)
}

fn arithmetic(partition: &mut Partition, head: &Head, key: &[u8], second: u32, reply: &mut Vec<u8>) {
    let echo = echo(head);
    let failure = match partition.arithmetic(head, key, second) {
        Sum::Number(item, number) => {
            let cas = partition.store.header(item).cas.get();
            if !head.has(Bits::QUIET) {
                echo.push(reply, 0, cas, [b"", b"", &number.to_be_bytes()]);
            }
            return;
        }
        Sum::NotFound if head.has(Bits::CREATE) => {
            let mut buffer = itoa::Buffer::new();
            let digits = buffer.format(head.initial).as_bytes();
            let meta = Meta { flags: 0, expiry: head.expiry, state: 0 };
            match partition.store.put(head.hash, key, [digits, b""], meta, second) {
                Ok(item) => {
                    let cas = partition.store.header(item).cas.get();
                    if !head.has(Bits::QUIET) {
                        echo.push(reply, 0, cas, [b"", b"", &head.initial.to_be_bytes()]);
                    }
                    return;
                }
                Err(_) => Failure::NoMemory("Out of memory allocating new item"),
            }
        }
        Sum::NotFound => {
            partition.count_missing_number(head.verb);
            Failure::NotFound
        }
        Sum::NonNumeric => Failure::NonNumeric,
        Sum::Exists => Failure::Exists,
        Sum::NoMemory => Failure::NoMemory("Out of memory incrementing value"),
    };
    echo.fail(reply, failure);
}
