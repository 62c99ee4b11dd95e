//! [`Strangers`]: the connections that have not shown the token yet. The newest replaces the oldest, so that silent
//! connections do not keep a caller out, who shows the token at once.

use std::collections::VecDeque;
use std::net::IpAddr;

/// The connections without a token, the oldest first; `T` closes one.
#[derive(Debug)]
pub(super) struct Strangers<T> {
    next: u64,
    waiting: VecDeque<(u64, IpAddr, T)>,
}

impl<T> Strangers<T> {
    pub(super) fn new() -> Strangers<T> {
        Strangers { next: 0, waiting: VecDeque::new() }
    }

    /// Adds a connection from `address`, and returns its number. Also returns the connection that is to be closed: the
    /// oldest from an address that has enough of them, or else the oldest of all when there are enough.
    pub(super) fn admit(&mut self, address: IpAddr, connection: T) -> (u64, Option<T>) {
        let address = address.to_canonical();
        let is_same = |(_, other, _): &(u64, IpAddr, T)| *other == address;
        let replaced = if self.waiting.iter().filter(|other| is_same(other)).count() >= PER_ADDRESS_MAX {
            self.waiting.iter().position(is_same)
        } else {
            (self.waiting.len() >= STRANGERS_MAX).then_some(0)
        };
        let replaced = replaced.and_then(|index| self.waiting.remove(index));
        self.next += 1;
        self.waiting.push_back((self.next, address, connection));
        (self.next, replaced.map(|(_, _, connection)| connection))
    }

    /// Removes a connection that has sent its first message, or has ended.
    pub(super) fn leave(&mut self, number: u64) {
        self.waiting.retain(|(other, ..)| *other != number);
    }
}

/// Most connections at a time that have not shown the token.
const STRANGERS_MAX: usize = 64;
/// Most of them from one address.
const PER_ADDRESS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_replaces_the_oldest_of_its_address_first() {
        let mut strangers = Strangers::new();
        let mut admit = |name: u8, host: u8| strangers.admit(IpAddr::from([192, 0, 2, host]), name);
        let caller = admit(0, 1);
        assert_eq!(caller, (1, None));
        // A host has its share only, and a caller from elsewhere is left alone.
        assert!((1..=4).all(|name| admit(name, 2).1.is_none()));
        assert_eq!((admit(5, 2).1, admit(6, 2).1), (Some(1), Some(2)));
        // Many hosts replace the oldest of all.
        assert!((7..66).all(|name| admit(name, name).1.is_none()));
        assert_eq!(admit(66, 66).1, Some(0));
        strangers.leave(2);
        strangers.leave(5);
        assert_eq!((strangers.waiting.len(), strangers.waiting[0].2), (STRANGERS_MAX - 1, 3));
    }
}
