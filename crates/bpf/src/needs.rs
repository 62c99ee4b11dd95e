//! [`Needs`] names the kernel features beyond Linux 5.13 that some programs need, so that an error can name them: the
//! kernel itself returns only "Invalid argument".

use std::fmt;

#[cfg(feature = "kernel")]
use crate::Error;

/// A kernel feature that an older kernel lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Links that attach a program to a device (tcx).
    DeviceLinks,
    /// Links that unregister a congestion control when they are closed (BPF_F_LINK of struct_ops).
    StructOpsLinks,
    /// Access to the kernel's own packet structure (`bpf_cast_to_kern_ctx`).
    KernelPackets,
}

impl Needs {
    /// Returns the release that introduced the feature.
    pub fn since(self) -> KernelRelease {
        match self {
            Needs::DeviceLinks => KernelRelease(6, 6),
            Needs::StructOpsLinks => KernelRelease(6, 4),
            Needs::KernelPackets => KernelRelease(6, 2),
        }
    }

    /// Returns the feature's name, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Needs::DeviceLinks => "links at devices (tcx)",
            Needs::StructOpsLinks => "links of struct_ops",
            Needs::KernelPackets => "bpf_cast_to_kern_ctx",
        }
    }

    /// Returns whether this kernel's release has the feature. Distributions may backport it, so a program is tried
    /// regardless.
    pub fn is_here(self) -> bool {
        KernelRelease::parse(&this()) >= self.since()
    }

    /// Returns a closure for `map_err` which reports that this kernel is too old for the feature, if it is.
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

/// A release of Linux, by its first two numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct KernelRelease(u32, u32);

impl KernelRelease {
    /// Parses a release such as `6.1.0-56-amd64`; a part that is not a number is 0.
    fn parse(release: &str) -> KernelRelease {
        let mut numbers =
            release.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
        KernelRelease(numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
    }
}

impl fmt::Display for KernelRelease {
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
            assert_eq!(KernelRelease::parse(release), KernelRelease(expected.0, expected.1), "{release}");
        }
        assert!(KernelRelease::parse("6.1.0") < Needs::KernelPackets.since());
        assert!(KernelRelease::parse("6.12.0") >= Needs::DeviceLinks.since());
    }
}
