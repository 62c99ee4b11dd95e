//! No scenario takes more than 5 % more instructions per packet-hop than the committed table says.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a test; its runner shows it where it fails")]

use std::process::Command;

#[test]
fn instructions_per_packet_hop_stay_near_the_table() {
    let program = env!("CARGO_BIN_EXE_plimsoll-benches");
    let output = Command::new(program).arg("instructions").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    match output.status.code() {
        Some(0) => {}
        Some(77) => eprintln!("instructions per packet-hop: {}", text.trim()),
        _ => panic!("{text}{}", String::from_utf8_lossy(&output.stderr)),
    }
}
