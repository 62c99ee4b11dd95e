//! [`Unbuildable`]: why a fabric cannot be built.

/// A fabric that cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct Unbuildable {
    /// The dotted key of the scenario.
    pub key: String,
    /// The reason why its value is invalid.
    pub problem: String,
}

impl Unbuildable {
    /// The value of `key` has a `problem`.
    pub fn new(key: impl Into<String>, problem: impl ToString) -> Unbuildable {
        Unbuildable { key: key.into(), problem: problem.to_string() }
    }
}
