//! A [`Chart`] as SVG: [`render`] makes a file for documentation, [`inline`] the same drawing inside a report.
//!
//! A file has its title, its note, its legend and a light card of its own, so it reads on a dark page too. A report has
//! these in HTML; its style sheet sets dark colours by class and hides a line by its group, and `charts.js` shows the
//! tooltips in the `data-tip` attributes of transparent targets. The same chart gives the same bytes. Positions are
//! written to a tenth of a pixel.

mod lines;
mod rows;
mod scale;
mod tips;

use std::fmt::Write;

use crate::chart::{Body, Chart, Color, Stroke};
use crate::html::escape;

/// The size of a figure, in pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Size {
    /// The width of the whole figure.
    pub width: u32,
    /// The height between the axes; a figure with one row an item takes what its rows need instead.
    pub plot_height: u32,
}

impl Default for Size {
    fn default() -> Size {
        Size { width: 720, plot_height: 270 }
    }
}

/// Draws a chart as a file.
pub fn render(chart: &Chart, size: Size) -> String {
    let mut canvas = Canvas::new(size, None);
    canvas.head(chart);
    canvas.legend(&keys(chart));
    canvas.body(chart);
    let (width, height) = (canvas.width, canvas.height.ceil());
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\" fill=\"none\" font-size=\"{TEXT}\" font-family=\"{FONT}\">\n\
         <title>{}</title>\n<desc>{}</desc>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\" fill=\"{CARD}\" stroke=\"{EDGE}\"/>\n{}</svg>\n",
        escape(&chart.title),
        escape(&chart.note),
        width - 1.0,
        height - 1.0,
        canvas.marks,
    )
}

/// Draws a chart for a report. `class` is that of the element; `names` are those of the figure's legend, and the group
/// of the n-th has the class `gN`.
pub fn inline(chart: &Chart, size: Size, class: &str, names: &[String]) -> String {
    let mut canvas = Canvas::new(size, Some(names));
    canvas.body(chart);
    let (width, height) = (canvas.width, canvas.height.ceil());
    format!(
        "<svg role=\"img\" class=\"{class}\" tabindex=\"0\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" fill=\"none\" font-size=\"{TEXT}\" aria-label=\"{}\">\n\
         <desc>{}</desc>\n{}{}</svg>\n",
        escape(&chart.title),
        escape(&chart.note),
        canvas.marks,
        canvas.targets,
    )
}

/// An entry of a legend.
#[derive(Clone, PartialEq, Debug)]
pub struct Key {
    /// The name of the entry.
    pub name: String,
    /// The colour of its marks.
    pub color: Color,
    /// What is drawn beside the name.
    pub glyph: Glyph,
}

/// The form of what stands beside a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Glyph {
    /// A line, with the scheme's marker if it is solid.
    Line(Stroke),
    /// The scheme's marker without a line.
    Marker,
    /// A filled square, for a component of a bar.
    Square,
}

/// The legend of a chart; empty where its rows have their names.
pub fn keys(chart: &Chart) -> Vec<Key> {
    match &chart.body {
        Body::Lines(body) => {
            let glyph = |apart: bool, stroke| if apart { Glyph::Marker } else { Glyph::Line(stroke) };
            let key = |line: &crate::chart::Line| Key {
                name: line.name.clone(),
                color: line.color,
                glyph: glyph(line.apart, line.stroke),
            };
            body.series.iter().map(key).collect()
        }
        Body::Stacked(body) => {
            let key = |part: &crate::chart::StackPart| Key {
                name: part.name.clone(),
                color: part.color,
                glyph: Glyph::Square,
            };
            body.parts.iter().map(key).collect()
        }
        Body::Dots(_) => Vec::new(),
    }
}

/// What stands beside a name, as an element of HTML: in the legends and the tables of a report.
pub fn glyph(color: Color, glyph: Glyph) -> String {
    let width = if matches!(glyph, Glyph::Line(_)) { 20 } else { 12 };
    format!(
        "<svg class=\"glyph {}\" width=\"{width}\" height=\"12\" viewBox=\"0 0 {width} 12\" fill=\"none\" \
         color=\"{}\" aria-hidden=\"true\">{}</svg>",
        color.class(),
        color.hex(),
        glyph_marks(0.0, 6.0, color, glyph)
    )
}

/// The marks of a glyph that begins at this place; it is 20 pixels wide if it is a line, 12 otherwise.
fn glyph_marks(left: f64, middle: f64, color: Color, glyph: Glyph) -> String {
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

/// The path of the n-th marker shape: shapes differ as colours do, for readers who see no colours.
fn marker_path(x: f64, y: f64, kind: usize) -> String {
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
struct Paint {
    class: &'static str,
    attribute: &'static str,
}

const INK: Paint = Paint { class: "ink", attribute: "fill=\"#1d2430\"" };
const FAINT: Paint = Paint { class: "faint", attribute: "fill=\"#5b6472\"" };
const GRID: Paint = Paint { class: "grid", attribute: "stroke=\"#e3e6eb\"" };
const BASE: Paint = Paint { class: "base", attribute: "stroke=\"#5b6472\"" };
const CARD: &str = "#ffffff";
const EDGE: &str = "#d5d9e0";
const FONT: &str = "system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif";
const PAD: f64 = 18.0;
const TEXT: f64 = 12.0;
/// The distance between two lines of text.
const LEADING: f64 = 17.0;

/// The figure while it is drawn.
struct Canvas<'a> {
    width: f64,
    plot_height: f64,
    /// The space at the left and the right edge.
    pad: f64,
    /// The next block begins here.
    top: f64,
    /// The height of the figure, known once its body is drawn.
    height: f64,
    marks: String,
    /// The names of the legend, in a report; targets are drawn only there.
    names: Option<&'a [String]>,
    /// The targets with tooltips, which lie above all marks.
    targets: String,
}

/// The side of a text that is at its position.
#[derive(Clone, Copy, PartialEq)]
enum Anchor {
    Start,
    Middle,
    End,
}

/// The rectangle between the axes.
#[derive(Clone, Copy)]
struct Frame {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Frame {
    fn width(&self) -> f64 {
        self.right - self.left
    }
}

/// The attribute of a path with this stroke.
fn dashes(stroke: Stroke) -> String {
    stroke.dashes().map_or_else(String::new, |dashes| format!(" stroke-dasharray=\"{dashes}\""))
}

impl<'a> Canvas<'a> {
    fn new(size: Size, names: Option<&'a [String]>) -> Canvas<'a> {
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

    fn head(&mut self, chart: &Chart) {
        for line in wrapped(&chart.title, 0.78 * self.inside()) {
            self.top += LEADING - 2.0;
            self.text(self.pad, self.top, Anchor::Start, &line, "font-size=\"15\" font-weight=\"600\"", &INK);
        }
        self.paragraph(&chart.note, &FAINT);
        self.top += 12.0;
    }

    /// The width between the edges.
    fn inside(&self) -> f64 {
        self.width - 2.0 * self.pad
    }

    /// Writes a text in as many lines as it needs.
    fn paragraph(&mut self, text: &str, paint: &Paint) {
        for line in wrapped(text, self.inside()) {
            self.top += LEADING;
            self.text(self.pad, self.top, Anchor::Start, &line, "", paint);
        }
    }

    /// Draws the keys in as many lines as they need.
    fn legend(&mut self, keys: &[Key]) {
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

    fn body(&mut self, chart: &Chart) {
        match &chart.body {
            Body::Lines(body) => lines::lines(self, body),
            Body::Stacked(body) => rows::stacked(self, body),
            Body::Dots(body) => rows::dots(self, body),
        }
    }

    /// Opens the group of a colour; in a report it also has the class of its entry in the legend.
    fn open(&mut self, color: Color, name: &str) {
        let number = self.names.and_then(|names| names.iter().position(|other| other == name));
        let group = number.map_or_else(String::new, |number| format!(" g{number}"));
        self.raw(&format!("<g class=\"{}{group}\" color=\"{}\">", color.class(), color.hex()));
    }

    fn text(&mut self, x: f64, y: f64, anchor: Anchor, text: &str, style: &str, paint: &Paint) {
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
    fn centred(&mut self, x: f64, y: f64, text: &str, paint: &Paint) {
        let half = text_width(text) / 2.0;
        let (least, most) = (self.pad + half, self.width - self.pad - half);
        let x = if least > most { self.width / 2.0 } else { x.clamp(least, most) };
        self.text(x, y, Anchor::Middle, text, "", paint);
    }

    /// The attribute that paints an element.
    fn paint(&self, paint: &Paint) -> String {
        match self.names {
            Some(_) => format!("class=\"{}\"", paint.class),
            None => paint.attribute.to_owned(),
        }
    }

    /// Draws all lines of one paint, given as a path.
    fn lines(&mut self, path: &str, paint: &Paint) {
        let paint = self.paint(paint);
        self.raw(&format!("<path d=\"{path}\" {paint}/>"));
    }

    /// Draws the scheme's marker in the colour of the open group.
    fn marker(&mut self, x: f64, y: f64, color: Color, hollow: bool) {
        let fill =
            if hollow { format!("class=\"hollow\" fill=\"{CARD}\"") } else { "fill=\"currentColor\"".into() };
        let path = marker_path(x, y, color.marker());
        self.raw(&format!("<path d=\"{path}\" {fill} stroke=\"currentColor\" stroke-width=\"1.2\"/>"));
    }

    fn raw(&mut self, mark: &str) {
        self.marks.push_str(mark);
        self.marks.push('\n');
    }
}

/// A position, to a tenth of a pixel.
fn at(value: f64) -> String {
    let mut text = format!("{value:.1}");
    if text.ends_with(".0") {
        text.truncate(text.len() - 2);
    }
    if text == "-0" { "0".to_owned() } else { text }
}

/// The width of a text in pixels, estimated from above for the usual fonts.
fn text_width(text: &str) -> f64 {
    let width = |c: char| match c {
        'i' | 'l' | 'j' | '.' | ',' | ':' | ' ' | '(' | ')' | 't' | 'f' | 'r' | '\'' => 4.3,
        'm' | 'w' | 'M' | 'W' | '%' => 10.2,
        c if c.is_uppercase() => 8.2,
        _ => 7.1,
    };
    text.chars().map(width).sum()
}

/// The lines of a text that may be so wide; a word that is wider is cut.
fn wrapped(text: &str, limit: f64) -> Vec<String> {
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

#[cfg(test)]
mod tests;
