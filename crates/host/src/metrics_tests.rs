use super::*;

#[test]
fn only_sockets_of_this_machine_are_bound() {
    for (text, part) in [
        ("0.0.0.0:9464", "--listen 0.0.0.0:9464: not a local address"),
        ("localhost:9464", "not an address; expected unix:/PATH"),
        ("unix:/nowhere/at/all", "--listen unix:/nowhere/at/all"),
    ] {
        let error = bind(text).expect_err("it must not").to_string();
        assert!(error.contains(part), "{part:?} is not in {error:?}");
    }
}
