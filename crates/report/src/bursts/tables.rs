//! The tables of bursts, and their CSV.

use std::collections::BTreeMap;

use plimsoll_bursts::{Distribution, LINK_TYPES, PairReport, Report, quantile};

use crate::figures::{self, count, counted, fixed, number, size, time};
use crate::table::{Column, Grid, Row, csv_line};

/// Returns one sentence about the capture and the thresholds.
pub(super) fn sentence(report: &Report) -> String {
    let data_only = match report.data_only {
        true => format!(
            " Bursts and trains are of packets with data: {} without TCP payload {} part of none.",
            counted(report.frames_without_payload, "frame"),
            if report.frames_without_payload == 1 { "is" } else { "are" },
        ),
        false => String::new(),
    };
    format!(
        "{}, {} in {}: {} of {}. A gap of {} ends a burst, one above {} a train, at {}.{data_only}",
        counted(report.frames, "frame"),
        size(report.bytes as f64),
        time(report.seconds * 1e6),
        counted(report.bursts, "burst"),
        counted(report.pairs.len() as u64, "pair"),
        time(report.gap_ns / 1e3),
        time(report.train_gap_ns / 1e3),
        figures::rate(report.rate_bps as f64 / 1e6),
    )
}

/// Returns what limits the validity of the numbers.
pub fn warnings(report: &Report) -> Vec<String> {
    let stamps = &report.timestamps;
    let mut all = Vec::new();
    let percent = |share: f64| format!("{} %", number(100.0 * share));
    if stamps.too_coarse {
        let why = if stamps.floor_ns > stamps.granularity_ns {
            format!(
                "{} of frames start before the previous one of their pair ends, 99 % of them by no more than that, so \
                 the stamps are not those of the wire, or --rate is below the link's",
                percent(stamps.overlapping)
            )
        } else {
            "that is the step of the timestamps".to_owned()
        };
        all.push(format!(
            "the timestamps are too coarse: their floor is {}, the threshold {}: {why} (step {}, smallest \
             difference {}). The floor was used as the threshold ({} of gaps are below it), and bursts that take \
             less time are left out: {} of {}",
            time(stamps.floor_ns / 1e3),
            time(report.gap_asked_ns / 1e3),
            time(stamps.granularity_ns / 1e3),
            stamps.least_difference_ns.map_or_else(|| "unknown".to_owned(), |ns| time(ns / 1e3)),
            percent(stamps.below_floor),
            counted(report.unresolved.bursts, "burst"),
            counted(report.unresolved.frames, "frame"),
        ));
    }
    let types: Vec<String> = report.unsupported_link_types.iter().map(u32::to_string).collect();
    let unsupported = format!("left out, since of interfaces with link type {}", types.join(", "));
    let allowed = format!("; allowed: {LINK_TYPES}");
    let pairs = count(report.pairs.len() as u64);
    let left_out = format!("not analysed, since of further pairs than a capture may have ({pairs})");
    // Each has a description, the number, the noun, and the consequence for the numbers.
    let found = [
        (
            "longer than 9,234 bytes, as captured before segmentation or after reassembly",
            report.large_frames,
            "frame",
            "; lengths are in such pieces and not in packets of the wire",
        ),
        ("before the previous one", stamps.backwards, "timestamp", ""),
        (
            "more than an hour before the first frame or more than 213 days after it",
            stamps.jumps,
            "timestamp",
            "; each counts as one day after the one ahead of it, so the length of the capture and its longest gaps are \
             not true",
        ),
        (
            "not analysed, since cut or not IP on a link without the addresses of both hosts",
            report.unknown_frames,
            "frame",
            "",
        ),
        (&unsupported, report.unsupported_frames, "frame", &allowed),
        ("left out, since without a timestamp (simple packet blocks)", report.untimed_frames, "frame", ""),
        (&left_out, report.left_out_frames, "frame", ""),
        (
            "captured twice, as by a mirror of several ports",
            report.losses.seen.copies,
            "frame",
            "; bursts and bytes count both, acknowledgements and retransmissions one",
        ),
    ];
    let found = found.into_iter().filter(|(_, number, ..)| *number > 0);
    all.extend(found.map(|(what, number, noun, so)| format!("{what}: {}{so}", counted(number, noun))));
    all
}

/// Makes the tables, with at most `pairs` pairs.
pub(super) fn grids(report: &Report, pairs: usize) -> Vec<Grid> {
    let mut all = vec![distributions(report), by_length(report)];
    if report.acks.pure > 0 || report.losses.seen.segments > 0 {
        all.push(tcp(report));
    }
    if pairs > 0 {
        all.push(of_pairs(report, pairs));
    }
    all
}

fn distributions(report: &Report) -> Grid {
    let trains = &report.trains;
    let row = |label: &str, of: &Distribution, shown: fn(f64) -> String| {
        let values = [of.mean, of.p50, of.p90, of.p99, of.max];
        let values = values.map(|value| if of.count == 0 { String::new() } else { shown(value) });
        Row::plain(label, [count(of.count)].into_iter().chain(values))
    };
    let lengths = |map: &BTreeMap<u64, u64>| {
        let at = |share| quantile(map, share).unwrap_or(0) as f64;
        let of = map.iter().map(|(length, bursts)| length * bursts).sum::<u64>() as f64;
        Distribution {
            count: report.bursts,
            mean: of / report.bursts.max(1) as f64,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: at(1.0),
            cdf: Vec::new(),
        }
    };
    let ns = |value: f64| time(value / 1e3);
    Grid::plain(
        "Distributions",
        "quantity",
        &["number", "mean", "median", "p90", "p99", "max"],
        [
            row("burst, packets", &lengths(&report.lengths_packets), number),
            row("burst, bytes", &lengths(&report.lengths_bytes), size),
            row("burst, time (on)", &report.on_ns, ns),
            row("between bursts (off)", &report.off_ns, ns),
            row("train, packets", &trains.packets, number),
            row("train, bytes", &trains.bytes, size),
            row("train, time (on)", &trains.duration_ns, ns),
            row("inter-car", &trains.inter_car_ns, ns),
            row("inter-train (off)", &trains.inter_train_ns, ns),
        ],
    )
}

/// Makes the table of burst lengths in powers of two, with losses where the capture shows any.
fn by_length(report: &Report) -> Grid {
    let shows_loss = report.losses.seen.retransmitted > 0;
    let frames: u64 = report.lengths_packets.iter().map(|(length, bursts)| length * bursts).sum();
    let bin_of = |length: &u64| (*length).max(1).ilog2();
    let mut bins: Vec<(u32, u64, u64)> = Vec::new();
    for (length, bursts) in &report.lengths_packets {
        match bins.last_mut().filter(|(bin, ..)| *bin == bin_of(length)) {
            Some((_, sum, packets)) => (*sum, *packets) = (*sum + bursts, *packets + length * bursts),
            None => bins.push((bin_of(length), *bursts, length * bursts)),
        }
    }
    let mut up_to = 0;
    let percent = |part: u64, whole: u64| {
        if whole == 0 { String::new() } else { fixed(100.0 * part as f64 / whole as f64, 2) }
    };
    let rows = bins.into_iter().map(|(bin, bursts, packets)| {
        up_to += bursts;
        let from = 1u64 << bin;
        let to = from * 2 - 1;
        let mut cells = vec![
            count(bursts),
            percent(bursts, report.bursts),
            percent(up_to, report.bursts),
            percent(packets, frames),
        ];
        if shows_loss {
            let loss = report.losses.by_length.iter().find(|loss| loss.from == from).copied();
            let loss = loss.unwrap_or_default();
            cells.extend([
                count(loss.bursts),
                percent(loss.bursts_with_loss, loss.bursts),
                percent(loss.retransmitted, loss.segments),
            ]);
        }
        Row::plain(if from == to { from.to_string() } else { format!("{from} to {to}") }, cells)
    });
    let columns = ["bursts", "% of bursts", "% up to here", "% of frames"];
    let mut grid = Grid::plain("Burst lengths", "packets", &columns, rows);
    if shows_loss {
        let loss = ["bursts", "% with a loss", "% of segments lost"];
        grid.columns.extend(loss.map(|name| Column::new("with TCP payload", name)));
    }
    grid
}

/// Makes the table of acknowledgements and retransmissions.
fn tcp(report: &Report) -> Grid {
    let (acks, seen) = (&report.acks, &report.losses.seen);
    let row = |label: &str, value: String| Row::plain(label, [value]);
    Grid::plain(
        "TCP",
        "quantity",
        &["value"],
        [
            row("bytes acknowledged by a pure ACK", acks.ratio().map_or_else(String::new, size)),
            row("pure ACKs", count(acks.pure)),
            row("pure ACKs of new bytes", count(acks.advancing)),
            row("duplicate ACKs", count(acks.duplicate)),
            row("window updates", count(acks.window_updates)),
            row("keep-alives and their answers", count(acks.keep_alives)),
            row("segments with payload", count(seen.segments)),
            row("retransmitted", count(seen.retransmitted)),
            row("retransmitted, burst not known", count(seen.unknown_burst)),
            row("filled a hole", count(seen.filled)),
        ],
    )
}

/// Names a pair, with its interface where the capture has several.
pub(super) fn name(report: &Report, pair: &PairReport) -> String {
    let first = report.pairs.first().map(|pair| pair.interface);
    let hosts = format!("{} to {}", pair.source, pair.destination);
    if report.pairs.iter().all(|other| Some(other.interface) == first) {
        return hosts;
    }
    match &pair.interface_name {
        Some(name) => format!("{hosts} ({name})"),
        None => format!("{hosts} (interface {})", pair.interface),
    }
}

fn of_pairs(report: &Report, pairs: usize) -> Grid {
    let shown = |value: Option<f64>, form: fn(f64) -> String| value.map_or_else(String::new, form);
    let ns = |value: f64| time(value / 1e3);
    let rows = report.pairs.iter().take(pairs).map(|pair| {
        let at = |share| quantile(&pair.lengths_packets, share).map(|length| length as f64);
        let cells = vec![
            count(pair.frames),
            size(pair.bytes as f64),
            count(pair.bursts),
            shown(at(0.5), number),
            shown(at(0.99), number),
            shown(at(1.0), number),
            shown(pair.mean_on_ns, ns),
            shown(pair.mean_off_ns, ns),
            shown(pair.mean_inter_car_ns, ns),
            shown(pair.mean_inter_train_ns, ns),
            shown(pair.acks.ratio(), size),
            count(pair.losses.retransmitted),
        ];
        Row::plain(name(report, pair), cells)
    });
    let columns = [
        ("", "frames"),
        ("", "bytes"),
        ("", "bursts"),
        ("packets a burst", "median"),
        ("packets a burst", "p99"),
        ("packets a burst", "max"),
        ("mean time", "on"),
        ("mean time", "off"),
        ("mean time", "inter-car"),
        ("mean time", "inter-train"),
        ("TCP", "bytes an ACK"),
        ("TCP", "retransmitted"),
    ];
    let others = report.pairs.len().saturating_sub(pairs);
    let rest =
        if others > 0 { format!(", the first {pairs} of {}", report.pairs.len()) } else { String::new() };
    Grid {
        title: format!("Pairs{rest}"),
        corner: "pair".to_owned(),
        columns: columns.map(|(group, name)| Column::new(group, name)).into(),
        rows: rows.collect(),
        notes: Vec::new(),
    }
}

/// Writes the number of bursts of each length, of all pairs and of each.
pub fn csv(report: &Report) -> String {
    let head = ["interface", "source", "destination", "packets", "bursts"];
    let mut out = csv_line(&head.map(str::to_owned));
    let mut rows = |first: [String; 3], lengths: &BTreeMap<u64, u64>| {
        for (length, bursts) in lengths {
            let [interface, source, destination] = first.clone();
            out += &csv_line(&[interface, source, destination, length.to_string(), bursts.to_string()]);
        }
    };
    rows([String::new(), String::new(), String::new()], &report.lengths_packets);
    for pair in &report.pairs {
        let interface = pair.interface_name.clone().unwrap_or_else(|| pair.interface.to_string());
        rows([interface, pair.source.clone(), pair.destination.clone()], &pair.lengths_packets);
    }
    out
}

/// Joins the CSV of several captures, whose names are a column before the others.
pub fn joined_csv(captures: impl Iterator<Item = (String, String)>) -> String {
    let mut out = String::new();
    for (name, csv) in captures {
        for (number, line) in csv.lines().enumerate() {
            match (number, out.is_empty()) {
                (0, true) => out += &format!("capture,{line}\n"),
                (0, false) => {}
                _ => out += &format!("{name},{line}\n"),
            }
        }
    }
    out
}
