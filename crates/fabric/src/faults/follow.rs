//! [`follow`]: a world's ports, flow control and routing become what its [`Faults`] say.
//!
//! The same for simulated and for real hosts, so that both see a fault alike.

use plimsoll_mechanisms::pfc::{Priorities, Signal};
use plimsoll_units::Time;

use super::{Change, Faults, LinkState};
use crate::engine::Owner;
use crate::flow_control::FlowControl;
use crate::net::{Network, PathSelector, Port, PortId, Sink};

/// What is behind the ports of a world with faults.
pub trait FaultedSink: Sink {
    /// The faults that it follows, if there are any.
    fn faults(&mut self) -> Option<&mut Faults>;
    /// Its flow control, if it has any.
    fn flow_control(&mut self) -> Option<&mut FlowControl>;
    /// Wakes `owner` at `at`.
    fn wake(&mut self, at: Time, owner: Owner);
}

/// Links change at `now`, or routing learns that they have: `ports` get their rules, dead ones are emptied, flow
/// control on links that break or come back begins anew, and `selector` goes around what routing knows to be dead.
/// Returns the ports whose links have changed and are alive: they may have room.
pub fn follow<S: FaultedSink>(
    now: Time,
    network: &Network,
    ports: &mut [Port],
    selector: Option<&mut PathSelector>,
    sink: &mut S,
) -> Vec<PortId> {
    let Some(faults) = sink.faults() else { return Vec::new() };
    let changed = faults.advance(now);
    if let Some((at, owner)) = faults.next_event(now) {
        sink.wake(at, owner);
    }
    for change in &changed {
        change_link(now, ports, change, sink);
    }
    for change in changed.iter().filter(|change| change.breaks) {
        for port in [Some(change.port), change.back].into_iter().flatten() {
            forget_pauses(now, ports, port, sink);
        }
    }
    if let Some(faults) = sink.faults()
        && faults.learn(now)
        && let Some(selector) = selector
    {
        selector.set_detours(faults.detours(network));
    }
    let alive = changed.iter().filter(|change| change.state != LinkState::Dead);
    alive.map(|change| change.port).collect()
}

fn change_link<S: FaultedSink>(now: Time, ports: &mut [Port], change: &Change, sink: &mut S) {
    let &Change { port, state, .. } = change;
    let Some(faults) = sink.faults() else { return };
    let rules = faults.rules_in(port, state);
    let changed = &mut ports[port.0 as usize];
    changed.set_rules(rules);
    if state == LinkState::Dead {
        changed.flush(port, now, sink);
    }
}

/// Flow control on the link of `port` begins anew.
fn forget_pauses<S: FaultedSink>(now: Time, ports: &mut [Port], port: PortId, sink: &mut S) {
    let Some(control) = sink.flow_control() else { return };
    control.forget(port);
    ports[port.0 as usize].on_signal(port, now, Signal::Resume(Priorities::ALL), sink);
}
