//! Items that grow to the largest size, and beyond it, in all three protocols.

use plimsoll_chronos_memcached::MemcachedSettings;

use crate::differential::binary::{compare_binary, extras, packet};
use crate::differential::conversation::compare;

const HALF: usize = 600_000;

fn store(command: &str, bytes: usize) -> Vec<u8> {
    [format!("{command}\r\n").as_bytes(), &vec![b'x'; bytes], b"\r\n"].concat()
}

#[test]
fn an_item_grows_to_the_largest_size_and_no_further() {
    let set = store(&format!("set a 5 0 {HALF}"), HALF);
    let append = store(&format!("append a 0 0 {HALF}"), HALF);
    let prepend = store(&format!("prepend a 0 0 {HALF}"), HALF);
    let quiet = store(&format!("append a 0 0 {HALF} noreply"), HALF);
    let meta_append = store(&format!("ms a {HALF} MA c k O1"), HALF);
    let meta_prepend = store(&format!("ms a {HALF} MP q"), HALF);
    // The largest item of a key of one byte: flags take four bytes of it.
    let missing = (1 << 20) - HALF - 48 - 8 - 1 - 1 - 2;
    let with_flags = missing - 4;
    let fits = store(&format!("append a 0 0 {with_flags}"), with_flags);
    let set_without = store(&format!("set b 0 0 {HALF}"), HALF);
    let fits_without = store(&format!("prepend b 0 0 {missing}"), missing);
    let size: &[u8] = b"mg a s\r\nmg b s\r\n";
    compare(
        &[],
        &MemcachedSettings::default(),
        &[
            ("append", &[&set, &append, size, &prepend, size, &quiet, size]),
            ("meta", &[&set, &meta_append, size, &meta_prepend, size]),
            ("the last byte", &[&set, &fits, size, b"append a 0 0 1\r\nx\r\n", size]),
            ("without flags", &[&set_without, &fits_without, size, b"ms b 1 MA\r\nx\r\n", size]),
        ],
    );
}

#[test]
fn an_item_grows_no_further_in_the_binary_protocol() {
    let piece = vec![b'x'; HALF];
    let [set, get] = [packet(1, b"a", &extras(5, 0), &piece, 0), packet(0, b"a", b"", b"", 0)];
    let grow = [0x0e, 0x0f, 0x19, 0x1a].map(|opcode| packet(opcode, b"a", b"", &piece, 0));
    let mut steps = vec![set];
    steps.extend(grow);
    steps.push(packet(0x0e, b"a", b"", &piece, 12_345));
    steps.push(get);
    compare_binary(&[], &MemcachedSettings::default(), &steps);
}
