//! Executes requests of the binary protocol, and answers them.

use super::{Echo, Failure};
use crate::clock::Clock;
use crate::partition::{Outcome, Partition};
use crate::request::{Bits, Request, RequestHead, Verb};
use crate::store::ItemRef;

pub(super) fn echo(head: &RequestHead) -> Echo {
    Echo { opcode: head.mode, opaque: head.opaque }
}

/// Answers a request that went everywhere, other than a report.
pub fn merge(request: &Request<'_>, reply: &mut Vec<u8>) {
    if !request.head.has(Bits::QUIET) {
        echo(&request.head).push(reply, 0, 0, [b"", b"", b""]);
    }
}

/// Runs `request` and appends its answer. Quiet requests are answered only with errors, a quiet get only with a hit.
pub fn execute(partition: &mut Partition, request: &Request<'_>, clock: Clock, reply: &mut Vec<u8>) {
    let head = &request.head;
    let echo = echo(head);
    let outcome = partition.execute(request, clock.second);
    let cas = |item| partition.store.header(item).cas.get();
    let done = match outcome {
        Outcome::Fetched(found) => return answer_get(partition, request, found, reply),
        Outcome::Found(item) => return push_item(partition, head, item, [b"", b""], reply),
        Outcome::Stored(item) => Ok((cas(item), None)),
        Outcome::Deleted => Ok((0, None)),
        Outcome::Number(item, number) => Ok((cas(item), Some(number.to_be_bytes()))),
        Outcome::Created(item) => Ok((cas(item), Some(head.initial.to_be_bytes()))),
        Outcome::NotFound => Err(Failure::NotFound),
        Outcome::Exists => Err(Failure::Exists),
        Outcome::NotStored => Err(match head.verb {
            Verb::Add => Failure::Exists,
            Verb::Replace => Failure::NotFound,
            _ => Failure::NotStored,
        }),
        Outcome::NonNumeric => Err(Failure::NonNumeric),
        Outcome::NoMemory => Err(Failure::NoMemory("Out of memory allocating item")),
        Outcome::NoMemoryToCreate => Err(Failure::NoMemory("Out of memory allocating new item")),
        Outcome::NoMemoryForNumber => Err(Failure::NoMemory("Out of memory incrementing value")),
    };
    match done {
        Ok(_) if head.has(Bits::QUIET) => {}
        Ok((cas, number)) => {
            let number: &[u8] = number.as_ref().map_or(b"", |number| number);
            echo.push(reply, 0, cas, [b"", b"", number]);
        }
        Err(failure) => echo.fail(reply, failure),
    }
}

/// Appends the answer to a fetch that found an item, or none.
pub fn answer_get(partition: &Partition, request: &Request<'_>, found: Option<ItemRef>, reply: &mut Vec<u8>) {
    let (head, key) = (&request.head, request.key);
    let (echo, with_key) = (echo(head), head.has(Bits::VALUE));
    let key: &[u8] = if with_key { key } else { b"" };
    match found {
        Some(item) => push_item(partition, head, item, [key, partition.store.item(item).2], reply),
        None if head.has(Bits::QUIET) => {}
        None if with_key => echo.push(reply, Failure::NotFound.status().0, 0, [b"", key, b""]),
        None => echo.fail(reply, Failure::NotFound),
    }
}

/// Appends a reply with the client's flags of an item.
#[inline]
fn push_item(
    partition: &Partition,
    head: &RequestHead,
    item: ItemRef,
    [key, value]: [&[u8]; 2],
    reply: &mut Vec<u8>,
) {
    let header = partition.store.header(item);
    let flags = header.flags.get().to_be_bytes();
    echo(head).push(reply, 0, header.cas.get(), [&flags, key, value]);
}
