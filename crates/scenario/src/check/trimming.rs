//! Checks `port.*.trim`: queues for data and for headers, the port's own or those of classes, with room for packets.

use plimsoll_mechanisms::Depth;
use plimsoll_mechanisms::classes::{ClassParams, ClassesParams, OrderInClass};
use plimsoll_mechanisms::trim::{HeaderService, TrimParams, Victim};

use super::Checker;
use super::port::keys;
use crate::keys::DISCIPLINE;
use crate::model::{Model, Port, QueueOrder};
use crate::quantity::QueueLimit;

impl Checker<'_> {
    /// Trimming needs queues for data and for headers: its own, or the classes'.
    pub(super) fn trimming(&mut self, name: &str, port: &Port, model: &Model) {
        let Some(trim) = port.trim() else { return };
        let path = self.path_of(name, "trim");
        let others = [
            ("pfabric", port.pfabric().is_some()),
            (DISCIPLINE, model.outside.disciplines.contains_key(name)),
            ("order = \"priorities\"", port.order == QueueOrder::Priorities),
        ];
        if name == "host" {
            self.error(&keys(&path), "a host does not trim its own packets", "switch ports only");
            return;
        }
        if let Some((other, _)) = others.into_iter().find(|(_, is_on)| *is_on) {
            let message = format!("trimming has queues of its own, which {other} would order");
            self.error(&keys(&path), message, "turn one off, or use `classes`");
        } else if port.pfc().is_some() {
            let message = "a lossless port has nothing to trim";
            self.error(&keys(&path), message, "turn one off: `trim = \"off\"` or `pfc = \"off\"`");
        } else if let Some(classes) = port.classes() {
            self.trimming_with_classes(name, trim, classes, model);
        }
        self.acknowledgements(name, trim, model);
        let is_limited = |class: &ClassParams| class.buffer.is_some();
        let in_classes = port.classes().is_some_and(|classes| classes.priority.values().any(is_limited));
        if port.buffer == QueueLimit::Unlimited && port.shared_buffer().is_none() && !in_classes {
            let message = "it never trims: all packets find room, as `buffer` is unlimited";
            self.warn(&keys(&path), message, "a `buffer`, a `shared_buffer`, or a `buffer` of a class");
        }
    }

    /// The class of `trim.priority` is the header queue.
    fn trimming_with_classes(
        &mut self,
        name: &str,
        trim: &TrimParams,
        classes: &ClassesParams,
        model: &Model,
    ) {
        let path = self.path_of(name, "trim");
        let by_flow = |class: &ClassParams| class.order == OrderInClass::FairPerFlow;
        let priority = trim.priority;
        if trim.queue.is_some() || trim.service != HeaderService::Strict {
            let message =
                "with `classes` the class of `trim.priority` is the header queue, with its limit and service";
            self.error(&keys(&path), message, "no `queue` and no `service`");
        } else if trim.victim == Victim::CoinTail && classes.priority.values().any(by_flow) {
            let message = "a class that serves flows in turn has no last packet";
            let allowed = "`victim = \"arriving\"`, or classes with `order = \"fifo\"`";
            self.error(&keys(&path), message, allowed);
        }
        let classes_path = self.path_of(name, "classes");
        let Some(entry) = classes.entry_of(priority) else {
            let message =
                format!("no class is the header queue: priority {priority} of trimmed packets has no entry");
            let allowed = format!("a class for it, such as `priority.\"{priority}\" = {{}}`");
            self.error(&keys(&classes_path), message, allowed);
            return;
        };
        let is_of_data = |used: &u8| *used != priority && Some(*used) != model.host.ack_priority;
        let of_data = model.used_priorities().into_iter().filter(is_of_data);
        if let Some(used) = of_data.into_iter().find(|used| classes.entry_of(*used) == Some(entry)) {
            let at: Vec<&str> = keys(&classes_path).into_iter().chain(["priority", entry]).collect();
            let message = format!(
                "headers wait behind data of priority {used}, which the port's `buffer` does not limit"
            );
            self.warn(&at, message, format!("a class for priority {priority} of trimmed packets alone"));
        }
    }

    /// Acknowledgements wait in the header queue as well.
    fn acknowledgements(&mut self, name: &str, trim: &TrimParams, model: &Model) {
        let largest = model.carriers().map(|of| of.header).max().unwrap_or_default();
        if let Some(Depth::Bytes(queue)) = trim.queue
            && queue >= trim.header
            && queue < largest
        {
            let table = self.path_of(name, "trim");
            let message = format!("no acknowledgement ({} B) ever waits in {queue}", largest.get());
            let at: Vec<&str> = keys(&table).into_iter().chain(["queue"]).collect();
            self.warn(&at, message, format!("at least {}B", largest.get()));
        }
    }
}
