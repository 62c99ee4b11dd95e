//! [`ConnectionTable`]: the connections of a world, by number.
//!
//! ```text
//! places   by number: where the connection is; NONE once it is closed
//! open     by place: the connections, side by side; the place freed last is filled first
//! ```
//!
//! Numbers are given in order and never again, so that a place is found by a table of four bytes a connection, and
//! memory is that of the busiest moment. Side by side they are one large block, which large pages hold.

use crate::hosts::connection::HostConnection;

/// The connections by number. Closed are connections that have ended, all of MPTCP, and all of which another logical
/// process has both ends.
#[derive(Debug)]
pub(super) struct ConnectionTable<C = HostConnection> {
    places: Vec<u32>,
    open: Vec<C>,
    /// The places of connections that are closed, which stay there until others come.
    free: Vec<u32>,
}

/// The number of a missing place.
const NONE: u32 = u32::MAX;

impl<C> Default for ConnectionTable<C> {
    fn default() -> ConnectionTable<C> {
        ConnectionTable { places: Vec::new(), open: Vec::new(), free: Vec::new() }
    }
}

impl<C> ConnectionTable<C> {
    /// Returns how many have been added, open or closed.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// Adds the next connection; `None` adds one that is closed.
    pub(super) fn push(&mut self, connection: Option<C>) {
        let place = connection.map_or(NONE, |connection| self.insert(connection));
        self.places.push(place);
    }

    /// Returns the connection of a number, if it is open. Nothing is read of the connection.
    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&C> {
        self.open.get(*self.places.get(number as usize)? as usize)
    }

    /// Returns the connection of a number, if it is open.
    #[inline]
    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut C> {
        self.open.get_mut(*self.places.get(number as usize)? as usize)
    }

    /// Closes an open connection.
    pub(super) fn close(&mut self, number: u32) {
        self.free.push(std::mem::replace(&mut self.places[number as usize], NONE));
    }

    /// Returns every connection by number, `None` for closed ones.
    pub(super) fn iter(&self) -> impl Iterator<Item = Option<&C>> {
        self.places.iter().map(|place| self.open.get(*place as usize))
    }

    /// Merges each connection of `others` with the one here of its number, or opens it here, if there is none.
    pub(super) fn absorb(&mut self, others: ConnectionTable<C>, merge: impl Fn(&mut C, C)) {
        self.places.resize(self.len().max(others.len()), NONE);
        let mut open: Vec<_> = others.open.into_iter().map(Some).collect();
        for (number, place) in others.places.into_iter().enumerate() {
            let Some(other) = open.get_mut(place as usize).and_then(Option::take) else { continue };
            match self.get_mut(number as u32) {
                Some(own) => merge(own, other),
                None => self.places[number] = self.insert(other),
            }
        }
    }

    fn insert(&mut self, connection: C) -> u32 {
        if let Some(place) = self.free.pop() {
            self.open[place as usize] = connection;
            return place;
        }
        let place = self.open.len() as u32;
        assert!(place != NONE, "fewer than 2^32 connections are open");
        self.open.push(connection);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table<const N: usize>(connections: [Option<u32>; N]) -> ConnectionTable<u32> {
        let mut table = ConnectionTable::default();
        connections.into_iter().for_each(|connection| table.push(connection));
        table
    }

    fn all(table: &ConnectionTable<u32>) -> Vec<Option<u32>> {
        table.iter().map(Option::<&u32>::copied).collect()
    }

    #[test]
    fn a_closed_connection_leaves_its_place_to_the_next() {
        let mut table = table([Some(10), Some(11), Some(12), None]);
        table.close(1);
        assert!(table.get(1).is_none() && table.get_mut(3).is_none() && table.get(4).is_none());
        table.push(Some(14));
        assert_eq!(all(&table), [Some(10), None, Some(12), None, Some(14)]);
        assert_eq!((table.len(), table.open.len()), (5, 3));
    }

    #[test]
    fn a_table_takes_in_what_another_has_and_merges_what_both_have() {
        let mut here = table([Some(10), None, Some(12), None]);
        let mut there = table([Some(20), Some(21), None, None, Some(24), Some(25)]);
        there.close(5);
        here.absorb(there, |own, other| *own += other);
        assert_eq!(all(&here), [Some(30), Some(21), Some(12), None, Some(24), None]);
    }
}
