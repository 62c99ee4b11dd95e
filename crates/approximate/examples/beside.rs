use std::path::Path;
use std::time::Instant;
use plimsoll_approximate::*;
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::Scenario;

fn by_bin(outcome: &Outcome) -> Vec<Vec<f64>> {
    let mut bins = vec![Vec::new(); 5];
    for message in &outcome.messages {
        let Some(slowdown) = message.slowdown() else { continue };
        let bin = SIZES.iter().position(|up_to| message.bytes <= *up_to).unwrap_or(3);
        bins[bin].push(slowdown);
        bins[4].push(slowdown);
    }
    for bin in &mut bins {
        bin.sort_unstable_by(f64::total_cmp);
    }
    bins
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let text = std::fs::read_to_string(&args[1]).unwrap();
    let links: usize = args[2].parse().unwrap();
    let mut scenario = Scenario::parse(&args[1], &text, Path::new(&args[1]).parent().unwrap()).unwrap();
    let _ = &mut scenario;
    let model = &scenario.points()[0].model;
    let began = Instant::now();
    let size = ApproximateSize { links, ..ApproximateSize::default() };
    let parts = match run(model, size, 2, &|_, _| true) { Ok(p) => p, Err(e) => { println!("{e}"); return } };
    let took = began.elapsed();
    println!("{:?} in {took:?}", parts.precision);
    if args.len() > 3 { 
        for row in &parts.rows { println!("{row:?}"); }
        return }
    let began = Instant::now();
    let whole = plimsoll_sim::run(model, &mut |_| true).unwrap();
    println!("exact in {:?}, hops {}, lost {}", began.elapsed(), whole.counters.packet_hops, whole.counters.switch_drops + whole.counters.nic_drops);
    for (name, (whole, parts)) in ["<=10KB", "<=100KB", "<=1MB", ">1MB", "all"].iter().zip(by_bin(&whole).iter().zip(&by_bin(&parts.outcome))) {
        print!("{name:8} {:6} {:6}", whole.len(), parts.len());
        for share in [0.5, 0.9, 0.99] {
            let of = |all: &[f64]| plimsoll_stats::percentile(all, share).unwrap_or(f64::NAN);
            print!("   p{:<4} {:7.3} {:7.3} {:+6.1}%", share * 100.0, of(whole), of(parts), (of(parts) / of(whole) - 1.0) * 100.0);
        }
        println!();
    }
}
