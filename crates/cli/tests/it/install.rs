//! Tests `make install` and `make uninstall`: every documented file is installed, and none is left.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Place, Ran};

fn make(place: &Place, target: &str, more: &[&str]) -> Ran {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut make = Command::new("make");
    make.args(["-s", "-C"]).arg(root).arg(target).arg(format!("DESTDIR={}", place.path("root").display()));
    Ran::of(
        &[target],
        make.arg(format!("BUILT={}", place.path("built").display())).args(more).output().unwrap(),
    )
}

/// Returns all files and folders below a folder.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        found.push(entry.path());
        found.extend(entries(&entry.path()));
    }
    found
}

/// Returns the relative links of an installed page that lead to no file.
fn dead_links(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let relative =
        plimsoll_lint::links(&text).into_iter().filter(|to| !to.contains("://") && !to.starts_with('#'));
    let dead = relative.filter(|to| !page.parent().unwrap().join(to.split('#').next().unwrap()).exists());
    dead.map(|to| format!("{}: {to}", page.display())).collect()
}

#[test]
fn an_installation_is_whole_and_goes_without_a_trace() {
    if Command::new("make").arg("--version").output().is_err() {
        return plimsoll_testing::skipped!("no make");
    }
    let place = Place::new();
    // The command, and the servers if they are built beside it.
    fs::create_dir(place.path("built")).unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll"));
    let servers = ["chronos-memcached", "chronos-search", "chronos-openflow", "chronos-load"];
    let (built, missing): (Vec<&str>, Vec<&str>) =
        servers.into_iter().partition(|name| program.with_file_name(name).exists());
    if !missing.is_empty() {
        plimsoll_testing::skipped!("{}: not built (make servers)", missing.join(", "));
    }
    for name in built.iter().chain(&["plimsoll"]) {
        let link = place.path(&format!("built/{name}"));
        std::os::unix::fs::symlink(program.with_file_name(name), link).unwrap();
    }
    fs::create_dir_all(place.path("root/usr/share")).unwrap();
    place.write("root/usr/share/of-others", "");
    let prefix = ["PREFIX=/usr"];
    make(&place, "install", &prefix).ends_with(0).prints("plimsoll ");
    let completions = |name: &&str| {
        [
            format!("share/bash-completion/completions/{name}"),
            format!("share/zsh/site-functions/_{name}"),
            format!("share/fish/vendor_completions.d/{name}.fish"),
        ]
    };
    let mut of_servers: Vec<String> = built.iter().flat_map(completions).collect();
    for name in built.iter().filter(|name| **name != "chronos-load") {
        of_servers.extend([
            format!("lib/systemd/system/{name}.service"),
            "lib/sysusers.d/chronos.conf".to_owned(),
            format!("../etc/default/{name}"),
        ]);
    }
    for file in [
        "bin/plimsoll",
        "share/man/man1/plimsoll.1",
        "share/man/man1/plimsoll-run.1",
        "share/bash-completion/completions/plimsoll",
        "share/zsh/site-functions/_plimsoll",
        "share/fish/vendor_completions.d/plimsoll.fish",
        "share/plimsoll/scenarios/quickstart.toml",
        "share/plimsoll/scenarios/cdf/websearch.csv",
        "share/plimsoll/scenarios/schema.json",
        "share/plimsoll/policies/qjump.toml",
        "share/doc/plimsoll/docs/host.md",
        "share/doc/plimsoll/docs/gallery/knee.svg",
        "share/doc/plimsoll/LICENSE-MIT",
        "lib/systemd/system/plimsoll-host@.service",
    ]
    .into_iter()
    .chain(of_servers.iter().map(String::as_str))
    {
        let bytes = fs::metadata(place.path("root/usr").join(file)).map_or(0, |about| about.len());
        assert!(bytes > 0, "{file} is not installed");
    }
    let installed = entries(&place.path("root"));
    let pages = installed.iter().filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let dead: Vec<String> = pages.flat_map(|page| dead_links(page)).collect();
    assert!(dead.is_empty(), "{} links lead to no file:\n{}", dead.len(), dead.join("\n"));
    // A file of an earlier version that this one does not have.
    place.write("root/usr/bin/plimsoll-old", "");
    let list = "root/usr/share/plimsoll/installed";
    place.write(list, &format!("file /usr/bin/plimsoll-old\n{}", place.read(list)));
    make(&place, "install", &prefix).ends_with(0);
    assert_eq!(entries(&place.path("root")), installed);

    // A file that a user has changed is kept by another installation, and by the removal.
    let options = "root/etc/default/chronos-memcached";
    if built.contains(&"chronos-memcached") {
        place.write(options, "CACHESIZE=128\n");
        make(&place, "install", &prefix).ends_with(0).prints("/etc/default/chronos-memcached stays as it is");
        make(&place, "uninstall", &prefix).ends_with(0);
        assert_eq!(place.read(options), "CACHESIZE=128\n");
        make(&place, "install", &prefix).ends_with(0);
        fs::remove_dir_all(place.path("root/etc")).unwrap();
    }

    make(&place, "uninstall", &prefix).ends_with(0);
    let left: Vec<PathBuf> =
        ["usr", "usr/share", "usr/share/of-others"].map(|path| place.path("root").join(path)).into();
    assert_eq!(entries(&place.path("root")), left);
    make(&place, "uninstall", &prefix).ends_with(2).says("nothing is installed");
    make(&place, "install", &["PREFIX=usr"]).ends_with(2).says("an absolute path");
}
