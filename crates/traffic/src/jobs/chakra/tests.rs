use flate2::Compression;
use flate2::bufread::GzEncoder;

use super::*;

/// Returns a number as protobuf writes it: seven bits a byte, the lowest first.
fn number(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

fn bytes_field(field: u64, value: &[u8]) -> Vec<u8> {
    [number(field << 3 | 2), number(value.len() as u64), value.to_vec()].concat()
}

fn number_field(field: u64, value: u64) -> Vec<u8> {
    [number(field << 3), number(value)].concat()
}

fn attribute(name: &str, field: u64, value: u64) -> Vec<u8> {
    bytes_field(10, &[bytes_field(1, name.as_bytes()), number_field(field, value)].concat())
}

fn record(fields: &[Vec<u8>]) -> Vec<u8> {
    let message = fields.concat();
    [number(message.len() as u64), message].concat()
}

/// The trace of a rank that computes, sums gradients with others and updates.
fn trace(gradient: u64) -> Vec<u8> {
    [
        record(&[bytes_field(1, b"0.0.4")]),
        record(&[number_field(1, 1), bytes_field(2, b"fwd"), number_field(3, 4), number_field(7, 120)]),
        record(&[
            number_field(1, 2),
            bytes_field(2, b"grad"),
            number_field(3, 7),
            bytes_field(5, &number(1)),
            attribute("comm_type", 9, 0),
            attribute("comm_size", 13, gradient),
            attribute("is_cpu_op", 27, 0),
            attribute("colour", 9, 7),
        ]),
        record(&[
            number_field(1, 3),
            bytes_field(2, b"opt"),
            number_field(3, 4),
            number_field(5, 2),
            number_field(7, 30),
        ]),
    ]
    .concat()
}

const OPTIONS: ChakraOptions = ChakraOptions { all_reduce: Algorithm::Ring, chunks: 1 };

#[test]
fn traces_of_all_ranks_are_a_job() {
    let traces = [1_048_576; 2].map(|gradient| ChakraTrace::read(trace(gradient).as_slice()).unwrap());
    let (graph, notes) = chakra_job(&traces, &BTreeMap::new(), OPTIONS).unwrap();
    assert_eq!((graph.ranks(), graph.messages(), graph.bytes()), (2, 4, 2 * 1_048_576));
    assert_eq!(notes, ["left out, since no operation needs them: attributes colour (2)"]);
    let of_name: Vec<_> = graph.groups().iter().map(String::as_str).collect();
    assert_eq!(of_name, ["", "all"]);
    let groups = BTreeMap::from([("0".to_owned(), vec![0, 1])]);
    assert_eq!(chakra_job(&traces, &groups, OPTIONS).unwrap().0.messages(), 4);
}

#[test]
fn errors_name_the_node_or_the_byte() {
    let read = |bytes: &[u8]| ChakraTrace::read(bytes);
    let whole = trace(1_000);
    let cut = read(&whole[..whole.len() - 3]).unwrap_err().to_string();
    assert!(
        cut.starts_with("byte 101: a record of 13 bytes") || cut.contains("the file ends before"),
        "{cut}"
    );
    let traces = [trace(1_000), trace(2_000)].map(|bytes| read(&bytes).unwrap());
    let error = chakra_job(&traces, &BTreeMap::new(), OPTIONS).unwrap_err().to_string();
    assert_eq!(
        error,
        "node 2 (\"grad\") of rank 1: operation 0 of group \"\" is of type 0 and 2000 bytes, and of type 0 and \
         1000 bytes at rank 0"
    );
    let node = |fields: &[Vec<u8>]| [record(&[]), record(fields)].concat();
    let in_group = |name: &str| {
        let group = bytes_field(10, &[bytes_field(1, b"pg_name"), bytes_field(29, name.as_bytes())].concat());
        node(&[
            number_field(1, 1),
            number_field(3, 7),
            attribute("comm_type", 9, 0),
            attribute("comm_size", 13, 9),
            group,
        ])
    };
    let pairs = ["a", "b", "a", "b"].map(|name| read(&in_group(name)).unwrap());
    let error = chakra_job(&pairs, &BTreeMap::new(), OPTIONS).unwrap_err();
    assert_eq!(error.to_string(), "node 1 (\"\") of rank 0: rank 1 of group \"a\" has no operation 0 of it");
    assert_eq!(
        error.help(),
        Some(
            "without --groups an operation is of all 4 ranks; give the ranks of each group: --groups FILE, with \
             {\"a\": [0, 2], ...}"
        )
    );
    let groups = [("a", vec![0, 2]), ("b", vec![1, 3])].map(|(name, ranks)| (name.to_owned(), ranks));
    assert_eq!(chakra_job(&pairs, &BTreeMap::from(groups), OPTIONS).unwrap().0.messages(), 8);
    let message = |kind: u64, key: &str, peer: u64, tag: u64| {
        let keys = [attribute(key, 9, peer), attribute("comm_size", 13, 9), attribute("comm_tag", 9, tag)];
        read(&node(&[vec![number_field(1, 5), number_field(3, kind)], keys.to_vec()].concat())).unwrap()
    };
    let error =
        chakra_job(&[message(5, "comm_dst", 1, 3), message(6, "comm_src", 0, 4)], &BTreeMap::new(), OPTIONS);
    assert_eq!(
        error.unwrap_err().to_string(),
        "node 5 (\"\") of rank 0: 1 send and 1 receive without a counterpart, for which the job would wait for ever; \
         the first is `send 9b to 1 tag 3` of rank 0"
    );
    let alone = chakra_job(&traces[..1], &BTreeMap::from([(String::new(), vec![0, 1])]), OPTIONS);
    assert!(alone.unwrap_err().to_string().contains("rank 1 of group \"\" has no operation 0"));
    let far = [record(&[]), record(&[number_field(1, 1), number_field(3, 5), attribute("comm_dst", 9, 7)])];
    let traces = [read(&far.concat()).unwrap(), ChakraTrace::default()];
    let error = chakra_job(&traces, &BTreeMap::new(), OPTIONS).unwrap_err().to_string();
    assert_eq!(error, "node 1 (\"\") of rank 0: comm_dst is 7, and the job has ranks 0 to 1");
    let mut packed = GzEncoder::new(whole.as_slice(), Compression::fast());
    let mut bytes = Vec::new();
    packed.read_to_end(&mut bytes).unwrap();
    assert_eq!(format!("{:?}", read(&bytes).unwrap()), format!("{:?}", read(&whole).unwrap()));
    assert!(read(&bytes[..bytes.len() - 9]).is_err());
    let other = read(&ZSTANDARD).unwrap_err();
    assert!(other.help().unwrap().contains("zstd -d"), "{other}");
    assert!(
        read(b"\x05\x0f\x0f\x0f\x0f\x0f\x02\x0f\x0f").unwrap_err().to_string().contains("no protobuf field")
    );
}
