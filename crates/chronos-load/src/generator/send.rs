//! Encodes an operation's requests into the output of its servers' connections.

use std::sync::Arc;

use plimsoll_units::Time;
use smallvec::{SmallVec, smallvec};

use super::{Generator, Operation};
use crate::link::Pending;
use crate::protocol::{DatagramFrame, Request, RequestKind};
use crate::setup::Shape;

impl Generator {
    /// Sends part `part` of an operation, which is due at `due`.
    pub(super) fn send_part(&mut self, operation: usize, part: u32, due: Time) {
        let Operation { client, number, kind, .. } = self.operations[operation];
        let id = self.clients[client].id;
        let setup = Arc::clone(&self.setup);
        if kind == RequestKind::Set {
            let key = setup.keys(kind, id, number, part, due)[0];
            // Each part of a chain stores a version of its own.
            let version = setup.texts.values.next_version(id, (number << PART_BITS) | u64::from(part));
            return self.send_to_homes(operation, key, version, due);
        }
        match setup.shape {
            Shape::FanOut(width) => {
                let servers = setup.placement.servers();
                for target in 0..width {
                    let keys = setup.keys(kind, id, number, target, due);
                    self.send(operation, (id + target) % servers, kind, keys, 0, due);
                }
            }
            Shape::Replicas(_) => self.send_copies(operation, due),
            Shape::Single | Shape::Chain(_) => {
                let keys = setup.keys(kind, id, number, part, due);
                self.send_by_owner(operation, keys, due);
            }
        }
    }

    /// Sends a set of `key` to all servers that store it.
    pub(super) fn send_to_homes(&mut self, operation: usize, key: u64, version: u64, due: Time) {
        let setup = Arc::clone(&self.setup);
        for server in setup.homes(key) {
            self.send(operation, server, RequestKind::Set, smallvec![key], version, due);
        }
    }

    /// Sends a get to the server that has its keys, or, if there are several servers, to each a get of its keys.
    fn send_by_owner(&mut self, operation: usize, keys: SmallVec<[u64; 2]>, due: Time) {
        let setup = Arc::clone(&self.setup);
        let placement = &setup.placement;
        if placement.servers() == 1 || keys.len() == 1 {
            return self.send(operation, placement.owner(keys[0]), RequestKind::Get, keys, 0, due);
        }
        for server in 0..placement.servers() {
            let own: SmallVec<[u64; 2]> =
                keys.iter().copied().filter(|&key| placement.owner(key) == server).collect();
            if !own.is_empty() {
                self.send(operation, server, RequestKind::Get, own, 0, due);
            }
        }
    }

    pub(super) fn send(
        &mut self,
        operation: usize,
        server: u32,
        kind: RequestKind,
        keys: SmallVec<[u64; 2]>,
        version: u64,
        due: Time,
    ) {
        let servers = self.setup.placement.servers() as usize;
        let index = self.operations[operation].client * servers + server as usize;
        let link = &mut self.links[index];
        self.operations[operation].waiting += 1;
        if link.closed || link.outstanding() > LINK_REQUESTS_MAX {
            self.stranded.push(operation);
            return;
        }
        let request = Request { kind, keys, version, tag: link.next_number() as u16 };
        if self.setup.datagrams {
            link.out.extend_from_slice(&DatagramFrame::of_request(request.tag));
        }
        self.setup.protocol.encode(&request, &self.setup.texts, &mut link.out);
        if self.setup.datagrams {
            link.ends.push(link.out.len());
        }
        link.push(Pending {
            request,
            operation,
            copy: self.operations[operation].copies,
            due,
            sent: Time::MAX,
            passed: 0,
            hits: 0,
            wrong: false,
            parts: Vec::new(),
        });
        if !std::mem::replace(&mut link.listed, true) {
            self.sendable.push(index);
        }
        match kind {
            RequestKind::Get => self.book.counts.gets += 1,
            RequestKind::Set => self.book.counts.sets += 1,
        }
    }
}

/// The most requests without a reply on a connection, which are identified by their lowest 16 bits.
const LINK_REQUESTS_MAX: usize = 32_768;
/// The bits of a version's count for the part of a chain.
const PART_BITS: u32 = 8;
