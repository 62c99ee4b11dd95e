//! The tables of jobs: their iterations with the critical path, and their communication groups; and the figure of an
//! iteration.

use plimsoll_results::Summary;
use plimsoll_results::job_timeline::{BarKind, JobTimeline, PathStep, TimelineRow};
use plimsoll_results::outcome::RepeatRecord;
use plimsoll_results::stats::Estimate;
use plimsoll_results::summary::{Cell as PointCell, GroupSummary, JobSummary, PathSummary};
use plimsoll_text::grouped;

use crate::chart::{Axis, Body, Chart, Color, Format, Part, StackPart, Track, TrackBar, TrackKey, Tracks};
use crate::figures::{self, TIMES, Unit};
use crate::plots::{self, cell_label};
use crate::table::numbers::{NumberColumn, assemble};
use crate::table::{Grid, Row};

/// Makes the tables of the jobs of every variant and sweep point; none where there are none.
pub(crate) fn summary_grids(summary: &Summary) -> Vec<Grid> {
    let jobs = || summary.cells.iter().flat_map(|cell| cell.jobs.iter().map(move |job| (cell, job)));
    let several = summary.cells.iter().any(|cell| cell.jobs.len() > 1);
    let labels: Vec<_> = jobs()
        .map(|(cell, job)| labelled(cell_label(summary, cell), if several { &job.workload } else { "" }))
        .collect();
    if labels.is_empty() {
        return Vec::new();
    }
    let all = |pick: fn(&JobSummary) -> f64| {
        jobs().map(|(_, job)| Some(Estimate::bare(pick(job), job.iterations))).collect::<Vec<_>>()
    };
    let (iteration, bandwidth, path) = ("iteration", "bandwidth", "critical path");
    let time = Some(TIMES);
    let mut columns = vec![
        NumberColumn::new(iteration, "mean", time, all(|job| job.took_us)),
        NumberColumn::new(iteration, "ideal", time, all(|job| job.ideal_us)),
        NumberColumn::new(iteration, "skew", time, all(|job| job.skew_us)),
        NumberColumn::new(bandwidth, "algbw", Some(GBYTES), all(|job| job.algbw)),
        NumberColumn::new(bandwidth, "busbw", Some(GBYTES), all(|job| job.busbw)),
    ];
    // An emulated run does not know where the time went.
    let has_paths = jobs().any(|(_, job)| job.path != PathSummary::default());
    if has_paths {
        columns.extend([
            NumberColumn::new(path, "operations", time, all(|job| job.path.operations_us)),
            NumberColumn::new(path, "transport", time, all(|job| job.path.transport_us)),
            NumberColumn::new(path, "recovery", time, all(|job| job.path.recovery_us)),
            NumberColumn::new(path, "NICs", time, all(|job| job.path.nic_us)),
            NumberColumn::new(path, "switches", time, all(|job| job.path.switches_us)),
            NumberColumn::new(path, "wire", time, all(|job| job.path.wire_us)),
        ]);
    }
    let mut grid = assemble("Jobs".to_owned(), "variant", labels, &columns);
    grid.notes.push(
        "Ideal: each message has idle links, but for the others of its ends. Skew: from the end of the first rank to \
         that of the last."
            .to_owned(),
    );
    if has_paths {
        grid.notes.push("The parts of the critical path sum to the mean.".to_owned());
    }
    grid.notes.extend(jobs().filter_map(|(cell, job)| {
        let of = labelled(cell_label(summary, cell), if several { &job.workload } else { "" }).0;
        Some(repeats(&of, job.repeats.as_ref()?))
    }));
    let mut grids = vec![grid];
    grids.extend(places(summary));
    grids.extend(groups(summary));
    grids
}

/// The places where messages on critical paths waited, the most first; none where none waited.
fn places(summary: &Summary) -> Option<Grid> {
    let several = summary.cells.iter().any(|cell| cell.jobs.len() > 1);
    let jobs = summary.cells.iter().flat_map(|cell| cell.jobs.iter().map(move |job| (cell, job)));
    let row = |(cell, job): (&PointCell, &JobSummary)| {
        let (label, scheme) = labelled(cell_label(summary, cell), if several { &job.workload } else { "" });
        let all: f64 = job.places.iter().map(|place| place.waited_us).sum();
        let share = |us: f64| format!("{} %", figures::fixed(100.0 * us / all, 0));
        let mut cells = vec![figures::time(all)];
        let shown = job.places.iter().take(PLACES);
        cells.extend(shown.map(|place| format!("{} {}", place.at, share(place.waited_us))));
        cells.resize(1 + PLACES, String::new());
        let others = &job.places[PLACES.min(job.places.len())..];
        cells.push(match others.len() {
            0 => String::new(),
            1 => format!("1 place {}", share(others[0].waited_us)),
            count => format!("{count} places {}", share(others.iter().map(|place| place.waited_us).sum())),
        });
        Row { scheme, ..Row::plain(label, cells) }
    };
    let rows: Vec<Row> = jobs.filter(|(_, job)| !job.places.is_empty()).map(row).collect();
    let columns = ["in queues", "most at", "then at", "then at", "others"];
    let title = "Waiting of messages on the critical path, by link";
    (!rows.is_empty()).then(|| Grid::plain(title, "variant", &columns, rows))
}

/// The places of waiting with columns of their own.
const PLACES: usize = 3;

/// The communication groups of jobs that have some; `all` is every communication.
fn groups(summary: &Summary) -> Option<Grid> {
    let mut labels = Vec::new();
    let mut rows: Vec<&GroupSummary> = Vec::new();
    for cell in &summary.cells {
        for job in cell.jobs.iter().filter(|job| job.groups.len() > 1) {
            for group in &job.groups {
                let name = if group.name.is_empty() { "all" } else { group.name.as_str() };
                labels.push(labelled(cell_label(summary, cell), &format!("{} {name}", job.workload)));
                rows.push(group);
            }
        }
    }
    if rows.is_empty() {
        return None;
    }
    let all = |pick: fn(&GroupSummary) -> f64| {
        rows.iter().map(|group| Some(Estimate::bare(pick(group), 1))).collect::<Vec<_>>()
    };
    let (waited, exposed) = ("waited", "exposed");
    let columns = [
        NumberColumn::new(waited, "mean", Some(TIMES), all(|group| group.waited_us)),
        NumberColumn::new(exposed, "mean", Some(TIMES), all(|group| group.exposed_us)),
        NumberColumn::new(exposed, "most", Some(TIMES), all(|group| group.exposed_most_us)),
    ];
    let mut grid = assemble("Communication of jobs, by group".to_owned(), "variant", labels, &columns);
    grid.notes.push(
        "An iteration of a rank: while it waited for messages, and of that while it computed nothing."
            .to_owned(),
    );
    Some(grid)
}

/// Says what was simulated of a job that repeats, and how far what was replayed can be trusted.
fn repeats(of: &str, repeats: &RepeatRecord) -> String {
    let count = |number: u64| grouped(&number.to_string());
    let share =
        |all: u64, replayed: u64, what: &str| format!("{} of {} {what}", count(all - replayed), count(all));
    let mut parts = vec![share(repeats.iterations, repeats.replayed_iterations, "iterations")];
    if repeats.rounds > 0 {
        parts.push(share(repeats.rounds, repeats.replayed_rounds, "rounds of those"));
    }
    let trust = match (repeats.is_exact, repeats.replayed_rounds + repeats.replayed_iterations) {
        (_, 0) => "nothing was like what came before it".to_owned(),
        (true, _) => "the others are exact".to_owned(),
        (false, _) => format!(
            "the others are approximate: they take as long as those before them, from which simulated ones differed by \
             up to {:.2} %",
            repeats.largest_difference * 100.0
        ),
    };
    let of = if of.is_empty() { String::new() } else { format!("{of}: ") };
    format!("{of}{} were simulated; {trust}. Counters, links and messages are of these.", parts.join(" and "))
}

fn labelled((name, color): (String, Option<Color>), of: &str) -> (String, Option<Color>) {
    let parts: Vec<&str> = [name.as_str(), of].into_iter().filter(|part| !part.is_empty()).collect();
    (parts.join(", "), color)
}

/// Charts what the ranks of a job did in an iteration, and its critical path.
pub(crate) fn ranks(timeline: &JobTimeline) -> Chart {
    let mut kinds: Vec<BarKind> = timeline.bars.iter().map(|bar| bar.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let key = |kind: &BarKind| {
        let of = |group: u8| timeline.groups.get(usize::from(group)).map_or("", String::as_str);
        let messages =
            |group| if of(group).is_empty() { "messages".to_owned() } else { of(group).to_owned() };
        let color = |group: u8| Color::Scheme(GROUP_COLORS[usize::from(group) % GROUP_COLORS.len()]);
        match *kind {
            BarKind::Waits(group) => TrackKey {
                name: format!("waits for {}", messages(group)),
                color: color(group),
                is_faint: true,
            },
            BarKind::Sends(group) => {
                TrackKey { name: format!("sends {}", messages(group)), color: color(group), is_faint: false }
            }
            BarKind::Computes => {
                TrackKey { name: "computes".to_owned(), color: Color::Scheme(7), is_faint: false }
            }
        }
    };
    let bars = timeline.bars.iter().filter_map(|bar| {
        let key = kinds.binary_search(&bar.kind).ok()?;
        Some(TrackBar { row: bar.row, key, from: bar.from_us, until: bar.until_us })
    });
    Chart {
        title: format!(
            "Iteration {} of {}, {}",
            timeline.iteration,
            timeline.workload,
            plots::with_point(&timeline.variant, &timeline.sweep)
        ),
        note: note(timeline),
        body: Body::Tracks(Tracks {
            x: Axis::from_zero("time since the iteration began", Format::Time),
            rows: labels(&timeline.rows),
            keys: kinds.iter().map(key).collect(),
            bars: bars.collect(),
            path: timeline.path.iter().map(|point| (point.row, point.us)).collect(),
            path_key: (!timeline.path.is_empty())
                .then(|| StackPart { name: "critical path".to_owned(), color: Color::Part(Part::Recovery) }),
        }),
    }
}

fn note(timeline: &JobTimeline) -> String {
    let mut note = match timeline.iterations {
        1 => "The only iteration.".to_owned(),
        count => format!("The slowest of {count} iterations."),
    };
    note.push_str(&format!(
        " It took {}. A bar covers what is behind it, so where a rank waits and computes, it computes.",
        figures::time(timeline.took_us)
    ));
    note.push_str(&format!(" Gaps of less than {} are closed.", figures::time(timeline.gap_us)));
    match timeline.other_ranks {
        0 => {}
        others => note.push_str(&format!(
            " Without {others} other ranks; the critical path is most often at the ones shown."
        )),
    }
    note
}

fn labels(rows: &[TimelineRow]) -> Vec<Track> {
    let mut last = None;
    let label = |row: &TimelineRow| {
        let is_first = last.replace(row.rank) != Some(row.rank);
        let label = match row.stream {
            Some(stream) if is_first => format!("rank {}, stream {stream}", row.rank),
            Some(stream) => format!("stream {stream}"),
            None => format!("rank {}", row.rank),
        };
        Track { label }
    };
    rows.iter().map(label).collect()
}

/// Makes the table of the longest steps of a critical path.
pub(crate) fn steps_grid(timeline: &JobTimeline) -> Grid {
    let row = |step: &PathStep| {
        let cells = [step.what.clone(), figures::time(step.until_us), figures::time(step.took_us)];
        Row::plain(format!("rank {}", step.rank), cells)
    };
    let steps = &timeline.steps;
    let mut grid = Grid::plain(
        format!(
            "Longest steps of the critical path, {}",
            plots::with_point(&timeline.variant, &timeline.sweep)
        ),
        "rank",
        &["operation", "until", "took"],
        steps.iter().map(row),
    );
    let others = timeline.all_steps - steps.len();
    if others > 0 {
        let took: f64 = steps.iter().map(|step| step.took_us).sum();
        let left = figures::time((timeline.took_us - took).max(0.0));
        grid.notes.push(format!("{others} other steps took {left} in all."));
    }
    grid
}

/// The colours of communication groups, none of which is like that of the critical path.
const GROUP_COLORS: [usize; 6] = [0, 2, 4, 3, 5, 6];

/// Bandwidths of jobs are in one unit.
const GBYTES: &[Unit] = &[Unit { name: "GB/s", size: 1.0 }, Unit { name: "GB/s", size: 1.0 }];
