//! Command lines, and the configuration that results from them.

use plimsoll_chronos::Listen;

use super::*;

fn resolve(words: &str) -> Result<(MemcachedSettings, Config)> {
    let words = std::iter::once("chronos-memcached").chain(words.split_whitespace());
    settings_of(&Options::try_parse_from(words)?)
}

/// The settings that result from options.
pub(super) fn settings_of(options: &Options) -> Result<(MemcachedSettings, Config)> {
    let (settings, config, _) = options.resolve(None)?;
    Ok((settings, config))
}

#[test]
fn the_manual_page_is_up_to_date() {
    plimsoll_testing::manuals::are_up_to_date("chronos-memcached", |folder| {
        clap_mangen::generate_to(plimsoll_command_line::command::<Options>(), folder)
    });
}

#[test]
fn defaults_are_memcacheds() {
    let (settings, config) = resolve("").expect("no flags");
    assert_eq!((settings.memory_limit, settings.item_size_max, settings.threads), (64 << 20, 1 << 20, 4));
    assert_eq!((settings.tcp_port, settings.udp_port, settings.connections_max), (11_211, 0, 1024));
    assert_eq!(config.listen.len(), 1);
}

#[test]
fn flags_have_memcacheds_letters() {
    let (settings, config) = resolve(
        "-p 0 -U 11311 -l 127.0.0.1 -m 128 -M -c 10 -t 2 -C -F -I 2m -n 100 -f 1.5 -D / -o idle_timeout=9",
    )
    .expect("good flags");
    assert!(!settings.evict && !settings.cas && !settings.flush && settings.detail);
    assert_eq!(
        (settings.item_size_max, settings.prefix_delimiter, settings.idle_timeout),
        (2 << 20, b'/', 9)
    );
    assert_eq!(config.listen, [Listen::Udp("127.0.0.1:11311".parse().expect("an address"))]);
    let (_, config) = resolve("-l 127.0.0.1:5,[::1] -p 6 -U 7").expect("addresses");
    let shown: Vec<String> = config.listen.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["TCP 127.0.0.1:5", "UDP 127.0.0.1:5", "TCP [::1]:6", "UDP [::1]:7"]);
    let (_, config) = resolve("-l 192.0.2.1,[::1]:6 -p 0 -U 7 -o chronos_xdp=eth0:eth1").expect("devices");
    let shown: Vec<String> = config.listen.iter().map(ToString::to_string).collect();
    let device = |name: &str| format!("device {name}, UDP 192.0.2.1:7 [::1]:6");
    assert_eq!(shown[2..], [device("eth0"), device("eth1")]);
}

#[test]
fn amplification_over_datagrams_is_limited_if_asked_for() {
    let amplification = |words: &str| resolve(words).map(|(settings, _)| settings.udp_amplification);
    assert_eq!(amplification("-U 7").expect("none"), 0);
    assert_eq!(amplification("-U 7 -o chronos_udp_amplification=3").expect("a number"), 3);
    let error = format!("{:#}", amplification("-o chronos_udp_amplification=-1").expect_err("not whole"));
    assert!(error.starts_with("-o chronos_udp_amplification=-1: whole numbers are allowed"), "{error}");
}

#[test]
fn the_last_of_an_option_counts() {
    let (settings, config) =
        resolve("-m 64 -p 1 --port=2 -C -C -t 2 -m 128 --thr 3 -b 100000").expect("good flags");
    assert_eq!((settings.memory_limit, settings.tcp_port, settings.threads), (128 << 20, 2, 3));
    assert_eq!((settings.backlog, config.limits.backlog), (100_000, u16::MAX));
    let verbosity = resolve("-v -vv").expect("good flags").0.verbosity;
    assert_eq!(verbosity, 3);
    let (_, config) =
        resolve("-l 127.0.0.1 -l 127.0.0.2 -U 7 -o idle_timeout=3 -o chronos_poll=spin").expect("good flags");
    assert_eq!((config.listen.len(), config.limits.idle), (4, Some(Duration::from_secs(3))));
    assert_eq!(config.poll, plimsoll_chronos::Poll::Spin);
}

/// As in memcached 1.6.18, which writes its ports into the file that `MEMCACHED_PORT_FILENAME` names.
#[test]
fn the_tcp_port_follows_the_udp_port() {
    for (words, tcp, udp) in [
        ("", 11_211, 0),
        ("-U 7", 7, 7),
        ("-U -1", -1, -1),
        ("-U 0", 11_211, 0),
        ("-p 6 -U 7", 6, 7),
        ("-p -1 -U 7", -1, 7),
        ("-p 0 -U 7", 0, 7),
        ("-p 0", 0, 0),
    ] {
        let (settings, config) = resolve(words).expect("good flags");
        assert_eq!((settings.tcp_port, settings.udp_port), (tcp, udp), "{words}");
        let count = |is: fn(&Listen) -> bool| config.listen.iter().filter(|place| is(place)).count();
        let found =
            (count(|place| matches!(place, Listen::Tcp(_))), count(|place| matches!(place, Listen::Udp(_))));
        assert_eq!(found, (usize::from(tcp != 0), usize::from(udp != 0)), "{words}");
    }
}

#[test]
fn a_turn_is_as_long_as_asked() {
    for (words, expected) in [("", 1024), ("-R 1", 1), ("-R 500 -R 7", 7)] {
        let (settings, config) = resolve(words).expect("good flags");
        assert_eq!((settings.requests_per_turn, config.limits.turn), (expected, expected), "{words}");
    }
}

#[test]
fn little_memory_makes_fewer_partitions() {
    for (words, expected) in [
        ("", 64),
        ("-m 16", 64),
        ("-m 8", 32),
        ("-m 3", 12),
        ("-m 2", 8),
        ("-m 2 -t 1", 8),
        ("-m 2 -t 32", 32),
        ("-m 3 -o chronos_partitions=5", 5),
        ("-m 32 -o chronos_balance=split", 512),
        ("-m 3 -o chronos_balance=split", 32),
    ] {
        let (settings, _) = resolve(words).expect("good flags");
        assert_eq!(settings.partitions, expected, "{words}");
        crate::Memcached::new(settings).expect(words);
    }
}

#[test]
fn a_control_group_limits_items_and_connections() {
    let within = |words: &str, limit: u64| {
        let words = std::iter::once("chronos-memcached").chain(words.split_whitespace());
        let options = Options::try_parse_from(words).expect("good flags");
        let (settings, config, _) = options.resolve(Some(limit << 20)).expect("good flags");
        let (items, connections) = (settings.memory_limit >> 20, config.limits.memory_bytes >> 20);
        crate::Memcached::new(settings).expect("it has room for its partitions");
        (items, connections)
    };
    assert_eq!(within("-m 160 -t 2 -c 4000", 300), (160, 40));
    assert_eq!(within("-m 160 -t 2 -c 4000", 200), (126, 31));
    assert_eq!(within("-m 160 -t 2 -c 4000 -o chronos_connection_memory=20", 200), (138, 20));
    assert_eq!(within("-m 64 -t 16", 16), (8, 4));
}

/// memcached's sockets of IPv6 take no IPv4, so that `-l 0.0.0.0,::` means two sockets.
#[test]
fn addresses_that_are_given_are_taken_as_they_are() {
    for (words, ipv6_only) in [("", false), ("-l ::", true), ("-l 0.0.0.0,::", true)] {
        assert_eq!(resolve(words).expect("good flags").1.ipv6_only, ipv6_only, "{words}");
    }
}

#[test]
fn partitions_move_as_the_option_says() {
    for (word, expected) in [("on", Some(4)), ("paper", Some(0)), ("off", None)] {
        let (_, config) = resolve(&format!("-o chronos_balance={word}")).expect("good flags");
        assert_eq!(config.balancing.map(|balancing| balancing.deviations), expected, "{word}");
        assert_eq!(config.balancing.and_then(|balancing| balancing.split), None, "{word}");
    }
    for (words, ways, partitions) in
        [("split -t 2", 8, 256), ("split:4 -t 2", 4, 128), ("split:64,chronos_partitions=128 -t 2", 64, 128)]
    {
        let (settings, config) = resolve(&format!("-o chronos_balance={words}")).expect("good flags");
        assert_eq!(config.balancing.and_then(|balancing| balancing.split), Some(ways), "{words}");
        assert_eq!((settings.partitions, config.partitions()), (partitions, partitions), "{words}");
    }
    for (word, across) in [
        ("chronos_balance=on", AcrossNodes::Overloaded),
        ("chronos_balance=paper", AcrossNodes::Freely),
        ("chronos_balance=paper,chronos_numa=on", AcrossNodes::Overloaded),
        ("chronos_numa=strict", AcrossNodes::Never),
        ("chronos_numa=off", AcrossNodes::Freely),
    ] {
        let (_, config) = resolve(&format!("-o {word}")).expect("good flags");
        assert_eq!(config.balancing.map(|balancing| balancing.across_nodes), Some(across), "{word}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (words, expected) in [
        ("-Z", "-Z needs -o ssl_chain_cert"),
        ("-o ssl_verify_mode=4", "0 (none), 1 (if shown), 2 and 3 (required) are allowed"),
        ("-Z -o ssl_chain_cert=x,ssl_verify_mode=2", "needs -o ssl_ca_cert=<file>"),
        ("-L", "-L is not supported"),
        ("-o chronos_pol=spin", "did you mean chronos_poll?"),
        ("-o chronos_poll=sleep", "block and spin are allowed"),
        ("-o chronos_balance=yes", "on, paper, split, split:<ways> and off are allowed"),
        ("-o chronos_balance=slit:8", "did you mean split?"),
        ("-o chronos_balance=split:65", "2 to 64 partitions a group are allowed"),
        (
            "-o chronos_balance=split,chronos_partitions=16",
            "partitions: 16 are not enough for 4 threads with groups of 8",
        ),
        ("-o chronos_numa=strickt", "did you mean strict?"),
        ("-o chronos_xdp=eth0", "needs the UDP port that it is for"),
        ("-U -1 -o chronos_xdp=eth0", "needs the UDP port that it is for"),
        ("-U 7 -s /nonexistent/socket -o chronos_xdp=eth0", "a UNIX socket has no network device"),
        ("-U 7 -o chronos_xdp=eth0:", "names of network devices with ':' between are allowed"),
        ("-U 7 -o chronos_xdp=eth0:eth0", "it is named twice"),
        ("-o chronos_epoch=5", "`5` has no unit"),
        ("-o chronos_epoch=5US", "its letters are lower case"),
        ("-o idle_timeout", "needs a value"),
        ("-R 0", "write a whole number of at least 1"),
        ("-t 0", "1 to 1024"),
        ("-f 1", "greater than 1"),
        ("-B text", "ascii, binary and auto"),
        ("-I 5", "1k to 1024m"),
        ("-Z -p 0 -U 7", "-Z needs a TCP port"),
        ("-l notls:127.0.0.1", "notls: is for addresses of a server with -Z"),
        ("-o ssl_min_version=3", "not supported"),
        ("--napi_ids 2", "-N is not supported"),
        ("-S -B ascii", "SASL is for the binary protocol"),
        ("-Y /nonexistent/users", "cannot read the authentication file"),
    ] {
        let error = format!("{:#}", resolve(words).expect_err(words));
        assert!(error.contains(expected), "{words}: {error}");
    }
}

#[test]
fn numbers_that_are_too_large_are_answered_in_words() {
    let command = <Options as clap::CommandFactory>::command();
    let takes_value = command.get_arguments().filter(|argument| argument.get_action().takes_values());
    let flags: Vec<String> =
        takes_value.filter_map(|argument| Some(format!("-{}", argument.get_short()?))).collect();
    assert!(flags.len() > 15, "{flags:?}");
    for flag in flags {
        let Err(error) = resolve(&format!("{flag} 99999999999999999999999")) else { continue };
        let said = format!("{error:#}");
        assert!(!said.contains("..") && !said.contains("invalid digit"), "{flag}: {said}");
    }
}
