//! Executes requests of the text protocol, and answers them.

use super::words::push_number;
use crate::clock::Clock;
use crate::partition::{Outcome, Partition};
use crate::request::{Bits, Request, RequestHead};
use crate::store::ItemRef;

/// Runs `request` and appends its answer.
#[inline]
pub fn execute(partition: &mut Partition, request: &Request<'_>, clock: Clock, reply: &mut Vec<u8>) {
    let head = &request.head;
    let answer: &[u8] = match partition.execute(request, clock.second) {
        Outcome::Fetched(found) => return answer_get(partition, head, found, reply),
        Outcome::Found(_) | Outcome::Stored(_) | Outcome::Deleted => head.verb.success(),
        Outcome::Number(_, number) => {
            if !head.has(Bits::QUIET) {
                push_number(reply, number);
                reply.extend_from_slice(b"\r\n");
            }
            return;
        }
        Outcome::NotFound => b"NOT_FOUND\r\n",
        Outcome::Exists => b"EXISTS\r\n",
        Outcome::NotStored => b"NOT_STORED\r\n",
        Outcome::NonNumeric => b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
        Outcome::NoMemory => b"SERVER_ERROR out of memory storing object\r\n",
        // Text creates no numbers.
        Outcome::NoMemoryForNumber | Outcome::NoMemoryToCreate | Outcome::Created(_) => {
            b"SERVER_ERROR out of memory\r\n"
        }
    };
    if !head.has(Bits::QUIET) {
        reply.extend_from_slice(answer);
    }
}

/// Appends the answer to a get that found an item, or none.
#[inline]
pub fn answer_get(partition: &Partition, head: &RequestHead, found: Option<ItemRef>, reply: &mut Vec<u8>) {
    if let Some(item) = found {
        value(partition, item, head.has(Bits::CAS), reply);
    }
    if head.has(Bits::END) {
        reply.extend_from_slice(b"END\r\n");
    }
}

/// Appends `VALUE key flags bytes [cas]`, and the value.
#[inline]
fn value(partition: &Partition, item: ItemRef, cas: bool, reply: &mut Vec<u8>) {
    /// The most bytes of an answer beside the key and the value.
    const FRAME_BYTES: usize = 64;
    let (header, key, value) = partition.store.item(item);
    reply.reserve(FRAME_BYTES + key.len() + value.len());
    reply.extend_from_slice(b"VALUE ");
    reply.extend_from_slice(key);
    reply.push(b' ');
    push_number(reply, header.flags.get());
    reply.push(b' ');
    push_number(reply, header.value_bytes.get());
    if cas {
        reply.push(b' ');
        push_number(reply, header.cas.get());
    }
    reply.extend_from_slice(b"\r\n");
    reply.extend_from_slice(value);
    reply.extend_from_slice(b"\r\n");
}
