//! The checks of the repository's files.
#![allow(clippy::unwrap_used, reason = "tests")]

mod architecture;
mod english;
mod import_circles;
mod links;
mod recipes;
