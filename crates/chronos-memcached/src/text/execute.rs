//! Requests of the text protocol run, and are answered.

use super::words::push_number;
use crate::clock::Clock;
use crate::partition::{Partition, Stored, Sum};
use crate::request::{Bits, Head, Request, Verb};
use crate::store::ItemRef;

/// Runs `request` and appends its answer.
#[inline]
pub fn execute(partition: &mut Partition, request: &Request<'_>, clock: Clock, reply: &mut Vec<u8>) {
    let (head, key, second) = (&request.head, request.key, clock.second);
    let answer: &[u8] = match head.verb {
        Verb::Get | Verb::GetTouch => {
            let found = match head.verb {
                Verb::Get => partition.fetch(head.hash, key, second, true),
                _ => partition.touch(head.hash, key, second, head.expiry),
            };
            return answer_get(partition, head, found, reply);
        }
        Verb::Touch => match partition.touch(head.hash, key, second, head.expiry) {
            Some(_) => b"TOUCHED\r\n",
            None => b"NOT_FOUND\r\n",
        },
        Verb::Delete => match partition.find(head.hash, key, second) {
            Some(item) => {
                partition.delete(item);
                b"DELETED\r\n"
            }
            None => {
                partition.counters.delete_misses += 1;
                b"NOT_FOUND\r\n"
            }
        },
        Verb::Increment | Verb::Decrement => match partition.arithmetic(head, key, second) {
            Sum::Number(_, number) => {
                if !head.has(Bits::QUIET) {
                    push_number(reply, number);
                    reply.extend_from_slice(b"\r\n");
                }
                return;
            }
            Sum::NotFound => {
                partition.count_missing_number(head.verb);
                b"NOT_FOUND\r\n"
            }
            Sum::NonNumeric => b"CLIENT_ERROR cannot increment or decrement non-numeric value\r\n",
            Sum::Exists => b"EXISTS\r\n",
            Sum::NoMemory => b"SERVER_ERROR out of memory\r\n",
        },
        _ => match partition.store(head, key, request.value, second) {
            Stored::Stored(_) => b"STORED\r\n",
            Stored::Exists => b"EXISTS\r\n",
            Stored::NotFound => b"NOT_FOUND\r\n",
            Stored::NotStored => b"NOT_STORED\r\n",
            Stored::NoMemory => b"SERVER_ERROR out of memory storing object\r\n",
        },
    };
    if !head.has(Bits::QUIET) {
        reply.extend_from_slice(answer);
    }
}

/// Appends the answer to a get that found an item, or none.
#[inline]
pub fn answer_get(partition: &Partition, head: &Head, found: Option<ItemRef>, reply: &mut Vec<u8>) {
    if let Some(item) = found {
        value(partition, item, head.has(Bits::CAS), reply);
    }
    if head.has(Bits::END) {
        reply.extend_from_slice(b"END\r\n");
    }
}

/// `VALUE key flags bytes [cas]`, and the value.
#[inline]
fn value(partition: &Partition, item: ItemRef, cas: bool, reply: &mut Vec<u8>) {
    /// Bytes of all that is not the key and the value, at most.
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
