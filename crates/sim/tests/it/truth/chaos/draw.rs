//! [`Case`]: a scenario drawn from a seed, and its promises.

use std::fmt::Write;

use plimsoll_units::{Stream, Streams};
use rand::Rng;

/// A random scenario, and the properties that hold for it.
pub struct Case {
    pub text: String,
    /// Nothing may be dropped: flow control everywhere, and no link dies.
    pub lossless: bool,
    /// Some link dies for a while.
    pub links_die: bool,
    /// Every fault ends, so every message arrives.
    pub ends_whole: bool,
    /// Flow control on paths that may go round in a circle.
    pub may_deadlock: bool,
}

/// A network: its table, the names of its links' ends, its hosts, and whether its paths go up and then down.
struct Net {
    table: String,
    links: Vec<(String, String)>,
    hosts: u32,
    up_down: bool,
}

struct Dice(Stream);

impl Dice {
    fn below(&mut self, count: u32) -> u32 {
        (self.0.next_u64() % u64::from(count)) as u32
    }
    fn between(&mut self, least: u32, most: u32) -> u32 {
        least + self.below(most - least + 1)
    }
    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u32) as usize]
    }
    /// Returns true with a probability of `1 / count`.
    fn once_in(&mut self, count: u32) -> bool {
        self.below(count) == 0
    }
    fn rate(&mut self) -> &'static str {
        self.pick(&["1Gbps", "10Gbps", "3Gbps"])
    }
    fn delay(&mut self) -> &'static str {
        self.pick(&["0s", "1us", "5us", "37ns"])
    }
}

impl Case {
    pub fn draw(seed: u64) -> Case {
        let mut dice = Dice(Streams::new(seed).stream("chaos"));
        let net = network(&mut dice);
        let pauses = dice.once_in(3);
        let marking = marking(&mut dice);
        let queue = queue(&mut dice, pauses);
        let (nic, nic_drops, host) = host(&mut dice);
        let (faults, links_die, faults_end) = faults(&mut dice, &net);
        let paths = dice.pick(&[
            "",
            "",
            "symmetric = true\n",
            "spray = {}\n",
            "spray = { by = 'round-robin' }\n",
            "flowlet = { gap = '20us', entries = 16 }\n",
            "adaptive = {}\n",
            "adaptive = { thresholds = ['2KB'] }\n",
        ]);
        let converges = dice.pick(&["0s", "10us", "200us", "1ms"]);
        let drops_early = marking.contains("red") || queue.contains("pfabric");
        let transport = transport(&mut dice);
        let workloads = workloads(&mut dice, net.hosts);
        // Raw packets wait for no room.
        let nic_drops = nic_drops || (nic.contains("buffer") && workloads.contains("'packets'"));
        let (delay, topology) = (dice.delay(), &net.table);
        let lossless = pauses && !(links_die || drops_early || nic_drops);
        // A watchdog drops packets, or sends them into full buffers.
        let action = ["drop", "forward"][seed as usize % 2];
        let watchdog =
            format!(", watchdog = {{ detection = '50us', restoration = '20us', action = '{action}' }}");
        let queue = match lossless {
            true => queue,
            false => queue
                .replace("lossless = { memory = '8MB'", &format!("lossless = {{ memory = '8MB'{watchdog}")),
        };
        let text = format!(
            "version = 1\ntitle = 'chaos {seed}'\n[run]\nseed = {seed}\nduration = '20ms'\ndrain = '10s'\n\
             [paths]\nconvergence_delay = '{converges}'\n{paths}\
             [topology]\n{}\n[port.host]\n{nic}\n[port.switch]\n{queue}{marking}[host]\n{host}\n\
             [transport]\n{transport}{workloads}{faults}\
             [observe]\ngoodput_every = '500us'\nqueue.client = {{ port = 'client', every = '50us' }}\n",
            topology.replace("DELAY", delay)
        );
        Case {
            lossless,
            links_die,
            ends_whole: faults_end,
            may_deadlock: pauses && (!net.up_down || links_die),
            text,
        }
    }
}

fn network(dice: &mut Dice) -> Net {
    let (rate, fabric) = (dice.rate(), dice.rate());
    let mut links: Vec<(String, String)> = Vec::new();
    let mut link = |a: String, b: String| links.push((a, b));
    let mut up_down = true;
    let (table, hosts) = match dice.below(6) {
        0 => {
            let hosts = dice.between(3, 8);
            (0..hosts).for_each(|h| link(format!("h{h}"), "tor0".to_owned()));
            (format!("kind = 'rack'\nhosts = {hosts}\nrate = '{rate}'\ndelay = 'DELAY'"), hosts)
        }
        1 => {
            link("dumbbell0".to_owned(), "dumbbell1".to_owned());
            (0..3).for_each(|h| link(format!("h{h}"), "dumbbell0".to_owned()));
            let table = format!(
                "kind = 'dumbbell'\nleft = 3\nright = 3\nrate = '{rate}'\ndelay = 'DELAY'\nbottleneck_rate = '{fabric}'"
            );
            (table, 6)
        }
        2 => {
            let (leaves, spines) = (dice.between(2, 4), dice.between(1, 3));
            for leaf in 0..leaves {
                (0..spines).for_each(|spine| link(format!("leaf{leaf}"), format!("spine{spine}")));
                link(format!("leaf{leaf}"), format!("h{}", leaf * 2));
            }
            let table = format!(
                "kind = 'leaf-spine'\nleaves = {leaves}\nspines = {spines}\nhosts_per_leaf = 2\nrate = '{rate}'\n\
                 fabric_rate = '{fabric}'\ndelay = 'DELAY'"
            );
            (table, leaves * 2)
        }
        3 => {
            let (pods, edges, aggregations, cores) =
                (dice.between(2, 3), dice.between(1, 2), dice.between(1, 3), dice.between(1, 2));
            for pod in 0..pods {
                for aggregation in (0..aggregations).map(|a| pod * aggregations + a) {
                    let edges = (0..edges).map(|edge| format!("edge{}", pod * edges + edge));
                    edges.for_each(|edge| link(edge, format!("aggregation{aggregation}")));
                    let cores = (0..cores).map(|core| aggregation % aggregations * cores + core);
                    cores.for_each(|core| link(format!("aggregation{aggregation}"), format!("core{core}")));
                }
            }
            let table = format!(
                "kind = 'clos'\npods = {pods}\nedges = {edges}\naggregations = {aggregations}\ncores = {cores}\n\
                 hosts_per_edge = 2\nrate = '{rate}'\ndelay = 'DELAY'"
            );
            (table, pods * edges * 2)
        }
        4 => {
            for pod in 0..4 {
                (0..4).for_each(|l| {
                    link(format!("edge{}", pod * 2 + l / 2), format!("aggregation{}", pod * 2 + l % 2))
                });
            }
            (0..8).for_each(|l| {
                link(format!("aggregation{}", l / 2), format!("core{}", l / 2 % 2 * 2 + l % 2))
            });
            (format!("kind = 'fat-tree'\nk = 4\nrate = '{rate}'\ndelay = 'DELAY'"), 16)
        }
        _ => {
            up_down = false;
            graph(dice, &mut link)
        }
    };
    Net { table, links, hosts, up_down }
}

/// A connected graph: a tree of switches and a few links more, some of them twice.
fn graph(dice: &mut Dice, link: &mut impl FnMut(String, String)) -> (String, u32) {
    let (switches, more) = (dice.between(2, 6), dice.between(0, 5));
    let hosts = dice.between(switches.max(3), 9);
    let mut text = String::new();
    let mut add = |dice: &mut Dice, a: String, b: String| {
        let (rate, delay) = (dice.rate(), dice.delay());
        let _ = write!(text, "[[link]]\nfrom = '{a}'\nto = '{b}'\nrate = '{rate}'\ndelay = '{delay}'\n");
        link(a, b);
    };
    for host in 0..hosts {
        add(dice, format!("h{host}"), format!("s{}", host % switches));
    }
    for switch in 1..switches {
        let other = dice.below(switch);
        add(dice, format!("s{switch}"), format!("s{other}"));
    }
    for _ in 0..more {
        let (a, b) = (dice.below(switches), dice.below(switches));
        if a != b {
            add(dice, format!("s{a}"), format!("s{b}"));
        }
    }
    let names =
        |kind: char, count: u32| (0..count).map(|n| format!("'{kind}{n}'")).collect::<Vec<_>>().join(", ");
    let (host_names, switch_names) = (names('h', hosts), names('s', switches));
    let table = format!(
        "kind = 'file'\npath = 'graph.toml'\n[files.'graph.toml']\ntext = \"\"\"\nhosts = [{host_names}]\n\
         switches = [{switch_names}]\n{text}\"\"\"\n"
    );
    (table, hosts)
}

fn marking(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        "",
        "",
        "ecn = { threshold = '10 packets' }\n",
        "ecn = { threshold = '4 packets', at = 'dequeue', compare = 'at-least' }\n",
        "red = { min = '6KB', max = '20KB', probability = 0.3, weight = 0.1, gentle = true }\n",
        "wred.priority = { '0..5' = { min = '3KB', max = '9KB', probability = 0.2, ecn = false }, '6' = {} }\n",
        "wred = { queue = 'port', priority = { '0..7' = { min = '9KB', max = '30KB', weight = 0.01 } } }\n",
        "phantom_queue = { drain = 0.9, threshold = '3KB' }\n",
    ])
}

fn queue(dice: &mut Dice, pauses: bool) -> String {
    let int = if dice.once_in(5) {
        dice.pick(&["int = {}\n", "int = { header = '42B', hop = '0B' }\n"])
    } else {
        ""
    };
    format!("{int}{}", discipline(dice, pauses))
}

fn discipline(dice: &mut Dice, pauses: bool) -> String {
    let order = dice.pick(&["fifo", "priorities"]);
    if pauses {
        let pfc = dice.pick(&[
            "{}",
            "{ scope = 'link' }",
            "{ xoff = '4KB', xon = '1KB' }",
            "{ xoff = '1B', xon = '0B' }",
            "{ response = '2us' }",
        ]);
        let lossless = dice.pick(&[
            "{ memory = '8MB', alpha = 0.002 }",
            "{ memory = '8MB', alpha = 0.01, reserve = '0B', resume_offset = '0B', response = '2us' }",
            "{ memory = '8MB', threshold = '2KB', reserve = '1KB' }",
            "{ memory = '8MB', alpha = 0.002, quanta = 6000 }",
        ]);
        let pauses = if dice.once_in(2) { format!("pfc = {pfc}") } else { format!("lossless = {lossless}") };
        let served = if dice.once_in(3) { classes(dice) } else { format!("order = '{order}'\n") };
        return format!("buffer = '600KB'\n{served}{pauses}\n");
    }
    if dice.once_in(4) {
        return format!("buffer = '60KB'\n{}", classes(dice));
    }
    if dice.once_in(5) {
        let trim = dice.pick(&[
            "{}",
            "{ service = '10:1', victim = 'coin-tail' }",
            "{ queue = '4 packets', bounce = true, victim = 'coin-tail' }",
            "{ header = '100B', priority = 5, queue = '800B', bounce = true }",
        ]);
        return format!("buffer = '15KB'\ncounts = 'waiting-and-in-service'\ntrim = {trim}\n");
    }
    dice.pick(&[
        "buffer = '20 packets'\norder = 'ORDER'\n",
        "buffer = '50KB'\ncounts = 'waiting-and-in-service'\norder = 'ORDER'\n",
        "buffer = 'unlimited'\norder = 'ORDER'\n",
        "buffer = '0 packets'\n",
        "pfabric = {}\n",
        "pfabric = { limit = '6KB', overflow = 'at-least', eviction = 'one' }\n",
        "shared_buffer = { total = '60KB' }\norder = 'ORDER'\n",
        "lossless = { memory = '2MB', priorities = '1', alpha = 0.02, reserve = '0B' }\norder = 'ORDER'\n",
    ])
    .replace("ORDER", order)
}

/// Queues by class without limits of their own.
fn classes(dice: &mut Dice) -> String {
    let scheduler = dice.pick(&["dwrr", "wfq"]);
    let classes = dice.pick(&[
        "'7' = {}, '0..6' = { weight = 2 }",
        "'6..7' = { weight = 3 }, '3..5' = { weight = 1, order = 'fair-per-flow' }",
        "'7' = { rate = '300Mbps', burst = '9KB' }, '4..6' = { weight = 7 }, '0' = { weight = 1 }",
    ]);
    format!("classes = {{ scheduler = '{scheduler}', priority = {{ {classes} }} }}\n")
}

/// The NIC's table, whether it may drop, and the host's table.
fn host(dice: &mut Dice) -> (&'static str, bool, String) {
    let backpressure = dice.once_in(3);
    let nic = if backpressure {
        dice.pick(&["buffer = '2 packets'", "buffer = '20KB'\norder = 'fair-per-flow'"])
    } else {
        dice.pick(&["", "", "order = 'fair-per-flow'", "order = 'priorities'", "buffer = '30 packets'"])
    };
    let may_drop = !backpressure && nic.contains("buffer");
    let pacer =
        dice.pick(&["", "", "pacer = { association_probability = 1.0 }\n", "pacer = { form = 'paper' }\n"]);
    let priorities = dice.pick(&[
        "",
        "",
        "priority_by_size = ['1KB', '10KB', '40KB']\nack_priority = 7\n",
        "priority_by_size = ['5KB']\nrank = 'priority'\n",
    ]);
    let host = format!("backpressure = {backpressure}\n{pacer}{priorities}");
    (nic, may_drop, host)
}

fn transport(dice: &mut Dice) -> String {
    let kind = dice.pick(&["tcp", "dctcp", "cubic"]);
    let recovery = dice.pick(&["reno", "newreno", "sack"]);
    let connections = dice.pick(&["long-lived", "per-message"]);
    let (min_rto, window) = (dice.pick(&["200us", "1ms", "10ms"]), dice.pick(&[1, 10, 60]));
    let (handshake, ecn) = (dice.once_in(2), dice.pick(&["on", "auto"]));
    format!(
        "kind = '{kind}'\nrecovery = '{recovery}'\nconnections = '{connections}'\nmin_rto = '{min_rto}'\n\
         initial_rto = '5ms'\nsyn_loss_rto = '5ms'\nmax_rto = '20ms'\ninitial_window = {window}\n\
         ack_delay = '100us'\nhandshake = {handshake}\necn = '{ecn}'\n"
    )
}

fn workloads(dice: &mut Dice, hosts: u32) -> String {
    let load = f64::from(dice.between(5, 80)) / 100.0;
    let kilobytes = dice.between(1, 60);
    let all = [
        format!(
            "[workload.rpc]\nkind = 'rpc'\nrequest = '100B'\nresponse = {{ kind = 'exponential', mean = '4KB' }}\n\
             load = {}\ncount = 40\nservice = {{ kind = 'exponential', mean = '3us' }}\n",
            load / 2.0
        ),
        format!("[workload.transfer]\nkind = 'transfer'\nsize = '100KB'\nload = {load}\ncount = 6\npick = 'random'\n"),
        format!("[workload.incast]\nkind = 'incast'\nsize = '{kilobytes}KB'\nevery = '300us'\nrounds = 5\n"),
        format!(
            "[workload.packets]\nkind = 'packets'\nfrom = ['h1', 'h2']\nto = 'client'\n\
             size = {{ kind = 'uniform', min = '64B', max = '1500B' }}\nload = {}\ncount = 200\n",
            load / 2.0
        ),
        format!(
            "[workload.all]\nkind = 'all-to-all'\nsize = {{ kind = 'cdf', cdf = 'homa-w2' }}\n\
             load = {load}\ncount = 80\n"
        ),
        "[workload.fan]\nkind = 'fan-out'\nrequest = '100B'\nresponse = '3000B'\nqueries_per_second = 1500.0\n\
         count = 15\nservice = '10us'\n"
            .to_owned(),
        format!("[workload.swap]\nkind = 'permutation'\nsize = '{kilobytes}KB'\nstart_within = '500us'\n"),
        format!(
            "[workload.shuffle]\nkind = 'shuffle'\nmappers = 'h0..h{last}'\nreducers = 'h0..h{last}'\nsize = '10KB'\n",
            last = hosts - 1
        ),
        "[workload.loop]\nkind = 'closed-loop'\nclients = 'h0..h1'\nservers = 'h2'\nresponse = '2KB'\noutstanding = 4\n\
         count = 40\n"
            .to_owned(),
    ];
    let mut chosen: Vec<u32> = (0..dice.between(1, 3)).map(|_| dice.below(all.len() as u32)).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen.into_iter().map(|number| all[number as usize].as_str()).collect()
}

/// Their tables, whether some link dies, and whether all end.
fn faults(dice: &mut Dice, net: &Net) -> (String, bool, bool) {
    let mut text = String::new();
    let (mut dies, mut end) = (false, true);
    let count = dice.pick(&[0, 0, 1, 2, 4]);
    let mut links: Vec<&(String, String)> = Vec::new();
    for _ in 0..count {
        let link = &net.links[dice.below(net.links.len() as u32) as usize];
        let turned = (link.1.clone(), link.0.clone());
        if !links.iter().any(|known| **known == *link || **known == turned) {
            links.push(link);
        }
    }
    for (from, to) in links {
        let at = dice.pick(&[0, 0, 30, 200, 1_000]) + dice.below(100);
        let _ = write!(text, "[[fault]]\nfrom = '{from}'\nto = '{to}'\nat = '{at}us'\n");
        let direction = dice.pick(&["both", "both", "forward", "backward"]);
        let _ = writeln!(text, "direction = '{direction}'");
        let dead = dice.once_in(2);
        text.push_str(if dead {
            "down = true\n"
        } else {
            dice.pick(&["rate = '300Mbps'\n", "rate = '900Mbps'\n"])
        });
        if dice.once_in(6) {
            end &= !dead;
        } else {
            let until = at + dice.pick(&[1, 20, 300, 3_000]);
            let _ = writeln!(text, "until = '{until}us'");
        }
        dies |= dead;
        // The next fault: the same link again, at once.
        if dice.once_in(4) && text.ends_with("us'\n") && !dead {
            let until = text.rsplit("until = '").next().and_then(|rest| rest.split("us'").next());
            let Some(until) = until.and_then(|until| until.parse::<u32>().ok()) else { continue };
            let _ = write!(
                text,
                "[[fault]]\nfrom = '{from}'\nto = '{to}'\nat = '{until}us'\nuntil = '{}us'\ndown = true\n",
                until + 50
            );
            dies = true;
        }
    }
    (text, dies, end)
}
