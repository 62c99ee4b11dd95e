//! Files of other simulators, as a scenario that loads, and the errors of invalid ones.
#![allow(clippy::unwrap_used, reason = "a test")]

use plimsoll_fabric::net::topology::File;
use plimsoll_mechanisms::transports::roce::RoceWindow;
use plimsoll_scenario::import::{self, HpccConfig, HpccScenario, Imported};
use plimsoll_scenario::model::{Graph, ListedFlow, Topology, Workload};
use plimsoll_scenario::{Scenario, ScenarioError};
use plimsoll_units::{Bytes, Rate, Span};

type Reader = fn(&str, &str) -> Result<Imported, Box<ScenarioError>>;

/// Two racks of two hosts; switches have low numbers.
const HPCC_TOPOLOGY: &str = "6 2 5\n0 1\n2 0 100Gbps 1000ns 0.000000\n3 0 100Gbps 1000ns 0\n4 1 100Gbps 1000ns 0\n\
                             5 1 100Gbps 1us 0.1\n0 1 400Gbps 2000ns 0\n\nwords that nobody reads\n";
const HPCC_FLOWS: &str =
    "2\n2 5 3 100 20000 2.000000001\n4 3 1 100 1 0.5\n5 2 3 100 7 3\n\nFirst line: # of flows\n";

const HTSIM_TOPOLOGY: &str = "# two pods\nNodes 8\nTiers 3\nPodsize 4\n\nTier 0\nDownlink_speed_Gbps 100\n\
                              Radix_Down 2\n\
                              Radix_Up 2\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 5\n\nTier 1\n\
                              Downlink_speed_Gbps 100\nRadix_Down 2\nRadix_Up 2\nDownlink_Latency_ns 500\n\n\
                              Tier 2\nDownlink_speed_Gbps 200\nRadix_Down 2\nDownlink_Latency_ns 3000\nBundle 2\n";
const HTSIM_CONNECTIONS: &str = "Nodes 8\nConnections 2\nTriggers 0\n0->7 id 1 start 0 size 2000000\n\
                                 # one later\n3->1 start 1500000 prio 2 size 9000\n\n";

fn loads(network: &Imported, flows: &Imported) -> (Graph, Vec<ListedFlow>) {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("network.toml"), &network.text).unwrap();
    std::fs::write(place.path().join("flows.csv"), &flows.text).unwrap();
    let text = "version = 1\ntitle = 't'\n[topology]\nkind = 'file'\npath = 'network.toml'\n\
                [workload.flows]\nkind = 'flow-list'\npath = 'flows.csv'\n";
    let scenario =
        Scenario::parse("t.toml", text, place.path()).unwrap_or_else(|errors| panic!("{}", errors[0]));
    let model = &scenario.points()[0].model;
    let Topology::File(File { graph: Some(graph), .. }) = &model.topology else { panic!() };
    let Workload::FlowList(list) = &model.workload["flows"] else { panic!() };
    (Graph::clone(graph), list.flows.to_vec())
}

#[test]
fn hpcc() {
    let network = import::hpcc_topology("topology.txt", HPCC_TOPOLOGY).unwrap();
    let list = import::hpcc_flows("flow.txt", HPCC_FLOWS, None).unwrap();
    assert_eq!(network.summary, "4 hosts, 2 switches, 5 links");
    assert!(network.notes[0].ends_with("the error rate of 1 link"), "{:?}", network.notes);
    assert!(list.notes[0].ends_with("not read that follow: 1"), "{:?}", list.notes);
    let (graph, flows) = loads(&network, &list);
    assert_eq!(
        (graph.hosts.join(" "), graph.switches.join(" ")),
        ("h2 h3 h4 h5".to_owned(), "s0 s1".to_owned())
    );
    let trunk = graph.links.last().unwrap();
    assert_eq!(
        (trunk.from, trunk.to, trunk.rate, trunk.delay),
        (4, 5, Rate::from_gbps(400), Span::from_us(2))
    );
    let flow = |start, source, destination, size, class: &str| ListedFlow {
        start: Span::from_ns(start),
        source,
        destination,
        size: Bytes::new(size),
        class: class.to_owned(),
    };
    assert_eq!(flows, [flow(2_000_000_001, 0, 3, 20_000, "pg3"), flow(500_000_000, 2, 1, 1, "pg1")]);
}

/// Settings beside [`HPCC_TOPOLOGY`]: DCQCN with a window.
const HPCC_CONFIG: &str = "ENABLE_QCN 1 {0: disable, 1: enable}\nPACKET_PAYLOAD_SIZE 1000\n\nTOPOLOGY_FILE mix/t.txt\n\
                           FLOW_FILE mix/f.txt\nSIMULATOR_STOP_TIME 4.00\nCC_MODE 1\nALPHA_RESUME_INTERVAL 1\n\
                           RATE_DECREASE_INTERVAL 4\nRP_TIMER 300 \nEWMA_GAIN 0.00390625\n\
                           FAST_RECOVERY_TIMES 1\nRATE_AI 20Mb/s\nRATE_HAI 200Mb/s\nMIN_RATE 1000Mb/s\n\
                           L2_CHUNK_SIZE 4000\nL2_ACK_INTERVAL 1\nHAS_WIN 1\nGLOBAL_T 1\nVAR_WIN 1\n\
                           U_TARGET 0.95\nMI_THRESH 0\nINT_MULTI 4\nLINK_DOWN 0 0 0\nBUFFER_SIZE 16\n\
                           KMAX_MAP 2 100000000000 1600 400000000000 6400\nPFC_OUTPUT_FILE mix/pfc.txt\n\
                           KMIN_MAP 2 100000000000 400 400000000000 1600\n\
                           PMAX_MAP 2 100000000000 0.2 400000000000 0.2\n";

/// The scenario of [`HPCC_CONFIG`] after replacements.
fn settings(changes: &[(&str, &str)]) -> Result<HpccScenario, Box<ScenarioError>> {
    let text = changes.iter().fold(HPCC_CONFIG.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    HpccConfig::read("config.txt", &text)?.scenario(("t.txt", HPCC_TOPOLOGY), ("f.txt", HPCC_FLOWS))
}

/// The model of an imported scenario, whose files it carries.
fn model_of(made: &HpccScenario) -> plimsoll_scenario::model::Model {
    let file = |name: &str, text: &str| format!("\n[files.\"{name}\"]\ntext = '''\n{text}'''\n");
    let files = file("network.toml", &made.network.text) + &file("flows.csv", &made.flows.text);
    let text = format!("{}{files}", made.scenario.text);
    let scenario = Scenario::parse("scenario.toml", &text, std::path::Path::new("."));
    scenario.unwrap_or_else(|errors| panic!("{}\n{text}", errors[0])).points()[0].model.clone()
}

#[test]
fn settings_of_hpcc_become_a_scenario_with_its_controller() {
    let made = settings(&[]).unwrap();
    let model = model_of(&made);
    let roce = &model.transport.roce;
    assert_eq!(model.transport.kind.name(), "dcqcn");
    assert_eq!((roce.window, roce.ack_every, roce.cnp_interval), (RoceWindow::Bdp, 1, Some(Span::ZERO)));
    // 2 x 4 us of propagation, and a packet of 1,000 B at 100, 400 and 100 Gb/s.
    assert_eq!(roce.base_rtt, Some(Span::from_ns(8_000 + 80 + 20 + 80)));
    let rules = &roce.dcqcn;
    assert_eq!((rules.gain, rules.fast_recovery, rules.clamp_target), (1.0 / 256.0, 1, false));
    let periods = [rules.alpha_period, rules.cut_period, rules.timer];
    assert_eq!(periods, [1, 4, 300].map(Span::from_us));
    let rates = [rules.increase, rules.hyper_increase, rules.min_rate];
    assert_eq!(rates, [20, 200, 1_000].map(Rate::from_mbps));
    let text = &made.scenario.text;
    for line in [
        "duration = \"4s\"                             # SIMULATOR_STOP_TIME 4.00",
        "memory = \"16.777216MB\"                     # BUFFER_SIZE 16, in MiB",
        "min = \"400KB\" ",
        "for_rate = \"100Gbps\"",
        "clamp_target = false                        # CLAMP_TARGET_RATE 0, the default",
        "# As here in any case: LINK_DOWN 0 0 0.",
        "# left out, as dcqcn does not use them: U_TARGET, MI_THRESH, INT_MULTI",
    ] {
        let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
        let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        assert!(words.into_iter().any(|words| words.contains(&line)), "{line}\n{text}");
    }
    let notes = made.scenario.notes.join("\n");
    assert!(notes.contains("a run directory has all results: PFC_OUTPUT_FILE"), "{notes}");
    assert!(notes.contains("not a queue for each of pg1, pg3"), "{notes}");
    assert!(
        text.lines().skip(1).take(made.scenario.notes.len()).all(|line| line.starts_with("# ")),
        "{text}"
    );
}

#[test]
fn settings_choose_the_controller_and_what_surrounds_it() {
    let made = settings(&[
        ("CC_MODE 1", "CC_MODE 3"),
        ("MI_THRESH 0", "MI_THRESH 5\nFAST_REACT 0"),
        ("LINK_DOWN 0 0 0", "LINK_DOWN 1000 0 1"),
        ("GLOBAL_T 1", "GLOBAL_T 0\nACK_HIGH_PRIO 1\nERROR_RATE_PER_LINK 0.01\nENABLE_PFC 0\nRANDOM_SEED 9"),
    ])
    .unwrap();
    let model = model_of(&made);
    let hpcc = &model.transport.roce.hpcc;
    assert_eq!(model.transport.kind.name(), "hpcc");
    assert_eq!((hpcc.eta, hpcc.max_stage, hpcc.increase), (0.95, 5, Rate::from_mbps(20)));
    assert_eq!((model.transport.roce.base_rtt, model.host.ack_priority, model.run.seed), (None, Some(7), 9));
    // Three links lose 1 % each.
    assert!((model.host.loss - (1.0 - 0.99_f64.powi(3))).abs() < 1e-12, "{}", model.host.loss);
    let text = &made.scenario.text;
    for line in
        ["at = \"2.001s\"", "from = \"s0\"", "[port.switch.shared_buffer]", "FAST_REACT 0 is left out: "]
    {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(!text.contains("[port.switch.red]") && !text.contains("lossless"), "{text}");
    let two =
        settings(&[("400000000000 6400", "400000000000 1600"), ("400000000000 1600", "400000000000 400")]);
    assert!(!two.unwrap().scenario.text.contains("for_rate"), "links of all rates have equal thresholds");
    for (mode, kind) in [("7", "timely"), ("8", "roce-dctcp")] {
        let made = settings(&[("CC_MODE 1", &format!("CC_MODE {mode}"))]).unwrap();
        assert_eq!(model_of(&made).transport.kind.name(), kind, "{}", made.scenario.text);
    }
    let endless = settings(&[("TIME 4.00", "TIME 40000000000000.00")]).unwrap().scenario.text;
    assert!(!endless.contains("duration"), "{endless}");
}

#[test]
fn settings_that_do_not_fit_are_errors_at_their_words() {
    for (from, to, said) in [
        ("CC_MODE 1", "CC_MODE 2", "CC_MODE 2 is not imported"),
        ("RP_TIMER 300 ", "RP_TIMERS 300", "did you mean `RP_TIMER`?"),
        ("RATE_AI 20Mb/s", "RATE_AI 0Mb/s", "`0Mb/s` is no rate above 0"),
        ("RATE_AI 20Mb/s", "RATE_AI", "0 words after `RATE_AI`"),
        (
            "KMIN_MAP 2 100000000000 400 400000000000 1600",
            "KMIN_MAP 1 100000000000 400",
            "no entry for links of 400Gbps",
        ),
        ("KMIN_MAP 2", "KMIN_MAP 3", "5 words after `KMIN_MAP`"),
        ("LINK_DOWN 0 0 0", "LINK_DOWN 9 0 8", "the topology has no node 8"),
        ("BUFFER_SIZE 16", "BUFFER_SIZE 0", "`0` MiB of memory"),
        ("PACKET_PAYLOAD_SIZE 1000", "PACKET_PAYLOAD_SIZE 0", "packets of 0 B"),
        ("RP_TIMER 300", "RP_TIMER 0", "`0` is no time above 0"),
        ("TIME 4.00", "TIME soon", "`soon` is no time"),
        ("HAS_WIN 1", "HAS_WIN yes", "`yes` is no switch"),
    ] {
        let error = settings(&[(from, to)]).expect_err(said).to_string();
        assert!(error.contains(said) && error.contains("config.txt:"), "{said}: {error}");
    }
    let made = settings(&[("BUFFER_SIZE 16", "BUFFER_SIZE 16\nNVLINK_GENERATION 4")]).unwrap();
    assert!(made.scenario.notes.join("\n").contains("has no such key: NVLINK_GENERATION"));
}

#[test]
fn htsim() {
    let network = import::htsim_topology("t.topo", HTSIM_TOPOLOGY).unwrap();
    let list = import::htsim_connections("c.cm", HTSIM_CONNECTIONS, None).unwrap().file;
    // 8 hosts, 2 pods of 2 and 2, 8 uplinks of tier 1 at twice the speed for 4 links of cores with 2 ports.
    assert_eq!(network.summary, "8 hosts, 10 switches, 24 links");
    let (graph, flows) = loads(&network, &list);
    let count = |prefix: &str| graph.switches.iter().filter(|name| name.starts_with(prefix)).count();
    assert_eq!((count("tor"), count("agg"), count("core")), (4, 4, 2));
    let delays: Vec<u64> = [0, 8, 16].map(|link| graph.links[link].delay.as_ps()).to_vec();
    assert_eq!(delays, [1_002_500, 502_500, 3_000_000], "half of tier 0's switch on each side of it");
    assert_eq!(graph.links[23].rate, Rate::from_gbps(200));
    assert_eq!(graph.links[16], graph.links[17], "a bundle of two");
    assert_eq!((flows[0].source, flows[0].destination, flows[0].size), (0, 7, Bytes::new(2_000_000)));
    assert_eq!((flows[1].start, flows[1].class.as_str()), (Span::from_ns(1_500), "prio2"));
}

/// A flow that another one starts.
const HTSIM_TRIGGERS: &str = "Nodes 8\nConnections 2\nTriggers 1\n0->7 id 1 start 0 size 5 recv_done_trigger 3\n\
                              7->2 id 2 trigger 3 size 6\ntrigger id 3 oneshot\n";
const DEAD_LINK: &str = "Failures 1\nfailure switch_type AGG switch_id 1 link_id 0";

#[test]
fn failures_are_dead_links_and_flows_with_triggers_a_job() {
    let network = import::htsim_topology("t.topo", HTSIM_TOPOLOGY).unwrap();
    for (failure, ends) in [
        ("AGG switch_id 1 link_id 0", ("agg1", "core1")),
        ("TOR switch_id 3 link_id 1", ("tor3", "agg3")),
        ("CORE switch_id 1 link_id 1", ("agg3", "core1")),
    ] {
        let text = format!("{HTSIM_CONNECTIONS}Failures 1\nfailure switch_type {failure}\n");
        let traffic = import::htsim_connections("c.cm", &text, Some(&network)).unwrap();
        let ends = (ends.0.to_owned(), ends.1.to_owned());
        assert_eq!((traffic.dead_links, traffic.is_job), (vec![ends], false), "{failure}");
    }
    for (failure, said) in
        [("AGG switch_id 1 link_id 1", "link 1 of 1"), ("TOR switch_id 4 link_id 0", "`tor4`")]
    {
        let text = format!("{HTSIM_CONNECTIONS}Failures 1\nfailure switch_type {failure}\n");
        let error = import::htsim_connections("c.cm", &text, Some(&network)).unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let job = import::htsim_connections("c.cm", HTSIM_TRIGGERS, None).unwrap();
    assert_eq!(job.file.summary, "8 ranks, 4 operations, 2 messages");
    assert!(job.is_job && job.file.notes.is_empty(), "{:?}", job.file.notes);
}

#[test]
fn two_tiers_are_one_pod() {
    let text = "Nodes 32\nTiers 2\nPodsize 32\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 8\nRadix_Up 2\n\
                Downlink_Latency_ns 1000\nOversubscribed 4\nTier 1\nDownlink_speed_Gbps 100\nRadix_Down 4\n\
                Downlink_Latency_ns 1000\n";
    let network = import::htsim_topology("t.topo", text).unwrap();
    assert_eq!(network.summary, "32 hosts, 6 switches, 40 links");
}

#[test]
fn distributions() {
    let bytes = import::cdf("a.txt", "# web\n0 0\n10000,15\n30000000\t100\n", 1).unwrap();
    assert_eq!(bytes.text, "bytes,cdf\n0,0\n10000,0.15\n30000000,1\n");
    let packets = import::cdf("b.tcl", "1 1 0\n6 1 0.15\n20000 1 1\n", 1460).unwrap();
    assert_eq!(packets.text, "bytes,cdf\n1460,0\n8760,0.15\n29200000,1\n");
    for (text, said) in [
        ("", "no points"),
        ("1 0\n2 0.5\n", "the last share is 0.5"),
        ("1 0\n3 50\n2 100\n", "does not ascend"),
        ("1 2 3 4\n", "4 columns"),
        ("1 0\nx 1\n", "`x` is no size"),
        ("1 NaN\n", "does not ascend"),
    ] {
        let error = import::cdf("c.txt", text, 1).unwrap_err().to_string();
        assert!(error.contains(said) && error.contains("c.txt:"), "{error}");
    }
}

/// Flows without their topology.
const ALONE: Reader = |name, text| import::hpcc_flows(name, text, None);
const MATRIX: Reader = |name, text| import::htsim_connections(name, text, None).map(|traffic| traffic.file);

/// A flow of a host that the topology beside it lacks is an error at its word.
#[test]
fn flows_are_those_of_the_topologys_hosts() {
    let topology = import::hpcc_topology("t", HPCC_TOPOLOGY).unwrap();
    let hosts = topology.hosts.clone();
    assert_eq!(hosts.iter().copied().collect::<Vec<_>>(), [2, 3, 4, 5]);
    let error = |flow: &str| import::hpcc_flows("f.txt", flow, Some(&hosts)).unwrap_err().to_string();
    let said = error("2\n2 3 3 100 1000 1.0\n2 9 3 100 1000 1.0\n");
    assert!(said.contains("no host 9") && said.contains("f.txt:3:3") && said.contains("2 to 5"), "{said}");
    // A switch is not a host.
    assert!(error("1\n0 3 3 100 1000 1.0\n").contains("no host 0"));
    let matrix = "Nodes 9\nConnections 1\n2->8 start 0 size 1000\n";
    let said = import::htsim_connections("c.cm", matrix, Some(&topology)).unwrap_err().to_string();
    assert!(said.contains("no host 8") && said.contains("c.cm:3:"), "{said}");
}

/// Files as other programs write them, each with the expected scenario.
#[test]
fn spellings_of_other_programs_are_read() {
    let mean = import::cdf("c", "1042.5\n50 0\n51 0.014\n300 0.5\n1000 0.9\n20000 1.0\n", 1).unwrap();
    assert_eq!(mean.summary, "5 points");
    assert_eq!(mean.notes, ["the first line, 1042.5, is taken for the mean; that of the points is 1396.0"]);
    let marked = import::cdf("c", "\u{feff}10 0.5\n20 1\n", 1).unwrap();
    assert_eq!((marked.summary.as_str(), marked.notes.len()), ("2 points", 0));
    let named = import::cdf("c", "size cdf\n10 0.5\n20 1\n", 1).unwrap();
    assert_eq!(named.notes, ["the first line, `size cdf`, is taken for the names of columns"]);
    for first in ["1O 0.5", "1.0.5 0.3", "x 0.1"] {
        let error = import::cdf("c.txt", &format!("{first}\n20 1\n"), 1).unwrap_err().to_string();
        assert!(error.contains("c.txt:1:1"), "{error}");
    }
    let five = "3\n0 9 3 41000 2.000000100\n4 1 3 1200 2.000004200\n7 2 3 65000 2.000009900\n";
    let flows = import::hpcc_flows("f", five, None).unwrap().text;
    assert!(flows.contains("2000000100000ps,h0,h9,41000B,pg3\n2000004200000ps,h4,h1,1200B,pg3\n"), "{flows}");
    let topology = "3 1 2\n2\n0 2 100Gb/s +1000.0ns 0\n1 2 12.5GB/s 1e-06s 0\n";
    let flows = "2\n0 1 3 100 1000 1e-05\n1 0 3 100 1000 2.5e-05\n";
    let (graph, flows) =
        loads(&import::hpcc_topology("t", topology).unwrap(), &import::hpcc_flows("f", flows, None).unwrap());
    assert_eq!(
        flows.iter().map(|flow| flow.start).collect::<Vec<_>>(),
        [Span::from_us(10), Span::from_us(25)]
    );
    assert!(
        graph.links.iter().all(|link| link.rate == Rate::from_gbps(100) && link.delay == Span::from_us(1))
    );
    let tiers = "Nodes 16\nTiers 2\nPodsize 16\n\nTier 0\nDownlink_speed_Gbps 100\nRadix_Down 4\nRadix_Up 4\n\
                 Queue_Up 100000\nQueue_Down 100000\nDownlink_Latency_ns 500\n\nTier 1\nDownlink_speed_Gbps 100\n\
                 Radix_Down 4\nQueue_Down 100000\nDownlink_Latency_ns 500\n";
    let found = import::htsim_topology("t", tiers).unwrap();
    assert_eq!(found.summary, "16 hosts, 8 switches, 32 links");
    assert!(found.notes[0].starts_with("Queue_Up and Queue_Down are left out"), "{:?}", found.notes);
    assert!(found.notes[0].ends_with("here to 100000 bytes"), "{:?}", found.notes);
    let other =
        import::htsim_topology("t", &tiers.replace("Radix_Up 4", "Radix_Up 8")).unwrap_err().to_string();
    assert!(other.contains("Radix_Up 8 in tier 0, and its switches have 4 links upwards"), "{other}");
}

#[test]
fn errors_point_at_the_word() {
    let cases: &[(Reader, &str, &str, &str, &str)] = &[
        (import::hpcc_topology, HPCC_TOPOLOGY, "6 2 5", "6 2 6", "`words` is no number of a node"),
        (
            import::hpcc_topology,
            HPCC_TOPOLOGY,
            "0 1 400Gbps 2000ns 0\n\nwords that nobody reads\n",
            "",
            "after 4 of 5 links",
        ),
        (import::hpcc_topology, HPCC_TOPOLOGY, "6 2 5", "6 2", "2 words"),
        (import::hpcc_topology, HPCC_TOPOLOGY, "6 2 5", "4000000000 2 5", "4000000000 nodes"),
        (import::hpcc_topology, HPCC_TOPOLOGY, "\n0 1\n", "\n0 9\n", "switch 9 of 6 nodes"),
        (import::hpcc_topology, HPCC_TOPOLOGY, "3 0 100Gbps", "2 0 100Gbps", "host 2 has a second link"),
        (import::hpcc_topology, HPCC_TOPOLOGY, "3 0 100Gbps", "3 8 100Gbps", "node 8 of 6"),
        (import::hpcc_topology, HPCC_TOPOLOGY, "400Gbps", "400Gb", "400Gb"),
        (ALONE, HPCC_FLOWS, "2\n", "9\n", "2 words"),
        (ALONE, HPCC_FLOWS, "4 3 1", "4 4 1", "from a host to itself"),
        (ALONE, HPCC_FLOWS, "2.000000001", "two", "`two` is no time"),
        (ALONE, HPCC_FLOWS, "100 1 0.5", "100 0 0.5", "without bytes"),
        (MATRIX, HTSIM_CONNECTIONS, "Connections 2", "Connections 3", "`Connections` says 3"),
        (MATRIX, HTSIM_CONNECTIONS, "0->7", "0->8", "node 8 of 8"),
        (MATRIX, HTSIM_CONNECTIONS, "start 0 ", "trigger 4 ", "there is no trigger 4"),
        (MATRIX, HTSIM_CONNECTIONS, "start 0 ", "start 0 trigger 4 ", "a `trigger` beside a `start`"),
        (MATRIX, HTSIM_CONNECTIONS, "start 0 ", "", "no `start`"),
        (MATRIX, HTSIM_CONNECTIONS, "size 9000", "size", "`size` without a value"),
        (MATRIX, HTSIM_CONNECTIONS, "size 9000", "size 0", "without an end"),
        (MATRIX, HTSIM_CONNECTIONS, "Triggers 0", "Failures 1", "0 failures, and `Failures` says 1"),
        (MATRIX, HTSIM_CONNECTIONS, "Triggers 0", "trigger id 1 twoshot", "a trigger without its form"),
        (MATRIX, HTSIM_CONNECTIONS, "Triggers 0", "trigger 1 oneshot", "no `id` with a value"),
        (MATRIX, HTSIM_CONNECTIONS, "Triggers 0", DEAD_LINK, "the links are not known"),
        (MATRIX, HTSIM_TRIGGERS, "oneshot", "barrier count 2", "trigger 3 is activated by 1 flow"),
        (MATRIX, HTSIM_TRIGGERS, "size 5 recv_done_trigger 3", "size 5", "trigger 3 is activated by 0 flows"),
        (MATRIX, HTSIM_TRIGGERS, "trigger 3 size 6", "start 0 size 6", "trigger 3 starts no flow"),
        (MATRIX, HTSIM_TRIGGERS, "trigger 3 size 6", "trigger 3 size 6 recv_done_trigger 3", "2 flows"),
        (MATRIX, HTSIM_TRIGGERS, "size 5", "size 5 recv_done_trigger 4", "there is no trigger 4"),
        (MATRIX, HTSIM_TRIGGERS, "Triggers 1", "Triggers 2", "1 trigger, and `Triggers` says 2"),
        (import::htsim_topology, HTSIM_TOPOLOGY, "Radix_Down 2", "Radix_Dwn 2", "did you mean `radix_down`?"),
        (import::htsim_topology, HTSIM_TOPOLOGY, "Podsize 4", "Podsize 3", "8 by 3 is not whole"),
        (import::htsim_topology, HTSIM_TOPOLOGY, "Nodes 8", "Nodes eight", "`eight` is no whole number"),
        (import::htsim_topology, HTSIM_TOPOLOGY, "Tier 2\n", "Tier 3\n", "tier 3"),
        (import::htsim_topology, HTSIM_TOPOLOGY, "Bundle 2", "Bundle 999999999", "links between switches"),
        (
            import::htsim_topology,
            HTSIM_TOPOLOGY,
            "Downlink_Latency_ns 500",
            "",
            "no `downlink_latency_ns` in tier 1",
        ),
        (import::htsim_topology, HTSIM_TOPOLOGY, "Tiers 3", "Tiers 4", "4 tiers"),
    ];
    for (read, text, from, to, said) in cases {
        assert!(text.contains(from), "{from}");
        let error = read("file.txt", &text.replacen(from, to, 1)).expect_err(said).to_string();
        assert!(error.contains(said), "{said}: {error}");
        assert!(error.contains("file.txt:") && error.contains("= allowed: "), "{error}");
    }
}

#[test]
fn no_text_panics() {
    for end in 0..HPCC_CONFIG.len() {
        let read = HpccConfig::read("cut.txt", &HPCC_CONFIG[..end]);
        let _ = read.and_then(|config| config.scenario(("t.txt", HPCC_TOPOLOGY), ("f.txt", HPCC_FLOWS)));
    }
    let readers: [Reader; 4] = [import::hpcc_topology, ALONE, MATRIX, import::htsim_topology];
    for text in [HPCC_TOPOLOGY, HPCC_FLOWS, HTSIM_CONNECTIONS, HTSIM_TRIGGERS, HTSIM_TOPOLOGY] {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let _ = HpccConfig::read("cut.txt", &text[..end]);
            for reader in readers {
                let _ = reader("cut.txt", &text[..end]);
                let _ = reader("cut.txt", &text[end..]);
            }
        }
    }
}
