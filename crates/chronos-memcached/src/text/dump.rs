//! Items one by one: `lru_crawler metadump`, `lru_crawler mgdump` and `stats cachedump`.
//!
//! ```text
//! line ──> Dump of the session ──> a request for each page of each partition ──> lines ──> END
//! ```
//!
//! A dump runs page by page, as the keys of a get do, so that it takes no more memory than a reply may, and other
//! connections are answered in between. Items that are stored meanwhile may be missed, and items that move may be
//! reported twice, as with memcached's crawler.

use std::fmt::Write;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use plimsoll_chronos::Step;

use super::dump_cursor::{ALL_CLASSES, DumpStyle};
use crate::clock::Clock;
use crate::partition::Partition;
use crate::request::{Request, RequestHead};
use crate::server::Memcached;
use crate::session::Session;
use crate::store::{ItemState, item_bytes};

/// The most bytes that `stats cachedump` answers.
const CACHEDUMP_BYTES_MAX: usize = 2 << 20;

/// Returns the request for the next page of the dump of `session`, or its end.
#[cold]
pub fn next<'a>(server: &Memcached, session: &mut Session, reply: &mut Vec<u8>) -> Step<Request<'a>> {
    let Some(dump) = session.dump.as_mut() else { return Step::Done { consumed: 0 } };
    let (pages, partitions) = (server.budget.pages_most(), server.settings.partitions);
    if let Some((partition, head)) = dump.next_page(pages, partitions) {
        return Step::Run { consumed: 0, partition, request: Request::new(head, &[]) };
    }
    reply.extend_from_slice(if dump.style() == DumpStyle::Mgdump { b"EN\r\n" } else { b"END\r\n" });
    session.dump = None;
    Step::Done { consumed: 0 }
}

/// Appends the lines of the items of one page.
pub fn execute(partition: &Partition, head: &RequestHead, clock: Clock, reply: &mut Vec<u8>) {
    let (page, class) = (head.delta as usize, head.initial);
    let style = if head.mode == DumpStyle::Mgdump as u8 { DumpStyle::Mgdump } else { DumpStyle::Metadump };
    let mut line = String::new();
    partition.store.look_through(page, clock.second, |header, key, number| {
        if class != ALL_CLASSES && class != number as u64 {
            return;
        }
        if style == DumpStyle::Mgdump {
            reply.extend_from_slice(b"mg ");
            if header.state & ItemState::KEY_BINARY != 0 {
                line.clear();
                STANDARD.encode_string(key, &mut line);
                reply.extend_from_slice(line.as_bytes());
                reply.extend_from_slice(b" b\r\n");
            } else {
                reply.extend_from_slice(key);
                reply.extend_from_slice(b"\r\n");
            }
            return;
        }
        line.clear();
        let expiry = match header.expiry.get() {
            0 => -1,
            expiry => clock.date(expiry),
        };
        let (last, cas) = (clock.date(header.time.get()), header.cas.get());
        let fetched = if header.state & ItemState::FETCHED != 0 { "yes" } else { "no" };
        let (class, size) = (number + 1, item_bytes(header));
        reply.extend_from_slice(b"key=");
        push_encoded(reply, key);
        // A string takes whatever is written.
        let _ = writeln!(line, " exp={expiry} la={last} cas={cas} fetch={fetched} cls={class} size={size}");
        reply.extend_from_slice(line.as_bytes());
    });
}

/// Appends `key` with the encoding of a URI.
fn push_encoded(reply: &mut Vec<u8>, key: &[u8]) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in key {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            reply.push(byte);
        } else {
            reply.extend_from_slice(&[b'%', DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
    }
}

/// Appends the `stats cachedump` lines of the class, as many as `head` asks for, of one of `partitions`.
pub fn cachedump(
    partition: &Partition,
    head: &RequestHead,
    clock: Clock,
    partitions: u32,
    reply: &mut Vec<u8>,
) {
    let (class, limit) = (head.initial as usize, if head.delta == 0 { u64::MAX } else { head.delta });
    let bytes_max = CACHEDUMP_BYTES_MAX / partitions as usize;
    let (mut shown, mut line) = (0, String::new());
    for &page in partition.store.pages_of(class) {
        partition.store.look_through(page as usize, clock.second, |header, key, _| {
            if header.state & ItemState::KEY_BINARY != 0 || shown == limit || reply.len() >= bytes_max {
                return;
            }
            shown += 1;
            line.clear();
            let expiry = if header.expiry.get() == 0 { 0 } else { clock.date(header.expiry.get()) };
            // A string takes whatever is written.
            let _ = write!(line, " [{} b; {expiry} s]\r\n", header.value_bytes);
            reply.extend_from_slice(b"ITEM ");
            reply.extend_from_slice(key);
            reply.extend_from_slice(line.as_bytes());
        });
        if shown == limit || reply.len() >= bytes_max {
            break;
        }
    }
}

/// Makes one reply of the replies of all partitions to `stats cachedump`: at most `limit` lines, 0 for all.
pub fn merge_cachedump(parts: &[Vec<u8>], limit: u64, reply: &mut Vec<u8>) {
    let lines = parts.iter().flat_map(|part| part.split_inclusive(|&byte| byte == b'\n'));
    let limit = if limit == 0 { usize::MAX } else { limit as usize };
    lines.take(limit).for_each(|line| reply.extend_from_slice(line));
    reply.extend_from_slice(b"END\r\n");
}
