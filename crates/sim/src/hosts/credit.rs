//! The credit that hosts grant those that send to them, and the senders that share a NIC.
//!
//! ```text
//! send_from ──> Pdc::enlists ──> PullPacer of the host ──event──> on_credit_due ──> Pdc::grant ──> send_from: PULL
//!          ├──> Pdc::has_data ──> senders of the host ──> Pdc::set_share
//!          └──> NdpEnd::pulls_in_answer, if the pacer is free ──> an ACK or NACK that holds a pull
//! ```
//!
//! An end of NDP is enlisted, and granted its pulls, as a packet delivery context is.

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{HostId, PortId};
use plimsoll_mechanisms::transports::Endpoint;
use plimsoll_mechanisms::transports::credit::CreditWant;
use plimsoll_mechanisms::transports::uet::Pdc;
use plimsoll_traffic::ConnectionEnd as End;
use plimsoll_units::{Span, Time};

use super::Hosts;
use super::host_credit::HostCredit;
use crate::sim_hooks::SimFabric;

impl Hosts {
    /// Prepares an end whose receivers grant what it sends, before it sends: one of Ultra Ethernet is told how many
    /// senders share its NIC, and an answer of NDP may hold a pull. Returns whether it has sent: an end of Homa, by its
    /// host's own queue.
    #[cold]
    pub(super) fn prepare_grants(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        number: u32,
        end: End,
    ) -> bool {
        let Some(open) = self.connections.get_mut(number) else { return false };
        let host = open.host(end);
        let transport = open.transport;
        match &mut open.half(end).endpoint {
            Endpoint::Tcp(_) | Endpoint::Roce(_) => {}
            Endpoint::Uet(pdc) => share_nic(&mut self.credit[host.0 as usize], pdc),
            Endpoint::Ndp(ndp) => {
                let pacer = &mut self.credit[host.0 as usize].pacer;
                if pacer.is_free(now) && ndp.pulls_in_answer() {
                    let rate = fabric.network().link(PortId(host.0)).rate;
                    pacer.pay(now, self.transports.get(transport).ndp.pull_interval(rate));
                }
            }
            Endpoint::Homa(_) => {
                self.send_homa(now, fabric, number, end);
                return true;
            }
        }
        false
    }

    /// Puts an end that has sent what it may on its host's lists.
    pub(super) fn settle_credit(&mut self, now: Time, fabric: &mut SimFabric, number: u32, end: End) {
        let Some(open) = self.connections.get_mut(number) else { return };
        let (host, config) = (open.host(end), self.transports.get(open.transport));
        let credit = &mut self.credit[host.0 as usize];
        let want = match &mut open.half(end).endpoint {
            Endpoint::Uet(pdc) => {
                share_nic(credit, pdc);
                if let Some(network) = pdc.oversubscription(&config.uet)
                    && let Some(arrived) = pdc.take_arrived()
                {
                    credit.rate.on_arrivals(now, network, arrived);
                }
                pdc.enlists(&config.uet)
            }
            Endpoint::Ndp(ndp) => {
                if ndp.withdraws() {
                    credit.pacer.withdraw(&(number, end));
                }
                ndp.enlists().then_some(CreditWant::Backlog)
            }
            Endpoint::Tcp(_) | Endpoint::Roce(_) | Endpoint::Homa(_) => None,
        };
        if let Some(want) = want {
            credit.pacer.enlist((number, end), want);
            self.arm_credit(now, fabric, host);
        }
    }

    /// A host's next grant is due.
    #[cold]
    pub(super) fn on_credit_due(&mut self, now: Time, fabric: &mut SimFabric, host: HostId) {
        let credit = &mut self.credit[host.0 as usize];
        if credit.armed != now {
            return;
        }
        credit.armed = Time::MAX;
        let rate = fabric.network().link(PortId(host.0)).rate;
        while let Some(((number, end), list)) = self.credit[host.0 as usize].pacer.take() {
            let own_rate = &mut self.credit[host.0 as usize].rate;
            let Some(open) = self.connections.get_mut(number) else { continue };
            let config = self.transports.get(open.transport);
            let cost = match &mut open.half(end).endpoint {
                Endpoint::Uet(pdc) => pdc.grant(&config.uet, list).map(|quanta| {
                    let rccc = &config.uet.params.rccc;
                    // A small grant takes as long as one of four quanta, so that PULLs do not load the link.
                    let bits = (quanta.max(QUANTA_MIN) * rccc.quantum.get() * 8) as f64;
                    let network = pdc.oversubscription(&config.uet);
                    let share = network.map_or(1.0, |network| own_rate.at(now, network));
                    Span::from_secs_f64(bits / (rate.as_bps() as f64 * rccc.share * share))
                }),
                Endpoint::Ndp(ndp) => ndp.grant().then(|| config.ndp.pull_interval(rate)),
                Endpoint::Tcp(_) | Endpoint::Roce(_) | Endpoint::Homa(_) => None,
            };
            if let Some(cost) = cost {
                self.credit[host.0 as usize].pacer.pay(now, cost);
                self.send_from(now, fabric, number, end);
                break;
            }
        }
        self.arm_credit(now, fabric, host);
    }

    fn arm_credit(&mut self, now: Time, fabric: &mut SimFabric, host: HostId) {
        let credit = &mut self.credit[host.0 as usize];
        let due = credit.pacer.due();
        if due < credit.armed {
            let due = due.max(now);
            credit.armed = due;
            fabric.schedule(due, Owner::new(OwnerKind::Receive, CREDIT_EVENTS + host.0));
        }
    }
}

/// Tells an end how many senders share its NIC, itself included.
fn share_nic(credit: &mut HostCredit, pdc: &mut Pdc) {
    if let Some(begins) = pdc.data_change() {
        credit.senders = if begins { credit.senders + 1 } else { credit.senders - 1 };
    }
    pdc.set_share(credit.senders);
}

/// The quanta for whose time a grant waits at least.
const QUANTA_MIN: u64 = 4;

/// The numbers of the pacers' events begin here, above those of hosts' stacks.
pub(super) const CREDIT_EVENTS: u32 = 0b111 << 26;
