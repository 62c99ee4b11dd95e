//! A server of counters over TCP: `add <name> <number>` answers with the counter's new value. Run it with
//! `cargo run -p plimsoll-chronos --example counter`, then `printf 'add apples 3\n' | nc -N 127.0.0.1 4242`.

use std::collections::HashMap;
use std::io::Write;

use plimsoll_chronos::{Config, KeyHash, Listen, Now, PartitionId, Runtime, Service, SessionTransport, Step};

struct Counters {
    hash: KeyHash,
    partitions: u32,
}

impl Service for Counters {
    /// Each partition has the counters whose names hash to it.
    type Partition = HashMap<Vec<u8>, i64>;
    type Session = ();
    /// The name of a counter, and the number to add.
    type Request<'a> = (&'a [u8], i64);

    fn partition(&self, _id: PartitionId) -> Self::Partition {
        HashMap::new()
    }

    fn open(&self, _transport: SessionTransport) {}

    fn parse<'a>(&self, _: &mut (), _: Now, input: &'a [u8], reply: &mut Vec<u8>) -> Step<(&'a [u8], i64)> {
        let Some(end) = input.iter().position(|&byte| byte == b'\n') else {
            return Step::Incomplete { total: input.len() + 1 };
        };
        let words: Vec<&[u8]> = input[..end].trim_ascii().split(|&byte| byte == b' ').collect();
        let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse().ok();
        if let [b"add", name, word] = words[..]
            && let Some(number) = number(word)
        {
            let partition = KeyHash::partition(self.hash.hash(name), self.partitions);
            return Step::Run { consumed: end + 1, partition, request: (name, number) };
        }
        reply.extend_from_slice(b"usage: add <name> <number>\n");
        Step::Done { consumed: end + 1 }
    }

    fn execute(&self, counters: &mut Self::Partition, request: &(&[u8], i64), _: Now, reply: &mut Vec<u8>) {
        let counter = counters.entry(request.0.to_vec()).or_default();
        *counter = counter.saturating_add(request.1);
        writeln!(reply, "{counter}").expect("a Vec takes every byte");
    }

    fn encode(&self, request: &(&[u8], i64), message: &mut Vec<u8>) {
        message.extend_from_slice(&request.1.to_le_bytes());
        message.extend_from_slice(request.0);
    }

    fn decode<'a>(&self, message: &'a [u8]) -> (&'a [u8], i64) {
        let (number, name) = message.split_first_chunk().expect("encode wrote a number");
        (name, i64::from_le_bytes(*number))
    }

    fn merge(&self, _: &mut (), _: &(&[u8], i64), _: &[Vec<u8>], _: Now, _: &mut Vec<u8>) {}
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = "127.0.0.1:4242".parse()?;
    let config = Config { threads: 2, listen: vec![Listen::Tcp(address)], ..Config::default() };
    let service = Counters { hash: KeyHash::new(0x5eed), partitions: config.partitions() };
    Ok(Runtime::start(service, &config)?.join()?)
}
