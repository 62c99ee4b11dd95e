//! Imports other simulators' files, and exports results in their format.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common;

use common::Place;

#[test]
fn flows_go_in_and_completion_times_come_out() {
    let place = Place::new();
    // Switch 0 connects hosts 1 to 300: the numbers survive.
    let links: String = (1..301).map(|host| format!("{host} 0 100Gbps 1000ns 0\n")).collect();
    place.write("topology.txt", &format!("301 1 300\n0\n{links}"));
    place.write("flow.txt", "2\n1 300 3 100 100000 0.001\n300 2 3 100 1000 0.0000005\n");
    place
        .plimsoll(&["import", "hpcc", "--topology", "topology.txt", "--flows", "flow.txt", "--out", "in"])
        .ends_with(0)
        .says("in/network.toml: 300 hosts, 1 switch, 300 links")
        .says("in/flows.csv: 2 flows");
    place.plimsoll(&["run", "in/scenario.toml", "--out", "out", "--quiet"]).ends_with(0);
    place.plimsoll(&["export", "hpcc-fct", "out"]).ends_with(0).says("2 flows of base, replicate 0");
    let files = common::names(&place.path("out/fct"));
    let text = place.read(&format!("out/fct/{}", files[0]));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines[0][..6], ["0b012c01", "0b000201", "10000", "100", "1000", "500"], "{text}");
    assert_eq!(lines[1][..6], ["0b000101", "0b012c01", "10000", "100", "100000", "1000000"], "{text}");
    // The ideal time is that of 1040 B over two links of 100 Gb/s and 1 us each; the handshake is added to it.
    assert_eq!(lines[0][7], "2166");
    let number = |word: &str| word.parse::<u64>().unwrap();
    assert!(lines.iter().all(|line| line.len() == 8 && number(line[6]) > number(line[7])), "{text}");
}

#[test]
fn triggers_become_a_job_and_failures_faults() {
    let place = Place::new();
    place.write(
        "t.topo",
        "Nodes 4\nTiers 2\nPodsize 4\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 2\nRadix_Up 2\n\
         Downlink_Latency_ns 1000\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 2\nDownlink_Latency_ns 1000\n",
    );
    place.write(
        "c.cm",
        "Nodes 4\nConnections 2\nTriggers 1\nFailures 1\n0->2 start 0 size 5000 send_done_trigger 1\n\
         2->0 trigger 1 size 5000\ntrigger id 1 oneshot\nfailure switch_type TOR switch_id 1 link_id 1\n",
    );
    place
        .plimsoll(&["import", "htsim", "--topology", "t.topo", "--connections", "c.cm", "--out", "in"])
        .ends_with(0)
        .says("in/job.goal: 4 ranks, 4 operations, 2 messages")
        .says("warning: `send_done_trigger` is activated when the flow has arrived");
    assert!(place.read("in/scenario.toml").contains("from = \"tor1\"\nto = \"agg1\"\ndown = true"));
    place.plimsoll(&["run", "in/scenario.toml", "--out", "out", "--quiet"]).ends_with(0);
}

#[test]
fn what_cannot_be_imported_is_told_and_leaves_nothing() {
    let place = Place::new();
    place.write("bad.cm", "Nodes 4\nConnections 1\n0->9 start 0 size 5\n");
    place
        .plimsoll(&["import", "htsim", "--connections", "bad.cm", "--out", "in"])
        .ends_with(2)
        .says("error: node 9 of 4\n --> bad.cm:3:4")
        .says("bad.cm cannot be imported: 1 error");
    assert!(!place.path("in").exists());
    place.plimsoll(&["import", "htsim", "--out", "in"]).ends_with(2).says("--topology");
    place
        .plimsoll(&["import", "cdf", "none.txt", "--out", "a.csv"])
        .ends_with(2)
        .says("cannot read none.txt");
    place.plimsoll(&["export", "hpcc-fct", "."]).ends_with(2).says("not a run directory");
}

#[test]
fn settings_that_no_run_takes_are_shown_where_the_scenario_would_have_them() {
    let place = Place::new();
    place.write("topology.txt", "3 1 2\n0\n1 0 100Gbps 1000ns 0\n2 0 100Gbps 1000ns 0\n");
    place.write("flow.txt", "1\n1 2 3 100 100000 0.001\n");
    let import = |further: &str| {
        let files = "TOPOLOGY_FILE topology.txt\nFLOW_FILE flow.txt\n\
                     BUFFER_SIZE 32\nRATE_AI 50Mb/s\nKMAX_MAP 1 100000000000 400\n\
                     PMAX_MAP 1 100000000000 0.2\n";
        place.write("config.txt", &format!("{files}{further}"));
        place.plimsoll(&["import", "hpcc", "config.txt", "--out", "in"])
    };
    for (further, key, line) in [
        ("CC_MODE 3\nU_TARGET 5\n", "transport.roce.hpcc.eta", "# U_TARGET 5"),
        ("CC_MODE 1\nKMIN_MAP 1 100000000000 500\n", "port.switch.red.max", "# KMAX_MAP 1"),
    ] {
        let refused = import(further).ends_with(2);
        refused.says(key).says(line).says("config.txt cannot be imported: 1 error");
        assert!(!place.path("in").exists(), "{further}");
    }
    import("CC_MODE 1\nKMIN_MAP 1 100000000000 100\n").ends_with(0);
}

#[test]
fn an_imported_distribution_is_one_that_a_scenario_reads() {
    let place = Place::new();
    place.write("web.txt", "1 1 0\n10 1 0.5\n100 1 1\n");
    place.plimsoll(&["import", "cdf", "web.txt", "--unit", "1460", "--out", "web.csv"]).ends_with(0);
    place.write(
        "s.toml",
        "version = 1\ntitle = 't'\n[topology]\nkind = 'rack'\nhosts = 3\nrate = '10Gbps'\ndelay = '1us'\n\
         [workload.all]\nkind = 'all-to-all'\nsize = { cdf = './web.csv' }\nload = 0.2\ncount = 50\n",
    );
    place.plimsoll(&["run", "s.toml", "--out", "out", "--quiet"]).ends_with(0);
}

#[test]
fn jobs_of_other_tools_become_scenarios_that_run() {
    let place = Place::new();
    place.write(
        "two.goal",
        "num_ranks 2\nrank 0 {\na: calc 100\nb: send 4096b to 1 tag 3\nb requires a\n}\n\
         rank 1 {\nrecv 4096b from 0 tag 3\n}\n",
    );
    place
        .plimsoll(&["import", "goal", "two.goal", "--out", "goal"])
        .ends_with(0)
        .says("goal/job.goal: 2 ranks, 3 operations, 1 message");
    place.plimsoll(&["run", "goal/scenario.toml", "--out", "run", "--quiet"]).ends_with(0).prints("Jobs");
    place.plimsoll(&["export", "perfetto", "run"]).ends_with(2).says("run.timeline=true");
    let timed =
        ["run", "goal/scenario.toml", "--set", "workload.job.run.timeline=true", "--out", "timed", "--quiet"];
    place.plimsoll(&timed).ends_with(0);
    place.plimsoll(&["export", "perfetto", "timed"]).ends_with(0).says("open it in Perfetto");
    let timeline = common::names(&place.path("timed/timeline"));
    let text = place.read(&format!("timed/timeline/{}", timeline[0]));
    assert!(text.contains("\"send to 1\"") && text.contains("\"receive from 0\""), "{text}");
    // What is exported is the same job again.
    place.plimsoll(&["export", "goal", "goal/scenario.toml", "--out", "again"]).ends_with(0);
    place.plimsoll(&["import", "goal", "again/job.goal", "--out", "twice"]).ends_with(0);
    let without_head = |text: String| text.split_once('\n').map(|(_, rest)| rest.to_owned()).unwrap();
    assert_eq!(
        without_head(place.read("twice/job.goal")),
        without_head(place.read("goal/job.goal")),
        "but for the name in its first line"
    );
    place.write(
        "alone.goal",
        "num_ranks 2\nrank 0 {\nsend 9b to 1 tag 3\n}\nrank 1 {\nrecv 9b from 0 tag 4\n}\n",
    );
    place
        .plimsoll(&["import", "goal", "alone.goal", "--out", "alone"])
        .ends_with(2)
        .says("error: 1 send and 1 receive without a counterpart")
        .says("--> alone.goal:3:1")
        .says("allowed: a send and a receive of the same ranks and tag");
    assert!(!place.path("alone").exists());
    place.write(
        "layers.txt",
        "HYBRID_TRANSFORMER model_parallel_NPU_group: 2 ep: 1 pp: 1 all_gpus: 4\n1\n\
         attn -1 5000 ALLREDUCE 8000 5000 ALLREDUCE 8000 5000 ALLREDUCE 4000 100\n",
    );
    place
        .plimsoll(&["import", "astra", "layers.txt", "--algorithm", "halving-doubling", "--out", "astra"])
        .ends_with(0)
        .says("astra/job.goal: 4 ranks");
    place.plimsoll(&["run", "astra/scenario.toml", "--out", "run2", "--quiet"]).ends_with(0);
    place
        .plimsoll(&["export", "goal", "quickstart"])
        .ends_with(2)
        .says("has no job: workloads of kind collective, training or job are");
}

#[test]
fn traces_of_chakra_are_read_rank_by_rank() {
    let place = Place::new();
    // A record: GlobalMetadata without fields; then a node with number 1 of type COMP that takes 120 us, and node 2, an
    // all-reduce of 1,000 bytes behind it.
    let attribute = |name: &str, field: u8, value: &[u8]| {
        let inner = [&[0x0a, name.len() as u8], name.as_bytes(), &[field << 3], value].concat();
        [vec![0x52, inner.len() as u8], inner].concat()
    };
    let all_reduce = [
        vec![0x08, 2, 0x18, 7, 0x28, 1],
        attribute("comm_type", 9, &[0]),
        attribute("comm_size", 13, &[0xe8, 0x07]),
    ]
    .concat();
    let trace = [vec![0, 6, 0x08, 1, 0x18, 4, 0x38, 120, all_reduce.len() as u8], all_reduce].concat();
    std::fs::create_dir(place.path("traces")).unwrap();
    place.write_bytes("traces/job.0.et", &trace);
    place
        .plimsoll(&["import", "chakra", "traces", "--out", "job"])
        .ends_with(0)
        .says("job/job.goal: 1 rank, 2 operations, 0 messages");
    place.write_bytes("traces/job.2.et", &trace);
    place.plimsoll(&["import", "chakra", "traces", "--out", "in"]).ends_with(2).says("no trace of rank 1");
    place.write_bytes("traces/job.1.et", &trace[..20]);
    place
        .plimsoll(&["import", "chakra", "traces", "--out", "in"])
        .ends_with(2)
        .says("traces/job.1.et: byte 8: a record of");
    place.write_bytes("traces/job.1.et", &trace);
    place.plimsoll(&["import", "chakra", "traces", "--out", "in"]).ends_with(0).says("3 ranks");
    place.plimsoll(&["run", "in/scenario.toml", "--out", "run", "--quiet"]).ends_with(0);
    place.write("groups.json", "{\"0\": 7}");
    place
        .plimsoll(&["import", "chakra", "traces", "--groups", "groups.json", "--out", "in2"])
        .ends_with(2)
        .says("groups.json does not fit; allowed: {\"0\": [0, 1]}");
    assert!(!place.path("in2").exists());
}
