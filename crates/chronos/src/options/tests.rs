//! The options of a command line, and the configuration that they make.

use clap::{CommandFactory, Parser};

use super::*;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    runtime: RuntimeOptions,
}

fn config(arguments: &[&str]) -> Result<Config, String> {
    let all = ["server"].iter().chain(arguments);
    let command = Command::try_parse_from(all).map_err(|error| error.to_string())?;
    command.runtime.config(Vec::new(), 1 << 16).map_err(|error| error.to_string())
}

#[test]
fn defaults_are_the_runtimes() {
    let limits = Limits { input_bytes: 1 << 16, ..Limits::default() };
    assert_eq!(config(&[]), Ok(Config { limits, ..Config::default() }));
}

#[test]
fn the_help_tells_true_epochs() {
    let help = Command::command().render_long_help().to_string();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let Balancing { epoch, epoch_blocking, epoch_idle, .. } = Balancing::default();
    let told = format!(
        "{epoch:?} for threads that spin and {epoch_blocking:?} for threads that block, which grows to {epoch_idle:?}"
    );
    assert!(help.contains(&told.replace('µ', "u")), "{told}\n{help}");
    assert!(
        help.contains(&format!("{} a thread if nothing is said", Config::PARTITIONS_PER_THREAD)),
        "{help}"
    );
}

#[test]
fn options_reach_the_runtime() {
    let all = config(&[
        "--threads=2",
        "--partitions=12",
        "--poll=spin",
        "--epoch=20us",
        "--balance=split:4",
        "--numa=strict",
        "--load=time",
        "--processors=0,1",
        "--connections=7",
        "--idle=30s",
        "--connection-memory=4000000",
    ]);
    let all = all.unwrap();
    assert_eq!((all.threads, all.partitions(), all.poll), (2, 12, Poll::Spin));
    assert_eq!(all.processors, [0, 1]);
    assert_eq!((all.limits.connections, all.limits.idle), (7, Some(Duration::from_secs(30))));
    assert_eq!(all.limits.memory_bytes, 4_000_000);
    let balancing = all.balancing.unwrap();
    assert_eq!((balancing.epoch, balancing.metric), (Duration::from_micros(20), LoadMetric::Nanoseconds));
    assert_eq!((balancing.split, balancing.across_nodes), (Some(4), AcrossNodes::Never));
    let moves = |argument| {
        let balancing = config(&[argument]).unwrap().balancing.unwrap();
        (balancing.deviations, balancing.split, balancing.across_nodes)
    };
    assert_eq!(moves("--balance=split"), (4, Some(Balancing::WAYS), AcrossNodes::Overloaded));
    assert_eq!(moves("--balance=paper"), (0, None, AcrossNodes::Freely));
    assert_eq!(moves("--numa=off"), (4, None, AcrossNodes::Freely));
    assert_eq!(config(&["--epoch=none"]).unwrap().balancing, None);
}

#[test]
fn ipv6_takes_ipv4_unless_ipv4_has_a_place_of_its_own() {
    let runtime = Command::try_parse_from(["server"]).unwrap().runtime;
    for (places, ipv6_only) in
        [(&["[::]:80"][..], false), (&["[::]:80", "unix:/run/x"], false), (&["[::]:80", "0.0.0.0:80"], true)]
    {
        let listen = places.iter().map(|place| parse_listen(place).unwrap()).collect();
        assert_eq!(runtime.config(listen, 1).unwrap().ipv6_only, ipv6_only, "{places:?}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (argument, reason) in [
        ("--threads=0", "write a whole number from 1 to 1024"),
        ("--epoch=0s", "none leaves partitions"),
        ("--epoch=fast", "or none"),
        ("--balance=splt", "did you mean split?"),
        ("--balance=off", "--epoch none"),
        ("--balance=split:1", "2 to 64 partitions a group are allowed"),
        ("--numa=strikt", "strict"),
        ("--tls-key=/nowhere/key.pem", "--tls-certificate"),
        ("--tls-certificate=/nowhere/chain.pem", "/nowhere/chain.pem: no certificate in PEM there"),
    ] {
        let error = config(&[argument]).unwrap_err();
        assert!(error.contains(reason), "{argument}: {error}");
    }
    for text in ["localhost", "80", "127.0.0.1"] {
        assert!(parse_listen(text).is_err(), "{text}");
    }
    assert!(matches!(parse_listen("unix:/run/x"), Ok(Listen::Unix { .. })));
}
