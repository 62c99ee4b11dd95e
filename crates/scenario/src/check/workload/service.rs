//! Checks of `closed-loop` and `pages`.

use super::{Demand, mean};
use crate::check::Checker;
use crate::model::{ClosedLoop, PageOrder, Pages, Topology};

/// Most retrievals of a page, and most requests that a client keeps in flight.
const MANY: u64 = 1_000_000;

impl Checker<'_> {
    pub(super) fn closed_loop(&mut self, name: &str, closed: &mut ClosedLoop, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        let clients = self.members(&at("clients"), &closed.clients, topology, &[]);
        self.members(&at("servers"), &closed.servers, topology, &clients);
        let outstanding = u64::from(closed.outstanding);
        self.one_to_many(&at("outstanding"), outstanding, "requests in flight");
        self.distribution(&at("request"), &mut closed.request);
        self.distribution(&at("response"), &mut closed.response);
        self.distribution(&at("service"), &mut closed.service);
        self.distribution(&at("think"), &mut closed.think);
        self.one_to_many(&at("threads"), closed.threads.into(), "threads");
        Demand { ends: closed.count.is_some(), start: closed.start, towards: None }
    }

    pub(super) fn pages(&mut self, name: &str, pages: &mut Pages, topology: &Topology) -> Demand {
        let at = |key| ["workload", name, key];
        let front = self.members(&at("front_ends"), &pages.front_ends, topology, &[]);
        let back = self.members(&at("back_ends"), &pages.back_ends, topology, &front);
        let rate = pages.pages_per_second;
        if !(rate > 0.0 && rate.is_finite()) {
            self.error(&at("pages_per_second"), format!("{rate} pages per second"), "more than 0");
        }
        let retrievals = self.retrievals(name, pages);
        self.page_sizes(name, pages);
        self.distribution(&at("request"), &mut pages.request);
        self.distribution(&at("service"), &mut pages.service);
        self.one_to_many(&at("threads"), pages.threads.into(), "threads");
        self.deadline(&at("deadline"), pages.deadline);
        if pages.timeout.is_some_and(|timeout| timeout.is_zero()) {
            self.error(&at("timeout"), "every answer is late", "more than 0s");
        }
        if pages.replicas == 0 || pages.replicas as usize > back.len().max(1) {
            let message = format!("{} replicas on {} back-ends", pages.replicas, back.len());
            self.error(&at("replicas"), message, "1 to the number of back-ends");
        }
        if let (Some(service), false) = (mean(&pages.service), back.is_empty()) {
            let asked = rate * front.len() as f64 * retrievals as f64 * f64::from(pages.replicas);
            let threads = back.len() as f64 * f64::from(pages.threads.max(1));
            self.service(&at("service"), asked / threads, service);
        }
        Demand { ends: pages.count.is_some(), start: pages.start, towards: None }
    }

    /// How many retrievals a page has, from the keys that its order goes by.
    fn retrievals(&mut self, name: &str, pages: &Pages) -> u64 {
        let at = |key| ["workload", name, key];
        if pages.order == PageOrder::Graph {
            if pages.retrievals.is_some() {
                let message = "the order `graph` goes by `levels`";
                self.error(&at("retrievals"), message, "`levels` alone, or another order");
            }
            let total: u64 = pages.levels.iter().map(|&level| u64::from(level)).sum();
            if pages.levels.is_empty() || pages.levels.contains(&0) || total > MANY {
                let message = format!("levels with {:?} retrievals", pages.levels);
                self.error(&at("levels"), message, format!("one level or more, each 1 to {MANY} in all"));
            }
            return total;
        }
        if !pages.levels.is_empty() {
            self.error(&at("levels"), "only the order `graph` has levels", "`order = \"graph\"`");
        }
        match pages.retrievals {
            Some(retrievals) => self.one_to_many(&at("retrievals"), retrievals.into(), "retrievals"),
            None => self.error(&["workload", name], "the key `retrievals` is missing", "`retrievals`"),
        }
        u64::from(pages.retrievals.unwrap_or(1))
    }

    fn page_sizes(&mut self, name: &str, pages: &mut Pages) {
        if let Some(size) = &mut pages.size {
            if !pages.sizes.is_empty() {
                let message = "the size is given twice";
                self.error(&["workload", name, "sizes"], message, "one of size and sizes");
            }
            self.distribution(&["workload", name, "size"], size);
        }
        for (index, &size) in pages.sizes.iter().enumerate() {
            self.some_bytes(&["workload", name, "sizes", &index.to_string()], size);
        }
    }

    fn one_to_many(&mut self, path: &[&str], number: u64, what: &str) {
        if !(1..=MANY).contains(&number) {
            self.error(path, format!("{number} {what}"), format!("1 to {MANY}"));
        }
    }
}
