//! [`Canvas`]: a figure while it is drawn, its texts and its legend.

use std::fmt::Write;

use crate::chart::{Chart, Color, Stroke};
use crate::escape::escape;

/// The size of a figure, in pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// The width of the whole figure, in pixels.
    pub width: u32,
    /// The height between the axes; a figure with one row an item takes the height of its rows instead.
    pub plot_height: u32,
}

impl Default for Size {
    fn default() -> Size {
        Size { width: 720, plot_height: 270 }
    }
}

/// An entry of a figure's legend: a mark and a name.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// The name of the entry.
    pub name: String,
    /// The colour of its marks.
    pub color: Color,
    /// The mark drawn beside the name.
    pub glyph: Glyph,
}

/// The form of the mark beside a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Glyph {
    /// A line, with the scheme's marker if it is solid.
    Line(Stroke),
    /// The scheme's marker without a line.
    Marker,
    /// A filled square, for a component of a bar.
    Square,
}

/// The marks of a glyph that begins at this place; it is 20 pixels wide if it is a line, 12 otherwise.
pub(super) fn glyph_marks(left: f64, middle: f64, color: Color, glyph: Glyph) -> String {
    let marker = |center: f64| {
        format!("<path d=\"{}\" fill=\"currentColor\"/>", marker_path(center, middle, color.marker()))
    };
    match glyph {
        Glyph::Line(stroke) => {
            let dashes = dashes(stroke);
            let marker = if stroke.is_solid() { marker(left + 10.0) } else { String::new() };
            let (left, middle) = (at(left), at(middle));
            format!(
                "<path d=\"M{left} {middle}h20\" stroke=\"currentColor\" stroke-width=\"2\"{dashes}/>{marker}"
            )
        }
        Glyph::Marker => marker(left + 6.0),
        Glyph::Square => {
            let (x, y) = (at(left + 0.5), at(middle - 5.5));
            format!("<path d=\"M{x} {y}h11v11h-11z\" fill=\"currentColor\"/>")
        }
    }
}

/// Returns the path of the n-th marker shape: shapes differ as colours do, for readers who cannot distinguish colours.
pub(super) fn marker_path(x: f64, y: f64, kind: usize) -> String {
    let from = |dx: f64, dy: f64| format!("M{} {}", at(x + dx), at(y + dy));
    match kind {
        0 => from(-3.6, 0.0) + "a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z",
        1 => from(-3.3, -3.3) + "h6.6v6.6h-6.6z",
        2 => from(0.0, -4.4) + "l4.2 7.2h-8.4z",
        3 => from(0.0, -4.7) + "l4.7 4.7l-4.7 4.7l-4.7 -4.7z",
        4 => from(0.0, 4.4) + "l4.2 -7.2h-8.4z",
        _ => from(-1.4, -4.2) + "h2.8v2.8h2.8v2.8h-2.8v2.8h-2.8v-2.8h-2.8v-2.8h2.8z",
    }
}

/// The colour of a text or a line that is of no series: a class for the style sheet of a report, and an attribute for a
/// file.
pub(super) struct Paint {
    pub(super) class: &'static str,
    pub(super) attribute: &'static str,
}

pub(super) const INK: Paint = Paint { class: "ink", attribute: "fill=\"#1d2430\"" };
pub(super) const FAINT: Paint = Paint { class: "faint", attribute: "fill=\"#5b6472\"" };
/// Text on a mark of any colour.
pub(super) const ON_MARK: Paint = Paint { class: "on-mark", attribute: "fill=\"#ffffff\"" };
pub(super) const GRID: Paint = Paint { class: "grid", attribute: "stroke=\"#e3e6eb\"" };
pub(super) const BASE: Paint = Paint { class: "base", attribute: "stroke=\"#5b6472\"" };
pub(super) const CARD: &str = "#ffffff";
pub(super) const EDGE: &str = "#d5d9e0";
pub(super) const FONT: &str = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";
pub(super) const PAD: f64 = 18.0;
pub(super) const TEXT: f64 = 12.0;
/// The distance between two lines of text.
pub(super) const LEADING: f64 = 17.0;

/// The figure while it is drawn.
pub(super) struct Canvas<'a> {
    pub(super) width: f64,
    pub(super) plot_height: f64,
    /// The space at the left and the right edge.
    pub(super) pad: f64,
    /// The next block begins here.
    pub(super) top: f64,
    /// The height of the figure, known once its body is drawn.
    pub(super) height: f64,
    pub(super) marks: String,
    /// The names of the legend, in a report; targets are drawn only there.
    pub(super) names: Option<&'a [String]>,
    /// The targets with tooltips, which lie above all marks.
    pub(super) targets: String,
}

/// The side of a text that is at its position.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// The rectangle between the axes.
#[derive(Clone, Copy)]
pub(super) struct PlotFrame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl PlotFrame {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }
}

/// The attribute of a path with this stroke.
pub(super) fn dashes(stroke: Stroke) -> String {
    stroke.dashes().map_or_else(String::new, |dashes| format!(" stroke-dasharray=\"{dashes}\""))
}

impl<'a> Canvas<'a> {
    pub(super) fn new(size: Size, names: Option<&'a [String]>) -> Canvas<'a> {
        let pad = if names.is_some() { 2.0 } else { PAD };
        Canvas {
            width: f64::from(size.width),
            plot_height: f64::from(size.plot_height),
            pad,
            top: pad,
            height: 0.0,
            marks: String::new(),
            names,
            targets: String::new(),
        }
    }

    pub(super) fn head(&mut self, chart: &Chart) {
        for line in wrapped(&chart.title, 0.78 * self.inside()) {
            self.top += LEADING - 2.0;
            self.text(self.pad, self.top, Anchor::Start, &line, "font-size=\"15\" font-weight=\"600\"", &INK);
        }
        self.paragraph(&chart.note, &FAINT);
        self.top += 12.0;
    }

    /// The width between the edges.
    pub(super) fn inside(&self) -> f64 {
        self.width - 2.0 * self.pad
    }

    /// Writes a text in as many lines as it needs.
    pub(super) fn paragraph(&mut self, text: &str, paint: &Paint) {
        for line in wrapped(text, self.inside()) {
            self.top += LEADING;
            self.text(self.pad, self.top, Anchor::Start, &line, "", paint);
        }
    }

    /// Draws the keys in as many lines as they need.
    pub(super) fn legend(&mut self, keys: &[Key]) {
        if keys.is_empty() {
            return;
        }
        let mut left = self.pad;
        self.top += 8.0;
        for Key { name, color, glyph } in keys {
            let beside = if matches!(glyph, Glyph::Line(_)) { 26.0 } else { 18.0 };
            let width = beside + text_width(name) + 18.0;
            if left > self.pad && left + width > self.width {
                left = self.pad;
                self.top += 18.0;
            }
            self.open(*color, name);
            self.raw(&glyph_marks(left, self.top, *color, *glyph));
            self.raw("</g>");
            for (number, line) in wrapped(name, self.width - self.pad - left - beside).iter().enumerate() {
                self.top += if number == 0 { 0.0 } else { LEADING };
                self.text(left + beside, self.top + 4.0, Anchor::Start, line, "", &INK);
            }
            left += width;
        }
        self.top += 16.0;
    }

    /// Opens the group of a colour; in a report it also has the class of its entry in the legend.
    pub(super) fn open(&mut self, color: Color, name: &str) {
        let number = self.names.and_then(|names| names.iter().position(|other| other == name));
        let group = number.map_or_else(String::new, |number| format!(" g{number}"));
        self.raw(&format!("<g class=\"{}{group}\" color=\"{}\">", color.class(), color.hex()));
    }

    pub(super) fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str, style: &str, paint: &Paint) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let space = if style.is_empty() { "" } else { " " };
        let (x, y, text, paint) = (at(x), at(y), escape(text), self.paint(paint));
        self.raw(&format!("<text x=\"{x}\" y=\"{y}\"{anchor}{space}{style} {paint}>{text}</text>"));
    }

    /// Writes a text around `x`, moved as far as it must be to be inside the figure.
    pub(super) fn centred(&mut self, x: f64, y: f64, text: &str, paint: &Paint) {
        let half = text_width(text) / 2.0;
        let (least, most) = (self.pad + half, self.width - self.pad - half);
        let x = if least > most { self.width / 2.0 } else { x.clamp(least, most) };
        self.text(x, y, Anchor::Middle, text, "", paint);
    }

    /// The attribute that paints an element.
    pub(super) fn paint(&self, paint: &Paint) -> String {
        match self.names {
            Some(_) => format!("class=\"{}\"", paint.class),
            None => paint.attribute.to_owned(),
        }
    }

    /// Draws all lines of one paint, given as a path.
    pub(super) fn lines(&mut self, path: &str, paint: &Paint) {
        let paint = self.paint(paint);
        self.raw(&format!("<path d=\"{path}\" {paint}/>"));
    }

    /// Draws the scheme's marker in the colour of the open group.
    pub(super) fn marker(&mut self, x: f64, y: f64, color: Color, hollow: bool) {
        let fill =
            if hollow { format!("class=\"hollow\" fill=\"{CARD}\"") } else { "fill=\"currentColor\"".into() };
        let path = marker_path(x, y, color.marker());
        self.raw(&format!("<path d=\"{path}\" {fill} stroke=\"currentColor\" stroke-width=\"1.2\"/>"));
    }

    pub(super) fn raw(&mut self, mark: &str) {
        self.marks.push_str(mark);
        self.marks.push('\n');
    }
}

/// A position, to a tenth of a pixel.
pub(super) fn at(value: f64) -> String {
    if let Some(text) = between_ties(value) {
        return text;
    }
    let mut text = format!("{value:.1}");
    if text.ends_with(".0") {
        text.truncate(text.len() - 2);
    }
    if text == "-0" { "0".to_owned() } else { text }
}

/// Returns the same text as [`at`], by integers, which takes a fifth of the time; `None` near a tie, where the digits
/// of the number decide which way it is rounded, and beyond all drawings.
fn between_ties(value: f64) -> Option<String> {
    let tenths = value * 10.0;
    let nearest = tenths.round();
    let is_clear = (tenths - nearest).abs() < 0.499 && nearest.abs() < 1e9;
    if !is_clear {
        return None;
    }
    let nearest = nearest as i64;
    let (sign, whole, tenth) = (if nearest < 0 { "-" } else { "" }, nearest.abs() / 10, nearest.abs() % 10);
    Some(if tenth == 0 { format!("{sign}{whole}") } else { format!("{sign}{whole}.{tenth}") })
}

/// The width of a text in pixels, estimated from above for the usual fonts.
pub(super) fn text_width(text: &str) -> f64 {
    let width = |c: char| match c {
        'i' | 'l' | 'j' | '.' | ',' | ':' | ' ' | '(' | ')' | 't' | 'f' | 'r' | '\'' => 4.3,
        'm' | 'w' | 'M' | 'W' | '%' => 10.2,
        '←' | '→' => 12.0,
        c if c.is_uppercase() => 8.2,
        _ => 7.1,
    };
    text.chars().map(width).sum()
}

/// The lines of a text that may be so wide; a word that is wider is cut.
pub(super) fn wrapped(text: &str, limit: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(line) + text_width(word) + 4.3 <= limit => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(String::new()),
        }
        let Some(line) = lines.last_mut().filter(|line| line.is_empty()) else { continue };
        let _ = write!(line, "{word}");
        while text_width(lines.last().map_or("", String::as_str)) > limit {
            let Some(long) = lines.pop() else { break };
            let fits = (1..=long.chars().count())
                .rev()
                .find(|&n| text_width(&long.chars().take(n).collect::<String>()) <= limit)
                .unwrap_or(1);
            let (head, tail) =
                (long.chars().take(fits).collect(), long.chars().skip(fits).collect::<String>());
            lines.push(head);
            if tail.is_empty() {
                break;
            }
            lines.push(tail);
        }
    }
    lines
}
