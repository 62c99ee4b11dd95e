//! RED by priority: with one priority it is RED, and with two each has its own.

use crate::truth::lab::{Run, run};

fn congested(switch: &str, host: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'marks'\n[run]\nduration = '20ms'\n[topology]\nkind = 'rack'\nhosts = 5\nrate = '1Gbps'\n\
         delay = '5us'\n[port.switch]\nbuffer = '200KB'\n{switch}\n[host]\n{host}\n[transport]\nkind = 'dctcp'\n\
         min_rto = '2ms'\n[workload.low]\nkind = 'flows'\nfrom = ['h1', 'h2']\nto = 'h0'\n\
         [workload.high]\nkind = 'flows'\nfrom = ['h3', 'h4']\nto = 'h0'\n"
    ))
}

/// Steps need no draws, so that nothing else differs; the average decays while the port idles.
#[test]
fn with_one_priority_it_is_red() {
    for rule in
        ["min = '30KB', max = '30KB'", "min = '9KB', max = '9KB', weight = 0.01, ecn = false, bytes = false"]
    {
        let red = congested(&format!("engine = 'general'\nred = {{ {rule} }}"), "");
        for queue in ["port", "priority"] {
            let wred = format!("wred = {{ queue = '{queue}', priority = {{ '0..7' = {{ {rule} }} }} }}");
            assert_eq!(congested(&wred, "").digest(), red.digest(), "{rule}, {queue}");
        }
        assert!(red.counters.marks + red.counters.switch_drops > 20, "{:?}", red.counters);
    }
}

/// The low priority's packets are dropped at 3 KB, the high one's marked at 30 KB.
#[test]
fn each_priority_has_its_own_rule() {
    let run = congested(
        "order = 'priorities'\n\
         wred.priority.'0..3' = { min = '3KB', max = '3KB', ecn = false }\n\
         wred.priority.7 = { min = '30KB', max = '30KB', ecn = true }",
        "priority = { high = 7 }",
    );
    let of = |name: &str| {
        let number = run.workloads.iter().position(|info| info.name == name).unwrap();
        let of = run.connections.iter().filter(move |connection| usize::from(connection.workload) == number);
        of.fold((0, 0), |(marked, again), c| (marked + c.marked, again + c.retransmissions))
    };
    let ((low_marked, low_again), (high_marked, high_again)) = (of("low"), of("high"));
    assert_eq!((low_marked, high_again), (0, 0));
    assert!(low_again > 0 && high_marked > 0, "{low_again} {high_marked}");
}
