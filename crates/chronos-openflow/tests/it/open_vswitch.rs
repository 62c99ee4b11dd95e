//! The controller with a real switch: Open vSwitch's userspace datapath between two hosts in network namespaces. Needs
//! root, iproute2, iputils-ping and the Debian package openvswitch-switch; skips with the reason elsewhere.
#![allow(clippy::unwrap_used, reason = "tests")]

mod controller;
mod switch;

use controller::Controller;
use switch::Switch;

#[test]
fn hosts_reach_each_other_and_a_restart_recovers() {
    for version in ["OpenFlow10", "OpenFlow13"] {
        let Some(switch) = Switch::new(&version[8..], version) else { return };
        let controller = Controller::start(&switch.space("switch"), "127.0.0.1:0");
        let address = controller.address;
        switch.use_controller(address);
        assert!(switch.ping(30), "{version}: first ping\n{}", switch.state());
        let flows = switch.flows();
        for port in ["1", "2"] {
            let output = format!("actions=output:{}", switch.port_number(port));
            let learnt = flows.lines().any(|flow| flow.contains("dl_src") && flow.contains(&output));
            assert!(learnt, "{version}: no flow with {output}\n{flows}");
        }

        drop(controller);
        switch.wait_for_controller(false);
        switch.forget_flows();
        assert!(!switch.ping(2), "{version}: nobody says where packets go, and they go\n{}", switch.state());
        let _controller = Controller::start(&switch.space("switch"), &address.to_string());
        switch.wait_for_controller(true);
        assert!(switch.ping(30), "{version}: after the restart\n{}", switch.state());
        assert!(switch.flows().contains("dl_src"), "{version}: {}", switch.flows());
    }
}

#[test]
fn a_host_that_moves_is_found_again() {
    let Some(switch) = Switch::new("mv", "OpenFlow13") else { return };
    let controller = Controller::start(&switch.space("switch"), "127.0.0.1:0");
    switch.use_controller(controller.address);
    assert!(switch.ping(30), "{}", switch.state());
    // The same host behind another port, of another number; the flows towards the old port are removed with it.
    let before = switch.port_number("2");
    switch.move_port("2");
    assert_ne!(switch.port_number("2"), before);
    assert!(switch.ping(30), "{}", switch.state());
}
