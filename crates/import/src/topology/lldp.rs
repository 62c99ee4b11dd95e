//! Neighbours by LLDP: `lldpctl -f json`, a file for each system, which bears its name.
//!
//! A system reports its neighbours, not itself: the file's name has to be the name by which its neighbours report it.
//! A cable between two systems with a file is in both files, and taken from the first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::cables::{Cables, NodeKind};
use super::export::text_of;
use crate::invalid::Invalid;

/// Reads a file, or all files of a folder whose names end in `.json`.
pub(super) fn read(path: &Path) -> Result<Cables, Invalid> {
    let place = path.display().to_string();
    let mut files: Vec<PathBuf> = if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(|error| Invalid::unreadable(&place, &error))?;
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "json")).collect()
    } else {
        vec![path.to_owned()]
    };
    files.sort();
    if files.is_empty() {
        return Err(Invalid::new(
            place,
            "no file ends in .json",
            "a file of `lldpctl -f json` for each system",
        ));
    }
    let mut cables = Cables::new(&place);
    let systems: Vec<String> = files
        .iter()
        .map(|file| file.file_stem().unwrap_or_default().to_string_lossy().into_owned())
        .collect();
    let mut read = BTreeSet::new();
    for (file, system) in files.iter().zip(&systems) {
        neighbours(&mut cables, file, system, &read)?;
        read.insert(system.as_str());
    }
    Ok(cables)
}

fn neighbours(cables: &mut Cables, file: &Path, system: &str, read: &BTreeSet<&str>) -> Result<(), Invalid> {
    let place = file.display().to_string();
    const ALLOWED: &str = "the output of `lldpctl -f json`";
    let root: Value = serde_json::from_str(&text_of(file)?)
        .map_err(|error| Invalid::new(&place, format!("no JSON: {error}"), ALLOWED))?;
    let interfaces = root.get("lldp").and_then(|lldp| lldp.get("interface"));
    let Some(interfaces) = interfaces else {
        return Err(Invalid::new(place, "no key lldp.interface", ALLOWED));
    };
    let local = cables.node(system);
    for interface in members(interfaces) {
        let Some((name, chassis)) = interface.get("chassis").and_then(chassis) else { continue };
        let neighbour = cables.node(&name);
        cables.set_kind(neighbour, kind(chassis));
        let addresses = chassis.get("mgmt-ip").into_iter().flat_map(|found| match found {
            Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
            other => Vec::from_iter(other.as_str()),
        });
        addresses.for_each(|address| cables.add_address(neighbour, address));
        if !read.contains(name.as_str()) {
            cables.connect(local, neighbour, None);
        }
    }
    Ok(())
}

/// Returns the values by interface: of an object, or of an array of objects with one key each.
fn members(interfaces: &Value) -> Vec<&Value> {
    match interfaces {
        Value::Array(all) => all.iter().filter_map(Value::as_object).flat_map(|one| one.values()).collect(),
        Value::Object(all) => all.values().collect(),
        _ => Vec::new(),
    }
}

/// Returns the name of a neighbour, or its number where it has no name, and its description.
fn chassis(found: &Value) -> Option<(String, &Value)> {
    if let Some(id) = found.get("id").and_then(|id| id.get("value")?.as_str()) {
        return Some((id.to_owned(), found));
    }
    found.as_object()?.iter().next().map(|(name, described)| (name.clone(), described))
}

/// Returns the kind of a system by its enabled capabilities: a station is a host, a bridge or a router a switch.
fn kind(chassis: &Value) -> NodeKind {
    let capabilities = match chassis.get("capability") {
        Some(Value::Array(all)) => all.iter().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    };
    let has = |names: &[&str]| {
        capabilities.iter().any(|capability| {
            let is_enabled = capability.get("enabled").and_then(Value::as_bool).unwrap_or(false);
            is_enabled
                && capability.get("type").and_then(Value::as_str).is_some_and(|name| names.contains(&name))
        })
    };
    match (has(&["Station"]), has(&["Bridge", "Router"])) {
        (true, _) => NodeKind::Host,
        (false, true) => NodeKind::Switch,
        (false, false) => NodeKind::Unknown,
    }
}
