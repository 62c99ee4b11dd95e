//! The page of a [`Recording`]: packets that move on their network, queues that fill, and controls to step through it.
//!
//! `replay.js` draws; this has the page around it, with the recording as JSON.

use plimsoll_results::replay::Recording;

use super::{SCRIPT, page};
use crate::chart::{Color, Part, Schemes};
use crate::escape::escape;
use crate::figures::count;

const REPLAY: &str = include_str!("replay.js");
const STYLE: &str = include_str!("replay.css");

/// The texts of a replay's page beside its recording.
#[derive(Clone, Copy, Debug)]
pub struct ReplayPage<'a> {
    /// The scenario's title.
    pub title: &'a str,
    /// The run in words: variant, sweep point, replicate.
    pub run: &'a str,
    /// The packets and the network that are drawn.
    pub recording: &'a Recording,
    /// The command that makes the page again.
    pub command: &'a str,
    /// The seed that the command uses.
    pub seed: u64,
    /// The digest of the run, where it was repeated whole.
    pub digest: Option<&'a str>,
    /// The version of plimsoll that made the page.
    pub version: &'a str,
    /// The commit that plimsoll was built from, where known.
    pub commit: Option<&'a str>,
}

/// Renders a replay as one HTML file that loads nothing.
pub fn replay(replay: &ReplayPage<'_>) -> String {
    let recording = replay.recording;
    let packets = count(recording.packets.size.len() as u64);
    let run = format!(
        "{}, {packets} packets in {} us from {} ms on.",
        replay.run,
        recording.length as f64 / 1e6,
        recording.from as f64 / 1e9
    );
    let mut out = page::head(&page::PageHead {
        kind: "Plimsoll replay",
        title: replay.title,
        description: &run,
        found: &[],
        warnings: &[],
        sections: &[("packets", "Packets"), ("queue-figure", "Queues"), ("repeat", "Repeat")],
        schemes: &Schemes::default(),
        rules: STYLE,
        is_served: false,
    });
    out.push_str(&player(recording));
    let again = page::again(&page::Again {
        command: replay.command,
        seed: Some(replay.seed),
        version: replay.version,
        commit: replay.commit,
        runs: match replay.digest {
            Some(digest) => format!("1, of digest {digest}"),
            None => "1, as far as to the end of the window".to_owned(),
        },
        more: String::new(),
        scenario: "",
    });
    out.push_str(&page::section("repeat", "How to repeat this", "", &again));
    out.push_str(
        "</main>\n<footer><main>Packets are drawn to scale: a bar is as long as the packet is on the link.",
    );
    out.push_str("</main></footer>\n<script type=\"application/json\" id=\"recording\">");
    // In a script element only `<` can end it.
    out.push_str(&recording.to_json().replace('<', "\\u003c"));
    out + &format!("</script>\n<script>\n{SCRIPT}{REPLAY}</script>\n</body>\n</html>\n")
}

fn player(recording: &Recording) -> String {
    let speeds: String = [0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]
        .map(|speed| format!("<option value=\"{speed}\">{speed} us a second</option>"))
        .concat();
    let totals: String = [
        ("sent", "sent"),
        ("arrived", "arrived"),
        ("marked", "marked CE"),
        ("lost", "lost"),
        ("waiting", "waiting in queues"),
    ]
    .map(|(id, name)| format!("<div><dd id=\"n-{id}\">0</dd><dt>{name}</dt></div>"))
    .concat();
    format!(
        "<section id=\"packets\" class=\"card\" aria-label=\"Packets\">\n\
         <div class=\"controls-of-replay\">\n\
         <button id=\"play\" type=\"button\" aria-pressed=\"false\" title=\"Space\">Play</button>\n\
         <span class=\"group\" role=\"group\" aria-label=\"Event by event\">\
         <button id=\"step-back\" type=\"button\" title=\"Left arrow\">‹ event</button>\
         <button id=\"step-on\" type=\"button\" title=\"Right arrow\">event ›</button></span>\n\
         <span class=\"group\" role=\"group\" aria-label=\"Microsecond by microsecond\">\
         <button id=\"us-back\" type=\"button\" title=\"Shift and left arrow\">‹ 1 us</button>\
         <button id=\"us-on\" type=\"button\" title=\"Shift and right arrow\">1 us ›</button></span>\n\
         <select id=\"speed\" aria-label=\"Speed\" title=\"Up and down arrow\">{speeds}</select>\n\
         <span class=\"times\"><b id=\"clock\"></b> <span id=\"offset\"></span></span>\n</div>\n\
         <input id=\"at\" type=\"range\" min=\"0\" max=\"10000\" step=\"1\" value=\"0\" aria-label=\"Time\">\n\
         {}<div class=\"network\"><canvas id=\"network\" role=\"img\" aria-label=\"The network with its packets; \
         the text \
         below says what happens\"></canvas></div>\n\
         <p id=\"event\" class=\"event\" role=\"status\"></p>\n<p id=\"event-number\" class=\"note\"></p>\n\
         <dl class=\"totals\">{totals}</dl>\n\
         <div id=\"journey\" class=\"journey\" hidden><b id=\"journey-name\"></b> \
         <button id=\"choose-none\" type=\"button\" title=\"Escape\">Close</button><ol \
         id=\"journey-hops\"></ol></div>\n\
         </section>\n\
         <section id=\"queue-figure\" class=\"card\"><h2>The longest queues</h2>\n\
         <p class=\"lead\">Bytes that wait, over the window. Point into the figure to go there.</p>\n\
         <div class=\"plot\"><canvas id=\"queues\" role=\"img\" aria-label=\"Queues over \
         time\"></canvas></div></section>\n\
         <p class=\"note keys-of-replay\"><kbd>Space</kbd> plays and pauses, <kbd>←</kbd> <kbd>→</kbd> step by \
         event, with \
         <kbd>Shift</kbd> by microsecond, <kbd>↑</kbd> <kbd>↓</kbd> change the speed. A tap on a packet shows its \
         way.</p>\n",
        legend(recording)
    )
}

/// Explains the colours and the shapes.
fn legend(recording: &Recording) -> String {
    let mut out = String::from("<ul class=\"legend\">");
    for (number, name) in recording.workloads.iter().enumerate() {
        let class = Color::Scheme(number).class();
        out.push_str(&format!("<li><i class=\"bar-of-packet {class}\"></i>{}</li>", escape(name)));
    }
    let loss = Color::Part(Part::Recovery).class();
    let circuit = Color::Part(Part::Circuit).class();
    out.push_str(&format!(
        "<li><i class=\"bar-of-packet ack faint-bar\"></i>acknowledgement</li>\
         <li><i class=\"mark-of-packet\"></i>marked CE</li>\
         <li><i class=\"cross {loss}\">×</i>lost</li>"
    ));
    if !recording.pauses.is_empty() {
        out.push_str(&format!("<li><i class=\"cross {loss}\">❚❚</i>paused</li>"));
    }
    if !recording.circuits.is_empty() {
        out.push_str(&format!("<li><i class=\"bar-of-packet ack {circuit}\"></i>circuit</li>"));
    }
    out + "</ul>\n"
}
