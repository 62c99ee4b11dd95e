//! [`LineWatch`]: shows the progress of a search for a load line, and ends it when a newer request arrives.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use plimsoll_line::so_far::Judged;
use plimsoll_line::{AskedLine, SearchNews, SearchWatch, SoFar};
use plimsoll_report::chart::Schemes;
use plimsoll_report::html::{self, Article, PageSection};
use plimsoll_report::table::{Column, Grid, Row, TableCell};
use plimsoll_results::run_dir::RunPlan;

use crate::session::Session;

/// Observes the search of a load line, and shows its progress and estimate on the page.
pub struct LineWatch<'a> {
    session: &'a Session,
    turn: u64,
    asked: &'a AskedLine<'a>,
    plan: &'a RunPlan,
    began: Instant,
    /// The time of the latest estimate that is shown.
    said: Mutex<Instant>,
}

/// The interval at which the estimate of the time is renewed.
const RENEWED: Duration = Duration::from_millis(500);

impl<'a> LineWatch<'a> {
    pub fn new(
        (session, turn): (&'a Session, u64),
        asked: &'a AskedLine<'a>,
        plan: &'a RunPlan,
    ) -> LineWatch<'a> {
        let began = Instant::now();
        LineWatch { session, turn, asked, plan, began, said: Mutex::new(began) }
    }

    /// Writes how far the search is: `searching: 12 runs done, about 80 to go, about 20 s left`.
    fn in_words(&self, so_far: &SoFar) -> String {
        format!("searching: {} runs done, {}", so_far.done(), so_far.rest(self.began.elapsed()))
    }

    fn page(&self, so_far: &SoFar) -> String {
        let AskedLine { scenario, over, slos, .. } = self.asked;
        let columns = ["load", "verdict", "runs"].map(|name| Column::new("", name)).to_vec();
        let row = |Judged { variant, load, verdict, runs }: &Judged| Row {
            label: variant.clone(),
            cells: [load.clone(), verdict.clone(), runs.to_string()].map(TableCell::plain).to_vec(),
            ..Row::default()
        };
        let objectives: Vec<&str> = slos.iter().map(|slo| slo.text.as_str()).collect();
        let grid = Grid {
            title: format!("Loads of {} tried so far for {}", over.key, objectives.join(", ")),
            corner: "variant".to_owned(),
            rows: so_far.judged.iter().map(row).collect(),
            columns,
            notes: Vec::new(),
        };
        let section = PageSection {
            id: "tried",
            name: "The search",
            lead: "The loads that are decided; the lines lie between those that are met and those that are violated.",
            figures: Vec::new(),
            tables: vec![grid],
        };
        let lines = so_far.lines.iter();
        let lines =
            lines.map(|(name, line)| format!("{name}: {} so far", line.brief(|load| over.shown(load))));
        let variants = scenario.points().iter().map(|point| point.variant.as_str());
        html::article(&Article {
            kind: "Plimsoll line",
            title: scenario.title(),
            description: "",
            found: &lines.collect::<Vec<_>>(),
            warnings: &[],
            sections: &[section],
            schemes: &Schemes::of([variants]),
            command: &self.plan.command,
            seed: Some(self.plan.seed),
            version: &self.plan.version,
            commit: self.plan.commit.as_deref(),
            runs: so_far.done(),
            scenario: "",
        })
    }
}

impl SearchWatch for LineWatch<'_> {
    fn on_news(&self, news: &SearchNews<'_>, so_far: &SoFar) {
        if let SearchNews::Judged(_) = news {
            self.session.show_line(self.turn, Some(self.page(so_far)), self.in_words(so_far));
        }
    }

    fn on_progress(&self, so_far: &SoFar) {
        let Ok(mut said) = self.said.lock() else { return };
        if said.elapsed() >= RENEWED {
            *said = Instant::now();
            self.session.show_line(self.turn, None, self.in_words(so_far));
        }
    }

    fn goes_on(&self) -> bool {
        self.session.goes_on(self.turn, false)
    }
}
