//! Implements `plimsoll import flows`.

use std::path::PathBuf;

use plimsoll_experiment::question::quoted;
use plimsoll_import::flows::{self, FlowClassBy, FlowSettings};
use plimsoll_units::{Span, whole};

use super::shared::{Shared, file_names};
use crate::output::Done;

/// Turn flow logs into a scenario: NetFlow, IPFIX, sFlow and VPC flow logs as text, or any CSV or JSON.
///
/// The format is recognised by the first line: `nfdump -o csv`, `csv-fast` and `json`, `sflowtool -l`, VPC flow logs of
/// AWS (version 2, and custom formats with their header), Google Cloud and Azure (JSON). `--map` names the columns of
/// other files. Sampled records are multiplied by their rate, records that an active timeout has cut are joined, and a
/// flow that several exporters saw counts once.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Flow logs of one network and one time.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    shared: Shared,
    /// Columns by their fields, with units: `start=first:ms,source=src,destination=dst,bytes=octets:KB`.
    ///
    /// Fields are start, end, duration, source, destination, source_port, destination_port, protocol, tos, dscp, bytes,
    /// packets, reply_bytes, reply_packets, sampling, exporter and class. Of `a|b` the first column with a value is
    /// taken; in JSON a column is a path of keys, `connection.src_ip`.
    #[arg(long, value_name = "FIELDS", conflicts_with = "format")]
    map: Option<String>,
    /// Format of the files, where their first line does not show it: nfdump-csv, nfdump-fast-csv, nfdump-short-csv,
    /// nfdump-json, sflow, aws-vpc, gcp-vpc, azure-nsg or azure-vnet.
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// Columns of files without a header, separated by commas.
    #[arg(long, value_name = "COLUMNS")]
    header: Option<String>,
    /// Character between the cells of a file with `--map`; a blank stands for any white space.
    #[arg(long, value_name = "CHARACTER", default_value_t = ',', requires = "map")]
    separator: char,
    /// Classes of traffic, each of which is a workload: port (the lower of the two), dscp, one, or the name of a
    /// column.
    #[arg(long, value_name = "BY", default_value = "port")]
    class: String,
    /// Sampling rate of records that do not have it, such as 1:1000.
    #[arg(long, value_name = "1:N", value_parser = sampling)]
    sampling: Option<u64>,
    /// Longest time between two records of a connection that are one flow; by default 1s, or 60s where each record is
    /// one sampled packet.
    #[arg(long, value_name = "SPAN")]
    join: Option<Span>,
    /// Time that a log without times covers, such as that of `sflowtool -l`.
    #[arg(long, value_name = "SPAN")]
    duration: Option<Span>,
}

/// Parses a sampling rate, `1:1000` or `1000`.
fn sampling(text: &str) -> Result<u64, String> {
    let number = text.strip_prefix("1:").unwrap_or(text);
    let parse = whole::<u64>(1..=1_000_000_000);
    parse(number).map_err(|problem| format!("{problem}; such as 1:1000"))
}

impl Args {
    fn settings(&self) -> FlowSettings {
        FlowSettings {
            map: self.map.clone(),
            format: self.format.clone(),
            header: self.header.clone(),
            separator: self.separator,
            class_by: match self.class.as_str() {
                "port" => FlowClassBy::Port,
                "dscp" => FlowClassBy::Dscp,
                "one" => FlowClassBy::One,
                column => FlowClassBy::Column(column.to_owned()),
            },
            sampling: self.sampling,
            join: self.join,
            duration: self.duration,
        }
    }

    /// Returns the command without the options that all imports have.
    fn command(&self) -> String {
        let mut words = vec!["plimsoll import flows".to_owned()];
        words.extend(self.files.iter().map(|path| quoted(&path.to_string_lossy())));
        let mut option = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("--{name} {}", quoted(&value))));
        };
        option("map", self.map.clone());
        option("format", self.format.clone());
        option("header", self.header.clone());
        option("separator", (self.separator != ',').then(|| self.separator.to_string()));
        option("class", (self.class != "port").then(|| self.class.clone()));
        option("sampling", self.sampling.map(|rate| format!("1:{rate}")));
        option("join", self.join.map(|span| span.to_string()));
        option("duration", self.duration.map(|span| span.to_string()));
        words.join(" ")
    }
}

pub fn run(args: &Args) -> Done {
    let found = flows::read(&args.files, &args.settings())?;
    args.shared.write(found, &[], &file_names(&args.files), &args.command())
}
