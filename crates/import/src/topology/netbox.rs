//! Cables of NetBox as CSV: the columns of its bulk import, `side_a_device` and `side_b_device` with their types, or
//! `Device A` and `Device B` of its table.

use std::path::Path;

use plimsoll_text::{counted, csv};

use super::cables::Cables;
use super::export::text_of;
use crate::invalid::Invalid;

/// The columns of devices, and of the ends of the cable, in the forms that NetBox has.
const FORMS: [[&str; 4]; 2] = [
    ["side_a_device", "side_b_device", "side_a_type", "side_b_type"],
    ["Device A", "Device B", "Type A", "Type B"],
];

/// Reads an export. Cables that do not end at interfaces, such as power cables, are left out.
pub(super) fn read(path: &Path) -> Result<Cables, Invalid> {
    let place = path.display().to_string();
    let text = text_of(path)?;
    let mut rows = csv::rows(&text, None);
    let header = rows.next();
    let header = header.as_ref().map_or_else(Vec::new, csv::CsvRecord::cells);
    let place_of = |name: &str| header.iter().position(|cell| *cell == name);
    let form = FORMS.iter().find_map(|[a, b, of_a, of_b]| {
        Some(([place_of(a)?, place_of(b)?], [place_of(of_a), place_of(of_b)]))
    });
    let Some((devices, types)) = form else {
        let problem =
            format!("no columns of devices in \"{}\"", plimsoll_text::shortened(&header.join(","), 80));
        return Err(Invalid::new(
            place,
            problem,
            "side_a_device and side_b_device, or Device A and Device B",
        ));
    };
    let mut cables = Cables::new(&place);
    let (mut others, mut open) = (0, 0);
    for row in rows {
        let cells = row.cells();
        let cell = |place: usize| cells.get(place).copied().unwrap_or("");
        let is_interface =
            |place: &Option<usize>| place.is_none_or(|place| cell(place).ends_with("interface"));
        if !types.iter().all(is_interface) {
            others += 1;
            continue;
        }
        let [a, b] = devices.map(cell);
        if a.is_empty() || b.is_empty() {
            open += 1;
            continue;
        }
        let (a, b) = (cables.node(a), cables.node(b));
        cables.connect(a, b, None);
    }
    for (count, what) in [(others, "cable that does not end at interfaces"), (open, "cable with one device")]
    {
        if count > 0 {
            cables.ignored(counted(count, what));
        }
    }
    Ok(cables)
}
