//! [`LargePages`]: an allocator that puts large blocks into large pages.
//!
//! A network of a million hosts has a gigabyte of ports, links and connections, and an event touches lines of it that
//! no event has touched for long. With pages of 4 KiB most of these touches wait for the address of their page, too,
//! which is in a table that no cache holds; with pages of 2 MiB the processor keeps the addresses of all. Linux gives
//! such pages on request, block by block:
//!
//! ```text
//! 1 MiB and more ──> a mapping that begins at a large page; when it grows, its pages move, and no byte is copied
//! less           ──> the system's allocator
//! ```
//!
//! A program takes it in one line, `#[global_allocator]`. Where the kernel has no large pages, and on other systems,
//! nothing changes. The gain is in `docs/internals/speed.md`, "Before and after".

#[cfg(target_os = "linux")]
mod allocator;
#[cfg(target_os = "linux")]
mod mapping;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "the system's allocator tells nobody"))]
mod refusal;

#[cfg(target_os = "linux")]
pub use allocator::LargePages;
#[cfg(not(target_os = "linux"))]
pub use std::alloc::System as LargePages;

pub use refusal::on_refusal;
