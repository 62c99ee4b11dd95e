//! [`Dump`]: the position of a dump of all items.

use plimsoll_chronos::PartitionId;

use crate::request::{ReplyStyle, RequestHead, Verb};

/// The lines that a dump writes for each item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DumpStyle {
    /// `metadump` writes all properties of the item.
    Metadump = 0,
    /// `mgdump` writes the meta command that fetches the item.
    Mgdump = 1,
}

/// A dump that is under way: each partition's pages in turn, once for every class that was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Dump {
    style: DumpStyle,
    /// Walks through all partitions that are still to do, the present one last: each for a class, or (None) for all.
    walks: Vec<Option<u32>>,
    partition: u32,
    page: usize,
}

/// Means all classes in a request.
pub const ALL_CLASSES: u64 = u64::MAX;

impl Dump {
    /// Creates a dump of `classes`, numbered from 0, or of all.
    pub fn new(style: DumpStyle, classes: Option<Vec<u32>>) -> Dump {
        let walks = classes.map_or(vec![None], |classes| classes.into_iter().map(Some).collect());
        Dump { style, walks, partition: 0, page: 0 }
    }

    /// Returns the style of its lines.
    pub fn style(&self) -> DumpStyle {
        self.style
    }

    /// Returns the request for the next page, and its partition, where each of `partitions` partitions has at most
    /// `pages`; `None` at the end.
    pub fn next_page(&mut self, pages: usize, partitions: u32) -> Option<(PartitionId, RequestHead)> {
        if self.page >= pages {
            (self.page, self.partition) = (0, self.partition + 1);
        }
        if self.partition >= partitions {
            self.partition = 0;
            self.walks.pop();
        }
        let class = *self.walks.last().filter(|_| pages > 0)?;
        let mut head = RequestHead::new(Verb::Dump, ReplyStyle::Text);
        head.mode = self.style as u8;
        (head.initial, head.delta) = (class.map_or(ALL_CLASSES, u64::from), self.page as u64);
        self.page += 1;
        Some((PartitionId(self.partition), head))
    }
}
