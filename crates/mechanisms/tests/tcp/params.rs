//! The `[transport]` table.

use plimsoll_mechanisms::tcp::{Endpoint, TransportParams};

#[test]
fn defaults_resolve_and_round_trip() {
    let params = TransportParams::default();
    params.resolve().unwrap();
    let text = toml::to_string(&params).unwrap();
    assert_eq!(toml::from_str::<TransportParams>(&text).unwrap(), params);
    assert_eq!(toml::from_str::<TransportParams>("").unwrap(), params);
}

#[test]
fn errors_name_the_key() {
    for (text, key) in [
        ("segment = '0B'", "segment"),
        ("header = '501B'", "header"),
        ("initial_window = 0", "initial_window"),
        ("max_window = 4", "initial_window"),
        ("initial_ssthresh = 0", "initial_ssthresh"),
        ("min_window = 0", "min_window"),
        ("min_ssthresh = 0", "min_ssthresh"),
        ("ack_every = 0", "ack_every"),
        ("min_rto = '2min'", "min_rto"),
        ("initial_rto = '0s'", "initial_rto"),
        ("rtt_error = 'int16'\nrto_granularity = '0s'", "rto_granularity"),
        ("ack_delay = '501ms'", "ack_delay"),
        ("dctcp_gain = 0.0", "dctcp_gain"),
        ("initial_alpha = 1.5", "initial_alpha"),
        ("cubic_c = 0.0", "cubic_c"),
        ("cubic_beta = 1.0", "cubic_beta"),
    ] {
        let params: TransportParams = toml::from_str(text).unwrap();
        assert_eq!(params.resolve().unwrap_err().key, key, "{text}");
    }
    assert!(toml::from_str::<TransportParams>("mss = '1460B'").is_err());
    assert!(toml::from_str::<TransportParams>("kind = 'reno'").is_err());
}

#[test]
fn an_endpoint_is_small() {
    assert!(size_of::<Endpoint>() <= 512, "{} bytes", size_of::<Endpoint>());
}
