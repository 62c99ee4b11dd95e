//! Which tracepoints the kernel has, by its own description of its types.

use std::path::Path;

use libbpf_rs::btf::{Btf, BtfType};

use crate::Error;
use crate::program::KERNEL_TYPES;

/// Returns the `names` that the kernel has as tracepoints.
///
/// # Errors
/// Returns [`Error::Unsupported`] if the kernel does not describe its types (BTF).
pub(crate) fn present(names: impl Iterator<Item = &'static str>) -> Result<Vec<&'static str>, Error> {
    if !Path::new(KERNEL_TYPES).exists() {
        return Err(Error::Unsupported(format!(
            "this kernel does not describe its types at {KERNEL_TYPES} (CONFIG_DEBUG_INFO_BTF), which tracing needs"
        )));
    }
    let types = Btf::from_vmlinux().map_err(Error::while_doing("reading the kernel's types"))?;
    let is_here = |name: &&str| types.type_by_name::<BtfType<'_>>(&format!("btf_trace_{name}")).is_some();
    Ok(names.filter(is_here).collect())
}
