//! Every number of a command out of its range, empty, or missing: the error's words are memcached's.

use plimsoll_chronos_memcached::MemcachedSettings;

use crate::common::{Ours, Theirs, ask, have_memcached, same};

const NUMBERS: [&str; 22] = [
    "",
    " ",
    "x",
    "1x",
    "0x10",
    "1.5",
    "+1",
    "-1",
    "0",
    "1",
    "2147483647",
    "2147483648",
    "-2147483648",
    "-2147483649",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-18446744073709551615",
    "99999999999999999999",
];
/// Commands with `#` in the place of the number. A date of `flush_all` is left out, since it affects later commands.
const COMMANDS: [&str; 34] = [
    "set a # 0 1\r\nx",
    "set a 0 # 1\r\nx",
    "set a 0 0 #\r\nx",
    "set a 0 0 # noreply\r\nx",
    "add a 0 0 1 #\r\nx",
    "append a # 0 1\r\nx",
    "prepend a 0 # 1\r\nx",
    "replace a 0 0 #\r\nx",
    "cas a 0 0 1 #\r\nx",
    "cas a 0 0 1 # noreply\r\nx",
    "cas a # 0 1 1\r\nx",
    "incr a #",
    "decr a #",
    "incr a # noreply",
    "touch a #",
    "touch a # noreply",
    "gat # a",
    "delete a #",
    "delete a # noreply",
    "get #",
    "mg #",
    "ms #",
    "ms a #\r\nx",
    "md #",
    "ma #",
    "me #",
    "stats #",
    "stats detail #",
    "stats cachedump # 1",
    "stats cachedump 1 #",
    "slabs automove #",
    "lru_crawler sleep #",
    "lru_crawler tocrawl #",
    "shutdown #",
];
const FLAGS: &str = "CTFNRJDEMOIXSqkvstbhlfcu";

#[test]
fn numbers_out_of_range() {
    if !have_memcached() {
        return;
    }
    let meta = |command: &str| -> Vec<String> {
        let end = if command.starts_with("ms") { "\r\nx" } else { "" };
        FLAGS.chars().map(|flag| format!("{command} {flag}#{end}")).collect()
    };
    let commands: Vec<String> = COMMANDS
        .iter()
        .map(|&command| command.to_owned())
        .chain(["mg a", "ms a 1", "md a", "ma a", "me a"].into_iter().flat_map(meta))
        .collect();
    let theirs = Theirs::start(&["-o", "no_lru_maintainer"]);
    let mut ours = Ours::new(MemcachedSettings::default(), 1);
    let (mut stream, mut wrong) = (theirs.connect(), Vec::new());
    for command in &commands {
        for number in NUMBERS {
            // Another test covers `stats` without a word.
            if command.starts_with("stats #") && number.trim().is_empty() {
                continue;
            }
            let command = command.replace('#', number);
            let said = format!("set a 0 0 1\r\n5\r\n{command}\r\n").into_bytes();
            let expected = ask(&mut stream, &said, b"mn\r\n", b"MN\r\n");
            let got = ours.send(&[&said[..], b"mn\r\n"].concat());
            let got = got.strip_suffix(b"MN\r\n").unwrap_or(&got);
            // The debugging line of an item is only checked to be there.
            let is_debug = |answer: &[u8]| command.starts_with("me") && answer.starts_with(b"STORED\r\nME ");
            let is_same = same(got, &expected, true) || (is_debug(got) && is_debug(&expected));
            if !is_same {
                let shown = [got, &expected].map(|answer| answer.escape_ascii().to_string());
                wrong.push(format!("{command:?}\n  ours   {}\n  theirs {}", shown[0], shown[1]));
            }
        }
    }
    assert!(wrong.is_empty(), "{} answers differ\n{}", wrong.len(), wrong.join("\n"));
}
