//! Checks `port.*.classes`: limits, thresholds and bursts of classes against the packets of the scenario.

use plimsoll_mechanisms::classes::ClassParams;
use plimsoll_mechanisms::{Depth, Mechanism};
use plimsoll_units::Bytes;

use super::Checker;
use super::port::{in_bytes, keys};
use crate::model::{Model, Port};

impl Checker<'_> {
    /// Checks each class for which the port has an entry.
    pub(super) fn classes(&mut self, name: &str, port: &Port, model: &Model) {
        let Some(classes) = port.classes() else { return };
        let table = self.path_of(name, "classes");
        let full_packet = model.packet_bytes().max(1);
        let headers =
            port.trim().and_then(|trim| Some((classes.entry_of(trim.priority)?, trim.header.get())));
        for (entry, class) in &classes.priority {
            let at: Vec<&str> = keys(&table).into_iter().chain(["priority", entry]).collect();
            let (packet, of) = match headers {
                Some((of_headers, header)) if of_headers == entry => (header, "trimmed"),
                _ => (full_packet, "full"),
            };
            self.burst_of_class(&at, class, full_packet);
            self.buffer_of_class(&at, class, packet, of);
            self.threshold_of_class(&at, class, packet, of);
        }
    }

    /// A burst lets at least one packet pass.
    fn burst_of_class(&mut self, at: &[&str], class: &ClassParams, packet: u64) {
        if let Some(burst) = class.burst.filter(|burst| burst.get() < packet) {
            let message = format!("a burst of {burst} never lets a full packet pass");
            let allowed = format!("at least segment and header, {packet}B");
            self.error(&[at, &["burst"]].concat(), message, allowed);
        }
    }

    fn buffer_of_class(&mut self, at: &[&str], class: &ClassParams, packet: u64, of: &str) {
        if let Some(Depth::Bytes(buffer)) = class.buffer
            && (1..packet).contains(&buffer.get())
        {
            let message = format!("no {of} packet ({packet} B) ever waits in {buffer}");
            self.warn(&[at, &["buffer"]].concat(), message, format!("at least {packet}B"));
        }
    }

    fn threshold_of_class(&mut self, at: &[&str], class: &ClassParams, packet: u64, of: &str) {
        let Some((ecn, buffer)) = class.ecn.zip(class.buffer) else { return };
        let (threshold, room) = (in_bytes(ecn.threshold, packet), in_bytes(buffer, packet));
        let at_dequeue = ecn.marking().is_some_and(|marking| marking.at_dequeue);
        let last = if at_dequeue { 0 } else { packet };
        if threshold.saturating_add(last) > room && room > 0 {
            let message = format!(
                "it marks no {of} packet: the class has room for {}, and the threshold is {}",
                Bytes::new(room),
                Bytes::new(threshold)
            );
            let help = "a lower threshold, or a larger `buffer` of the class";
            self.warn(&[at, &["ecn", "threshold"]].concat(), message, help);
        }
    }
}
