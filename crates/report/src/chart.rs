//! [`Chart`]: what a figure shows, before it is drawn. One description, two hands: `html/charts.js`
//! draws it in a report, [`crate::svg`] as a static file.

use serde::Serialize;

/// A figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// One sentence on how to read it; may be empty.
    pub note: String,
    /// The marks.
    #[serde(flatten)]
    pub body: Body,
}

/// The kinds of figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Body {
    /// Lines over a common axis, with bands or error bars.
    Lines(Lines),
    /// Bars in groups, with error bars.
    Bars(Bars),
    /// Horizontal bars of parts that sum to a whole.
    Stacked(Stacked),
    /// Points with intervals on a common axis, one a row.
    Dots(Dots),
}

/// An axis.
#[derive(Clone, PartialEq, Debug, Serialize, Default)]
pub struct Axis {
    /// What it counts, without the unit where `format` has one.
    pub label: String,
    /// How its numbers are written.
    pub format: Format,
    /// Logarithmic instead of linear.
    pub log: bool,
    /// Where it starts; by the data if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// Where it ends; by the data if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// Names of the positions 0, 1, 2, ... where the axis has no numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub categories: Vec<String>,
}

impl Axis {
    /// A linear axis from zero.
    pub fn from_zero(label: &str, format: Format) -> Axis {
        Axis { label: label.to_owned(), format, min: Some(0.0), ..Axis::default() }
    }

    /// A logarithmic axis.
    pub fn log(label: &str, format: Format) -> Axis {
        Axis { label: label.to_owned(), format, log: true, ..Axis::default() }
    }
}

/// How the numbers of an axis are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// As they are.
    #[default]
    Number,
    /// Microseconds, in the unit that fits.
    Time,
    /// Mb/s, in the unit that fits.
    Rate,
    /// Bytes, in the unit that fits.
    Size,
    /// A share of one, in percent.
    Percent,
    /// A factor: `2x`.
    Ratio,
}

/// A colour by its role; a page has one value for light and one for dark.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(into = "String")]
pub enum Color {
    /// The n-th variant.
    Series(usize),
    /// The n-th part of a [`Stacked`], by what it is.
    Part(Part),
}

/// Where time goes, as far as colours tell it apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// The transport's window.
    Window,
    /// Losses.
    Recovery,
    /// The NIC queue.
    Nic,
    /// The pacer.
    Pacer,
    /// A switch tier, from the hosts upwards.
    Tier(usize),
    /// Serialisation.
    Serialisation,
    /// Propagation.
    Propagation,
    /// The server.
    Service,
}

/// How many series colours there are; later ones begin anew.
pub const SERIES_COLORS: usize = 8;

impl From<Color> for String {
    fn from(color: Color) -> String {
        match color {
            Color::Series(n) => format!("s{}", n % SERIES_COLORS),
            Color::Part(part) => match part {
                Part::Window => "window".to_owned(),
                Part::Recovery => "recovery".to_owned(),
                Part::Nic => "nic".to_owned(),
                Part::Pacer => "pacer".to_owned(),
                Part::Tier(n) => format!("tier{}", n.min(2)),
                Part::Serialisation => "serialisation".to_owned(),
                Part::Propagation => "propagation".to_owned(),
                Part::Service => "service".to_owned(),
            },
        }
    }
}

impl Color {
    /// The colour on a light ground. The series are Okabe and Ito's, which eyes of every kind tell
    /// apart, without their yellow and black.
    pub fn hex(self) -> &'static str {
        const SERIES: [&str; SERIES_COLORS] =
            ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#c98500", "#3f9fd8", "#7a4fbf", "#6b6f76"];
        match self {
            Color::Series(n) => SERIES[n % SERIES_COLORS],
            Color::Part(part) => match part {
                Part::Window => "#8357a4",
                Part::Recovery => "#c0392b",
                Part::Nic => "#e69f00",
                Part::Pacer => "#56b4e9",
                Part::Tier(0) => "#0072b2",
                Part::Tier(1) => "#4f97c8",
                Part::Tier(_) => "#00466e",
                Part::Serialisation => "#8a8f98",
                Part::Propagation => "#c3c7cd",
                Part::Service => "#009e73",
            },
        }
    }
}

/// Lines.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Lines {
    /// Across.
    pub x: Axis,
    /// Upwards.
    pub y: Axis,
    /// The lines, in the order of the legend.
    pub series: Vec<Line>,
    /// Which axis the reader holds still to compare lines.
    pub read: Read,
    /// A second look at the same data: what is left above each `y`, on a logarithmic axis.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub tail_view: bool,
}

/// Which axis the reader holds still to compare lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Read {
    /// At the same x, every line's y: a timeline, a sweep.
    AtX,
    /// At the same y, every line's x: a distribution.
    AtY,
}

/// One line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Line {
    /// Its name in the legend.
    pub name: String,
    /// Its colour.
    pub color: Color,
    /// Where, ascending.
    pub x: Vec<f64>,
    /// How much.
    pub y: Vec<f64>,
    /// What lies around it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub around: Option<Around>,
    /// Held from each point to the next instead of joined.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub steps: bool,
    /// Points that nothing joins, since nothing was measured between them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
    /// How it is drawn.
    #[serde(skip_serializing_if = "Stroke::is_solid")]
    pub stroke: Stroke,
}

/// How a line is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stroke {
    /// A measurement, with its points.
    #[default]
    Solid,
    /// A reference rather than a measurement.
    Dashed,
    /// A second reference beside it.
    Dotted,
}

impl Stroke {
    /// Whether it is a measurement's.
    pub fn is_solid(&self) -> bool {
        *self == Stroke::Solid
    }

    /// SVG's stroke-dasharray; none without.
    pub fn dashes(self) -> Option<&'static str> {
        match self {
            Stroke::Solid => None,
            Stroke::Dashed => Some("6 4"),
            Stroke::Dotted => Some("1.5 3.5"),
        }
    }
}

/// What lies around a line, point by point.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Around {
    /// How it is drawn.
    pub shape: Shape,
    /// Lower ends; `None` where there is none.
    pub low: Vec<Option<f64>>,
    /// Upper ends.
    pub high: Vec<Option<f64>>,
}

/// How what lies around a line is drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// A filled band: least and most.
    Band,
    /// A bar at each point: an interval.
    ErrorBars,
}

impl Line {
    /// A plain line.
    pub fn new(name: &str, color: Color, x: Vec<f64>, y: Vec<f64>) -> Line {
        let stroke = Stroke::Solid;
        Line { name: name.to_owned(), color, x, y, around: None, steps: false, apart: false, stroke }
    }
}

/// Grouped bars.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bars {
    /// Upwards.
    pub y: Axis,
    /// Names of the groups, from left to right.
    pub groups: Vec<String>,
    /// One bar in each group.
    pub series: Vec<BarSeries>,
}

/// One bar in each group.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BarSeries {
    /// Its name in the legend.
    pub name: String,
    /// Its colour.
    pub color: Color,
    /// Height in each group, with its interval.
    pub values: Vec<Option<Whisker>>,
}

/// A number and its interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Whisker {
    /// The number.
    pub value: f64,
    /// Lower end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

/// Horizontal bars of parts.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Stacked {
    /// Across.
    pub x: Axis,
    /// The parts, in the order of the legend.
    pub parts: Vec<StackPart>,
    /// The bars, from the top down.
    pub rows: Vec<StackRow>,
}

/// A part of every bar.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StackPart {
    /// Its name in the legend.
    pub name: String,
    /// Its colour.
    pub color: Color,
}

/// One bar.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct StackRow {
    /// Rows of one group stand together under its name.
    pub group: String,
    /// The bar's name.
    pub label: String,
    /// Size of each part.
    pub values: Vec<f64>,
}

/// Points with intervals.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Dots {
    /// Across.
    pub x: Axis,
    /// A line to compare with: 1 for ratios.
    pub reference: f64,
    /// What lies to the left and to the right of it, in words.
    pub sides: [String; 2],
    /// The points, from the top down.
    pub rows: Vec<DotRow>,
}

/// One point.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DotRow {
    /// Rows of one group stand together under its name.
    pub group: String,
    /// The point's name.
    pub label: String,
    /// Its colour.
    pub color: Color,
    /// Where it is.
    #[serde(flatten)]
    pub at: Whisker,
    /// Whether it may well be at the reference: drawn hollow.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub hollow: bool,
}
