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
        ("dctcp.gain = 0.0", "dctcp.gain"),
        ("dctcp.initial_alpha = 1.5", "dctcp.initial_alpha"),
        ("cubic.c = 0.0", "cubic.c"),
        ("cubic.beta = 1.0", "cubic.beta"),
        ("pacing_rate = '0bps'", "pacing_rate"),
        ("pacing_rate = '2Tbps'", "pacing_rate"),
    ] {
        let params: TransportParams = toml::from_str(text).unwrap();
        assert_eq!(params.resolve().unwrap_err().key, key, "{text}");
    }
    assert!(toml::from_str::<TransportParams>("mss = '1460B'").is_err());
    assert!(toml::from_str::<TransportParams>("kind = 'reno'").is_err());
}

/// The stack of the 144-host simulations of pFabric and QJump: every detail of their scripts has a key.
#[test]
fn the_transports_of_the_144_hosts() {
    const ALL: &str = "
        growth = 'count'
        window_unit = 'segments'
        cut_from = 'window'
        count_options = true
        initial_window = 12
        initial_ssthresh = 1000000
        app_limited_growth = true
        restart_on_write = true
        rto_granularity = '1us'
        rtt_sampling = 'one-per-window'
        backoff_reset = 'ack'
        dup_ack_threshold = 0
        sacked_in_window = true
        limited_transmit = false
        ack_every = 1
        ";
    const TCP: &str = "min_rto = '200us'\ninitial_rto = '200us'\nmax_rto = '2s'\nmax_window = 149";
    const DCTCP: &str = "kind = 'dctcp'\ndctcp.initial_alpha = 0.0\nece_growth = 'after-first'\n\
        loss_after_ecn = 'keep-ssthresh'\necn_on_acks = true";
    const PFABRIC: &str =
        "min_rto = '45us'\ninitial_rto = '45us'\nmax_rto = '45us'\nmax_window = 23\nprobe_after = 5";
    const QJUMP: &str = "min_rto = '200us'\ninitial_rto = '200us'\nmax_rto = '2s'\nmax_window = 152";
    for (own, max_window) in [
        (TCP.to_owned(), 149),
        (format!("{TCP}\n{DCTCP}"), 149),
        (PFABRIC.to_owned(), 23),
        (QJUMP.to_owned(), 152),
    ] {
        let params: TransportParams = toml::from_str(&format!("{ALL}{own}")).unwrap();
        let config = params.resolve().unwrap();
        assert_eq!((config.initial_window, config.max_window), (12 * 1460, max_window * 1460));
        assert_eq!(config.dup_ack_threshold, u32::MAX);
        let probes = if max_window == 23 { 5 } else { u32::MAX };
        assert_eq!(config.probe_after, probes);
    }
}

#[test]
fn an_endpoint_is_small() {
    assert!(size_of::<Endpoint>() <= 512, "{} bytes", size_of::<Endpoint>());
}
