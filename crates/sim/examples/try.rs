//! Runs every point of a scenario and prints a few numbers: for development.
use plimsoll_scenario::{Overrides, Scenario};
fn main() {
    let mut args = std::env::args().skip(1);
    let path = args.next().expect("scenario");
    let overrides = Overrides { set: args.collect(), ..Overrides::default() };
    let scenario = match Scenario::load_with(&path, &overrides) {
        Ok(s) => s,
        Err(e) => {
            for e in e {
                eprintln!("{e}");
            }
            std::process::exit(2)
        }
    };
    for point in scenario.points() {
        let start = std::time::Instant::now();
        let threads = std::env::var("THREADS").map_or(1, |t| t.parse().unwrap());
        let o = plimsoll_sim::run_on(&point.model, threads, &mut |_| true).expect("run");
        let wall = start.elapsed().as_secs_f64();
        let hops = o.counters.packet_hops;
        println!(
            "{} end {} wall {:.2}s {:.2} Mhops {:.2} Mhops/s events {:.2}M {:?}",
            point.label(),
            o.end,
            wall,
            hops as f64 / 1e6,
            hops as f64 / 1e6 / wall,
            o.counters.events as f64 / 1e6,
            o.counters
        );
        for (w, info) in o.workloads.iter().enumerate() {
            let mut l: Vec<f64> = o
                .messages
                .iter()
                .filter(|m| m.workload as usize == w)
                .filter_map(|m| m.latency())
                .map(|s| s.as_us_f64())
                .collect();
            l.sort_by(f64::total_cmp);
            if l.is_empty() {
                continue;
            }
            let mean = l.iter().sum::<f64>() / l.len() as f64;
            println!(
                "  {}: n {} mean {:.3} min {:.3} p50 {:.3} p99 {:.3} max {:.3} us",
                info.name,
                l.len(),
                mean,
                l[0],
                l[l.len() / 2],
                l[l.len() * 99 / 100],
                l[l.len() - 1]
            );
        }
        if std::env::var_os("CLASS").is_some() {
            let large: Vec<_> = o.messages.iter().filter(|m| m.workload == 1).collect();
            let mut cls: [Vec<f64>; 3] = Default::default();
            for m in o.messages.iter().filter(|m| m.workload == 0) {
                let t = m.created;
                let mut c = 2;
                for l in &large {
                    if l.created <= t && l.completed.is_some_and(|e| e >= t) {
                        if l.destination == m.destination {
                            c = 0;
                            break;
                        }
                        c = 1;
                    }
                }
                cls[c].push(m.latency().map_or(0.0, |l| l.as_us_f64()));
            }
            for (name, v) in ["same", "other", "idle"].iter().zip(cls.iter_mut()) {
                v.sort_by(f64::total_cmp);
                if !v.is_empty() {
                    println!(
                        "  {} n {} p50 {:.1} p99 {:.1}",
                        name,
                        v.len(),
                        v[v.len() / 2],
                        v[v.len() * 99 / 100]
                    );
                }
            }
        }
        if !o.queries.is_empty() {
            let mut l: Vec<f64> =
                o.queries.iter().filter_map(|q| q.completed.map(|c| (c - q.created).as_us_f64())).collect();
            l.sort_by(f64::total_cmp);
            println!(
                "  queries n {} mean {:.3} p99 {:.3}",
                l.len(),
                l.iter().sum::<f64>() / l.len() as f64,
                l[l.len() * 99 / 100]
            );
            let mut l: Vec<f64> = o.queries.iter().map(|q| q.response_min.as_us_f64()).collect();
            l.sort_by(f64::total_cmp);
            println!(
                "  fastest response mean {:.3} p99 {:.3}",
                l.iter().sum::<f64>() / l.len() as f64,
                l[l.len() * 99 / 100]
            );
        }
        for q in &o.queues {
            if std::env::var_os("QUEUE").is_some() {
                let us = 8e6 / q.rate.as_bps() as f64;
                let n = q.mean_bytes.len();
                for (i, b) in q.mean_bytes.iter().enumerate() {
                    if i % (n / 60).max(1) == 0 || i < 20 {
                        print!(" {}:{:.1}", i, b * us);
                    }
                }
                println!();
            }
            let us = 8e6 / q.rate.as_bps() as f64;
            let mut v: Vec<f64> = q.mean_bytes.iter().map(|b| b * us).collect();
            while v.last() == Some(&0.0) {
                v.pop();
            }
            if v.is_empty() {
                continue;
            }
            let mean = v.iter().sum::<f64>() / v.len() as f64;
            v.sort_by(f64::total_cmp);
            if o.queues.len() < 4 {
                println!(
                    "  queue {} mean {:.3} p99 {:.3} us drops {} marks {} packets {}",
                    q.port,
                    mean,
                    v[v.len() * 99 / 100],
                    q.drops,
                    q.marks,
                    q.packets
                );
            }
        }
        if !o.goodput.is_empty() {
            let mut v: Vec<f64> =
                o.goodput.iter().map(|g| g.sent.get() as f64 * 8e-6 / g.length.as_secs_f64()).collect();
            while v.last() == Some(&0.0) {
                v.pop();
            }
            println!("  goodput {:.2}", v.iter().sum::<f64>() / v.len() as f64);
        }
        if std::env::var_os("SERIES").is_some() {
            for p in o
                .series
                .iter()
                .filter(|p| p.rate.as_bps() > 0 || p.time.as_ps() % 100_000_000_000 == 0)
                .take(130)
            {
                println!(
                    "    {} conn {} cwnd {:.1} ssthresh {:.1} alpha {:.3} rate {}",
                    p.time,
                    p.connection,
                    p.cwnd as f64 / 950.0,
                    p.ssthresh as f64 / 950.0,
                    p.alpha,
                    p.rate
                );
            }
            for m in o.messages.iter().take(12) {
                println!("    {:?} {} {:?}", m.latency(), m.index, m.split);
            }
        }
        let tot: u64 = o.connections.iter().map(|c| c.delivered).sum();
        println!("  delivered {:.2} Mb/s", tot as f64 * 8e-6 / o.end.as_secs_f64());
    }
}
