//! [`PausableLink`]: a link into a switch, the account of its packets, and the pause frames that are sent against it.

use plimsoll_mechanisms::lossless::RefreshTimer;
use plimsoll_mechanisms::pfc::{IngressAccount, PAUSE_FRAME, PausedLink, PfcParams, Priorities};
use plimsoll_units::{Bytes, Rate, Span, Time};

use super::build_error;
use super::sender::{PausedSender, SentSignal};
use super::timer::LazyCall;
use crate::engine::{EventQueue, Owner, OwnerKind};
use crate::net::{Port, PortId};
use crate::spec::FabricSpec;
use crate::unbuildable::Unbuildable;

/// A link into a switch that may pause the port that sends on it.
#[derive(Debug)]
pub(super) struct PausableLink {
    pub(super) account: Account,
    /// The port that sends on the link.
    pub(super) port: PortId,
    /// The port that sends in the opposite direction.
    pub(super) back: PortId,
    /// The time from the start of a pause frame until it is obeyed; from its end, where it takes time on the link.
    delay: Span,
    /// The start of the last frame that takes time on the link, and when it is obeyed.
    pub(super) frame: Option<(Time, Time)>,
    /// The number of pauses sent, in the whole run.
    pub(super) sent: u64,
    /// Repeats pauses before they end, where pauses end by themselves.
    pub(super) refresh: Option<RefreshTimer>,
    /// The call for the next refresh.
    refresh_call: LazyCall,
    /// The number of refresh frames sent, in the whole run.
    pub(super) refreshed: u64,
    pub(super) sender: PausedSender,
}

/// The account of the packets that came by a link.
#[derive(Debug)]
pub(super) enum Account {
    /// A buffer of the link's own.
    Own {
        /// The bytes by priority, with fixed thresholds.
        account: IngressAccount,
        buffer: u64,
        held: u64,
    },
    /// A part of the memory of this number.
    InMemory(u32),
}

impl PausableLink {
    /// A signal is on its way to the port on the link.
    pub(super) fn receive(&mut self, sent: SentSignal, events: &mut EventQueue) {
        if sent.is_event {
            events.push(sent.at, Owner::new(OwnerKind::Pause, sent.port.0));
        }
        self.sender.expect(sent);
    }

    /// Sends a pause frame behind the packet that the port back is sending. Returns when it is obeyed.
    pub(super) fn send_frame(&mut self, now: Time, back: &mut Port, events: &mut EventQueue) -> Time {
        if let Account::Own { .. } = self.account {
            return now.max(back.busy_until()) + self.delay;
        }
        // A frame that has not begun carries the signals that are decided meanwhile.
        if let Some((_, at)) = self.frame.filter(|(starts, _)| *starts >= now) {
            return at;
        }
        let starts = now.max(back.busy_until());
        let waits = back.send_frame(now, PAUSE_FRAME.get());
        if waits {
            events.push(back.busy_until(), Owner::new(OwnerKind::Port, self.back.0));
        }
        let at = back.busy_until() + self.delay;
        self.frame = Some((starts, at));
        at
    }

    /// A frame that pauses priorities, or resumes them and leaves `paused`, is obeyed at `obeyed`: the refresh timer
    /// starts or stops.
    pub(super) fn time_refresh(
        &mut self,
        now: Time,
        obeyed: Time,
        paused: Priorities,
        events: &mut EventQueue,
    ) {
        let Some(timer) = &mut self.refresh else { return };
        match paused.is_empty() {
            true => timer.stop(),
            false => timer.on_frame(obeyed - self.delay),
        }
        self.call_for_refresh(now, events);
    }

    /// Asks for a call when the next refresh is due.
    pub(super) fn call_for_refresh(&mut self, now: Time, events: &mut EventQueue) {
        let due = self.refresh.as_ref().and_then(RefreshTimer::next);
        self.refresh_call.at(now, due, self.port, events);
    }

    /// The link of `port`, whose packets have a `buffer` of their own.
    ///
    /// # Errors
    /// Fails if the buffer is too small for thresholds and headroom.
    pub(super) fn with_buffer(
        params: &PfcParams,
        spec: &FabricSpec,
        port: PortId,
        back: PortId,
        back_rate: Rate,
        buffer: Bytes,
    ) -> Result<PausableLink, Unbuildable> {
        let (mtu, priorities) = (Bytes::new(spec.largest_packet), spec.priorities_in_use.count());
        let link = spec.network.link(port);
        let (rate, propagation) = (link.rate, link.propagation);
        let paused = PausedLink { rate, back_rate, propagation, mtu, buffer, priorities };
        let thresholds = params.resolve(&paused).map_err(build_error)?;
        let account = IngressAccount::new(&thresholds);
        let delay = PAUSE_FRAME.time_at(link.rate) + link.propagation + params.response;
        Ok(PausableLink::new(Account::Own { account, buffer: buffer.get(), held: 0 }, port, back, delay))
    }

    /// The link of `port` with `account`. A pause is obeyed `delay` after its frame has started or ended.
    pub(super) fn new(account: Account, port: PortId, back: PortId, delay: Span) -> PausableLink {
        PausableLink {
            account,
            port,
            back,
            delay,
            frame: None,
            sent: 0,
            refresh: None,
            refresh_call: LazyCall::default(),
            refreshed: 0,
            sender: PausedSender::default(),
        }
    }
}
