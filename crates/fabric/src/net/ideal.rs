//! [`ideal_time`]: the completion time of a message on an idle network.

use plimsoll_mechanisms::tcp::TcpConfig;
use plimsoll_units::Span;

use super::topology::Link;
use super::{Network, Packet};

/// Returns the completion time of `bytes` from `packet.src` to `packet.dst` on idle links: all segments but the last
/// follow each other over the slowest link, then the last one takes its path. Where packets are `spread` over several
/// paths, the segments ahead of the last one share these paths. With [`TcpConfig::ideal_leads`] the first segment takes
/// its path, and the others follow.
pub fn ideal_time(
    network: &Network,
    config: &TcpConfig,
    bytes: u64,
    mut packet: Packet,
    spread: bool,
) -> Span {
    let segment = config.segment;
    let header = config.ideal_header();
    let segments = bytes.div_ceil(segment).max(1);
    let last = bytes - (segments - 1) * segment;
    let size = |bytes: u64| (bytes + header).max(config.shortest_frame());
    let leads = config.ideal_leads() && segments > 1;
    let alone = size(if leads { segment } else { last });
    packet.size = alone as u16;
    // The time of one segment on a link, and the time of the others on `links` such links.
    let hop = |link: &Link, links: u64| {
        let byte_time = link.rate.byte_time();
        let (others, full) = (segments.div_ceil(links) - 1, byte_time.span(size(segment)));
        let last = if leads && others > 0 { byte_time.span(size(last)) } else { full };
        let others = if others > 0 { full * (others - 1) + last } else { Span::ZERO };
        (byte_time.span(alone) + link.propagation, others)
    };
    let sum = |(own, most): (Span, Span), (hop, others): (Span, Span)| (own + hop, most.max(others));
    let (own, others) = if spread {
        let tiers = network.tiers_between(packet.src, packet.dst);
        tiers.map(|(link, links)| hop(link, links)).fold(Default::default(), sum)
    } else {
        let path = network.path(&packet).map(|port| hop(network.link(port), 1));
        path.fold(Default::default(), sum)
    };
    own + others
}
