//! Chunk sizes: each page is cut into chunks of one class.
//!
//! memcached grows its classes by 1.25 in pages of 1 MiB. Ours are the sizes whose chunks fill a page without
//! remainder, about 1.06 apart, so that an item wastes 3 % of its chunk on average instead of 10 %.

use super::item::{GRAIN, HEADER_BYTES};

/// The sizes of chunks, smallest first, and last the class of the heads of large items.
#[derive(Clone, Debug)]
pub struct ChunkClasses {
    sizes: Vec<u32>,
    /// Class of a size in units of [`GRAIN`], rounded up.
    class_of: Vec<u8>,
}

/// Chunks of the largest class in a page.
const CHUNKS_PER_PAGE_MIN: usize = 4;
/// More classes than this would not fit the index of a class.
const CLASSES_MAX: usize = 200;
/// Bytes of the head of a large item: header, longest key, and the number of its value.
const HEAD_BYTES: usize = (HEADER_BYTES + 250 + size_of::<u32>()).next_multiple_of(GRAIN);

impl ChunkClasses {
    /// Creates classes for pages of `page_bytes`, each at least `growth` times the one before; the smallest has
    /// `data_min` bytes for key and value.
    pub fn new(page_bytes: usize, growth: f64, data_min: usize) -> ChunkClasses {
        let smallest = (HEADER_BYTES + data_min.max(GRAIN))
            .next_multiple_of(GRAIN)
            .min(page_bytes / CHUNKS_PER_PAGE_MIN);
        let mut sizes = vec![smallest];
        loop {
            let last = sizes[sizes.len() - 1];
            let wanted = ((last as f64 * growth) as usize).max(last + GRAIN);
            let chunks = (page_bytes / wanted).max(CHUNKS_PER_PAGE_MIN);
            let size = page_bytes / chunks / GRAIN * GRAIN;
            if size <= last || sizes.len() == CLASSES_MAX {
                break;
            }
            sizes.push(size);
        }
        let largest = sizes[sizes.len() - 1];
        let class_of = (0..=largest / GRAIN)
            .map(|units| sizes.partition_point(|&size| size < units * GRAIN) as u8)
            .collect();
        sizes.push(HEAD_BYTES);
        ChunkClasses { sizes: sizes.into_iter().map(|size| size as u32).collect(), class_of }
    }

    /// Returns the class for an item of `bytes`; None if it needs an allocation of its own.
    pub fn class_of(&self, bytes: usize) -> Option<usize> {
        self.class_of.get(bytes.div_ceil(GRAIN)).map(|&class| usize::from(class))
    }

    /// Returns the class of the heads of large items: their pages have nothing else, so that a small item takes the
    /// place of none.
    pub fn heads(&self) -> usize {
        self.sizes.len() - 1
    }

    /// Returns the bytes of a chunk of `class`.
    pub fn size(&self, class: usize) -> usize {
        self.sizes[class] as usize
    }

    /// Returns the number of classes.
    pub fn count(&self) -> usize {
        self.sizes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_the_smallest_class_that_holds_it() {
        for page_bytes in [16 << 10, 64 << 10] {
            let classes = ChunkClasses::new(page_bytes, 1.06, 48);
            for bytes in 1..=page_bytes / 4 {
                let class = classes.class_of(bytes).expect("up to a quarter of a page");
                assert!(classes.size(class) >= bytes && (class == 0 || classes.size(class - 1) < bytes));
            }
            assert_eq!(classes.class_of(page_bytes / 4 + 1), None);
        }
    }

    #[test]
    fn a_chunk_of_the_papers_item_is_below_memcacheds() {
        let classes = ChunkClasses::new(64 << 10, 1.06, 48);
        let class = classes.class_of(HEADER_BYTES + 64 + 1024).expect("a small item");
        let in_page = (64 << 10) / classes.size(class);
        // An entry of the index has 8 bytes, and the table is three eighths full just after it has grown.
        assert!((64 << 10) / in_page + 22 <= 1184, "{}", classes.size(class));
    }
}
