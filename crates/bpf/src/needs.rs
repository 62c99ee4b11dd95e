//! [`Needs`]: what some programs need beyond Linux 5.13, so that an error can say so: what the kernel itself says of it is
//! "Invalid argument".

use crate::Error;

/// Something that a kernel may be too old for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// A program at a device by a link (tcx).
    DeviceLinks,
    /// A congestion control that leaves with its link (BPF_F_LINK of struct_ops).
    StructOpsLinks,
    /// The kernel's own view of a packet (`bpf_cast_to_kern_ctx`).
    KernelPackets,
}

impl Needs {
    /// The release that brought it. Others may have it by a distribution's choice, so a program is tried all the same.
    pub fn since(self) -> (u32, u32) {
        match self {
            Needs::DeviceLinks => (6, 6),
            Needs::StructOpsLinks => (6, 4),
            Needs::KernelPackets => (6, 2),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Needs::DeviceLinks => "links at devices (tcx)",
            Needs::StructOpsLinks => "links of congestion controls (struct_ops)",
            Needs::KernelPackets => "bpf_cast_to_kern_ctx",
        }
    }

    /// For `map_err`, of what failed: that this kernel is too old for it, if it is.
    pub(crate) fn explain(self) -> impl FnOnce(Error) -> Error {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        move |error| match error {
            Error::Kernel { .. } if numbers(&release) < self.since() => {
                let ((major, minor), name) = (self.since(), self.name());
                Error::Unsupported(format!("{name} need Linux {major}.{minor}, this is {release} ({error})"))
            }
            other => other,
        }
    }
}

/// The first two numbers of a release such as `6.1.0-56-amd64`.
fn numbers(release: &str) -> (u32, u32) {
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_by_their_numbers() {
        for (release, expected) in
            [("6.1.0-56-amd64", (6, 1)), ("6.12.95+deb12-amd64", (6, 12)), ("5.14", (5, 14)), ("7", (7, 0))]
        {
            assert_eq!(numbers(release), expected, "{release}");
        }
        assert!(numbers("6.1.0") < Needs::KernelPackets.since());
        assert!(numbers("6.12.0") >= Needs::DeviceLinks.since());
    }
}
