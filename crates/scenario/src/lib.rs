//! Scenario files: TOML in, checked concrete runs out.
//!
//! [`Scenario::load`] reads a file, lays each variant, sweep point and `--set` over it, and returns
//! one [`Point`] for each run, whose [`model::Model`] has been checked. Whatever is wrong comes back
//! as a list of [`ScenarioError`]s, each with its file, line, key, the allowed values and the
//! nearest spelling.
//!
//! ```text
//! text -> node (every value knows its place) -> presets -> overlay (variants, sweep, --set) -> ports (tiers)
//!      -> registry (mechanisms from outside) -> de (serde, errors located) -> model
//!      -> check (what serde cannot know) -> Point
//! ```

mod check;
mod de;
mod digest;
mod dscp;
mod error;
mod fabric_spec;
mod files;
mod graph;
pub mod import;
mod keys;
mod memories;
pub mod model;
mod moved;
mod node;
mod overlay;
mod ports;
mod presets;
mod program;
mod reference;
mod registry;
mod scenario;
mod schema;
mod show;
mod source;
mod transports;
mod unmodelled;
mod unused;

pub use dscp::{DSCPS, DscpText};
pub use error::{Report, ScenarioError, ScenarioWarning, did_you_mean};
pub use files::with_files;
pub use plimsoll_traffic::cdf::{CdfError, CdfTable};
pub use plimsoll_traffic::distribution;
pub use plimsoll_traffic::hosts::UnknownHost;
pub use plimsoll_units::quantity;
pub use presets::presets;
pub use reference::{KeyEntry, find_keys, keys, nearest_keys, reference};
pub use registry::{Parameters, Registry};
pub use scenario::{Overrides, Point, Scenario, replicate_seed};
pub use schema::schema;
