//! [`Parameters`]: the keys that a figure of a study has for its task.
//!
//! ```text
//! with.clients = "{x}"                      {x} is the place on the axis; a text that is then a number counts as one
//! with.series."MC, in step".clients = 7     replaces the key for a scheme
//! with.at."one key".words = ["--gets"]      replaces the key at a place on the axis
//! servers.MC.program = "memcached"          is a server that parameters name
//! ```

use serde::de::DeserializeOwned;
use toml::{Table, Value};

/// The keys of a figure for its task, and the servers of its study.
#[derive(Clone, Default, Debug)]
pub struct Parameters {
    /// The figure's table `with`.
    pub with: Table,
    /// The study's tables `servers`.
    pub servers: Table,
}

impl Parameters {
    /// Returns the keys at a place on the axis for a scheme.
    pub fn table(&self, x: &str, series: &str) -> Table {
        let mut table = self.with.clone();
        let special = ["series", "at"].map(|key| table.remove(key));
        for (of, name) in special.iter().zip([series, x]) {
            if let Some(Value::Table(more)) = of.as_ref().and_then(|of| of.get(name)) {
                table.extend(more.clone());
            }
        }
        table.into_iter().map(|(key, value)| (key, filled(value, x))).collect()
    }

    /// Reads the keys at a place on the axis for a scheme.
    ///
    /// # Errors
    /// Returns an error that names the place, the key and the allowed values.
    pub fn read<T: DeserializeOwned>(&self, x: &str, series: &str) -> Result<T, String> {
        read(self.table(x, series)).map_err(|problem| format!("with, {series} at {x}: {problem}"))
    }

    /// Returns the table of a server. The keys of a server with `like` are paths, such as `costs.locked`, whose values
    /// replace the values of the server that it names.
    ///
    /// # Errors
    /// Returns an error if the server is unknown, or a path leads nowhere.
    pub fn server(&self, name: &str) -> Result<Table, String> {
        let Some(Value::Table(own)) = self.servers.get(name) else {
            let known: Vec<&str> = self.servers.keys().map(String::as_str).collect();
            return Err(format!("there is no server `{name}`; allowed: {}", known.join(", ")));
        };
        let mut own = own.clone();
        let Some(like) = own.remove("like") else { return Ok(own) };
        let mut server = self.server(like.as_str().unwrap_or_default())?;
        put_all(&mut server, own)?;
        Ok(server)
    }
}

/// Reads a table.
///
/// # Errors
/// Returns the wrong key and the allowed values.
pub fn read<T: DeserializeOwned>(table: Table) -> Result<T, String> {
    table.try_into().map_err(|error: toml::de::Error| error.to_string().trim_end().to_owned())
}

/// Puts values at their paths, such as `costs.locked`, shorter paths first.
///
/// # Errors
/// Returns an error if a path leads through a value that has no keys.
pub fn put_all(table: &mut Table, values: Table) -> Result<(), String> {
    for (path, value) in values {
        let (parents, key) = path.rsplit_once('.').unwrap_or(("", &path));
        let mut place = &mut *table;
        for parent in parents.split('.').filter(|parent| !parent.is_empty()) {
            place = place
                .get_mut(parent)
                .and_then(Value::as_table_mut)
                .ok_or_else(|| format!("`{path}`: `{parent}` is no table"))?;
        }
        place.insert(key.to_owned(), value);
    }
    Ok(())
}

/// Returns a value as text, where a place on the axis that is a number was filled in.
pub fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Puts the place on the axis into a value.
fn filled(value: Value, x: &str) -> Value {
    match value {
        Value::String(text) if text.contains("{x}") => {
            let text = text.replace("{x}", x);
            let integer = text.parse().map(Value::Integer).ok();
            integer.or_else(|| text.parse().map(Value::Float).ok()).unwrap_or(Value::String(text))
        }
        Value::Array(values) => Value::Array(values.into_iter().map(|value| filled(value, x)).collect()),
        Value::Table(table) => {
            Value::Table(table.into_iter().map(|(key, value)| (key, filled(value, x))).collect())
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters(text: &str) -> Parameters {
        let mut file: Table = text.parse().expect("it is TOML");
        let mut take = |key| file.remove(key).and_then(|value| value.try_into().ok()).unwrap_or_default();
        Parameters { with: take("with"), servers: take("servers") }
    }

    #[test]
    fn a_scheme_and_a_place_have_their_own_keys_and_the_place_is_filled_in() {
        let parameters = parameters(
            "[with]\nrate = \"{x}e3\"\nwords = [\"--stay\", \"{x}ms\"]\nclients = 1\n\
             series.A = { clients = \"{x}\" }\nat.7 = { rate = 1 }",
        );
        assert_eq!(parameters.table("20", "A").to_string(), table("clients = 20", "20000.0", "20ms"));
        assert_eq!(parameters.table("0.5", "B").to_string(), table("clients = 1", "500.0", "0.5ms"));
        assert_eq!(parameters.table("7", "B").to_string(), table("clients = 1", "1", "7ms"));
    }

    fn table(clients: &str, rate: &str, stay: &str) -> String {
        format!("{clients}\nrate = {rate}\nwords = [\"--stay\", \"{stay}\"]\n")
    }

    #[test]
    fn a_server_is_like_another_but_for_the_values_at_its_paths() {
        let parameters = parameters(
            "[servers.MC]\nthreads = 4\ncosts = { locked = 1.0, line = 2 }\n\
             [servers.CH]\nlike = \"MC\"\n\"costs.locked\" = 0.5\n\
             [servers.lost]\nlike = \"CH\"\n\"threads.locked\" = 0.5",
        );
        let server = |name: &str| parameters.server(name);
        let expected = "threads = 4\n\n[costs]\nline = 2\nlocked = 0.5\n".to_owned();
        assert_eq!(server("CH").map(|table| table.to_string()), Ok(expected));
        assert_eq!(server("lost"), Err("`threads.locked`: `threads` is no table".to_owned()));
        assert_eq!(server("XX"), Err("there is no server `XX`; allowed: CH, MC, lost".to_owned()));
    }
}
