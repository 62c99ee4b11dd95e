//! Plans the pacer: its two programs, and the queue that delays packets.

use plimsoll_units::Bytes;

use super::{ETHERNET, Planning};
use crate::Error;
use crate::facts::{Device, RootQueue};
use crate::policy::{DeviceSide, Pacer, PacerQueue, Segments};
use crate::step::{PortProgram, Shape, Step};

impl Planning<'_> {
    pub(super) fn pacer(&mut self, pacer: &Pacer) -> Result<(), Error> {
        let name = &pacer.device;
        let Some(device) = self.device("pacer.device", name)? else { return Ok(()) };
        let shaped = self.pacer_queue(pacer, device)?;
        if pacer.segments == Segments::Fit {
            self.fit_segments("pacer", name, device, pacer.bucket.get());
        }
        let mut cgroups = Vec::new();
        for path in &pacer.cgroups {
            cgroups.extend(self.cgroup(path)?);
        }
        let root = self.facts.cgroups().unwrap_or_default();
        let pins = self.pins.join(PACER);
        let program = PortProgram::Pacer { pacer: pacer.clone(), root, cgroups, shaped };
        self.program(name, DeviceSide::Egress, vec![(program, PACER.to_owned())])?;
        let feedback = PortProgram::PacerFeedback { pacer: pacer.clone(), flows: pins.join("flows") };
        self.program(name, DeviceSide::Ingress, vec![(feedback, FEEDBACK.to_owned())])?;
        self.notes.push(
            "pacer: only TCP connections with ECN (net.ipv4.tcp_ecn = 1, or DCTCP) get congestion feedback and are \
             paced"
                .to_owned(),
        );
        Ok(())
    }

    /// Adds the queue that delays the pacer's packets; returns whether it is a shaper.
    fn pacer_queue(&mut self, pacer: &Pacer, device: Device) -> Result<bool, Error> {
        let name = &pacer.device;
        let before = match self.facts.root_queue(name)? {
            RootQueue::Departures if pacer.departure != Some(PacerQueue::Tbf) => return Ok(false),
            RootQueue::Departures => {
                self.reasons.push(format!(
                    "pacer.departure = \"tbf\": the root queue of {name} is fq, which obeys departure times; use \
                     \"edt\""
                ));
                return Ok(true);
            }
            RootQueue::Set(kind) => {
                self.reasons.push(format!(
                    "pacer: the root queue of {name} is {kind}, which was configured; it must be fq, which obeys \
                     departure \
                     times, or the kernel's default"
                ));
                return Ok(false);
            }
            RootQueue::Default(before) => before,
        };
        if before == "mq" {
            self.note(format!(
                "pacer: {name} has a queue for each hardware queue (mq). A single queue replaces them, at which the \
                 processors wait for each other; `tc qdisc` with fq below mq, set before, keeps them apart"
            ));
        }
        let (fq, shapers) = (self.facts.has_fq(), self.facts.has_shapers());
        let choice =
            pacer.departure.unwrap_or(if fq || !shapers { PacerQueue::Edt } else { PacerQueue::Tbf });
        match choice {
            PacerQueue::Edt if fq => self.steps.push(Step::Departures { device: name.clone(), before }),
            PacerQueue::Edt => self.reasons.push(format!(
                "pacer: this kernel lacks fq (CONFIG_NET_SCH_FQ), the queue that obeys departure times at {name}{}",
                if shapers { "; departure = \"tbf\" works without it" } else { ", and HTB and TBF \
                    (CONFIG_NET_SCH_HTB, _TBF) in its place" }
            )),
            PacerQueue::Tbf if !shapers => self.reasons.push(
                "pacer.departure = \"tbf\": this kernel lacks HTB or TBF (CONFIG_NET_SCH_HTB, CONFIG_NET_SCH_TBF)"
                    .to_owned(),
            ),
            PacerQueue::Tbf => {
                let burst = pacer.bucket.max(Bytes::new(u64::from(device.mtu) + ETHERNET));
                let shape = Shape { rate: pacer.rate, burst };
                self.steps.push(Step::Shaper { device: name.clone(), before, shape });
                let why = if pacer.departure.is_some() { "as the policy says" } else { "as this kernel lacks fq" };
                self.notes.push(format!(
                    "pacer: by a TBF, {why}. It has the link's rate, and so paces nothing, unless `plimsoll host \
                     pace` runs"
                ));
            }
        }
        Ok(choice == PacerQueue::Tbf)
    }
}

/// The name of the folder of the pacer's pins.
pub(super) const PACER: &str = "pacer";
/// The name of the folder of the pins of its feedback program.
pub(super) const FEEDBACK: &str = "pacer-feedback";
