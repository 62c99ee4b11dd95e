//! [`Grid`]: a table before it is drawn, and its two text forms.

use std::ops::Range;

use plimsoll_text::{printable, printable_lines};

use super::style::TableStyle;
use crate::chart::Color;

/// A table: labelled rows, and columns in named groups.
#[derive(Clone, PartialEq, Debug)]
pub struct Grid {
    /// The title names the numbers and their subject.
    pub title: String,
    /// The heading above the row labels.
    pub corner: String,
    /// The headings of the columns.
    pub columns: Vec<Column>,
    /// The rows, each with one cell a column.
    pub rows: Vec<Row>,
    /// The footnotes, each with the mark that its cells have, and sentences about the whole table.
    pub notes: Vec<String>,
}

/// The heading of a column: its group, its name with the unit, and the colour of its scheme.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Column {
    /// Columns of one group stay side by side; the group's name is printed above them once.
    pub group: String,
    /// The column's own name, with its unit.
    pub name: String,
    /// The colour of the scheme that the group is of.
    pub scheme: Option<Color>,
}

impl Column {
    /// Makes the head of a column that is of no scheme.
    pub fn new(group: &str, name: &str) -> Column {
        Column { group: group.to_owned(), name: name.to_owned(), scheme: None }
    }
}

/// One row of a table: a label and its cells.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Row {
    /// The label names the subject of the row.
    pub label: String,
    /// The colour of the scheme that the row is of.
    pub scheme: Option<Color>,
    /// The cells of the row, one for each column.
    pub cells: Vec<TableCell>,
}

/// One cell: a number and, where there is one, its uncertainty.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableCell {
    /// The number; empty where there is none.
    pub value: String,
    /// The interval as `(low .. high)` and the mark of a footnote, as far as there are any.
    pub spread: String,
    /// The value is the best of its column (or of its row, in a sweep), and the difference from the second best is
    /// significant.
    pub best: bool,
}

impl TableCell {
    /// Makes a cell of this text alone.
    pub fn plain(value: impl Into<String>) -> TableCell {
        TableCell { value: value.into(), ..TableCell::default() }
    }
}

impl Row {
    /// Makes a row of these texts that is of no scheme.
    pub fn plain<T: Into<String>>(label: impl Into<String>, cells: impl IntoIterator<Item = T>) -> Row {
        let cells = cells.into_iter().map(TableCell::plain).collect();
        Row { label: label.into(), scheme: None, cells }
    }
}

/// The widths of a column: of its numbers, and of the intervals after them.
#[derive(Clone, Copy)]
struct Width {
    value: usize,
    spread: usize,
}

impl Width {
    fn total(self) -> usize {
        self.value + if self.spread > 0 { 1 + self.spread } else { 0 }
    }
}

/// Space between columns, and before a group.
const GAP: usize = 2;
const GROUP_GAP: usize = 4;

impl Grid {
    /// Makes a table whose columns are in no groups, without footnotes.
    pub fn plain(
        title: impl Into<String>,
        corner: &str,
        columns: &[&str],
        rows: impl IntoIterator<Item = Row>,
    ) -> Grid {
        Grid {
            title: title.into(),
            corner: corner.to_owned(),
            columns: columns.iter().map(|name| Column::new("", name)).collect(),
            rows: rows.into_iter().collect(),
            notes: Vec::new(),
        }
    }

    /// Writes the table as aligned text. Groups that do not fit beside each other are below, with the labels repeated.
    pub fn to_terminal(&self, style: &TableStyle) -> String {
        self.printable().draw(style)
    }

    /// Returns the same table with texts that have no control characters.
    fn printable(&self) -> Grid {
        let shown = |text: &String| printable(text).into_owned();
        let column = |Column { group, name, scheme }: &Column| Column {
            group: shown(group),
            name: shown(name),
            scheme: *scheme,
        };
        let cell = |TableCell { value, spread, best }: &TableCell| TableCell {
            value: shown(value),
            spread: shown(spread),
            best: *best,
        };
        let row = |Row { label, scheme, cells }: &Row| Row {
            label: shown(label),
            scheme: *scheme,
            cells: cells.iter().map(cell).collect(),
        };
        Grid {
            title: shown(&self.title),
            corner: shown(&self.corner),
            columns: self.columns.iter().map(column).collect(),
            rows: self.rows.iter().map(row).collect(),
            notes: self.notes.iter().map(shown).collect(),
        }
    }

    fn draw(&self, style: &TableStyle) -> String {
        let widths: Vec<Width> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        let label_width = self.label_width();
        let mut out = format!("{}\n", bold(&self.title, style));
        for (page, groups) in self.pages(&widths, label_width, style.width).iter().enumerate() {
            if page > 0 {
                out.push('\n');
            }
            self.draw_page(groups, &widths, label_width, style, &mut out);
        }
        out
    }

    /// Writes the table as Markdown, without its footnotes.
    pub fn to_markdown(&self) -> String {
        let mut out =
            format!("**{}**\n\n| {} |", escape_markdown(&self.title), escape_markdown(&self.corner));
        for column in &self.columns {
            let name = match column.group.as_str() {
                "" => column.name.clone(),
                group => format!("{group}: {}", column.name),
            };
            out.push_str(&format!(" {} |", escape_markdown(&name)));
        }
        out.push_str("\n|---|");
        self.columns.iter().for_each(|_| out.push_str("---:|"));
        for row in &self.rows {
            out.push_str(&format!("\n| {} |", escape_markdown(&row.label)));
            for cell in &row.cells {
                let mark = if cell.best { "**" } else { "" };
                let spread = if cell.spread.is_empty() { String::new() } else { format!(" {}", cell.spread) };
                out.push_str(&format!(" {mark}{}{mark}{spread} |", cell.value));
            }
        }
        out.push('\n');
        out
    }

    /// Cuts the table between its groups into tables that are at most `limit` characters wide. The last one has the
    /// notes that belong to no mark.
    pub fn split(&self, limit: usize) -> Vec<Grid> {
        let last = self.columns.len().saturating_sub(1);
        let widths: Vec<Width> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        self.pages(&widths, self.label_width(), limit)
            .into_iter()
            .map(|groups| {
                let columns: Vec<usize> = groups.into_iter().flatten().collect();
                let rows = self.rows.iter().map(|row| Row {
                    label: row.label.clone(),
                    scheme: row.scheme,
                    cells: columns.iter().filter_map(|&column| row.cells.get(column).cloned()).collect(),
                });
                let rows: Vec<Row> = rows.collect();
                let cells = || rows.iter().flat_map(|row| &row.cells);
                let used = |note: &&String| match note.split_once(' ') {
                    Some((mark, _)) if !mark.starts_with(char::is_alphabetic) => {
                        cells().any(|cell| cell.spread.ends_with(mark))
                    }
                    _ => columns.contains(&last),
                };
                Grid {
                    title: self.title.clone(),
                    corner: self.corner.clone(),
                    columns: columns.iter().map(|&column| self.columns[column].clone()).collect(),
                    notes: self.notes.iter().filter(used).cloned().collect(),
                    rows,
                }
            })
            .collect()
    }

    fn label_width(&self) -> usize {
        self.rows.iter().map(|row| chars(&row.label)).chain([chars(&self.corner)]).max().unwrap_or(0)
    }

    fn width(&self, column: usize) -> Width {
        let cells = || self.rows.iter().filter_map(|row| row.cells.get(column));
        let spread = cells().map(|cell| chars(&cell.spread)).max().unwrap_or(0);
        let value = cells().map(|cell| chars(&cell.value)).max().unwrap_or(0);
        let name = chars(&self.columns[column].name);
        let extra = if spread > 0 { 1 + spread } else { 0 };
        Width { value: value.max(name.saturating_sub(extra)), spread }
    }

    /// Returns the ranges of columns that share a group.
    fn groups(&self) -> Vec<Range<usize>> {
        let mut groups: Vec<Range<usize>> = Vec::new();
        for column in 0..self.columns.len() {
            match groups.last_mut() {
                Some(group) if self.columns[group.start].group == self.columns[column].group => {
                    group.end = column + 1;
                }
                _ => groups.push(column..column + 1),
            }
        }
        groups
    }

    fn group_width(&self, group: &Range<usize>, widths: &[Width]) -> usize {
        let columns: usize = group.clone().map(|column| widths[column].total()).sum();
        (columns + GAP * (group.len() - 1)).max(chars(&self.columns[group.start].group))
    }

    /// Returns the groups that fit beside each other in `limit` columns of text, page by page. A group that is
    /// itself too wide is cut between its columns.
    fn pages(&self, widths: &[Width], label_width: usize, limit: usize) -> Vec<Vec<Range<usize>>> {
        let mut pages: Vec<Vec<Range<usize>>> = Vec::new();
        let mut used = usize::MAX;
        for group in self.groups() {
            for part in self.cut(group, widths, limit.saturating_sub(label_width + GROUP_GAP)) {
                let width = GROUP_GAP + self.group_width(&part, widths);
                if used.saturating_add(width) > limit {
                    pages.push(Vec::new());
                    used = label_width;
                }
                used += width;
                if let Some(page) = pages.last_mut() {
                    page.push(part);
                }
            }
        }
        pages
    }

    fn cut(&self, group: Range<usize>, widths: &[Width], limit: usize) -> Vec<Range<usize>> {
        let mut parts: Vec<Range<usize>> = Vec::new();
        let mut used = 0;
        for column in group {
            let width = widths[column].total();
            if parts.is_empty() || used + GAP + width > limit {
                parts.push(column..column);
                used = 0;
            }
            used += if used > 0 { GAP } else { 0 } + width;
            if let Some(part) = parts.last_mut() {
                part.end = column + 1;
            }
        }
        parts
    }

    fn draw_page(
        &self,
        groups: &[Range<usize>],
        widths: &[Width],
        label_width: usize,
        style: &TableStyle,
        out: &mut String,
    ) {
        let indent = " ".repeat(label_width);
        if groups.iter().any(|group| !self.columns[group.start].group.is_empty()) {
            let mut line = indent;
            for group in groups {
                let name = &self.columns[group.start].group;
                line.push_str(&" ".repeat(GROUP_GAP));
                line.push_str(&format!("{name:<width$}", width = self.group_width(group, widths)));
            }
            out.push_str(&format!("{}\n", dim(line.trim_end(), style)));
        }
        let mut head = format!("{:<label_width$}", self.corner);
        self.each_column(groups, widths, &mut head, |column, width, line| {
            let total = width.total();
            line.push_str(&format!("{:>total$}", self.columns[column].name));
        });
        out.push_str(&format!("{}\n", dim(head.trim_end(), style)));
        for row in &self.rows {
            let mut line = format!("{:<label_width$}", row.label);
            self.each_column(groups, widths, &mut line, |column, width, line| {
                let empty = TableCell::default();
                let cell = row.cells.get(column).unwrap_or(&empty);
                let value = if cell.value.is_empty() { "-" } else { &cell.value };
                line.push_str(&" ".repeat(width.value.saturating_sub(chars(value))));
                line.push_str(&if cell.best { green(value, style) } else { value.to_owned() });
                if width.spread > 0 {
                    let padded = format!(" {:<spread$}", cell.spread, spread = width.spread);
                    line.push_str(&dim(&padded, style));
                }
            });
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }

    /// Calls `draw` for the columns of a page and keeps the gaps between them.
    fn each_column(
        &self,
        groups: &[Range<usize>],
        widths: &[Width],
        line: &mut String,
        draw: impl Fn(usize, Width, &mut String),
    ) {
        for group in groups {
            line.push_str(&" ".repeat(GROUP_GAP));
            let columns: usize = group.clone().map(|column| widths[column].total()).sum();
            let missing = self.group_width(group, widths) - (columns + GAP * (group.len() - 1));
            for column in group.clone() {
                if column > group.start {
                    line.push_str(&" ".repeat(GAP));
                }
                draw(column, widths[column], line);
            }
            line.push_str(&" ".repeat(missing));
        }
    }
}

fn chars(text: &str) -> usize {
    text.chars().count()
}

fn ansi(code: &str, text: &str, style: &TableStyle) -> String {
    if style.color && !text.trim().is_empty() {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

/// Returns the text in bold type, where the terminal takes colours.
pub fn bold(text: &str, style: &TableStyle) -> String {
    ansi("1", text, style)
}
/// Returns the text less bright, where the terminal takes colours.
pub fn dim(text: &str, style: &TableStyle) -> String {
    ansi("2", text, style)
}
pub(super) fn green(text: &str, style: &TableStyle) -> String {
    ansi("1;32", text, style)
}
pub(super) fn yellow(text: &str, style: &TableStyle) -> String {
    ansi("1;33", text, style)
}

/// Escapes a text so that Markdown shows it as it is, also inside a table.
pub fn escape_markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in printable_lines(text).chars() {
        match c {
            '|' | '*' | '_' | '<' | '>' | '[' | ']' | '\\' | '#' => out.extend(['\\', c]),
            '\n' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
