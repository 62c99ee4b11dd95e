//! Memory as the processor and the kernel see it: [`prefetch`](prefetch()) asks the caches for data that will be used
//! soon, and [`LargePages`] is an allocator that puts large blocks into large pages.
//!
//! Both take pointers, so this crate has `unsafe` code, and the crates that use it need none of their own.

#[cfg(feature = "large-pages")]
mod large_pages;
mod prefetch;

#[cfg(feature = "large-pages")]
pub use large_pages::{LargePages, on_refusal};
pub use prefetch::{prefetch, prefetch_for_later};
