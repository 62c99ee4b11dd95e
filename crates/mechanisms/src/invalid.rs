//! [`InvalidParam`]: a parameter outside its range.

/// A parameter whose value makes no sense, and what would.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{key}` cannot be {value}; allowed: {allowed}")]
pub struct InvalidParam {
    /// The key within the mechanism's own table, such as `drain`.
    pub key: &'static str,
    /// The value as the user would write it.
    pub value: String,
    /// The allowed values in words, such as `more than 0 and at most 1`.
    pub allowed: &'static str,
}

impl InvalidParam {
    /// Returns `Ok` if `ok`, else the error with the key, its value and the allowed values.
    pub fn unless(
        ok: bool,
        key: &'static str,
        value: impl std::fmt::Display,
        allowed: &'static str,
    ) -> Result<(), InvalidParam> {
        if ok { Ok(()) } else { Err(InvalidParam { key, value: value.to_string(), allowed }) }
    }
}
