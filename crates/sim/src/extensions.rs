//! [`Extensions`]: mechanisms from outside the simulator.

use plimsoll_fabric::MakeDiscipline;
use plimsoll_fabric::net::SelectPath;
use plimsoll_mechanisms::tcp::MakeController;

/// Mechanisms from outside, in place of the scenario's own: `docs/extending.md`.
#[derive(Default)]
pub struct Extensions<'a> {
    /// Makes the congestion controller of every end of a connection.
    pub congestion_control: Option<MakeController>,
    /// Makes the queue discipline of a switch port; where it gives `None`, the scenario's own stays. The port's
    /// `buffer` still limits the waiting packets.
    pub queue_discipline: Option<&'a MakeDiscipline<'a>>,
    /// Chooses among shortest paths at every switch.
    pub path_selector: Option<Box<dyn SelectPath>>,
}
