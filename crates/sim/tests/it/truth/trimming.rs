//! Trimming in whole runs: to TCP a trimmed packet is a lost one, and every packet is accounted for.

use crate::truth::lab::{Run, run};

fn incast(switch: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'trimming'\n[run]\nduration = '20ms'\ndrain = '1s'\n[topology]\nkind = 'leaf-spine'\n\
         leaves = 3\nspines = 2\nhosts_per_leaf = 4\nrate = '10Gbps'\ndelay = '1us'\n[port.switch]\n{switch}\n\
         [host]\nack_priority = 7\n[transport]\nkind = 'tcp'\nmin_rto = '1ms'\n\
         [workload.incast]\nkind = 'incast'\nsize = '60KB'\nevery = '2ms'\nrounds = 8\n"
    ))
}

#[test]
fn to_tcp_a_trimmed_packet_is_a_lost_one() {
    for trim in ["{}", "{ service = '10:1', victim = 'coin-tail', queue = '100 packets' }"] {
        let run = incast(&format!("buffer = '12KB'\ntrim = {trim}"));
        let counters = run.counters;
        assert!(counters.trimmed > 100 && counters.bounced == 0, "{counters:?}");
        assert!(run.messages.iter().all(|message| message.completed.is_some()));
        assert_eq!(counters.packets_accounted_for(), counters.packets_sent);
        // Only trimmed packets and dropped ones are sent again.
        assert!(counters.retransmissions > 0, "{counters:?}");
    }
}

#[test]
fn headers_without_room_go_back_once() {
    let run = incast("buffer = '12KB'\ntrim = { queue = '1 packets', bounce = true }");
    let counters = run.counters;
    assert!(counters.bounced > 0 && counters.bounced <= counters.trimmed, "{counters:?}");
    assert_eq!(counters.packets_accounted_for(), counters.packets_sent);
    let dropped = incast("buffer = '12KB'\ntrim = { queue = '1 packets' }").counters;
    assert!(dropped.switch_drops > 0 && dropped.bounced == 0, "{dropped:?}");
}

#[test]
fn a_class_may_be_the_header_queue() {
    let classes = "classes = { priority = { '7' = {}, '0..6' = { weight = 1, buffer = '12KB' } } }";
    let with_classes = incast(&format!("{classes}\ntrim = {{}}"));
    assert!(with_classes.counters.trimmed > 100 && with_classes.counters.switch_drops == 0);
    assert!(with_classes.messages.iter().all(|message| message.completed.is_some()));
}
