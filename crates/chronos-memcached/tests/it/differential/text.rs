//! Compares replies of the text protocol with memcached's.

use plimsoll_chronos_memcached::{MemcachedSettings, Protocol};

use crate::differential::conversation::{LONG, Steps, compare, with};

#[test]
fn text_commands() {
    let key250 = [b'k'; 250];
    let cases: &[(&str, Steps<'_>)] = &[
        ("nothing", &[b"\r\n"]),
        ("blank", &[b"   \r\n"]),
        ("certificates without TLS", &[b"refresh_certs\r\n", b"refresh_certs now\r\n"]),
        ("one letter", &[b"g\r\n"]),
        ("unknown", &[b"bogus\r\n", b"GET a\r\n"]),
        ("bare newline", &[b"version\n", b"get a\n"]),
        (
            "store and fetch",
            &[b"set a 5 0 3\r\nabc\r\n", b"get a\r\n", b"gets a\r\n", b"get a b a\r\n", b"gets b a c\r\n"],
        ),
        ("empty value", &[b"set a 0 0 0\r\n\r\n", b"get a\r\n"]),
        ("spaces", &[b"  set  a  1  0  1  \r\nx\r\n", b"get  a  \r\n", b"  get a  b \r\n", b"gets   a\r\n"]),
        ("noreply", &[b"set a 0 0 1 noreply\r\nx\r\n", b"get a\r\n", b"delete a noreply\r\nget a\r\n"]),
        ("not noreply", &[b"set a 0 0 1 norepl\r\nx\r\n", b"get a\r\n"]),
        (
            "store words",
            &[b"set\r\n", b"set a\r\n", b"set a 0\r\n", b"set a 0 0\r\n", b"set a 0 0 1 2 3 4\r\n"],
        ),
        (
            "bad numbers",
            &[
                b"set a x 0 1\r\n",
                b"set a 0 x 1\r\n",
                b"set a 0 0 x\r\n",
                b"set a 0 0 -1\r\n",
                b"set a -1 0 1\r\nx\r\n",
            ],
        ),
        (
            "flags beyond 32 bits",
            &[
                b"set a 4294967295 0 1\r\nx\r\n",
                b"get a\r\n",
                b"set a 4294967296 0 1\r\nx\r\n",
                b"get a\r\n",
                b"set a 18446744073709551616 0 1\r\n",
            ],
        ),
        (
            "expiry beyond 32 bits",
            &[
                b"set a 0 4294967396 1\r\nx\r\n",
                b"mg a t\r\n",
                b"set a 0 2147483648 1\r\nx\r\n",
                b"get a\r\n",
                b"set a 0 0 1\r\nx\r\n",
                b"touch a -2147483649\r\n",
                b"gat 4294967296 a\r\n",
                b"ms a 1 T99999999999\r\nx\r\n",
                b"mg a v\r\n",
                b"ms a 4294967297\r\nx\r\n",
                b"touch a 9223372036854775808\r\n",
                b"mg a v b F\r\n",
                b"mg a v F b\r\n",
                b"mg a v F T1x\r\n",
                b"mg a v T1x F\r\n",
            ],
        ),
        ("bad numbers, noreply", &[b"set a x 0 1 noreply\r\n", b"get a\r\n"]),
        ("huge length", &[b"set a 0 0 2147483647\r\n", b"set a 0 0 2147483648\r\n", b"get a\r\n"]),
        ("bad chunk", &[b"set a 0 0 3\r\nabcd\r\n", b"get a\r\n"]),
        ("bad chunk, short", &[b"set a 0 0 3\r\na\r\n\r\n", b"get a\r\n"]),
        ("bad chunk, noreply", &[b"set a 0 0 3 noreply\r\nabcde\r\n", b"get a\r\n"]),
        ("value with newlines", &[b"set a 0 0 6\r\na\r\nb\r\n\r\n", b"get a\r\n"]),
        (
            "long key",
            &[
                &with(&[b"set ", LONG, b" 0 0 1\r\n"]),
                b"version\r\n",
                &with(&[b"get ", LONG, b"\r\n"]),
                &with(&[b"get a ", LONG, b"\r\n"]),
                &with(&[b"gets ", LONG, b" a\r\n"]),
                &with(&[b"delete ", LONG, b"\r\n"]),
                &with(&[b"incr ", LONG, b" 1\r\n"]),
                &with(&[b"touch ", LONG, b" 1\r\n"]),
                &with(&[b"gat 0 ", LONG, b"\r\n"]),
            ],
        ),
        (
            "longest key",
            &[&with(&[b"set ", &key250, b" 0 0 1\r\nx\r\n"]), &with(&[b"get ", &key250, b"\r\n"])],
        ),
        ("add", &[b"add a 0 0 1\r\nx\r\n", b"add a 0 0 1\r\ny\r\n", b"get a\r\n"]),
        (
            "replace",
            &[
                b"replace a 0 0 1\r\nx\r\n",
                b"set a 0 0 1\r\ny\r\n",
                b"replace a 3 0 2\r\nzz\r\n",
                b"gets a\r\n",
            ],
        ),
        (
            "append",
            &[
                b"append a 0 0 1\r\nx\r\n",
                b"set a 7 0 1\r\ny\r\n",
                b"append a 3 0 2\r\nzz\r\n",
                b"prepend a 3 0 2\r\nww\r\n",
                b"gets a\r\n",
            ],
        ),
        (
            "cas",
            &[
                b"cas a 0 0 1 1\r\nx\r\n",
                b"set a 0 0 1\r\nx\r\n",
                b"gets a\r\n",
                b"cas a 0 0 1 1\r\ny\r\n",
                b"cas a 0 0 1 1\r\nz\r\n",
                b"gets a\r\n",
                b"cas a 0 0 1 0\r\nz\r\n",
                b"cas a 0 0 1\r\n",
                b"cas a 0 0 1 x\r\n",
                b"cas a 0 0 1 2 noreply\r\nq\r\n",
                b"gets a\r\n",
            ],
        ),
        (
            "incr",
            &[
                b"incr a 1\r\n",
                b"set a 3 0 2\r\n10\r\n",
                b"incr a 5\r\n",
                b"gets a\r\n",
                b"incr a 100\r\n",
                b"gets a\r\n",
                b"incr a 18446744073709551615\r\n",
                b"gets a\r\n",
            ],
        ),
        (
            "decr",
            &[
                b"decr a 1\r\n",
                b"set a 3 0 2\r\n10\r\n",
                b"decr a 5\r\n",
                b"gets a\r\n",
                b"decr a 100\r\n",
                b"gets a\r\n",
            ],
        ),
        (
            "arithmetic errors",
            &[
                b"set a 0 0 3\r\nabc\r\n",
                b"incr a 1\r\n",
                b"incr a x\r\n",
                b"incr a -1\r\n",
                b"incr a\r\n",
                b"incr a 1 2 3\r\n",
                b"incr a 1 noreply\r\n",
                b"decr b 1 noreply\r\n",
                b"incr b 1 x\r\n",
            ],
        ),
        (
            "numbers with blanks",
            &[
                b"set a 0 0 4\r\n12  \r\n",
                b"incr a 1\r\n",
                b"get a\r\n",
                b"set b 0 0 4\r\n 12x\r\n",
                b"incr b 1\r\n",
                b"set c 0 0 2\r\n-1\r\n",
                b"incr c 1\r\n",
                b"set d 0 0 0\r\n\r\n",
                b"incr d 1\r\n",
                b"set e 0 0 21\r\n184467440737095516150\r\n",
                b"incr e 1\r\n",
                b"set f 0 0 3\r\n 12\r\n",
                b"incr f 1\r\n",
                b"get f\r\n",
            ],
        ),
        (
            "touch",
            &[
                b"touch a 10\r\n",
                b"set a 0 0 1\r\nx\r\n",
                b"touch a 10\r\n",
                b"mg a t v\r\n",
                b"touch a x\r\n",
                b"touch a\r\n",
                b"touch a 1 noreply\r\n",
                b"touch a -1\r\n",
                b"get a\r\n",
            ],
        ),
        (
            "gat",
            &[
                b"gat 10 a\r\n",
                b"set a 0 0 1\r\nx\r\n",
                b"gat 10 a\r\n",
                b"gats 10 a b a\r\n",
                b"mg a t\r\n",
                b"gat x a\r\n",
                b"gat\r\n",
                b"gat 10\r\n",
                b"gats 10\r\n",
                b"gat -1 a\r\n",
                b"get a\r\n",
            ],
        ),
        (
            "delete",
            &[
                b"delete a\r\n",
                b"set a 0 0 1\r\nx\r\n",
                b"delete a 0\r\n",
                b"delete a 1\r\n",
                b"delete a 0 noreply\r\n",
                b"delete\r\n",
                b"delete a b c\r\n",
                b"delete a noreply\r\n",
                b"delete a 0 0 0 0\r\n",
                b"delete a 5 noreply\r\n",
            ],
        ),
        (
            "expiry",
            &[
                b"set a 0 -1 1\r\nx\r\n",
                b"get a\r\n",
                b"set a 0 100 1\r\nx\r\n",
                b"get a\r\n",
                b"set a 0 1000000000 1\r\nx\r\n",
                b"get a\r\n",
                b"set a 0 2000000000 1\r\nx\r\n",
                b"mg a t\r\n",
                b"set a 0 2592000 1\r\nx\r\n",
                b"mg a t\r\n",
                b"set a 0 2592001 1\r\nx\r\n",
                b"get a\r\n",
            ],
        ),
        (
            "flush",
            &[
                b"set a 0 0 1\r\nx\r\n",
                b"flush_all\r\n",
                b"get a\r\n",
                b"set a 0 0 1\r\nx\r\n",
                b"gets a\r\n",
                b"flush_all 100\r\n",
                b"gets a\r\n",
                b"flush_all noreply\r\n",
                b"get a\r\n",
                b"flush_all x\r\n",
                b"flush_all 0 noreply\r\n",
                b"flush_all 1 2 3\r\n",
                b"flush_all -5\r\n",
                b"flush_all 1 2\r\n",
                b"set b 0 0 1\r\nx\r\n",
                b"gets b\r\n",
            ],
        ),
        (
            "verbosity",
            &[
                b"verbosity\r\n",
                b"verbosity 0\r\n",
                b"verbosity x\r\n",
                b"verbosity 0 noreply\r\n",
                b"verbosity 0 1 2\r\n",
            ],
        ),
        (
            "memory limit",
            &[
                b"cache_memlimit\r\n",
                b"cache_memlimit 64\r\n",
                b"cache_memlimit 1\r\n",
                b"cache_memlimit x\r\n",
                b"cache_memlimit 128 noreply\r\n",
                b"cache_memlimit 1000000001\r\n",
            ],
        ),
        ("version, quit", &[b"version\r\n", b"version x\r\n", b"version\r\nquit\r\nversion\r\n"]),
        ("quit with words", &[b"quit now\r\n"]),
        ("shutdown", &[b"shutdown\r\n"]),
        (
            "zero byte",
            &[
                b"get a\0b\r\n",
                b"set a 0 0 1\0\r\nx\r\n",
                b"get a\0b\r\n",
                b"get b\0 a\r\n",
                b"gets b a\0 a\r\n",
            ],
        ),
        ("return in a key", &[b"set a\rb 0 0 1\r\nx\r\n", b"get a\rb\r\n", b"get a\r\r\n"]),
        (
            "too large",
            &[
                b"set a 0 0 1\r\nx\r\n",
                &with(&[b"set a 0 0 1048577\r\n", &vec![b'x'; 1_048_577], b"\r\n"]),
                b"get a\r\n",
                &with(&[b"add a 0 0 1048400 noreply\r\n", &vec![b'x'; 1_048_400], b"\r\n"]),
                b"get b\r\n",
                b"set a 0 0 1\r\nx\r\n",
                &with(&[b"append a 0 0 2000000\r\n", &vec![b'x'; 2_000_000], b"\r\n"]),
                b"get a\r\n",
            ],
        ),
        (
            "just large enough",
            &[
                &with(&[b"set a 0 0 1048516\r\n", &vec![b'x'; 1_048_516], b"\r\n"]),
                &with(&[b"set a 0 0 1048517\r\n", &vec![b'x'; 1_048_517], b"\r\n"]),
            ],
        ),
        ("a key for every word", &[&with(&[b"get", &b" a".repeat(500), b"\r\n"])]),
        (
            "stats errors",
            &[
                b"stats bogus\r\n",
                b"stats detail\r\n",
                b"stats detail x\r\n",
                b"stats reset\r\n",
                b"stats sizes\r\n",
            ],
        ),
        (
            "detail",
            &[
                b"stats detail on\r\n",
                b"set a:1 0 0 1\r\nx\r\n",
                b"get a:1 a:2\r\n",
                b"delete a:1\r\n",
                b"get none\r\n",
                b"stats detail dump\r\n",
                b"stats detail off\r\n",
                b"get a:1\r\n",
                b"stats detail dump\r\n",
            ],
        ),
        ("old get", &[b"bget a\r\n"]),
        ("get without key", &[b"get\r\n", b"gets\r\n", b"get \r\n"]),
    ];
    compare(&[], &MemcachedSettings::default(), cases);
}

#[test]
fn without_cas_and_flush() {
    let settings = MemcachedSettings { cas: false, flush: false, ..MemcachedSettings::default() };
    let cases: &[(&str, Steps<'_>)] = &[
        (
            "flush is refused",
            &[b"set a 0 0 1\r\nx\r\n", b"flush_all\r\n", b"flush_all noreply\r\n", b"gets a\r\n"],
        ),
        (
            "cas",
            &[
                b"set a 0 0 1\r\nx\r\n",
                b"gets a\r\n",
                b"cas a 0 0 1 0\r\ny\r\n",
                b"cas a 0 0 1 1\r\ny\r\n",
                b"gets a\r\n",
                b"ms a 1 c\r\nx\r\n",
            ],
        ),
    ];
    compare(&["-C", "-F"], &settings, cases);
    compare(
        &["-C"],
        &MemcachedSettings { cas: false, ..MemcachedSettings::default() },
        &[(
            "flush",
            &[b"set a 0 0 1\r\nx\r\n", b"flush_all 100\r\n", b"gets a\r\n", b"set b 0 0 1\r\nx\r\n"],
        )],
    );
}

#[test]
fn protocol_that_is_fixed() {
    let cases: &[(&str, Steps<'_>)] = &[("binary bytes are text", &[b"\x80\x0b\r\n", b"version\r\n"])];
    compare(
        &["-B", "ascii"],
        &MemcachedSettings { protocol: Protocol::Text, ..MemcachedSettings::default() },
        cases,
    );
}
