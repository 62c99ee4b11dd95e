//! [`RowExpression`]: arithmetic over the numbers of rows: `p99('fig1', 'HULL', '20') / p99('fig1', 'TCP', '20')`.

/// An expression, with the operations in their order.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum RowExpression {
    Constant(f64),
    /// The number of a row, or the sum of several: its metric, its figure and series, and each x.
    Rows(String, [String; 2], Vec<String>),
    /// The median of several rows, as [`RowExpression::Rows`] names them.
    Median(Box<RowExpression>),
    /// An operation on two others: `+`, `-`, `*`, `/`, `m`, the smaller of the two, or `M`, the larger.
    Of(char, Box<[RowExpression; 2]>),
}

/// The number of a row, and how far it can be trusted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Number {
    pub(crate) value: f64,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) is_suspect: bool,
}

/// Finds the number of a row by its metric, and its figure, series and x.
type Find<'a> = &'a dyn Fn(&str, [&str; 3]) -> Option<Number>;

impl RowExpression {
    /// Reads an expression.
    ///
    /// # Errors
    /// Returns the error and its place.
    pub(crate) fn read(text: &str) -> Result<RowExpression, String> {
        let mut reader = ExpressionReader { text, at: 0 };
        let sum = reader.sum()?;
        if reader.peek().is_some() { Err(reader.wrong("an operator")) } else { Ok(sum) }
    }

    /// Computes the number; `None` where a row is missing. The interval follows from that of the first row.
    pub(crate) fn number(&self, find: Find<'_>) -> Option<Number> {
        let mut rows = Vec::new();
        self.rows(find, &mut rows)?;
        let value_with = |first: Option<f64>| {
            let mut values = rows.iter().map(|row: &Number| row.value);
            let own = values.next();
            self.value(&mut first.or(own).into_iter().chain(values))
        };
        let interval = rows.first().and_then(|row| row.interval);
        Some(Number {
            value: value_with(None),
            interval: interval.map(|(low, high)| {
                let [one, other] = [low, high].map(|end| value_with(Some(end)));
                (one.min(other), one.max(other))
            }),
            is_suspect: rows.iter().any(|row| row.is_suspect),
        })
    }

    /// Finds the rows, in the order of the text.
    fn rows(&self, find: Find<'_>, rows: &mut Vec<Number>) -> Option<()> {
        match self {
            RowExpression::Constant(_) => {}
            RowExpression::Rows(metric, [figure, series], xs) => {
                for x in xs {
                    rows.push(find(metric, [figure, series, x])?);
                }
            }
            RowExpression::Median(of) => of.rows(find, rows)?,
            RowExpression::Of(_, of) => of.iter().try_for_each(|of| of.rows(find, rows))?,
        }
        Some(())
    }

    fn value(&self, rows: &mut dyn Iterator<Item = f64>) -> f64 {
        match self {
            RowExpression::Constant(value) => *value,
            RowExpression::Rows(.., xs) => xs.iter().map(|_| rows.next().expect("all rows were found")).sum(),
            RowExpression::Median(of) => median(of, rows),
            RowExpression::Of(operator, of) => {
                let [a, b] = of.each_ref().map(|of| of.value(rows));
                match operator {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    '/' => a / b,
                    'm' => a.min(b),
                    _ => a.max(b),
                }
            }
        }
    }
}

/// Returns the median of the rows of `of`, which are the next of `rows`.
fn median(of: &RowExpression, rows: &mut dyn Iterator<Item = f64>) -> f64 {
    let count = if let RowExpression::Rows(.., xs) = of { xs.len() } else { 0 };
    let mut values: Vec<f64> = rows.take(count).collect();
    values.sort_by(f64::total_cmp);
    let middle = |place: usize| values.get(place).copied().unwrap_or(f64::NAN);
    (middle(count.saturating_sub(1) / 2) + middle(count / 2)) / 2.0
}

struct ExpressionReader<'a> {
    text: &'a str,
    at: usize,
}

impl ExpressionReader<'_> {
    fn peek(&mut self) -> Option<char> {
        let rest = self.text[self.at..].trim_start();
        self.at = self.text.len() - rest.len();
        rest.chars().next()
    }

    /// Takes the next sign, if it is one of these.
    fn take(&mut self, signs: &str) -> Option<char> {
        let sign = self.peek().filter(|sign| signs.contains(*sign))?;
        self.at += sign.len_utf8();
        Some(sign)
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        self.take(sign).map(drop).ok_or_else(|| self.wrong(&format!("`{sign}`")))
    }

    fn wrong(&self, allowed: &str) -> String {
        let rest = &self.text[self.at..];
        format!("`{}`: `{rest}` is wrong here; allowed: {allowed}", self.text)
    }

    fn sum(&mut self) -> Result<RowExpression, String> {
        self.chain("+-", ExpressionReader::product)
    }

    fn product(&mut self) -> Result<RowExpression, String> {
        self.chain("*/", ExpressionReader::term)
    }

    /// Reads operands with operators of one rank between them, from the left.
    fn chain(
        &mut self,
        signs: &str,
        operand: fn(&mut Self) -> Result<RowExpression, String>,
    ) -> Result<RowExpression, String> {
        let mut left = operand(self)?;
        while let Some(sign) = self.take(signs) {
            left = RowExpression::Of(sign, Box::new([left, operand(self)?]));
        }
        Ok(left)
    }

    fn term(&mut self) -> Result<RowExpression, String> {
        if self.take("(").is_some() {
            let inside = self.sum()?;
            return self.expect(")").map(|()| inside);
        }
        self.peek();
        let rest = &self.text[self.at..];
        let length = rest.find(|c: char| !(c.is_alphanumeric() || "_.".contains(c))).unwrap_or(rest.len());
        let word = &rest[..length];
        if let Ok(number) = word.parse() {
            self.at += length;
            return Ok(RowExpression::Constant(number));
        }
        if word.is_empty() {
            return Err(self.wrong(
                "a number, METRIC('FIGURE', 'SERIES', 'X'), median(METRIC(..)), min(A, B), max(A, B) or (..)",
            ));
        }
        self.at += length;
        self.expect("(")?;
        if word == "median" {
            let of = self.term()?;
            let is_rows = matches!(of, RowExpression::Rows(..));
            return match is_rows {
                true => self.expect(")").map(|()| RowExpression::Median(Box::new(of))),
                false => Err(self.wrong("METRIC('FIGURE', 'SERIES', 'X', 'X', ...) in `median(..)`")),
            };
        }
        if word == "min" || word == "max" {
            let first = self.sum()?;
            self.expect(",")?;
            let second = self.sum()?;
            return self.expect(")").map(|()| {
                let sign = if word == "min" { 'm' } else { 'M' };
                RowExpression::Of(sign, Box::new([first, second]))
            });
        }
        let figure = self.quoted()?;
        self.expect(",")?;
        let series = self.quoted()?;
        self.expect(",")?;
        let mut xs = vec![self.quoted()?];
        while self.take(",").is_some() {
            xs.push(self.quoted()?);
        }
        self.expect(")")?;
        Ok(RowExpression::Rows(word.to_owned(), [figure, series], xs))
    }

    fn quoted(&mut self) -> Result<String, String> {
        self.expect("'")?;
        let rest = &self.text[self.at..];
        let length = rest.find('\'').ok_or_else(|| self.wrong("a closing `'`"))?;
        self.at += length + 1;
        Ok(rest[..length].to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(metric: &str, [figure, series, x]: [&str; 3]) -> Option<Number> {
        let value = match (metric, figure, series, x) {
            ("p99", "fig 1", "A, B", "20") => 6.0,
            ("p99", "fig 1", "C", "20") => 3.0,
            _ => return None,
        };
        Some(Number { value, interval: (series == "A, B").then_some((5.0, 8.0)), is_suspect: series == "C" })
    }

    #[test]
    fn numbers_follow_the_rules_of_arithmetic() {
        for (text, value) in [
            ("1 + 2 * 3 - 4", 3.0),
            ("8 / 2 / 2", 2.0),
            ("100 * (1 - p99('fig 1', 'C', '20') / p99('fig 1', 'A, B', '20'))", 50.0),
            ("p99('fig 1', 'C', '20', '20') / 2", 3.0),
            ("min(p99('fig 1', 'C', '20'), 2.5) + max(1, 4)", 6.5),
            ("2 * median(p99('fig 1', 'C', '20', '20')) + median(p99('fig 1', 'A, B', '20'))", 12.0),
        ] {
            let number = RowExpression::read(text).expect(text).number(&find);
            assert_eq!(number.map(|number| number.value), Some(value), "{text}");
        }
        let missing = RowExpression::read("p99('fig 2', 'C', '20') + 1").expect("it is an expression");
        assert_eq!(missing.number(&find), None);
    }

    #[test]
    fn the_interval_is_that_of_the_first_row_and_doubt_is_of_all() {
        let ratio = RowExpression::read("p99('fig 1', 'A, B', '20') / p99('fig 1', 'C', '20')");
        let number = ratio.expect("it is an expression").number(&find).expect("both are there");
        assert_eq!(number, Number { value: 2.0, interval: Some((5.0 / 3.0, 8.0 / 3.0)), is_suspect: true });
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, part) in [
            ("1 +", "a number, METRIC"),
            ("p99('a', 'b')", "`,`"),
            ("p99('a', 'b, 'c')", "`,`"),
            ("(1", "`)`"),
            ("1 2", "an operator"),
            ("p99", "`(`"),
        ] {
            let error = RowExpression::read(text).expect_err(text);
            assert!(error.contains(part), "{error}");
        }
    }
}
