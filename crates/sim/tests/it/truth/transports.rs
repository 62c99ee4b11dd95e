//! Scenarios with several transports: a name changes nothing, and each workload has the one that it names.

use plimsoll_results::Digest;

use crate::truth::determinism::BUSY;
use crate::truth::lab::run;

/// The digest of [`BUSY`], with `more` in the file and the transport that `name` gives to each workload by its number.
fn busy(more: &str, name: impl Fn(usize) -> Option<&'static str>) -> Digest {
    let mut parts = BUSY.split("[workload.");
    let mut text = parts.next().unwrap().to_owned() + more;
    for (number, part) in parts.enumerate() {
        let (workload, rest) = part.split_once("]\n").unwrap();
        let transport = name(number).map_or(String::new(), |name| format!("transport = '{name}'\n"));
        text += &format!("[workload.{workload}]\n{transport}{rest}");
    }
    run(&text).digest()
}

/// Connections that last, and connections of a pool, which workloads with equal transports share.
#[test]
fn transports_with_equal_tables_are_one() {
    for keys in ["", "connections = 'per-message'\npool = 1\n"] {
        let one = busy(keys, |_| None);
        let named = format!("{keys}[transports.a]\n[transports.b]\n");
        assert_eq!(busy(&named, |_| Some("a")), one, "{keys}");
        assert_eq!(busy(&named, |number| [None, Some("a"), Some("b")][number % 3]), one, "{keys}");
    }
}

#[test]
fn a_workload_has_the_transport_that_it_names() {
    let alone = busy("", |_| None);
    let first = |name| move |number| (number == 0).then_some(name);
    // The two ways to give a workload a controller of its own, and a priority.
    let cubic = busy("[transports.c]\nkind = 'cubic'\n", first("c"));
    assert_eq!(cubic, busy("workload.rpc = 'cubic'\n", |_| None));
    assert_ne!(cubic, alone);
    let ports = "[port.leaf]\norder = 'priorities'\n";
    let class = busy(&format!("{ports}[transports.c]\npriority = 5\n"), first("c"));
    assert_eq!(class, busy(&format!("{ports}[host.priority]\nrpc = 5\n"), |_| None));
    assert_ne!(class, busy(ports, |_| None));
    // The two ways to have MPTCP beside TCP.
    let table = "mptcp = { coupling = 'uncoupled'";
    let mptcp = busy(&format!("[transports.m]\n{table} }}\n"), first("m"));
    assert_eq!(mptcp, busy(&format!("{table}, workloads = ['rpc'] }}\n"), |_| None));
    assert_ne!(mptcp, alone);
    // Other sizes, and connections that are closed, beside lasting ones.
    let short = busy("[transports.s]\nsegment = '500B'\nconnections = 'per-message'\n", first("s"));
    assert_ne!(short, alone);
}
