//! [`InvalidParam`]: a parameter outside its range.

/// A parameter whose value makes no sense, and what would.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{}` cannot be {value}; allowed: {allowed}", self.path().collect::<Vec<_>>().join("."))]
pub struct InvalidParam {
    /// The tables below the mechanism's own that the key is in, such as `priority` and `5..6`; none of most keys.
    pub tables: Vec<String>,
    /// The key within the innermost table, such as `drain`.
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
        if ok {
            Ok(())
        } else {
            Err(InvalidParam { tables: Vec::new(), key, value: value.to_string(), allowed })
        }
    }

    /// Returns the error of a key that is in `tables` below the one that was checked.
    pub fn within(mut self, tables: &[&str]) -> InvalidParam {
        self.tables.splice(..0, tables.iter().map(|table| (*table).to_owned()));
        self
    }

    /// Returns the names of the tables below the mechanism's own, and that of the key.
    pub fn path(&self) -> impl Iterator<Item = &str> {
        self.tables.iter().map(String::as_str).chain(self.key.split('.'))
    }
}
