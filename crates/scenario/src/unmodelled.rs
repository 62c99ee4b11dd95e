//! Transports that are not modelled: the nearest that is, for the error that names one, from the table of
//! `docs/modelled.md`.

use crate::keys::TRANSPORTS;

/// The page, whose last table has names of transports, the nearest that is modelled, and the reason.
const PAGE: &str = include_str!("../../../docs/modelled.md");
const HEAD: &str = "| not modelled |";

/// Returns the help for `text` at the key `path`: the nearest transport, where the key names a transport that is not
/// modelled.
pub(crate) fn help(path: &[String], text: &str) -> Option<String> {
    let is_kind = match path {
        [section, key] => section == "transport" && key == "kind",
        [section, _, key] => {
            section == TRANSPORTS && key == "kind" || section == "transport" && key != "kind"
        }
        _ => false,
    };
    let name = text.to_ascii_lowercase();
    let (_, nearest) = rows().filter(|_| is_kind).find(|(names, _)| names.contains(&name.as_str()))?;
    Some(format!(
        "`{name}` is not modelled; nearest: {nearest}. docs/modelled.md lists what is modelled, and why"
    ))
}

/// Returns the names and the nearest of each row.
fn rows() -> impl Iterator<Item = (Vec<&'static str>, &'static str)> {
    let rows = PAGE.lines().skip_while(|line| !line.starts_with(HEAD)).skip(2);
    rows.map_while(|row| {
        let mut cells = row.strip_prefix('|')?.split('|').map(str::trim);
        let names = cells.next()?.split(", ").map(|name| name.trim_matches('`')).collect();
        Some((names, cells.next()?))
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_mechanisms::transports::Kind;

    use super::*;

    #[test]
    fn the_page_lists_what_is_modelled_and_what_is_not() {
        let path = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        assert!(rows().count() > 5, "the table is found");
        for kind in Kind::ALL {
            assert!(PAGE.contains(&format!("`{}`", kind.name())), "docs/modelled.md lacks {}", kind.name());
            assert!(rows().all(|(names, _)| !names.contains(&kind.name())), "{} is modelled", kind.name());
        }
        for keys in
            [&["transport", "kind"][..], &["transports", "bulk", "kind"], &["transport", "workload", "a"]]
        {
            assert!(
                help(&path(keys), "BBR").is_some_and(|help| help.contains("`bbr` is not modelled")),
                "{keys:?}"
            );
        }
        assert_eq!(help(&path(&["workload", "a", "kind"]), "bbr"), None);
        assert_eq!(help(&path(&["transport", "kind"]), "tpc"), None);
    }
}
