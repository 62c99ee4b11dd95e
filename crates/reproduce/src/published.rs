//! Published values, as the files under `published/` hold them.

/// A table with a header line; cells are text.
#[derive(Clone, Debug)]
pub struct Published {
    header: Vec<&'static str>,
    rows: Vec<Vec<&'static str>>,
}

impl Published {
    /// Reads comma-separated text. Quoted cells may hold commas.
    pub fn parse(text: &'static str) -> Published {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty()).map(cells);
        let header = lines.next().unwrap_or_default();
        Published { header, rows: lines.collect() }
    }

    /// The number in column `metric` of the first row whose named columns have the given texts;
    /// `None` where there is no such row or its cell is empty.
    pub fn value(&self, keys: &[(&str, &str)], metric: &str) -> Option<f64> {
        let column = |name: &str| self.header.iter().position(|&column| column == name);
        let matches = |row: &&Vec<&str>| {
            keys.iter().all(|(name, text)| column(name).is_some_and(|at| row.get(at) == Some(text)))
        };
        self.rows.iter().find(matches)?.get(column(metric)?)?.parse().ok()
    }
}

fn cells(line: &'static str) -> Vec<&'static str> {
    let mut cells = Vec::new();
    let mut rest = line.trim_end();
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (cell, after) = quoted.split_once('"').unwrap_or((quoted, ""));
            cells.push(cell);
            match after.strip_prefix(',') {
                Some(after) => rest = after,
                None => return cells,
            }
        } else {
            match rest.split_once(',') {
                Some((cell, after)) => {
                    cells.push(cell);
                    rest = after;
                }
                None => {
                    cells.push(rest);
                    return cells;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_found_by_name_and_quotes_hold_commas() {
        let table = Published::parse("name,scheme,mean\n\"a, b\",TCP,1.5\n\"a, b\",HULL,\n");
        assert_eq!(table.value(&[("name", "a, b"), ("scheme", "TCP")], "mean"), Some(1.5));
        assert_eq!(table.value(&[("scheme", "HULL")], "mean"), None);
        assert_eq!(table.value(&[("scheme", "none")], "mean"), None);
        assert_eq!(table.value(&[("scheme", "TCP")], "p99"), None);
    }
}
