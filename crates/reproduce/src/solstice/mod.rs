//! How far Solstice is from the optimum, and what its numbers say together.

mod optimum;
mod plus_plus;

pub(crate) use optimum::solved;
