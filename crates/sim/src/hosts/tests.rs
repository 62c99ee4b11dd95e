//! Connections of one message are put away once nothing can happen to them.

use std::path::Path;

use plimsoll_scenario::Scenario;

use crate::build::build;
use crate::parallel;

/// Parses a scenario of messages with a connection each.
fn scenario(more: &str) -> Scenario {
    let text = format!(
        "version = 1\ntitle = 'flows'\n[run]\nduration = '5ms'\ndrain = '1s'\n[topology]\nkind = 'leaf-spine'\n\
         leaves = 2\nspines = 2\nhosts_per_leaf = 4\nrate = '10Gbps'\ndelay = '1us'\n[transport]\n\
         kind = 'dctcp'\nconnections = 'per-message'\nack_delay = '100us'\n\
         [port.switch]\necn = {{ threshold = '50KB' }}\n\
         [workload.all]\nkind = 'all-to-all'\nload = 0.4\nsize = '20KB'\n{more}"
    );
    Scenario::parse("flows.toml", &text, Path::new(".")).expect("it is valid")
}

/// Returns how many connections a run has opened, and how many of them are still open at its end.
fn connections(more: &str) -> (usize, usize) {
    let scenario = scenario(more);
    let mut built = build(&scenario.points()[0].model).expect("it is built");
    built.world.run(&mut |_| true).expect("it runs");
    let connections = &built.world.hosts.connections;
    assert!(connections.len() > 500, "{}", connections.len());
    (connections.len(), connections.iter().flatten().count())
}

#[test]
fn a_connection_whose_packets_have_all_arrived_is_put_away() {
    // A run ends with its last messages, before the last acknowledgements have come.
    let (_, left) = connections("");
    assert!(left <= 2, "{left}");
    // After a loss as many packets never arrive as were sent: a duplicate may be under way.
    let (opened, left) = connections("[host]\nloss = 0.01\n");
    assert!(0 < left && left < opened / 2, "{left} of {opened}");
    // A series has the windows of all connections.
    let (opened, left) = connections("[observe]\nflow_series = '1ms'\n");
    assert_eq!(left, opened);
}

#[test]
fn two_processes_put_away_a_connection_between_them() {
    let scenario = scenario("");
    let worlds = parallel::worlds_of(&scenario.points()[0].model, 2);
    assert_eq!(worlds.len(), 2);
    for built in worlds {
        let connections = &built.world.hosts.connections;
        assert!(connections.len() > 500, "{}", connections.len());
        // The last ones wait for news of the other process, which has ended.
        let left = connections.iter().flatten().count();
        assert!(left <= 8, "{left}");
    }
}
