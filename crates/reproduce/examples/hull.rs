fn main() {
    let quick = std::env::args().any(|a| a == "--quick");
    let start = std::time::Instant::now();
    let r = plimsoll_reproduce::reproduce(plimsoll_reproduce::Options { quick, threads: 2, seed: 1 }, &|d, n, h| { if d > 0 && h > 0 { } let _ = n; true }).expect("runs");
    eprintln!("{:.1}s {:.2} G hops {} rows", start.elapsed().as_secs_f64(), r.packet_hops as f64 / 1e9, r.rows.len());
    let json = serde_json::to_string_pretty(&r).expect("json");
    std::fs::write("/tmp/hull.json", json).expect("write");
    for row in &r.rows { if row.base == "source" { println!("{:12} {:16} {:>14} {:28} {:>12.4} {:>12} {:>8} {}", row.figure, row.series, row.x, row.metric, row.measured, row.published.map_or(String::new(), |p| format!("{p:.4}")), row.ratio.map_or(String::new(), |p| format!("{p:.3}")), match row.within { Some(true) => "ok", Some(false) => "OFF", None => "" }); } }
    for o in r.orderings.iter().filter(|o| o.holds == Some(false)) { println!("ORDER {o:?}"); }
    println!("orderings hold {} undecided {} broken {}", r.orderings.iter().filter(|o| o.holds == Some(true)).count(), r.orderings.iter().filter(|o| o.holds.is_none()).count(), r.orderings.iter().filter(|o| o.holds == Some(false)).count());
}
