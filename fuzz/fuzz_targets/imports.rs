//! Any text as a file of another simulator: no panic, an error has a place, and an accepted file loads as a scenario.
//!
//! The first character chooses the reader. `make fuzz TARGET=imports`.

use std::path::Path;

use plimsoll_scenario::import::{self, Imported};
use plimsoll_scenario::{Scenario, ScenarioError};

type Reader = fn(&str, &str) -> Result<Imported, Box<ScenarioError>>;

/// Each reader with the scenario that uses its file.
const READERS: [(Reader, &str); 5] = [
    (import::hpcc_topology, NETWORK),
    (|name, text| import::hpcc_flows(name, text, None), FLOWS),
    (import::htsim_topology, NETWORK),
    (flows_of_htsim, FLOWS),
    (|name, text| import::cdf(name, text, 1460), SIZES),
];

/// A job is no flow list, and its reader has tests of its own.
fn flows_of_htsim(name: &str, text: &str) -> Result<Imported, Box<ScenarioError>> {
    let traffic = import::htsim_connections(name, text, None)?;
    let no_flows = "start,source,destination,size,class\n".to_owned();
    Ok(if traffic.is_job { Imported { text: no_flows, ..traffic.file } } else { traffic.file })
}

const NETWORK: &str = "[topology]\nkind = 'file'\npath = 'imported'\n\
                       [workload.all]\nkind = 'all-to-all'\nsize = '1KB'\nload = 0.1\ncount = 1\n";
const FLOWS: &str = "[topology]\nkind = 'rack'\nhosts = 64\nrate = '1Gbps'\ndelay = '1us'\n\
                     [workload.listed]\nkind = 'flow-list'\npath = 'imported'\n";
const SIZES: &str = "[topology]\nkind = 'rack'\nhosts = 4\nrate = '1Gbps'\ndelay = '1us'\n\
                     [workload.all]\nkind = 'all-to-all'\nsize = { cdf = 'imported' }\nload = 0.1\ncount = 1\n";

/// Larger networks take too long for each input.
const TEXT_BYTES_MAX: usize = 64 << 10;

fn judge_error(error: &ScenarioError) {
    assert!(
        error.line > 0 && error.column > 0 && error.underlined > 0 && !error.file.is_empty(),
        "{error:?}"
    );
    assert!(error.to_string().contains("-->"));
}

/// Checks that an importer converts one input or reports an error.
pub fn check(input: &[u8]) {
    let Ok(input) = std::str::from_utf8(input) else { return };
    let Some((choice, text)) = input.split_at_checked(1) else { return };
    let (read, rest) = READERS[usize::from(choice.as_bytes()[0]) % READERS.len()];
    match read("other.txt", text) {
        Err(error) => judge_error(&error),
        Ok(imported) if imported.text.len() > TEXT_BYTES_MAX || imported.text.contains("'''") => {}
        Ok(Imported { text, .. }) => {
            let scenario = format!("version = 1\ntitle = 't'\n{rest}[files]\nimported = '''\n{text}'''\n");
            // Hosts and sizes may still be out of range.
            if let Err(errors) = Scenario::parse("imported.toml", &scenario, Path::new("/nonexistent")) {
                assert!(!errors.is_empty());
                errors.iter().for_each(judge_error);
            }
        }
    }
}
