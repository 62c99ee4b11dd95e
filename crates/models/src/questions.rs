//! Questions to the models, as the command and the Python package ask them: options with their defaults, and the table
//! that answers them. The feature `command` derives the options of the command line from the same structs.

mod fan_out;
mod law;
mod page;
mod qjump;
mod redundancy;
mod sequential;
mod stragglers;

use plimsoll_report::Format;
use plimsoll_report::models::NumberTable;
use plimsoll_results::run_dir;
use serde::de::{self, DeserializeOwned};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

pub use fan_out::FanOutArguments;
pub use law::{FILE_BYTES_MAX, UnitName};
pub use page::Page;
pub use qjump::QjumpArguments;
pub use redundancy::{Hedge, Replicas, Retry};
pub use sequential::Sequential;
pub use stragglers::Stragglers;

/// The reason why a question has no answer. Options are named as on the command line.
#[derive(Debug, thiserror::Error)]
pub enum BadModel {
    /// An option, or the file that it names, is not allowed.
    #[error("{0}")]
    Option(String),
    /// A run directory cannot be read.
    #[error("--from {name}: {error}")]
    Run {
        /// The folder of the run.
        name: String,
        /// The reason.
        error: run_dir::Error,
    },
}

/// A question whose answer is a table of numbers.
pub trait ModelQuestion {
    /// Computes the answer.
    ///
    /// # Errors
    /// Names the option whose value is not allowed.
    fn table(&self) -> Result<NumberTable>;
}

type Result<T> = std::result::Result<T, BadModel>;

impl BadModel {
    fn new(text: impl Into<String>) -> BadModel {
        BadModel::Option(text.into())
    }
}

/// Returns the answer of the model `name` as JSON; `options` are those that differ from their defaults.
///
/// # Errors
/// Names the option whose value is not allowed, or the options that exclude each other.
pub fn answer(name: &str, options: &Map<String, Value>) -> Result<String> {
    let has = |key: &str| options.contains_key(key);
    if let Some(needs) = OF_FILES.iter().find(|key| has(key) && !has("from")) {
        return Err(BadModel::new(format!("--{needs} needs --from")));
    }
    if let Some(other) = OF_LAWS.iter().find(|key| has(key) && has("from")) {
        return Err(BadModel::new(format!("--{other} cannot be used with --from")));
    }
    let table = match name {
        "fanout" => read::<FanOutArguments>(options)?.table(),
        "sequential" => read::<Sequential>(options)?.table(),
        "page" => read::<Page>(options)?.table(),
        "replicas" => read::<Replicas>(options)?.table(),
        "hedge" => read::<Hedge>(options)?.table(),
        "retry" => read::<Retry>(options)?.table(),
        "stragglers" => read::<Stragglers>(options)?.table(),
        "qjump" => return read::<QjumpArguments>(options)?.written(Format::Json),
        other => return Err(BadModel::new(format!("there is no model `{other}`"))),
    };
    Ok(table?.written(Format::Json))
}

/// Options of a file of latencies.
const OF_FILES: [&str; 5] = ["unit", "tag", "column", "workload", "point"];
/// Options of a distribution by its formula.
const OF_LAWS: [&str; 4] = ["law", "mean", "sd", "service"];

/// Reads the options of a model.
fn read<T: DeserializeOwned>(options: &Map<String, Value>) -> Result<T> {
    serde_json::from_value(Value::Object(options.clone())).map_err(|error| {
        let wrong = options.iter().find_map(|(key, value)| {
            let alone = Map::from_iter([(key.clone(), value.clone())]);
            let error = serde_json::from_value::<T>(Value::Object(alone)).err()?;
            Some(format!("invalid value {value} for --{}: {error}", key.replace('_', "-")))
        });
        BadModel::new(wrong.unwrap_or_else(|| error.to_string()))
    })
}

/// Reads one value, or a list of them.
fn many<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> std::result::Result<Vec<T>, D::Error> {
    let values = match Value::deserialize(deserializer)? {
        Value::Array(values) => values,
        one => vec![one],
    };
    values.into_iter().map(|value| serde_json::from_value(value).map_err(de::Error::custom)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(name: &str, options: &Value) -> Result<Value> {
        let text = answer(name, options.as_object().expect("options"))?;
        Ok(serde_json::from_str(&text).expect("JSON"))
    }

    /// The answers of every model, from one option or a list.
    #[test]
    fn every_model_answers() {
        let number = |name: &str, options: Value, row: usize, key: &str| {
            let rows = asked(name, &options).unwrap_or_else(|error| panic!("{name}: {error}"));
            rows[row][key].as_f64().unwrap_or_else(|| panic!("{name}: {rows}"))
        };
        assert!((number("fanout", json!({ "servers": [1, 100] }), 1, "expected_us") - 215.4).abs() < 0.1);
        let exponential = json!({ "servers": 1, "law": "exponential", "mean": "1ms" });
        assert!((number("fanout", exponential, 0, "p50_us") - 693.1).abs() < 0.1);
        let chain = json!({ "load": 0.5, "service": "1us", "sd": "1us", "budget": "100us" });
        assert_eq!(number("sequential", chain, 0, "requests"), 50.0);
        assert!((number("hedge", json!({ "at": "95%" }), 0, "load") - 1.05).abs() < 0.001);
        assert!((number("hedge", json!({ "at": [0.95] }), 0, "load") - 1.05).abs() < 0.001);
        assert_eq!(number("replicas", json!({ "copies": 2 }), 0, "load"), 2.0);
        assert!(number("retry", json!({ "timeout": ["1ms"], "retries": 2 }), 0, "load") > 1.0);
        let slow = json!({ "servers": 2_000, "slow": 0.0001 });
        assert!((number("stragglers", slow, 0, "slow_percent") - 18.1).abs() < 0.1);
        let page = |options: Value| number("page", options, 0, "p999_ms");
        assert!(page(json!({ "retrievals": 150, "replicas": 2 })) < page(json!({ "retrievals": 150 })));
        let levels = asked("qjump", &json!({ "hosts": 8, "level": ["1x", "line"] })).expect("an answer");
        assert_eq!(levels["levels"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_wrong_option_is_named() {
        for (name, options, expected) in [
            ("fanout", json!({ "servers": 0 }), "--servers 0: expected 1 or more"),
            ("fanout", json!({ "law": "x" }), "invalid value \"x\" for --law: unknown variant"),
            ("fanout", json!({ "servers": [1, -1] }), "invalid value [1,-1] for --servers"),
            ("hedge", json!({ "at": "200%" }), "invalid value \"200%\" for --at: write a share above 0 %"),
            ("fanout", json!({ "unit": "us" }), "--unit needs --from"),
            ("fanout", json!({ "from": "x.csv", "law": "normal" }), "--law cannot be used with --from"),
            ("fanout", json!({ "from": "nowhere.csv" }), "cannot read nowhere.csv"),
            (
                "page",
                json!({ "replicas": 2, "timeout": "1ms" }),
                "only one of --replicas, --hedge-at and --timeout",
            ),
            ("qjump", json!({}), "expected 1 or more"),
            ("fanouts", json!({}), "there is no model `fanouts`"),
        ] {
            let said = asked(name, &options).expect_err("it is wrong").to_string();
            assert!(said.contains(expected), "{said}");
        }
    }
}
