//! Parses routes in the words of `ip route`, and decides which words restore the same route.

use std::net::IpAddr;

use super::HostRoute;
use crate::Error;

/// Returns the words of a route without its states, which `ip route` does not accept as input.
pub(crate) fn lasting_words(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().filter(|word| !STATES.contains(word)).collect();
    words.join(" ")
}

/// Returns the words that restore this route exactly.
pub(super) fn repeatable(line: &str, prefix: &str) -> Result<String, Error> {
    let words = lasting_words(line);
    match words.split(' ').find(|word| NOT_REPEATABLE.contains(word)) {
        Some(word) => Err(not_repeatable(prefix, &format!("it has `{word}`"))),
        None => Ok(words),
    }
}

/// Returns a route to `prefix` that copies the path which its addresses take now: in the output `routes` of `ip route`,
/// the route with the longest prefix and, among equal ones, with the smallest metric.
pub(super) fn wider(routes: &str, prefix: &str) -> Result<Option<HostRoute>, Error> {
    // The next hops of a multipath route have indented lines of their own.
    let routes = routes.replace("\n\t", " ");
    let mut lines: Vec<&str> = routes.lines().filter(|line| !line.trim().is_empty()).collect();
    lines.sort_by_key(|line| (u8::MAX - length_of(line), metric_of(line)));
    let Some(line) = lines.first() else { return Ok(None) };
    let words = lasting_words(line);
    let (network, rest) = words.split_once(' ').unwrap_or((&words, ""));
    if TYPES.contains(&network) {
        return Err(not_repeatable(prefix, &format!("the route that it follows is of type `{network}`")));
    }
    let mut kept = vec![prefix];
    let mut rest = rest.split(' ').filter(|word| !word.is_empty());
    while let Some(word) = rest.next() {
        match word {
            // A copy omits the origin, the metric and the lifetime of the wider route.
            "proto" | "metric" | "expires" => drop(rest.next()),
            word if NOT_REPEATABLE.contains(&word) => {
                return Err(not_repeatable(prefix, &format!("the route that it follows has `{word}`")));
            }
            word => kept.push(word),
        }
    }
    Ok(Some(HostRoute::Wider(kept.join(" "))))
}

/// Returns the prefix length of a route's network.
fn length_of(line: &str) -> u8 {
    let to = line.split_whitespace().find(|word| !TYPES.contains(word)).unwrap_or_default();
    let address = to.parse::<IpAddr>().ok();
    let of_address = address.map_or(0, |address| if address.is_ipv4() { 32 } else { 128 });
    to.split_once('/').and_then(|(_, bits)| bits.parse().ok()).unwrap_or(of_address)
}

fn metric_of(line: &str) -> u32 {
    let metric = line.split_whitespace().skip_while(|word| *word != "metric").nth(1);
    metric.and_then(|metric| metric.parse().ok()).unwrap_or(0)
}

pub(super) fn not_repeatable(prefix: &str, why: &str) -> Error {
    Error::Unavailable(vec![format!("the route to {prefix} could not be restored exactly: {why}")])
}

/// States that `ip route` prints and does not accept as input.
const STATES: &[&str] =
    &["linkdown", "dead", "offload", "offload_failed", "rt_offload", "trap", "rt_trap", "unresolved"];
/// Attributes that a copy of a route would lose.
const NOT_REPEATABLE: &[&str] = &["nexthop", "nhid", "expires", "congctl", "encap"];
/// The first word of a route that is not a plain unicast route.
const TYPES: &[&str] =
    &["unreachable", "blackhole", "prohibit", "throw", "local", "broadcast", "multicast", "anycast", "nat"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_beside_a_wider_one_has_all_that_it_has() {
        let copied = |routes: &str| match wider(routes, "10.0.0.0/8") {
            Ok(Some(HostRoute::Wider(words))) => words,
            other => format!("{other:?}"),
        };
        for (routes, expected) in [
            (
                "default via 192.0.2.1 dev eth0 proto dhcp src 192.0.2.7 metric 100 \n",
                "10.0.0.0/8 via 192.0.2.1 dev eth0 src 192.0.2.7",
            ),
            (
                "default via 192.0.2.1 dev eth0 onlink mtu lock 1400 advmss 1360 initcwnd 40 linkdown \n",
                "10.0.0.0/8 via 192.0.2.1 dev eth0 onlink mtu lock 1400 advmss 1360 initcwnd 40",
            ),
            (
                "default dev a metric 5 \ndefault dev b metric 2 \n8.0.0.0/6 dev c metric 9 \n8.0.0.0/5 dev d \n",
                "10.0.0.0/8 dev c",
            ),
            ("default dev a metric 5 \ndefault dev b metric 2 \n", "10.0.0.0/8 dev b"),
            ("", "Ok(None)"),
        ] {
            assert_eq!(copied(routes), expected, "{routes}");
        }
        for (routes, part) in [
            ("default dev eth0\nunreachable 8.0.0.0/6 dev lo\n", "is of type `unreachable`"),
            (
                "default proto static \n\tnexthop via 192.0.2.1 dev a weight 1 \n\tnexthop via 192.0.2.2 dev b weight \
                 1 \n",
                "has `nexthop`",
            ),
            ("default nhid 7 via 192.0.2.1 dev eth0\n", "has `nhid`"),
        ] {
            assert!(copied(routes).contains(part), "{part}: {}", copied(routes));
        }
    }
}
