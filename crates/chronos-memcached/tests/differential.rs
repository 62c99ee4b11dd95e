//! The same bytes to memcached 1.6.18 and to this server: the answers must be the same.
//!
//! Stats are compared by name and value for the counters that a client can predict (`stats_count_the_same`).

mod common;

use std::collections::BTreeMap;

use common::{Ours, Theirs, ask, finish, have_memcached, same};
use plimsoll_chronos_memcached::{Credentials, Protocol, Settings};

/// A conversation: every step but the last is answered before the next is sent.
type Steps<'a> = &'a [&'a [u8]];

/// Runs conversations, each with a fresh server, and says which differ.
#[track_caller]
fn compare(options: &[&str], settings: &Settings, cases: &[(&str, Steps<'_>)]) {
    if !have_memcached() {
        return;
    }
    let mut wrong = Vec::new();
    for (name, steps) in cases {
        let theirs = Theirs::start(options);
        let mut ours = Ours::new(settings.clone(), 1);
        let mut stream = theirs.connect();
        let (last, first) = steps.split_last().expect("a step");
        let mut answers = Vec::new();
        for step in first {
            let expected = ask(&mut stream, step, b"mn\r\n", b"MN\r\n");
            let mut got = ours.send(step);
            let mark = ours.send(b"mn\r\n");
            if mark != b"MN\r\n" {
                got.extend_from_slice(&mark);
            }
            answers.push((*step, got, expected));
        }
        answers.push((last, ours.send(last), finish(stream, last)));
        for (step, got, expected) in answers {
            if !same(&got, &expected, true) {
                let shown =
                    |bytes: &[u8]| bytes.escape_ascii().to_string().chars().take(400).collect::<String>();
                wrong.push(format!(
                    "{name}: {}\n  ours   {}\n  theirs {}",
                    shown(step),
                    shown(&got),
                    shown(&expected)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} answers differ\n{}", wrong.len(), wrong.join("\n"));
}

const LONG: &[u8] = &[b'k'; 300];

fn with(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

#[test]
fn text_commands() {
    let key250 = [b'k'; 250];
    let cases: &[(&str, Steps<'_>)] = &[
        ("nothing", &[b"\r\n"]),
        ("blank", &[b"   \r\n"]),
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
    compare(&[], &Settings::default(), cases);
}

#[test]
fn meta_commands() {
    let cases: &[(&str, Steps<'_>)] = &[
        ("no-op", &[b"mx\r\n", b"mn\r\nmn x\r\n"]),
        (
            "get",
            &[
                b"mg a\r\n",
                b"mg a v\r\n",
                b"set a 5 0 3\r\nabc\r\n",
                b"mg a\r\n",
                b"mg a v\r\n",
                b"mg a s v f c t k O123\r\n",
                b"mg a k O123 q\r\n",
                b"mg b k O123 q\r\n",
                b"mg b k O123\r\n",
                b"mg a s\r\n",
            ],
        ),
        (
            "hit and age",
            &[b"set a 5 0 3\r\nabc\r\n", b"mg a h l t\r\n", b"mg a h u\r\n", b"mg a h\r\n", b"mg a u h\r\n"],
        ),
        (
            "errors",
            &[
                b"mg\r\n",
                b"mg a z\r\n",
                b"mg a v v\r\n",
                b"mg a Tx\r\n",
                b"mg a Nx\r\n",
                b"mg a Rx\r\n",
                b"ms\r\n",
                b"ms a\r\n",
                b"md\r\n",
                b"ma\r\n",
                b"me\r\n",
                b"ma a Mxx\r\n",
                b"ma a MX\r\n",
                b"ma a Dx\r\n",
                b"ma a Jx\r\n",
                b"md a Cx\r\n",
                b"md a z\r\n",
                b"mg a \x80\r\n",
                b"mg a F1\r\n",
                b"mg a Fx\r\n",
                b"mg a S1\r\n",
                b"mg a E1\r\n",
            ],
        ),
        (
            "long key",
            &[
                &with(&[b"mg ", LONG, b" v\r\n"]),
                &with(&[b"md ", LONG, b"\r\n"]),
                &with(&[b"ma ", LONG, b"\r\n"]),
                &with(&[b"me ", LONG, b"\r\n"]),
                &with(&[b"ms ", LONG, b" S1\r\n"]),
            ],
        ),
        (
            "many flags",
            &[
                b"mg a b c d e f g h i j k l m n o p q r s t u v w\r\n",
                b"md a b c d e f g h i j k l m n o p q r s t u v w\r\n",
                b"ma a b c d e f g h i j k l m n o p q r s t u v w\r\n",
            ],
        ),
        (
            "set",
            &[
                b"ms a 3\r\nabc\r\n",
                b"mg a v f t c\r\n",
                b"ms a 3 F7 T100 c k O9\r\nxyz\r\n",
                b"mg a v f t c\r\n",
                b"ms a 3 q\r\nqqq\r\n",
                b"mg a v\r\n",
                b"ms a S3\r\nabc\r\n",
            ],
        ),
        (
            "set errors",
            &[
                b"ms a x\r\n",
                b"ms a -1\r\n",
                b"ms a 3 z\r\nabc\r\n",
                b"ms a 3 MX\r\nabc\r\n",
                b"ms a 3 Mxx\r\nabc\r\n",
                b"ms a 3 Fx\r\nabc\r\n",
                b"ms a 3 Tx\r\nabc\r\n",
                b"ms a 3 v v\r\nabc\r\n",
                b"ms a 3 O123456789012345678901234567890123\r\nabc\r\n",
                b"mg a v\r\n",
                b"ms a 3\r\nabcd\r\n",
            ],
        ),
        (
            "set modes",
            &[
                b"ms a 1 MR\r\nx\r\n",
                b"ms a 1 MA\r\nx\r\n",
                b"ms a 1 MP\r\nx\r\n",
                b"ms a 1 ME\r\nx\r\n",
                b"ms a 1 ME\r\ny\r\n",
                b"ms a 1 MA\r\ny\r\n",
                b"ms a 1 MP\r\nw\r\n",
                b"mg a v\r\n",
                b"ms a 1 MR\r\nr\r\n",
                b"ms a 1 MS c\r\nr\r\n",
                b"mg a v\r\n",
                b"ms a 1 Ms\r\nl\r\n",
                b"ms b 1 Me\r\nl\r\n",
                b"ms a 1 ME q k\r\nl\r\n",
            ],
        ),
        (
            "set with cas",
            &[
                b"ms a 1 C1\r\nx\r\n",
                b"ms a 1 c\r\nx\r\n",
                b"ms a 1 C1 c\r\ny\r\n",
                b"ms a 1 C1 c k\r\nz\r\n",
                b"ms a 1 C99 MA\r\nz\r\n",
                b"ms a 1 C2 MA c\r\nz\r\n",
                b"ms a 1 C5 ME\r\nz\r\n",
                b"ms b 1 C5 ME\r\nz\r\n",
                b"ms c 1 C5 MR\r\nz\r\n",
                b"mg a v c\r\n",
                b"ms a 1 C0 c\r\nq\r\n",
            ],
        ),
        (
            "stale",
            &[
                b"ms a 1 c\r\nx\r\n",
                b"md a I T30 q\r\n",
                b"mg a v c t\r\n",
                b"mg a v c\r\n",
                b"ms a 1 I C1 c\r\ny\r\n",
                b"mg a v c t\r\n",
                b"ms a 1 C3 c\r\nz\r\n",
                b"mg a v c t\r\n",
                b"md a I O1 k\r\n",
                b"mg a v\r\n",
            ],
        ),
        (
            "vivify",
            &[
                b"mg a N30 v t\r\n",
                b"mg a N30 v t\r\n",
                b"mg a v c s k\r\n",
                b"ms a 1 T100\r\nx\r\n",
                b"mg a N30 v t R50\r\n",
                b"mg a R200 t\r\n",
                b"mg a R200 t\r\n",
                b"mg a T20 t R30\r\n",
                b"mg b N0 t f c O1\r\n",
                b"mg b N0 t\r\n",
            ],
        ),
        (
            "touch",
            &[
                b"mg a T30\r\n",
                b"set a 0 0 1\r\nx\r\n",
                b"mg a T30 t\r\n",
                b"mg a t T50\r\n",
                b"mg a t\r\n",
                b"mg a T-1\r\n",
                b"mg a\r\n",
            ],
        ),
        (
            "delete",
            &[
                b"md a\r\n",
                b"md a q\r\n",
                b"set a 0 0 1\r\nx\r\n",
                b"md a C99 O1 k\r\n",
                b"md a C1 O1 k\r\n",
                b"md a k O1\r\n",
                b"set a 0 0 1\r\nx\r\n",
                b"md a q\r\n",
                b"mg a\r\n",
                b"md a O123456789012345678901234567890123\r\n",
            ],
        ),
        (
            "arithmetic",
            &[
                b"ma a\r\n",
                b"ma a q\r\n",
                b"ma a N0 J13 v\r\n",
                b"ma a v\r\n",
                b"ma a D10 v t c\r\n",
                b"ma a MD D5 v\r\n",
                b"ma a Md D5 v\r\n",
                b"ma a M- D100 v k O1\r\n",
                b"ma a MI\r\n",
                b"ma a Mi\r\n",
                b"ma a M+ q v\r\n",
                b"ma a C99 v\r\n",
                b"ma a T30 t v\r\n",
                b"set b 0 0 1\r\nx\r\n",
                b"ma b\r\n",
                b"ma b q\r\n",
                b"ma c N30 t q\r\n",
                b"mg c v t\r\n",
                b"ma d N30 O1 k b\r\n",
            ],
        ),
        (
            "binary keys",
            &[
                b"ms Zm9v 3 b k\r\nabc\r\n",
                b"mg Zm9v b k v\r\n",
                b"mg foo k v\r\n",
                b"get foo\r\n",
                b"mg Zm9v k v\r\n",
                b"md Zm9v b k\r\n",
                b"mg AAEC b k N30\r\n",
                b"mg AAEC b k v\r\n",
                b"ma AwQF b k N0 v\r\n",
                b"ma AwQF b k v\r\n",
                b"mg !!!! b\r\n",
                b"mg Zm9 b v\r\n",
                b"mg Zg== b k\r\n",
                b"ms Zg== 1 b k c\r\nx\r\n",
                b"mg Zg== b k v\r\n",
                b"mg f k v\r\n",
            ],
        ),
        ("inspect", &[b"me a\r\n", b"me a b\r\n", b"me Zm9v b\r\n", b"me\r\n"]),
        ("too large", &[&with(&[b"ms a 2000000 T0\r\n", &vec![b'x'; 2_000_000], b"\r\n"]), b"mg a v\r\n"]),
        (
            "opaque",
            &[
                b"mg a O\r\n",
                b"mg a O12345678901234567890123456789012\r\n",
                b"mg a O1234567890123456789012345678901\r\n",
                b"ma a O12345678901234567890123456789012345\r\n",
            ],
        ),
        ("proxy flags", &[b"set a 0 0 1\r\nx\r\n", b"mg a L P v\r\n", b"mg a Lx Pfoo v\r\n"]),
    ];
    compare(&[], &Settings::default(), cases);
}

/// A binary request.
fn packet(opcode: u8, key: &[u8], extras: &[u8], value: &[u8], cas: u64) -> Vec<u8> {
    let mut packet = vec![0x80, opcode];
    packet.extend_from_slice(&(key.len() as u16).to_be_bytes());
    packet.extend_from_slice(&[extras.len() as u8, 0, 0, 0]);
    packet.extend_from_slice(&((extras.len() + key.len() + value.len()) as u32).to_be_bytes());
    packet.extend_from_slice(b"opaq");
    packet.extend_from_slice(&cas.to_be_bytes());
    for part in [extras, key, value] {
        packet.extend_from_slice(part);
    }
    packet
}

/// A set's extras.
fn extras(flags: u32, expiry: u32) -> Vec<u8> {
    [flags.to_be_bytes(), expiry.to_be_bytes()].concat()
}

/// The extras of arithmetic.
fn amount(delta: u64, initial: u64, expiry: u32) -> Vec<u8> {
    [&delta.to_be_bytes()[..], &initial.to_be_bytes(), &expiry.to_be_bytes()].concat()
}

const NOOP: u8 = 0x0a;

/// A no-op that ends a step, and its answer. Its opaque is its own: a step may be a no-op too, and the answer to that one
/// must not end the reading.
fn mark() -> (Vec<u8>, Vec<u8>) {
    let mut request = packet(NOOP, b"", b"", b"", 0);
    request[12..16].copy_from_slice(b"mark");
    let mut reply = request.clone();
    reply[0] = 0x81;
    (request, reply)
}

/// Every answer to `steps`, one after the other, of both.
fn binary_answers(options: &[&str], settings: &Settings, steps: &[Vec<u8>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let theirs = Theirs::start(options);
    let mut ours = Ours::new(settings.clone(), 1);
    let mut stream = theirs.connect();
    let (request, reply) = mark();
    let mut answers = Vec::new();
    for step in steps {
        // A connection that was closed is opened again.
        if ours.closed {
            ours.reconnect();
            stream = theirs.connect();
        }
        let mut got = ours.send(step);
        if !ours.closed {
            let mark = ours.send(&request);
            got.extend_from_slice(mark.strip_suffix(&reply[..]).unwrap_or(&mark));
        }
        answers.push((got, ask(&mut stream, step, &request, &reply)));
    }
    answers
}

#[track_caller]
fn compare_binary(options: &[&str], settings: &Settings, steps: &[Vec<u8>]) {
    if !have_memcached() {
        return;
    }
    let answers = binary_answers(options, settings, steps);
    let mut wrong = Vec::new();
    for (step, (got, expected)) in steps.iter().zip(&answers) {
        if got != expected {
            let shown = |bytes: &[u8]| bytes.escape_ascii().to_string().chars().take(400).collect::<String>();
            wrong.push(format!("{}\n  ours   {}\n  theirs {}", shown(step), shown(got), shown(expected)));
        }
    }
    assert!(wrong.is_empty(), "{} answers differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn binary_commands() {
    let set = |opcode, key: &[u8], value: &[u8], cas| packet(opcode, key, &extras(0xdead, 0), value, cas);
    let bare = |opcode, key: &[u8]| packet(opcode, key, b"", b"", 0);
    let mut steps = vec![bare(0x00, b"a"), bare(0x09, b"a"), bare(0x0c, b"a")];
    // Set, add, replace, each also quiet; with right and wrong cas values.
    for opcode in [0x01, 0x02, 0x03, 0x11, 0x12, 0x13, 0x0e, 0x0f, 0x19, 0x1a] {
        let append = matches!(opcode, 0x0e | 0x0f | 0x19 | 0x1a);
        for (key, cas) in [(&b"a"[..], 0), (b"a", 1), (b"a", 1 << 40), (b"new", 0), (b"other", 9)] {
            let extra = if append { Vec::new() } else { extras(opcode.into(), 0) };
            steps.push(packet(opcode, key, &extra, b"value", cas));
            steps.push(bare(0x0c, key));
        }
        steps.push(bare(0x04, b"new"));
    }
    for opcode in [0x00, 0x09, 0x0c, 0x04, 0x14, 0x04, 0x14] {
        steps.push(set(0x01, b"a", b"x", 0));
        steps.push(bare(opcode, b"a"));
        steps.push(bare(opcode, b"none"));
        steps.push(packet(opcode, b"a", b"", b"", 1 << 40));
    }
    for opcode in [0x05, 0x06, 0x15, 0x16] {
        steps.push(bare(0x04, b"n"));
        steps.push(packet(opcode, b"n", &amount(1, 2, u32::MAX), b"", 0));
        steps.push(packet(opcode, b"n", &amount(1, 20, 0), b"", 0));
        steps.push(packet(opcode, b"n", &amount(7, 20, 0), b"", 0));
        steps.push(packet(opcode, b"n", &amount(70, 20, 0), b"", 1 << 40));
        steps.push(bare(0x00, b"n"));
        steps.push(set(0x01, b"n", b"abc", 0));
        steps.push(packet(opcode, b"n", &amount(1, 2, 0), b"", 0));
    }
    for opcode in [0x1c, 0x1d, 0x1e, 0x23, 0x24] {
        steps.push(packet(opcode, b"none", &10_u32.to_be_bytes(), b"", 0));
        steps.push(set(0x01, b"a", b"x", 0));
        steps.push(packet(opcode, b"a", &10_u32.to_be_bytes(), b"", 0));
        steps.push(packet(opcode, b"a", &1_000_000_000_u32.to_be_bytes(), b"", 0));
        steps.push(bare(0x00, b"a"));
    }
    // Version, no-op, flush (with a delay too), quit, quitq.
    steps.extend([
        bare(0x0b, b""),
        bare(NOOP, b""),
        set(0x01, b"a", b"x", 0),
        bare(0x08, b""),
        bare(0x00, b"a"),
    ]);
    steps.extend([set(0x01, b"a", b"x", 0), bare(0x18, b""), bare(0x00, b"a"), set(0x01, b"a", b"x", 0)]);
    steps.extend([
        packet(0x08, b"", &100_u32.to_be_bytes(), b"", 0),
        bare(0x00, b"a"),
        bare(0x07, b""),
        bare(0x17, b""),
    ]);
    // What there is not, and what is malformed.
    steps.extend([
        bare(0x1b, b""),
        bare(0x20, b""),
        packet(0x21, b"PLAIN", b"", b"\0a\0b", 0),
        packet(0x22, b"PLAIN", b"", b"\0a\0b", 0),
    ]);
    for opcode in 0x00..=0x26 {
        // A command that wants a key without, and one that wants none with; extras where there are none.
        // Of a command that there is not, memcached takes a body twice, and then waits.
        if !matches!(opcode, 0x10 | 0x1b | 0x1f | 0x25 | 0x26) {
            steps.push(packet(opcode, b"", b"", b"", 0));
            steps.push(packet(opcode, b"kkk", b"\x01\x02", b"", 0));
        }
    }
    steps.push(packet(0xff, b"", b"", b"", 0));
    steps.push(packet(0x00, LONG, b"", b"", 0));
    steps.push(packet(0x01, b"big", &extras(0, 0), &vec![b'x'; 2_000_000], 0));
    steps.push(packet(0x02, b"big", &extras(0, 0), &vec![b'x'; 2_000_000], 0));
    steps.push(packet(0x0e, b"big", b"", &vec![b'x'; 2_000_000], 0));
    // Keys longer than the body.
    let mut short = bare(0x00, b"abc");
    short[11] = 1;
    steps.push(short);
    steps.push(packet(0x10, b"bogus", b"", b"", 0));
    steps.push(packet(0x10, b"reset", b"", b"", 0));
    steps.push(packet(0x10, b"sizes", b"", b"", 0));
    steps.push(packet(0x10, b"detail", b"", b"", 0));
    steps.push(packet(0x10, b"detail on", b"", b"", 0));
    steps.push(set(0x01, b"p:1", b"x", 0));
    steps.push(packet(0x10, b"detail dump", b"", b"", 0));
    steps.push(packet(0x10, b"detail off", b"", b"", 0));
    compare_binary(&[], &Settings::default(), &steps);
}

#[test]
fn without_cas_and_flush() {
    let settings = Settings { cas: false, flush: false, ..Settings::default() };
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
        &Settings { cas: false, ..Settings::default() },
        &[(
            "flush",
            &[b"set a 0 0 1\r\nx\r\n", b"flush_all 100\r\n", b"gets a\r\n", b"set b 0 0 1\r\nx\r\n"],
        )],
    );
}

#[test]
fn protocol_that_is_fixed() {
    let cases: &[(&str, Steps<'_>)] = &[("binary bytes are text", &[b"\x80\x0b\r\n", b"version\r\n"])];
    compare(&["-B", "ascii"], &Settings { protocol: Protocol::Text, ..Settings::default() }, cases);
}

#[test]
fn logins_in_text() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("users");
    std::fs::write(&path, "ann:secret\nbob:pass:word\n").expect("a file");
    let settings = Settings {
        credentials: Some(Credentials::read(&path).expect("users")),
        protocol: Protocol::Text,
        ..Settings::default()
    };
    // Each step is answered with one line, or none at the end of a conversation. memcached answers several lines that
    // come at once before a login only once, so they come one by one.
    let cases: &[(&str, Steps<'_>)] = &[
        ("not logged in", &[b"get a\r\n", b"mn\r\n", b"version\r\n"]),
        ("good", &[b"set x 0 0 10\r\nann secret\r\n", b"set a 0 0 1\r\nx\r\n", b"version\r\n"]),
        ("colon", &[b"set x 0 0 13\r\nbob pass:word\r\n", b"mn\r\n"]),
        ("wrong", &[b"set x 0 0 9\r\nann wrong\r\n", b"get a\r\n"]),
        ("again", &[b"set x 0 0 9\r\nann wrong\r\n", b"set x 0 0 10\r\nann secret\r\n", b"get a\r\n"]),
        ("one word", &[b"set x 0 0 3\r\nann\r\n", b"get a\r\n"]),
        ("bad length", &[b"set x 0 0 x\r\n", b"get a\r\n"]),
        ("short", &[b"set x 0 0\r\n", b"get a\r\n"]),
        ("bad end", &[b"set x 0 0 8\r\nann secret"]),
        ("a long line", &[&[b'x'; 3000]]),
    ];
    if !have_memcached() {
        return;
    }
    for (name, steps) in cases {
        let theirs = Theirs::start(&["-Y", path.to_str().expect("a path")]);
        let mut ours = Ours::new(settings.clone(), 1);
        let mut stream = theirs.connect();
        let (last, first) = steps.split_last().expect("a step");
        for step in first {
            let expected = ask(&mut stream, step, b"", b"\r\n");
            let got = ours.send(step);
            assert_eq!(
                got.escape_ascii().to_string(),
                format!("{}\\r\\n", expected.escape_ascii()),
                "{name}"
            );
        }
        let (got, expected) = (ours.send(last), finish(stream, last));
        assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string(), "{name}");
    }
}

/// Counters that a client can predict. Not compared: what is measured (time, processor, bytes on the wire, memory), what
/// belongs to memcached's own threads, and connections.
const COUNTERS: [&str; 27] = [
    "pointer_size",
    "max_connections",
    "cmd_get",
    "cmd_set",
    "cmd_flush",
    "cmd_touch",
    "cmd_meta",
    "get_hits",
    "get_misses",
    "get_expired",
    "get_flushed",
    "delete_misses",
    "delete_hits",
    "incr_misses",
    "incr_hits",
    "decr_misses",
    "decr_hits",
    "cas_misses",
    "cas_hits",
    "cas_badval",
    "touch_hits",
    "touch_misses",
    "store_too_large",
    "limit_maxbytes",
    "total_items",
    "evictions",
    "version",
];

#[test]
fn stats_count_the_same() {
    if !have_memcached() {
        return;
    }
    let commands: &[&[u8]] = &[
        b"set a 0 0 1\r\nx\r\nget a b\r\ngets a\r\n",
        b"gat 100 a b\r\ntouch a 0\r\ntouch b 0\r\n",
        b"set n 0 0 1\r\n5\r\nincr n 1\r\ndecr n 1\r\nincr b 1\r\ndecr b 1\r\n",
        b"delete b\r\nset d 0 0 1\r\nx\r\ndelete d\r\n",
        b"cas a 0 0 1 99\r\nx\r\ncas b 0 0 1 99\r\nx\r\nadd a 0 0 1\r\nx\r\nappend a 0 0 1\r\nx\r\n",
        b"set e 0 -1 1\r\nx\r\nget e\r\n",
        b"mg a v\r\nmg b v\r\nmg a T0\r\nmg b T0\r\nme b\r\nmd b\r\nma n\r\nma b\r\nms a 1\r\nx\r\nmg v N0\r\n",
        b"flush_all\r\nget a\r\nset z 0 0 1\r\nx\r\n",
        &[&b"set big 0 0 2000000\r\n"[..], &vec![b'x'; 2_000_000], b"\r\n"].concat(),
    ];
    let theirs = Theirs::start(&[]);
    let mut ours = Ours::new(Settings::default(), 1);
    let mut stream = theirs.connect();
    for step in commands {
        let (got, expected) = (ours.send(step), ask(&mut stream, step, b"mn\r\n", b"MN\r\n"));
        assert_eq!(got.escape_ascii().to_string(), expected.escape_ascii().to_string());
    }
    let report = |bytes: Vec<u8>| -> BTreeMap<String, String> {
        let text = String::from_utf8(bytes).expect("text");
        text.lines()
            .filter_map(|line| line.strip_prefix("STAT ")?.split_once(' '))
            .map(|(a, b)| (a.into(), b.into()))
            .collect()
    };
    let (got, expected) =
        (report(ours.send(b"stats\r\n")), report(ask(&mut stream, b"stats\r\n", b"mn\r\n", b"MN\r\n")));
    for name in COUNTERS {
        assert_eq!(got.get(name), expected.get(name), "{name}");
    }
    for name in got.keys().filter(|name| !name.starts_with("chronos_")) {
        assert!(expected.contains_key(name), "{name} is no field of memcached's");
    }
    let (got, expected) = (
        report(ours.send(b"stats settings\r\n")),
        report(ask(&mut stream, b"stats settings\r\n", b"mn\r\n", b"MN\r\n")),
    );
    // Ours has no socket here, more threads, and its own chunk sizes.
    let differ = ["domain_socket", "num_threads", "growth_factor", "chronos_partitions"];
    for (name, value) in got.iter().filter(|(name, _)| !differ.contains(&name.as_str())) {
        assert_eq!(expected.get(name), Some(value), "{name}");
    }
}

/// Random commands of all three protocols over a few keys. `PLIMSOLL_DIFFERENTIAL_CASES` asks for more; a failure names
/// its seed, and `PLIMSOLL_DIFFERENTIAL_SEED` repeats it.
#[test]
fn random_commands() {
    if !have_memcached() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let cases: u64 = number("PLIMSOLL_DIFFERENTIAL_CASES").unwrap_or(12);
    let first: u64 = number("PLIMSOLL_DIFFERENTIAL_SEED").unwrap_or(1);
    for seed in first..first + cases {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        // Its maintainer holds items at moments of its own, and a number that shrinks in such a moment is not padded.
        let theirs = Theirs::start(&["-o", "no_lru_maintainer"]);
        let mut ours = Ours::new(Settings { hash_secret: seed, ..Settings::default() }, 1);
        let (mut text, mut binary) = (theirs.connect(), theirs.connect());
        let mut said = Vec::new();
        for _ in 0..400 {
            let (request, reply) = mark();
            let (step, got, expected) = if random.below(4) == 0 {
                let step = random_packet(&mut random);
                said.push(step.escape_ascii().to_string());
                let session =
                    plimsoll_chronos::Service::open(ours.direct.service(), plimsoll_chronos::Transport::Unix);
                let kept = std::mem::replace(&mut ours.session, session);
                let got = ours.send(&step);
                ours.session = kept;
                (step.clone(), got, ask(&mut binary, &step, &request, &reply))
            } else {
                let step = random_line(&mut random);
                said.push(step.escape_ascii().to_string());
                (step.clone(), ours.send(&step), ask(&mut text, &step, b"mn\r\n", b"MN\r\n"))
            };
            assert!(
                same(&got, &expected, true),
                "PLIMSOLL_DIFFERENTIAL_SEED={seed} PLIMSOLL_DIFFERENTIAL_CASES=1\n{}\n  ours   {}\n  theirs {}\nbefore:\n{}",
                step.escape_ascii(),
                got.escape_ascii(),
                expected.escape_ascii(),
                said[said.len().saturating_sub(30)..].join("\n")
            );
        }
    }
}

/// Marsaglia's xorshift: a test's choices need no more.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len() as u64) as usize]
    }
}

const KEYS: [&str; 6] = ["a", "b", "key-c", "n", "Zm9v", "p:q"];
const VALUES: [&str; 9] =
    ["", "x", "12", "abc", "18446744073709551615", "99", "some longer value, which is text", " 7", "0"];
const EXPIRIES: [&str; 6] = ["0", "0", "0", "100", "-1", "1000000000"];

fn random_line(random: &mut Random) -> Vec<u8> {
    let key = random.pick(&KEYS);
    let value = random.pick(&VALUES);
    let expiry = random.pick(&EXPIRIES);
    let quiet = if random.below(8) == 0 { " noreply" } else { "" };
    let bytes = value.len();
    let cas = random.below(12);
    let delta = random.pick(&["1", "10", "18446744073709551615", "x", "0", "-1"]);
    let flags = random.pick(&["0", "1", "4294967295", "x"]);
    let line = match random.below(13) {
        0 | 1 => format!("{} {}\r\n", random.pick(&["get", "gets"]), key),
        2 => format!(
            "{} {key} {} {}\r\n",
            random.pick(&["get", "gets"]),
            random.pick(&KEYS),
            random.pick(&KEYS)
        ),
        3 => format!("{} {expiry} {key}\r\n", random.pick(&["gat", "gats"])),
        4 => {
            let verb = random.pick(&["set", "set", "add", "replace", "append", "prepend"]);
            // A bad number leaves the value to be read as commands.
            format!("{verb} {key} {flags} {expiry} {bytes}{quiet}\r\n{value}\r\n")
        }
        5 => format!("cas {key} 0 {expiry} {bytes} {cas}{quiet}\r\n{value}\r\n"),
        6 => format!("{} {key} {delta}{quiet}\r\n", random.pick(&["incr", "decr"])),
        7 => format!("touch {key} {expiry}{quiet}\r\n"),
        8 => format!("delete {key}{quiet}\r\n"),
        9 if random.below(6) == 0 => {
            format!("flush_all{}\r\n", random.pick(&["", " 0", " noreply"]))
        }
        9 => format!(
            "mg {key}{}\r\n",
            meta_flags(
                random,
                &["v", "t", "c", "f", "s", "k", "O1", "q", "u", "h", "b", "N30", "T100", "R50", "z"]
            )
        ),
        10 => {
            let letters =
                ["c", "k", "O2", "q", "F5", "T100", "MS", "ME", "MA", "MP", "MR", "I", "C3", "C0", "b", "z"];
            format!("ms {key} {bytes}{}\r\n{value}\r\n", meta_flags(random, &letters))
        }
        11 => format!("md {key}{}\r\n", meta_flags(random, &["k", "O3", "q", "I", "T50", "C4", "b", "z"])),
        _ => {
            let letters = [
                "v", "t", "c", "k", "O4", "q", "N0", "J7", "D3", "MI", "MD", "M+", "M-", "T60", "C2", "b",
                "z",
            ];
            format!("ma {key}{}\r\n", meta_flags(random, &letters))
        }
    };
    line.into_bytes()
}

fn meta_flags(random: &mut Random, from: &[&str]) -> String {
    (0..random.below(6)).map(|_| format!(" {}", random.pick(from))).collect()
}

fn random_packet(random: &mut Random) -> Vec<u8> {
    let (key, value) = (random.pick(&KEYS).as_bytes(), random.pick(&VALUES).as_bytes());
    let cas = if random.below(3) == 0 { random.below(20) } else { 0 };
    let expiry: u32 = [0, 0, 100, 1_000_000_000][random.below(4) as usize];
    match random.below(6) {
        0 => packet([0x00, 0x09, 0x0c][random.below(3) as usize], key, b"", b"", 0),
        1 => {
            let opcode = [0x01, 0x02, 0x03, 0x11, 0x12, 0x13][random.below(6) as usize];
            packet(opcode, key, &extras(random.below(3) as u32, expiry), value, cas)
        }
        2 => packet([0x04, 0x14][random.below(2) as usize], key, b"", b"", cas),
        3 => {
            let create = if random.below(2) == 0 { u32::MAX } else { expiry };
            packet(
                [0x05, 0x06, 0x15, 0x16][random.below(4) as usize],
                key,
                &amount(random.below(50), 5, create),
                b"",
                cas,
            )
        }
        4 => packet([0x0e, 0x0f, 0x19, 0x1a][random.below(4) as usize], key, b"", value, cas),
        _ => packet([0x1c, 0x1d, 0x1e, 0x23][random.below(4) as usize], key, &expiry.to_be_bytes(), b"", 0),
    }
}
