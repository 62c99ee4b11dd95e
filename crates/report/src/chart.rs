//! [`Chart`]: the contents of a figure, before it is drawn.
//!
//! ```text
//! Summary and Curves -- crate::plots --+
//! loads of a search (crate line) ------+--> Chart -- crate::svg --> SVG --+--> a file below docs/
//! rows of a reproduction --------------+      ^                           +--> report.html, and charts.js shows
//!                                             |                                the tooltips in its data-tip attributes
//! the list of variants -- Schemes ------------+    (one colour and one marker for each, in every figure and table)
//! ```

use std::borrow::Cow;

/// A figure: its texts and its marks.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// The title names the quantity and its subject.
    pub title: String,
    /// One sentence on how to read the figure; it may be empty.
    pub note: String,
    /// The marks of the figure, all of one kind.
    pub body: Body,
}

/// The kinds of figure differ in their marks.
#[derive(Clone, PartialEq, Debug)]
pub enum Body {
    /// Lines over a common axis, with bands or error bars.
    Lines(Lines),
    /// Horizontal bars of components that sum to a whole.
    Stacked(Stacked),
    /// Points with intervals on a common axis, one a row.
    Dots(Dots),
    /// Spans of a common axis of time, several a row.
    Gantt(Gantt),
    /// Bars along the time, one row a sender.
    Timetable(TimetableChart),
    /// Bars of a common axis of time, with a path through the rows.
    Tracks(Tracks),
}

impl Chart {
    /// Makes a chart of lines that a reader compares at the same x.
    pub fn lines(
        title: impl Into<String>,
        note: impl Into<String>,
        x: Axis,
        y: Axis,
        series: Vec<ChartLine>,
    ) -> Chart {
        let lines = Lines { x, y, series, read: Read::AtX, tail_view: false };
        Chart { title: title.into(), note: note.into(), body: Body::Lines(lines) }
    }

    /// Makes a chart of bars whose lengths are times.
    pub fn times(
        title: impl Into<String>,
        note: &str,
        time: &str,
        parts: Vec<StackPart>,
        rows: Vec<StackRow>,
    ) -> Chart {
        let x = Axis::from_zero(time, Format::Time);
        let body = Body::Stacked(Stacked { x, shares: false, parts, rows });
        Chart { title: title.into(), note: note.to_owned(), body }
    }

    /// Adds a dashed line at a limit of the vertical axis; `None` if that axis has other quantities than `format`
    /// writes.
    pub fn with_limit(mut self, name: &str, limit: f64, format: Format) -> Option<Chart> {
        let Body::Lines(lines) = &mut self.body else { return None };
        if lines.y.format != format {
            return None;
        }
        let x = lines.series.iter().flat_map(|line| line.x.iter().copied());
        let (left, right) =
            x.fold((f64::INFINITY, f64::NEG_INFINITY), |(left, right), x| (left.min(x), right.max(x)));
        let line = ChartLine::new(name, Color::Reference, vec![left, right], vec![limit; 2]);
        lines.series.push(ChartLine { stroke: Stroke::Dashed, ..line });
        Some(self)
    }

    /// The ways to look at the same data that a report offers, each with its name; the first is shown at the start.
    pub fn views(&self) -> Vec<(&'static str, Cow<'_, Chart>)> {
        let other = |body| Cow::Owned(Chart { body, ..self.clone() });
        match &self.body {
            Body::Stacked(stacked) => {
                vec![("share", other(Body::Stacked(stacked.as_shares()))), ("time", Cow::Borrowed(self))]
            }
            Body::Lines(lines) if lines.tail_view => {
                vec![("distribution", Cow::Borrowed(self)), ("tail", other(Body::Lines(lines.tail())))]
            }
            Body::Lines(lines) => match lines.logarithmic() {
                Some(log) => vec![("linear", Cow::Borrowed(self)), ("logarithmic", other(Body::Lines(log)))],
                None => vec![("", Cow::Borrowed(self))],
            },
            Body::Dots(_) | Body::Gantt(_) | Body::Timetable(_) | Body::Tracks(_) => {
                vec![("", Cow::Borrowed(self))]
            }
        }
    }
}

/// An axis of a figure, with its label and its range.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Axis {
    /// The label names the quantity, without the unit where `format` has one.
    pub label: String,
    /// The format of the numbers at the axis and in tooltips, which includes the unit.
    pub format: Format,
    /// The axis is logarithmic instead of linear.
    pub log: bool,
    /// The axis starts here; the data decide if `None`.
    pub min: Option<f64>,
    /// The axis ends here; the data decide if `None`.
    pub max: Option<f64>,
    /// Names at the positions 0, 1, 2, ... of an axis without numbers.
    pub categories: Vec<String>,
}

impl Axis {
    /// Makes a linear axis from zero.
    pub fn from_zero(label: &str, format: Format) -> Axis {
        Axis { label: label.to_owned(), format, min: Some(0.0), ..Axis::default() }
    }

    /// Makes a logarithmic axis.
    pub fn log(label: &str, format: Format) -> Axis {
        Axis { label: label.to_owned(), format, log: true, ..Axis::default() }
    }
}

/// The format of the numbers of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Numbers are written as they are.
    #[default]
    Number,
    /// Microseconds are written in the unit that fits.
    Time,
    /// Mb/s are written in the unit that fits.
    Rate,
    /// Bytes are written in the unit that fits.
    Size,
    /// A share of one is written in percent.
    Percent,
    /// A factor is written as `2x`.
    Ratio,
    /// A whole number, such as a week's, is written without decimals.
    Count,
}

/// A colour by its role, with a value for light and one for dark backgrounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Color {
    /// The n-th scheme of a study, which also has the n-th marker.
    Scheme(usize),
    /// A component of a [`Stacked`].
    Part(Part),
    /// A host that receives by circuits, by its place among the hosts shown. The second number is the sender's place,
    /// which has no colour of its own but a marker.
    Receiver(usize, usize),
    /// The time in which a circuit switch is dark, on every background.
    Night,
    /// A line that no scheme has: a limit, a theoretical value.
    Reference,
}

/// The components of a latency that have colours of their own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Part {
    /// Waiting for the transport's congestion window.
    Window,
    /// Waiting for the recovery of a loss.
    Recovery,
    /// Waiting in the queue of the network interface.
    Nic,
    /// Waiting in the pacer.
    Pacer,
    /// Waiting in a switch tier, counted from the hosts upwards.
    Tier(usize),
    /// Waiting for a circuit.
    Circuit,
    /// Serialisation onto the links.
    Serialisation,
    /// Propagation along the links.
    Propagation,
    /// Service at the server.
    Service,
}

/// Okabe and Ito's colours, which stay apart under every kind of colour blindness, without their yellow and black and
/// with two more; each for light and for dark backgrounds.
const SCHEMES: [[&str; 2]; 8] = [
    ["#0072b2", "#4aa8e0"],
    ["#d55e00", "#ff8a4c"],
    ["#009e73", "#2cc596"],
    ["#c0619a", "#e39cc4"],
    ["#b07500", "#f5bd41"],
    ["#3f9fd8", "#9adcff"],
    ["#7a4fbf", "#b99bf0"],
    ["#5f6368", "#a8b0ba"],
];

/// The colours of the schemes, with an olive in place of the grey, which all other hosts have.
const RECEIVER_COLORS: [[&str; 2]; 8] = {
    let mut colors = SCHEMES;
    colors[7] = ["#8a9a00", "#c8d64a"];
    colors
};

/// The number of receivers that have colours of their own.
pub const RECEIVERS: usize = RECEIVER_COLORS.len();

/// Number of marker shapes; a repeated colour has another shape.
pub const MARKERS: usize = 6;

impl Color {
    /// Returns the colour on a light background, as `#rrggbb`.
    pub fn hex(self) -> &'static str {
        self.values()[0]
    }

    /// Returns the colour on a dark background, as `#rrggbb`.
    pub fn dark(self) -> &'static str {
        self.values()[1]
    }

    fn values(self) -> [&'static str; 2] {
        match self {
            Color::Scheme(number) => SCHEMES[number % SCHEMES.len()],
            Color::Receiver(number, _) => RECEIVER_COLORS[number % RECEIVERS],
            Color::Night => ["#39414e", "#000000"],
            Color::Reference => ["#6b6f76", "#98a1ad"],
            Color::Part(part) => match part {
                Part::Window => ["#8357a4", "#b48bd6"],
                Part::Recovery => ["#c0392b", "#ef6f61"],
                Part::Nic => ["#e69f00", "#f0b63a"],
                Part::Pacer => ["#56b4e9", "#86cdf3"],
                Part::Tier(0) => ["#0072b2", "#3f9bd8"],
                Part::Tier(1) => ["#4f97c8", "#8cc4ea"],
                Part::Tier(_) => ["#00466e", "#2a6f9e"],
                Part::Circuit => ["#c0619a", "#e39cc4"],
                Part::Serialisation => ["#8a8f98", "#8d95a1"],
                Part::Propagation => ["#c3c7cd", "#5c6470"],
                Part::Service => ["#009e73", "#2cc596"],
            },
        }
    }

    /// The class of elements in this colour.
    pub fn class(self) -> String {
        match self {
            Color::Scheme(number) => format!("s{}", number % SCHEMES.len()),
            Color::Receiver(number, _) => format!("receiver{}", number % RECEIVERS),
            Color::Night => "night".to_owned(),
            Color::Reference => "reference".to_owned(),
            Color::Part(Part::Tier(tier)) => format!("tier{}", tier.min(2)),
            Color::Part(part) => format!("{part:?}").to_lowercase(),
        }
    }

    /// The number of the scheme's marker shape, below [`MARKERS`]. Together with the colour it is unique among the
    /// first `8 * MARKERS` schemes.
    pub fn marker(self) -> usize {
        match self {
            Color::Scheme(number) => (number % SCHEMES.len() + number / SCHEMES.len()) % MARKERS,
            Color::Receiver(receiver, sender) => (receiver + sender) % MARKERS,
            Color::Part(_) | Color::Night | Color::Reference => 0,
        }
    }

    /// Returns every colour once, for the style sheet of a page.
    pub fn all() -> impl Iterator<Item = Color> {
        use Part::{Circuit, Nic, Pacer, Propagation, Recovery, Serialisation, Service, Tier, Window};
        let parts = [
            Window,
            Recovery,
            Nic,
            Pacer,
            Tier(0),
            Tier(1),
            Tier(2),
            Circuit,
            Serialisation,
            Propagation,
            Service,
        ];
        let schemes = (0..SCHEMES.len()).map(Color::Scheme);
        let receivers = (0..RECEIVERS).map(|number| Color::Receiver(number, 0));
        schemes.chain(receivers).chain(parts.map(Color::Part)).chain([Color::Night, Color::Reference])
    }
}

/// The colour and the marker of every scheme of a study, assigned once.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schemes(Vec<(String, usize)>);

impl Schemes {
    /// Assigns from the lists of schemes that each figure of the study shows. A scheme has the first colour that no
    /// earlier scheme of the same figures has, so one list gets the colours in its order.
    pub fn of<'a, F: IntoIterator<Item = &'a str>>(figures: impl IntoIterator<Item = F>) -> Schemes {
        let figures: Vec<Vec<&str>> =
            figures.into_iter().map(|figure| figure.into_iter().collect()).collect();
        let mut schemes = Schemes::default();
        for &name in figures.iter().flatten() {
            if schemes.number(name).is_some() {
                continue;
            }
            let beside = figures.iter().filter(|figure| figure.contains(&name)).flatten();
            let taken: Vec<usize> = beside.filter_map(|other| schemes.number(other)).collect();
            let free = (0..).find(|number| !taken.contains(number)).unwrap_or(0);
            schemes.0.push((name.to_owned(), free));
        }
        schemes
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, number)| *number)
    }

    /// The colour of a scheme, if the study has it.
    pub fn find(&self, name: &str) -> Option<Color> {
        self.number(name).map(Color::Scheme)
    }

    /// The colour of a scheme; [`Color::Reference`] for a name that the study does not have.
    pub fn color(&self, name: &str) -> Color {
        self.find(name).unwrap_or(Color::Reference)
    }
}

/// A figure of lines over a common horizontal axis, such as a timeline or a distribution.
#[derive(Clone, PartialEq, Debug)]
pub struct Lines {
    /// The horizontal axis of all lines.
    pub x: Axis,
    /// The vertical axis of all lines.
    pub y: Axis,
    /// The lines, in the order of the legend.
    pub series: Vec<ChartLine>,
    /// The axis along which a reader compares lines.
    pub read: Read,
    /// Whether a report also shows the share above each `y`, on a logarithmic axis.
    pub tail_view: bool,
}

/// A line is unreadable on a linear axis if another's maximum is this many times its own.
const FAR_APART: f64 = 10.0;

impl Lines {
    /// The complementary distribution on a logarithmic axis.
    fn tail(&self) -> Lines {
        let tail = |line: &ChartLine| {
            let points = line.x.iter().zip(&line.y).map(|(&x, &y)| (x, 1.0 - y));
            let (x, y) = points.filter(|(_, share)| *share > 1e-12).unzip();
            ChartLine { x, y, around: None, ..line.clone() }
        };
        Lines {
            y: Axis { max: Some(1.0), ..Axis::log("share that took longer", Format::Percent) },
            series: self.series.iter().map(tail).collect(),
            read: Read::AtTail,
            ..self.clone()
        }
    }

    /// Returns the same lines on a logarithmic axis, where a linear one from zero hides some of them.
    fn logarithmic(&self) -> Option<Lines> {
        let tops = self.series.iter().map(|line| line.y.iter().copied().fold(0.0, f64::max));
        let (least, most) = tops
            .filter(|top| *top > 0.0)
            .fold((f64::INFINITY, 0.0f64), |(least, most), top| (least.min(top), most.max(top)));
        let hidden = !self.y.log && self.read == Read::AtX && most > FAR_APART * least;
        // Three decades below the least maximum; smaller values are at the lower edge.
        hidden.then(|| Lines {
            y: Axis { log: true, min: Some(least / 1e3), max: None, ..self.y.clone() },
            ..self.clone()
        })
    }
}

/// The axis along which a reader compares lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// The reader takes every line's y at the same x: a timeline, a sweep.
    AtX,
    /// The reader takes every line's x at the same y: a distribution.
    AtY,
    /// The reader takes every line's x at the same y, and y is one less the share: the tail of a distribution.
    AtTail,
}

/// One line of a figure, with its points, its stroke and its intervals.
#[derive(Clone, PartialEq, Debug)]
pub struct ChartLine {
    /// The name in the legend.
    pub name: String,
    /// The colour, and the marker with it.
    pub color: Color,
    /// The horizontal positions of the points, ascending, in the unit of the axis.
    pub x: Vec<f64>,
    /// The vertical position of each point, as many as `x`.
    pub y: Vec<f64>,
    /// The band or the error bars around the line.
    pub around: Option<Around>,
    /// Each value is held until the next point instead of joined to it.
    pub steps: bool,
    /// The points are not joined, since nothing was measured between them.
    pub apart: bool,
    /// The stroke, which distinguishes a measurement from a reference.
    pub stroke: Stroke,
}

/// The stroke of a line shows the kind of its values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stroke {
    /// A measurement, with its markers.
    #[default]
    Solid,
    /// A reference rather than a measurement.
    Dashed,
    /// A second reference beside it.
    Dotted,
}

impl Stroke {
    /// Returns whether the line is a measurement.
    pub fn is_solid(self) -> bool {
        self == Stroke::Solid
    }

    /// The value of SVG's `stroke-dasharray`, if the line has dashes.
    pub fn dashes(self) -> Option<&'static str> {
        match self {
            Stroke::Solid => None,
            Stroke::Dashed => Some("6 4"),
            Stroke::Dotted => Some("1.5 3.5"),
        }
    }
}

/// The band or the error bars around a line, point by point.
#[derive(Clone, PartialEq, Debug)]
pub struct Around {
    /// The shape that shows the range from `low` to `high`.
    pub shape: Shape,
    /// The lower end at each point, where there is one.
    pub low: Vec<Option<f64>>,
    /// The upper end at each point, where there is one.
    pub high: Vec<Option<f64>>,
}

/// The shapes that show a range around a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// A filled band from the least to the greatest value.
    Band,
    /// An error bar at each point, for an interval.
    ErrorBars,
}

impl ChartLine {
    /// Makes a solid line with nothing around it.
    pub fn new(name: &str, color: Color, x: Vec<f64>, y: Vec<f64>) -> ChartLine {
        let stroke = Stroke::Solid;
        ChartLine { name: name.to_owned(), color, x, y, around: None, steps: false, apart: false, stroke }
    }
}

/// A point estimate with the ends of its interval, in the unit of the axis.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Whisker {
    /// The point estimate.
    pub value: f64,
    /// The lower end of the interval; `None` where there is no interval.
    pub low: Option<f64>,
    /// The upper end of the interval; `None` where there is no interval.
    pub high: Option<f64>,
}

/// A figure of horizontal bars, each of which is divided into components that sum to a whole.
#[derive(Clone, PartialEq, Debug)]
pub struct Stacked {
    /// The horizontal axis, of a bar's whole.
    pub x: Axis,
    /// Every bar is drawn with the same length, so that its components are shares.
    pub shares: bool,
    /// The components, in the order of the legend.
    pub parts: Vec<StackPart>,
    /// The bars, from the top down.
    pub rows: Vec<StackRow>,
}

impl Stacked {
    fn as_shares(&self) -> Stacked {
        Stacked { shares: true, ..self.clone() }
    }
}

/// A component of every bar, with its entry in the legend.
#[derive(Clone, PartialEq, Debug)]
pub struct StackPart {
    /// The name in the legend.
    pub name: String,
    /// The colour of the component in all figures of a page.
    pub color: Color,
}

/// One bar, with the sizes of its components.
#[derive(Clone, PartialEq, Debug)]
pub struct StackRow {
    /// Rows of one group are side by side under its name.
    pub group: String,
    /// The label names the bar.
    pub label: String,
    /// The colour and marker before the name, if the bar belongs to a scheme.
    pub scheme: Option<Color>,
    /// The size of each component of `parts`, in the unit of the axis.
    pub values: Vec<f64>,
}

impl StackRow {
    /// Makes a bar that is of no group and no scheme.
    pub fn plain(label: &str, values: Vec<f64>) -> StackRow {
        StackRow { group: String::new(), label: label.to_owned(), scheme: None, values }
    }
}

/// A figure of points with intervals, one a row, around a vertical reference line.
#[derive(Clone, PartialEq, Debug)]
pub struct Dots {
    /// The horizontal axis of all points.
    pub x: Axis,
    /// A vertical line marks this value: 1 for ratios.
    pub reference: f64,
    /// These words name the two sides of the reference, left and right.
    pub sides: [String; 2],
    /// The points, from the top down.
    pub rows: Vec<DotRow>,
}

/// One row: a point with its interval and its label.
#[derive(Clone, PartialEq, Debug)]
pub struct DotRow {
    /// Rows of one group are side by side under its name.
    pub group: String,
    /// The name of the point.
    pub label: String,
    /// The colour, and the marker with it.
    pub color: Color,
    /// The value and its interval.
    pub at: Whisker,
    /// The difference from the reference is not significant, so the point is drawn hollow.
    pub hollow: bool,
}

/// Spans of time in rows: a schedule.
#[derive(Clone, PartialEq, Debug)]
pub struct Gantt {
    /// The horizontal axis of all spans.
    pub x: Axis,
    /// The rows, from the top down.
    pub rows: Vec<GanttRow>,
}

/// A row of spans with its label.
#[derive(Clone, PartialEq, Debug)]
pub struct GanttRow {
    /// The label names the row.
    pub label: String,
    /// The spans of the row, which do not overlap.
    pub spans: Vec<GanttSpan>,
}

/// A span of time in a row.
#[derive(Clone, PartialEq, Debug)]
pub struct GanttSpan {
    /// The position on the axis at which the span begins.
    pub from: f64,
    /// The length of the span, in the unit of the axis.
    pub length: f64,
    /// The colour of the span.
    pub color: Color,
    /// The text written into it where there is room.
    pub text: String,
}

/// Bars along the time, one row a sender.
#[derive(Clone, PartialEq, Debug)]
pub struct TimetableChart {
    /// The label of the time axis, which is counted in weeks.
    pub label: String,
    /// The number of the first week.
    pub first: u64,
    /// The number of weeks; a figure without room for all leaves out the last ones.
    pub weeks: u64,
    /// The names of the rows, from the top down.
    pub rows: Vec<String>,
    /// The kinds of bar, in the order of the legend.
    pub keys: Vec<StackPart>,
    /// The bars of all rows.
    pub bars: Vec<TimetableBar>,
    /// The name and the colour of the times without bars.
    pub night: StackPart,
    /// The times without bars, each from its start until its end, in weeks.
    pub nights: Vec<(f64, f64)>,
}

/// One bar: a circuit while it was established.
#[derive(Clone, PartialEq, Debug)]
pub struct TimetableBar {
    /// The number of its row, from the top.
    pub row: usize,
    /// The index of the bar's kind in `keys`.
    pub key: usize,
    /// The number of the week in which the bar lies.
    pub week: u64,
    /// The time at which the bar begins, in weeks.
    pub from: f64,
    /// The time at which the bar ends, in weeks.
    pub until: f64,
    /// The name of the bar.
    pub name: String,
    /// The bytes on the wire that the circuit of the bar carried.
    pub bytes: f64,
    /// The share of what fits, which is the share of its height that is solid.
    pub filled: f64,
}

/// Bars in many rows, each of one kind, and a path through the rows.
#[derive(Clone, PartialEq, Debug)]
pub struct Tracks {
    /// The horizontal axis of all rows.
    pub x: Axis,
    /// The rows, from the top down.
    pub rows: Vec<Track>,
    /// The kinds of bar, in the order of the legend; later ones are drawn over earlier ones.
    pub keys: Vec<TrackKey>,
    /// The bars of all rows.
    pub bars: Vec<TrackBar>,
    /// The row and the position of each point of the path.
    pub path: Vec<(usize, f64)>,
    /// The name and the colour of the path, if there is one.
    pub path_key: Option<StackPart>,
}

/// A row of [`Tracks`], which its bars name by number.
#[derive(Clone, PartialEq, Debug)]
pub struct Track {
    /// The label names the row.
    pub label: String,
}

/// A kind of bar in [`Tracks`].
#[derive(Clone, PartialEq, Debug)]
pub struct TrackKey {
    /// The name in the legend.
    pub name: String,
    /// The colour of its bars.
    pub color: Color,
    /// Its bars are low and pale: time in which nothing is done.
    pub is_faint: bool,
}

/// A bar of [`Tracks`] in its row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrackBar {
    /// The number of its row, from the top.
    pub row: usize,
    /// The index of its kind in `keys`.
    pub key: usize,
    /// The position at which it begins.
    pub from: f64,
    /// The position at which it ends.
    pub until: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_has_one_color_in_all_figures_and_none_twice_in_one() {
        let figures = [vec!["TCP", "DCTCP", "HULL"], vec!["DCTCP", "HULL"], vec!["HULL", "ideal", "TCP"]];
        let schemes = Schemes::of(figures.clone());
        let number = |name| schemes.number(name).unwrap();
        assert_eq!(["TCP", "DCTCP", "HULL", "ideal"].map(number), [0, 1, 2, 1]);
        assert_eq!(schemes.find("other"), None);
        assert_eq!(schemes.color("other"), Color::Reference);
        for figure in figures {
            let mut numbers: Vec<usize> = figure.iter().map(|name| number(name)).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), figure.len());
        }
    }

    #[test]
    fn color_and_marker_together_are_unique() {
        let looks: std::collections::BTreeSet<_> =
            (0..8 * MARKERS).map(|n| (Color::Scheme(n).hex(), Color::Scheme(n).marker())).collect();
        assert_eq!(looks.len(), 8 * MARKERS);
        let classes: std::collections::BTreeSet<_> = Color::all().map(Color::class).collect();
        assert_eq!(classes.len(), Color::all().count());
    }
}
