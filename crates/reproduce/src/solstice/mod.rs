//! What `studies/solstice` runs: schedulers on generated demands, and how far from the optimum they are.

mod claims;
mod optimum;
mod plus_plus;
mod tasks;

pub(crate) use claims::claims;
pub(crate) use optimum::solved;
pub(crate) use tasks::{SWITCHING, TASKS, draw};
