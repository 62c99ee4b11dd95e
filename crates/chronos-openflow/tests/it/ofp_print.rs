//! Our messages as Open vSwitch reads them: `ovs-ofctl ofp-print` of the Debian package openvswitch-common.
#![allow(clippy::unwrap_used, reason = "tests")]

use crate::support;

use std::process::Command;

use plimsoll_chronos_openflow::{NO_BUFFER, OpenFlowSettings};
use support::{Wire, features, frame, hello, packet_in, port_status, split};

/// Returns a message in words; None, with the reason on standard error, without the program.
fn printed(message: &[u8]) -> Option<String> {
    let hex: String = message.iter().map(|byte| format!("{byte:02x}")).collect();
    let Ok(output) = Command::new("ovs-ofctl").args(["ofp-print", &hex]).output() else {
        plimsoll_testing::missing("no ovs-ofctl (Debian package openvswitch-common)");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn open_vswitch_reads_what_we_write() {
    for version in [1, 4] {
        let mut wire = Wire::new(OpenFlowSettings { flow_hard_seconds: 900, ..OpenFlowSettings::default() });
        let mut bytes = wire.send(&hello(version));
        bytes.extend(wire.send(&features(version, 1)));
        bytes.extend(wire.send(&packet_in(version, 0x20, NO_BUFFER, 1, &frame(1, 2))));
        bytes.extend(wire.send(&packet_in(version, 0x21, 77, 2, &frame(2, 1))));
        let mut tagged = frame(1, 2);
        tagged.splice(12..12, [0x81, 0x00, 0x60, 0x05]);
        bytes.extend(wire.send(&packet_in(version, 0x22, NO_BUFFER, 3, &tagged)));
        bytes.extend(wire.send(&packet_in(version, 0x23, NO_BUFFER, 3, &frame(1, 0xff))));
        bytes.extend(wire.send(&port_status(version, 1, 2, 0, 0)));
        bytes.extend(wire.send(&support::message(version, 99, 0x24, &[])));
        let table_miss = "priority=0 actions=CONTROLLER:65535";
        let hello = [("HELLO", "version bitmap: 0x01, 0x04"), ("FEATURES_REQUEST", "")];
        let setup = [("SET_CONFIG", "frags=normal miss_send_len=65535"), ("FLOW_MOD", table_miss)];
        let rest = [
            ("BARRIER_REQUEST", ""),
            ("PACKET_OUT", "in_port=1 actions=FLOOD data_len=60"),
            (
                "FLOW_MOD",
                "in_port=2,vlan_tci=0x0000,dl_src=02:00:00:00:00:02,dl_dst=02:00:00:00:00:01 \
                 idle:60 hard:900 buf:0x4d actions=output:1",
            ),
            // In a VLAN of its own, station 2 is unknown.
            ("PACKET_OUT", "in_port=3 actions=FLOOD data_len=64"),
            // Station 1 was behind port 1.
            ("FLOW_MOD", "DEL priority=0,vlan_tci=0x0000,dl_dst=02:00:00:00:00:01 actions=drop"),
            ("PACKET_OUT", "in_port=3 actions=FLOOD data_len=60"),
            ("FLOW_MOD", "DEL priority=0 out_port:2 actions=drop"),
            ("ERROR", "OFPBRC_BAD_TYPE"),
        ];
        let setup = &setup[..if version == 1 { 1 } else { 2 }];
        let expected: Vec<_> = [&hello, setup, &rest].concat();
        let messages = split(&bytes);
        assert_eq!(messages.len(), expected.len());
        for ((_, message), (kind, words)) in messages.iter().zip(expected) {
            let Some(text) = printed(message) else { return };
            // In 1.3 the VLAN is a field without the priority, which is shown as a mask, and flows go from all tables.
            let squeezed = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let squeezed = squeezed.replace("/0x1fff", "").replace("table:255 ", "");
            assert!(squeezed.starts_with(&format!("OFPT_{kind}")), "{message:02x?}\n{text}");
            assert!(squeezed.contains(words), "version {version}: {words}\n{text}");
        }
    }
}
