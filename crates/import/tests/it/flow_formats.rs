//! Each format of flow logs, by a small file, and the notes on ignored, assumed and rejected values.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_import::Remark::{Assumed, Ignored};
use plimsoll_import::flows::{FlowClassBy, FlowSettings, read};
use plimsoll_units::Span;

use crate::found_text::{notes, of};

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").join(name)
}

fn text(name: &str, settings: &FlowSettings) -> String {
    read(&[file(name)], settings).map_or_else(|error| error.to_string(), |found| of(&found))
}

#[test]
fn each_format_is_recognised_and_read() {
    let default = FlowSettings::default();
    let by_dscp = FlowSettings { class_by: FlowClassBy::Dscp, ..FlowSettings::default() };
    let own = FlowSettings {
        map: Some("start=first:ms,end=last:ms,source=from,destination=to,bytes=kilobytes:KB".to_owned()),
        separator: ';',
        class_by: FlowClassBy::Column("app".to_owned()),
        ..FlowSettings::default()
    };
    let sampled = FlowSettings { duration: Some(Span::from_secs(4)), ..FlowSettings::default() };
    let cases: [(&str, &FlowSettings, &str); 12] = [
        (
            "nfdump-1.6.csv",
            &default,
            "10.0.1.5 10.0.2.7 10.0.3.1 over 90s\n\
             port-9092 0s..90s 0>1 2172000\n\
             port-53 10s..10s 2>0 100\n",
        ),
        (
            "nfdump-1.7.csv",
            &default,
            "10.0.1.5 10.0.2.7 10.0.3.1 over 1.75s\n\
             port-9092 0s..1.5s 0>1 144800\n\
             port-53 1.75s..1.75s 2>0 100\n",
        ),
        (
            "nfdump-fast.csv",
            &default,
            "10.0.1.5 10.0.2.7 fd00::1 fd00::2 over 1.75s\n\
             port-9092 0s..1.5s 0>1 144800\n\
             port-53 1.75s..1.75s 2>3 100\n",
        ),
        (
            "nfdump-fast.csv",
            &by_dscp,
            "10.0.1.5 10.0.2.7 fd00::1 fd00::2 over 1.75s\n\
             dscp-0 0s..1.5s 0>1 144800\n\
             dscp-46 1.75s..1.75s 2>3 100\n",
        ),
        (
            "nfdump.json",
            &default,
            "10.0.1.5 10.0.2.7 fd00::1 fd00::2 over 1.75s\n\
             port-9092 0s..1.5s 0>1 144800\n\
             port-9092 0s..1.5s 1>0 1000\n\
             port-53 1.75s..1.75s 2>3 100\n",
        ),
        (
            "sflow.txt",
            &sampled,
            "10.0.1.5 10.0.2.7 10.0.3.1 over 4s\n\
             port-9092 0s..1s 0>1 2896000\n\
             port-53 3s..3s 2>0 50000\n",
        ),
        ("aws-default.log", &default, "10.0.1.5 10.0.2.7 over 90s\nport-9092 0s..90s 0>1 217200\n"),
        ("aws-custom.log", &default, "10.0.1.5 10.0.2.7 over 59s\nport-9092 0s..59s 0>1 144800\n"),
        ("gcp.json", &default, "10.0.1.5 10.0.2.7 over 1.5s\nport-9092 0s..1.5s 0>1 144800\n"),
        (
            "azure-nsg.json",
            &default,
            "10.0.1.5 10.0.2.7 10.0.3.1 over 320s\n\
             port-9092 0s..320s 0>1 1592800\n\
             port-9092 0s..320s 1>0 20000\n\
             port-53 10s..11s 0>2 50\n\
             port-53 10s..11s 2>0 100\n",
        ),
        (
            "azure-vnet.json",
            &default,
            "10.0.1.5 10.0.2.7 10.0.3.1 over 1.5s\n\
             port-9092 0s..1.5s 0>1 144800\n\
             port-53 0s..0s 0>2 50\n\
             port-53 0s..0s 2>0 100\n",
        ),
        ("own.csv", &own, "web-1 db-1 web-2 over 2s\nsearch 500ms..2s 2>1 3000\norders 0s..1s 0>1 1500\n"),
    ];
    for (name, settings, expected) in cases {
        assert_eq!(text(name, settings), expected, "{name}");
    }
}

#[test]
fn notes_say_what_was_done() {
    let found = read(&[file("nfdump-1.6.csv")], &FlowSettings::default()).unwrap();
    assert_eq!(
        notes(&found, Ignored),
        [
            "1 flow without payload, such as acknowledgements",
            "1 record of protocol ICMP, which is neither TCP nor UDP"
        ]
    );
    let assumed = notes(&found, Assumed).join("\n");
    for part in [
        "1 record joined to the one before: an active timeout cuts a flow into records of the same connection, at most \
         1s apart",
        "1 flow that several exporters saw: counted once, by the exporter that saw the most bytes of the sender",
    ] {
        assert!(assumed.contains(part), "{assumed}");
    }
    let settings = FlowSettings { duration: Some(Span::from_secs(4)), ..FlowSettings::default() };
    let found = read(&[file("sflow.txt")], &settings).unwrap();
    let assumed = notes(&found, Assumed).join("\n");
    let part = "class port-9092: bytes are multiplied by the sampling rate, up to 1000; with 2 sampled packets the 95 \
                % interval of its load is within 138.6 %";
    assert!(assumed.contains(part), "{assumed}");
    let ignored = notes(&found, Ignored).join("\n");
    assert!(ignored.contains("1 record whose type is CNTR"), "{ignored}");
    let found = read(&[file("azure-nsg.json")], &FlowSettings::default()).unwrap();
    let ignored = notes(&found, Ignored).join("\n");
    assert!(ignored.contains("1 record whose decision is D"), "{ignored}");
    let found = read(&[file("aws-default.log")], &FlowSettings::default()).unwrap();
    let ignored = notes(&found, Ignored).join("\n");
    assert!(ignored.contains("1 record whose action is REJECT"), "{ignored}");
}

#[test]
fn a_rate_of_the_command_line_scales_what_was_scaled_or_not() {
    let settings = FlowSettings { sampling: Some(10), ..FlowSettings::default() };
    let expected = "10.0.1.5 10.0.2.7 10.0.3.1 over 1.75s\n\
                    port-9092 0s..1.5s 0>1 1448000\n\
                    port-53 1.75s..1.75s 2>0 1000\n";
    assert_eq!(text("nfdump-1.7.csv", &settings), expected);
}

#[test]
fn files_of_one_import_share_hosts_and_time() {
    let files = [file("nfdump-1.7.csv"), file("nfdump-fast.csv")];
    let found = read(&files, &FlowSettings::default()).unwrap();
    // The same two flows, of which the second file has one with other addresses.
    assert_eq!(found.hosts, ["10.0.1.5", "10.0.2.7", "10.0.3.1", "fd00::1", "fd00::2"]);
}

#[test]
fn errors_name_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let map = |map: &str| FlowSettings { map: Some(map.to_owned()), ..FlowSettings::default() };
    let times = map("start=t,source=a,destination=b,bytes=n");
    let cases = [
        (write("empty.csv", ""), FlowSettings::default(), "empty.csv: an empty file: expected a flow log"),
        (
            write("other.csv", "x,y\n1,2\n"),
            FlowSettings::default(),
            "other.csv:1: the format of \"x,y\" is not known: expected one of the formats nfdump-csv,",
        ),
        (
            write("columns.csv", "t,src_address,b,n\n"),
            map("start=t,source=src_addres,destination=b,bytes=n"),
            "columns.csv:1: no column \"src_addres\" for the field source (did you mean `src_address`?): expected one \
             of the columns t, src_address, b, n",
        ),
        (
            write("none.csv", "t,a,b,n\n1,x,x,5\n"),
            times.clone(),
            "flows: no flows in 0 records: expected records of TCP or UDP between two addresses",
        ),
        (
            write("damaged.csv", "t,a,b,n\n1,x,y,many\n"),
            times.clone(),
            "flows: no flows: 1 damaged record left out; the first:",
        ),
        (
            write("timeless.csv", "a,b,n\nx,y,5\n"),
            map("source=a,destination=b,bytes=n"),
            "timeless.csv: a log of the format --map has no times: expected --duration,",
        ),
        (
            write("open.json", "[{\"src\": 1"),
            FlowSettings::default(),
            "open.json: cannot be read: the object that begins on line 1 has no end",
        ),
        (
            write("units.csv", "t,e,a,b,n\n1706702400123,1706702401,x,y,5\n"),
            map("start=t:us,end=e:s,source=a,destination=b,bytes=n"),
            "flows: no flows: 1 damaged record left out; the first: units.csv:2: start and end differ by a factor of \
             1000, as if one of them had another unit",
        ),
        (
            write("large.csv", "t,a,b,n\n1706702400123,x,y,5\n"),
            times.clone(),
            "flows: no flows: 1 damaged record left out; the first: large.csv:2: invalid value \"1706702400123\" for \
             start: too large for its unit, of s, ms, us, ns, date",
        ),
        (
            write("named.csv", "t,a,b,n\n1,x,y,5\n2,y,x,5\n"),
            FlowSettings { header: Some("t,a,b,n".to_owned()), ..times.clone() },
            "--header: no effect, since each file names its columns: expected a table without names",
        ),
        (
            write("named.csv", "t,a,b,n\n1,x,y,5\n2,y,x,5\n"),
            FlowSettings { duration: Some(Span::from_ns(1)), ..times.clone() },
            "--duration: no effect, since the records have times: expected a log without times",
        ),
        (
            write("timeless.csv", "a,b,n\nx,y,5\n"),
            FlowSettings {
                duration: Some(Span::from_secs(1)),
                join: Some(Span::from_secs(1)),
                ..map("source=a,destination=b,bytes=n")
            },
            "--join: no effect, since the records have no times: expected a log with times",
        ),
        (
            write(
                "version-1.json",
                r#"{"records":[{"category":"x","properties":{"Version":1,"flows":[
                    {"flows":[{"flowTuples":["1487282421,192.0.2.1,10.1.0.4,51529,5358,T,I,D"]}]}]}}]}"#,
            ),
            FlowSettings::default(),
            "flows: no flows: 1 damaged record left out; the first: version-1.json:1: 8 cells where the format \
             azure-nsg has 13",
        ),
        (
            folder.path().join("missing.csv"),
            FlowSettings::default(),
            "missing.csv: cannot be read: No such file or directory",
        ),
    ];
    for (path, settings, expected) in cases {
        let error = read(&[path], &settings).unwrap_err().to_string();
        let folder = format!("{}/", folder.path().display());
        assert!(error.replace(&folder, "").starts_with(expected), "{error}");
    }
}

#[test]
fn damaged_records_are_named_and_counted_up_to_a_bound() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.csv");
    let settings = FlowSettings {
        map: Some("start=t,source=a,destination=b,bytes=n".to_owned()),
        ..FlowSettings::default()
    };
    let lines = |damaged: usize| {
        let good = "1,x,y,5\n".repeat(3);
        format!("t,a,b,n\n{good}2,x,y\n{}", "2,x,y,-5\n".repeat(damaged - 1))
    };
    fs::write(&path, lines(100)).unwrap();
    let found = read(std::slice::from_ref(&path), &settings).unwrap();
    let first = format!(
        "100 damaged records left out; the first: {}:5: 3 cells where the header has 4",
        path.display()
    );
    assert_eq!(notes(&found, Ignored), [first]);
    fs::write(&path, lines(101)).unwrap();
    let error = read(std::slice::from_ref(&path), &settings).unwrap_err().to_string();
    let expected = format!(
        "{}:105: invalid value \"-5\" for bytes; 100 records before it are damaged, too: expected at most 100 damaged \
         records, and one in 100 more",
        path.display()
    );
    assert_eq!(error, expected);
}
