//! [`Needs`]: what some programs need beyond Linux 5.13, so that an error can say so: what the kernel itself says of it is
//! "Invalid argument".

use std::fmt;

#[cfg(feature = "kernel")]
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
    /// The release that brought it.
    pub fn since(self) -> Release {
        match self {
            Needs::DeviceLinks => Release(6, 6),
            Needs::StructOpsLinks => Release(6, 4),
            Needs::KernelPackets => Release(6, 2),
        }
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Needs::DeviceLinks => "links at devices (tcx)",
            Needs::StructOpsLinks => "links of struct_ops",
            Needs::KernelPackets => "bpf_cast_to_kern_ctx",
        }
    }

    /// Whether this kernel has it by its release. Others may have it by a distribution's choice, so a program is tried all the
    /// same.
    pub fn is_here(self) -> bool {
        Release::parse(&this()) >= self.since()
    }

    /// For `map_err`, of what failed: that this kernel is too old for it, if it is.
    #[cfg(feature = "kernel")]
    pub(crate) fn explain(self) -> impl FnOnce(Error) -> Error {
        move |error| match error {
            Error::Kernel { .. } if !self.is_here() => {
                let (name, since, release) = (self.name(), self.since(), this());
                Error::Unsupported(format!("{name} need {since}, this is {release} ({error})"))
            }
            other => other,
        }
    }
}

/// A release of Linux: its first two numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Release(u32, u32);

impl Release {
    /// Of words such as `6.1.0-56-amd64`; what is no number is 0.
    fn parse(release: &str) -> Release {
        let mut numbers =
            release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
        Release(numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Linux {}.{}", self.0, self.1)
    }
}

fn this() -> String {
    rustix::system::uname().release().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_ordered_by_their_numbers() {
        for (release, expected) in
            [("6.1.0-56-amd64", (6, 1)), ("6.12.95+deb12-amd64", (6, 12)), ("5.14", (5, 14)), ("7", (7, 0))]
        {
            assert_eq!(Release::parse(release), Release(expected.0, expected.1), "{release}");
        }
        assert!(Release::parse("6.1.0") < Needs::KernelPackets.since());
        assert!(Release::parse("6.12.0") >= Needs::DeviceLinks.since());
    }
}
