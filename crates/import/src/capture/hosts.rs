//! [`CapturedHosts`]: the numbers of the hosts of a capture.

use hashbrown::HashMap;
use plimsoll_bursts::Address;
use plimsoll_text::counted;

use crate::found::{Note, Remark};

/// The hosts, by number in order of their first packet.
pub(super) struct CapturedHosts {
    numbers: HashMap<Address, u32>,
    addresses: Vec<Address>,
    most: usize,
    /// Packets from or to several hosts at once, without addresses, and of further hosts.
    to_many: u64,
    unknown: u64,
    beyond: u64,
}

impl CapturedHosts {
    pub(super) fn new(most: usize) -> CapturedHosts {
        CapturedHosts {
            numbers: HashMap::new(),
            addresses: Vec::new(),
            most,
            to_many: 0,
            unknown: 0,
            beyond: 0,
        }
    }

    /// Returns the number of a host; `None` if the packet is left out.
    pub(super) fn number(&mut self, address: Address) -> Option<u32> {
        if let Some(number) = self.numbers.get(&address) {
            return Some(*number);
        }
        if matches!(address, Address::Mac(_) | Address::Unknown) {
            self.unknown += 1;
        } else if is_group(address) {
            self.to_many += 1;
        } else if self.addresses.len() >= self.most {
            self.beyond += 1;
        } else {
            let number = self.addresses.len() as u32;
            self.numbers.insert(address, number);
            self.addresses.push(address);
            return Some(number);
        }
        None
    }

    /// Returns for each number so far the one in order of the addresses, and the addresses in that order. Hosts without
    /// messages are left out.
    pub(super) fn in_order(&self, used: impl Fn(u32) -> bool) -> (Vec<u32>, Vec<String>) {
        let mut order: Vec<u32> = (0..self.addresses.len() as u32).filter(|&number| used(number)).collect();
        order.sort_by_key(|&number| self.addresses[number as usize]);
        let mut numbers = vec![0; self.addresses.len()];
        for (place, &number) in (0..).zip(&order) {
            numbers[number as usize] = place;
        }
        let names = order.iter().map(|&number| self.addresses[number as usize].to_string());
        (numbers, names.collect())
    }

    pub(super) fn notes(&self) -> Vec<Note> {
        let most = self.most;
        let found = [
            (self.to_many, "to a multicast or broadcast address".to_owned()),
            (self.unknown, "without IP addresses".to_owned()),
            (self.beyond, format!("of hosts beyond the first {most}: capture less, or at fewer places")),
        ];
        let found = found.into_iter().filter(|(number, _)| *number > 0);
        let text = |(number, what)| format!("{} {what}", counted(number, "packet"));
        found.map(|found| Note { remark: Remark::Ignored, text: text(found) }).collect()
    }
}

/// Returns whether an address is of a group of hosts (RFC 1112, RFC 4291), or of none.
fn is_group(address: Address) -> bool {
    match address {
        Address::V4(bits) => bits >> 28 == 0xe || bits == u32::MAX || bits == 0,
        Address::V6(bits) => bits >> 120 == 0xff || bits == 0,
        Address::Mac(_) | Address::Unknown => false,
    }
}
