//! [`NicEnd`]: an end of a connection that a NIC carries, of whichever family.

use plimsoll_units::Time;

use crate::tcp::{Counters, TcpConfig, TcpSegment, WindowState};

/// An end of a connection that a NIC carries: a queue pair of RoCE, a packet delivery context of Ultra Ethernet, an end
/// of NDP or of Homa.
///
/// After every event call [`poll_transmit`](NicEnd::poll_transmit) until it returns `None`, and call
/// [`on_deadline`](NicEnd::on_deadline) at [`deadline`](NicEnd::deadline).
pub trait NicEnd {
    /// The configuration that all ends of a transport share.
    type Config;

    /// Returns the family's part of a transport's configuration.
    fn config(config: &TcpConfig) -> &Self::Config;

    /// The application writes a message of `bytes` bytes.
    fn write(&mut self, config: &Self::Config, now: Time, bytes: u64);

    /// Returns the next segment that leaves now: first those without data.
    fn poll_transmit(&mut self, config: &Self::Config, now: Time) -> Option<TcpSegment>;

    /// Returns whether an answer, a grant or a request is due, which has no data.
    fn owes_answer(&self) -> bool;

    /// Returns whether the next segment that leaves now has data.
    fn offers_data(&self, config: &Self::Config, now: Time) -> bool;

    /// Returns whether nothing is to be sent before something arrives, is written or granted, or the deadline passes.
    fn is_quiet(&self) -> bool {
        false
    }

    /// Returns whether packets are outstanding and none may be sent before an answer arrives, or the timeout.
    fn awaits_answer(&self, config: &Self::Config) -> bool;

    /// Returns when [`on_deadline`](NicEnd::on_deadline) must be called, if there was nothing to send at `now`;
    /// [`Time::MAX`] if never.
    fn deadline(&self, config: &Self::Config, now: Time) -> Time;

    /// Handles the [`deadline`](NicEnd::deadline) that has passed.
    fn on_deadline(&mut self, config: &Self::Config, now: Time);

    /// Returns the bytes handed to the application.
    fn received(&self) -> u64;

    /// Returns the bytes of this end that the other has acknowledged.
    fn acknowledged(&self) -> u64;

    /// Returns the bytes sent at least once.
    fn sent(&self) -> u64;

    /// Returns the bytes that the application wrote.
    fn written(&self) -> u64;

    /// Returns whether everything written is acknowledged, and no answer is due.
    fn is_idle(&self) -> bool {
        self.acknowledged() == self.written() && !self.owes_answer()
    }

    /// Returns a sample of the window, for time series.
    fn window(&self, config: &Self::Config) -> WindowState;

    /// Returns the end's counters since it was made.
    fn counters(&self) -> Counters;
}
