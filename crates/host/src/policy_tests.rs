use super::*;

const QJUMP: &str = "version = 1\n[qjump]\ndevice = 'eth0'\nhosts = 12\nrate = '10Gbps'\n";

fn error(text: &str) -> String {
    Policy::parse(text, "rack").expect_err("it is wrong").to_string()
}

#[test]
fn a_policy_is_named_by_its_file_unless_it_says_so() {
    let named = |text: &str, stem| Policy::parse(text, stem).map(|policy| policy.name().to_string());
    assert_eq!(named(QJUMP, "rack"), Ok("rack".to_owned()));
    assert_eq!(named(&format!("name = 'other'\n{QJUMP}"), "rack"), Ok("other".to_owned()));
    assert!(named(QJUMP, "My Rack").is_err());
}

#[test]
fn the_epoch_is_that_of_the_formula() {
    let policy = Policy::parse(QJUMP, "rack").expect("it is right");
    let levels = policy.qjump.expect("it has one").levels().expect("in range");
    // 2 n P / R + eps = 2 x 12 x 256 B / 10 Gb/s + 4 us.
    assert_eq!(levels.epoch, Span::from_ps(8_915_200));
}

#[test]
fn an_error_says_where_what_and_what_is_allowed() {
    let with = |rest: &str| format!("{QJUMP}{rest}");
    for (text, parts) in [
        ("version = 2\n[qjump]\ndevice='a'\nhosts=1\nrate='1bps'".to_owned(), ["version = 2", "expected 1"]),
        ("version = 1\n".to_owned(), ["is empty", "[qjump]"]),
        (QJUMP.replace("device", "devcie"), ["line 3", "did you mean `device`?"]),
        (QJUMP.replace("eth0", "../etc"), ["line 3", "not a valid network device name"]),
        (QJUMP.replace("eth0", "-all"), ["line 3", "a letter or digit first"]),
        (QJUMP.replace("12", "0"), ["qjump.hosts = 0", "1 or more"]),
        (QJUMP.replace("10Gbps", "0bps"), ["qjump.rate = 0bps", "more than 0bps"]),
        (with("vlan = 3\n"), ["qjump.vlan = 3", "tag = \"pcp\""]),
        (with("tag = 'pcp'\nvlan = 4095\n"), ["qjump.vlan = 4095", "0 to 4094"]),
        (with("[[qjump.assign]]\nlevel = 8\nport = 1\n"), ["qjump.assign[0].level = 8", "0 to 7"]),
        (with("[[qjump.assign]]\nlevel = 7\n"), ["qjump.assign[0]", "exactly one of"]),
        (with("[[qjump.guest]]\naddress = '52:54:00:12:34'\n"), ["52:54:00:12:34", "six pairs"]),
        (with("[[qjump.guest]]\naddress = '01:54:00:12:34:56'\n"), ["line 7", "no group address"]),
        (
            with("[[qjump.guest]]\naddress = '52:54:00:12:34:56'\nlevel = 8\n"),
            ["qjump.guest[0].level = 8", "0 to 7"],
        ),
        (
            with(&"[[qjump.guest]]\naddress = '52:54:00:12:34:ab'\n".repeat(2).replacen("ab", "AB", 1)),
            ["qjump.guest[1].address", "one entry for each address"],
        ),
        (
            with(
                &(0..9)
                    .map(|n| format!("[[qjump.guest]]\naddress = '52:54:00:12:34:0{n}'\n"))
                    .collect::<String>(),
            ),
            ["qjump.guest = 9 guests", "at most 8"],
        ),
        (with("[[qjump.assign]]\nlevel = 7\nport = 0\n"), ["qjump.assign[0].port", "1 to 65535"]),
        (with("[[qjump.assign]]\nlevel = 7\nunit = 'ssh'\n"), ["line 8", "ends with .service"]),
        (with("[[qjump.assign]]\nlevel = 7\ncgroup = '/a/../b'\n"), ["line 8", "not a valid cgroup path"]),
        (
            with("[[qjump.assign]]\nlevel = 7\nport = 1\n[[qjump.assign]]\nlevel = 6\nport = 1\n"),
            ["qjump.assign[1] = port 1", "one level for each"],
        ),
        (
            with("[[phantom_queue]]\ndevice = 'a'\nrate = '1Gbps'\ndrain = 2.0\n"),
            ["phantom_queue[0].drain = 2", "at most 1"],
        ),
        (with("[dctcp]\n"), ["dctcp.destinations", "at least one network"]),
        (
            with("[dctcp]\ndestinations = ['10.0.0.0/8', 'fd00::/8', '10.0.0.0/8']\n"),
            ["dctcp.destinations[2] = 10.0.0.0/8", "each network once"],
        ),
        (with("[dctcp]\ndestinations = ['10.0.0.1/8']\n"), ["line 7", "no bits beyond"]),
        (with("[pacer]\ndevice = 'a'\nrate = '0bps'\n"), ["pacer.rate = 0bps", "more than 0bps"]),
        (with("[pacer]\ndevice = 'a'\nrate = '1Gbps'\neta = 0.0005\n"), ["pacer.eta = 0.0005", "0.001 to 1"]),
        (with("[pacer]\ndevice = 'a'\nrate = '1Gbps'\ndeparture = 'tfb'\n"), ["tfb", "`edt` or `tbf`"]),
        (with("[pacer]\ndevice = 'a'\nrate = '1Gbps'\nmin_rate = '1bps'\n"), ["pacer.min_rate", "1Kbps"]),
        (
            with("[pacer]\ndevice = 'a'\nrate = '1Gbps'\nbukket = '1KB'\n"),
            ["line 9", "did you mean `bucket`?"],
        ),
    ] {
        let said = error(&text);
        for part in parts {
            assert!(said.contains(part), "{part:?} is not in {said:?}");
        }
    }
}

/// The keys are the same as in a scenario; the spelling with hyphens gives the same policy, and using both is an error.
#[test]
fn keys_may_have_hyphens_as_before() {
    let now = format!(
        "{QJUMP}[[phantom_queue]]\ndevice = 'a'\nrate = '1Gbps'\n[pacer]\ndevice = 'a'\nrate = '1Gbps'\n\
         association_probability = 0.5\nassociation_timeout = '3ms'\nmin_rate = '2Mbps'\n",
    );
    let before = now
        .replace("phantom_queue", "phantom-queue")
        .replace("association_", "association-")
        .replace("min_rate", "min-rate");
    assert_ne!(now, before);
    let read = |text: &str| Policy::parse(text, "hull").expect("it is a policy");
    assert_eq!(read(&now), read(&before));
    let written = serde_json::to_string(&read(&before)).expect("a policy can be written");
    assert!(written.contains("\"phantom_queue\"") && written.contains("association_timeout"), "{written}");
    let both = now.replace("min_rate = '2Mbps'\n", "min_rate = '2Mbps'\nmin-rate = '2Mbps'\n");
    assert!(error(&both).contains("duplicate"), "{}", error(&both));
}

/// A file without end is rejected, and fills no memory.
#[test]
fn a_policy_is_short() {
    let said = Policy::read(Path::new("/dev/zero")).expect_err("it does not end").to_string();
    assert_eq!(said, "/dev/zero: it is no regular file");
}
