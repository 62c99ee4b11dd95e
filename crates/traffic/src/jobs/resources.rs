//! [`Resources`]: the parts of a rank that do one thing at a time, and when each is free.

use std::collections::BTreeMap;
use std::ops::Add;

use plimsoll_units::Span;

/// A part of a rank that does one thing at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Resource {
    Stream(u32, u8),
    NicOut(u32, u8),
    NicIn(u32, u8),
    /// The links inside the server, out and in.
    LinkOut(u32),
    LinkIn(u32),
}

/// When each resource is free, as a time of type `T`.
#[derive(Debug)]
pub(super) struct Resources<T>(BTreeMap<Resource, T>);

impl<T> Default for Resources<T> {
    fn default() -> Resources<T> {
        Resources(BTreeMap::new())
    }
}

impl<T: Copy + Ord + Add<Span, Output = T>> Resources<T> {
    /// Frees all resources at once.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the resources that were held, with the times from which they are free.
    pub(super) fn all(&self) -> impl Iterator<Item = (Resource, T)> + '_ {
        self.0.iter().map(|(resource, free)| (*resource, *free))
    }

    /// Has all that were held be free later.
    pub(super) fn all_later(&mut self, later: Span) {
        self.0.values_mut().for_each(|free| *free = *free + later);
    }

    /// Returns when all of these resources are free, `now` at the earliest.
    pub(super) fn all_free(&self, now: T, resources: [Resource; 2]) -> T {
        resources.iter().filter_map(|resource| self.0.get(resource)).fold(now, |free, at| free.max(*at))
    }

    /// Holds a resource for a time, from when it is free; returns when that is. One that is held for no time stays
    /// free.
    pub(super) fn hold(&mut self, resource: Resource, now: T, time: Span) -> T {
        if time.is_zero() {
            return self.0.get(&resource).map_or(now, |free| now.max(*free));
        }
        let free = self.0.entry(resource).or_insert(now);
        let start = now.max(*free);
        *free = start + time;
        start
    }
}
