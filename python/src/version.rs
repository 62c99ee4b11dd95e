//! The version of this build.

/// The version and, where known, the commit.
pub(crate) const VERSION: &str = env!("PLIMSOLL_VERSION");

/// Returns the commit of this build; `None` outside a checkout.
pub(crate) fn commit() -> Option<&'static str> {
    Some(env!("PLIMSOLL_COMMIT")).filter(|commit| !commit.is_empty())
}
