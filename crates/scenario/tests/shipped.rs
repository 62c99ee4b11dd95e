//! The scenarios in the repository load, and say what they should.
use plimsoll_scenario::{Overrides, Scenario};
use std::path::Path;

#[test]
fn quickstart() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/quickstart.toml");
    let scenario = Scenario::load_with(path, &Overrides { replicates: 2, ..Overrides::default() });
    let scenario = match scenario { Ok(s) => s, Err(errors) => { for e in errors { println!("{e}\n"); } panic!() } };
    for w in scenario.warnings() { println!("{w}"); }
    for p in scenario.points() { println!("{} {} {:x} {}", p.id, p.seed, p.digest, p.label()); }
    println!("{}", scenario.points()[10].show());
}
