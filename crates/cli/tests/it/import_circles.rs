//! The source files of a crate import each other in one direction, but for circles of at most three files.
//!
//! The reader of Rust here is small: it knows comments, literals, `use` trees and paths, and follows a re-export to
//! the file that defines the name. A re-export is no import by itself, nor is `mod`; tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The largest number of files that may import each other in a circle.
const MOST: usize = 3;

/// Circles above [`MOST`] that are left: a crate, one of the circle's files, the most files it may have, and why.
const EXCEPTIONS: &[(&str, &str, usize, &str)] = &[(
    "fabric",
    "net/topology/mod.rs",
    7,
    "a kind of topology is one file, which builds the network that asks it for next hops: the network, five kinds, and \
     what these have in common",
)];

/// A path of modules below the root of a crate.
type Module = Vec<String>;

/// A `use` declaration: the path, and the name that it has here (`*` for all names of the path).
struct Import {
    path: Vec<String>,
    name: String,
    exported: bool,
}

/// A source file, as far as its imports go.
struct Source {
    file: String,
    imports: Vec<Import>,
    /// Paths of at least two segments in code.
    paths: BTreeSet<Vec<String>>,
    /// Names of the items that the file defines.
    items: BTreeSet<String>,
}

/// Returns the words and signs of Rust `text`, without comments and literals; `::` is one sign.
fn tokens(text: &str) -> Vec<String> {
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut i = 0;
    while i < chars.len() {
        let start = i;
        match at(i) {
            '/' if at(i + 1) == '/' => {
                while i < chars.len() && at(i) != '\n' {
                    i += 1;
                }
            }
            '/' if at(i + 1) == '*' => {
                i += 2;
                while i < chars.len() && (at(i), at(i + 1)) != ('*', '/') {
                    i += 1;
                }
                i += 2;
            }
            '"' => {
                i += 1;
                while i < chars.len() && at(i) != '"' {
                    i += if at(i) == '\\' { 2 } else { 1 };
                }
                i += 1;
            }
            '\'' if at(i + 1) == '\\' => {
                i += 3;
                while i < chars.len() && at(i) != '\'' {
                    i += 1;
                }
                i += 1;
            }
            '\'' if at(i + 2) == '\'' => i += 3,
            // A lifetime.
            '\'' => i += 1,
            ':' if at(i + 1) == ':' => {
                tokens.push("::".to_owned());
                i += 2;
            }
            c if is_word(c) => {
                while is_word(at(i)) {
                    i += 1;
                }
                let word: String = chars[start..i].iter().collect();
                let mut hashes = 0;
                while at(i + hashes) == '#' {
                    hashes += 1;
                }
                // A raw string has no escapes, and ends with as many hashes as it began with.
                if matches!(word.as_str(), "r" | "br" | "cr") && at(i + hashes) == '"' {
                    let closes = |i: usize| at(i) == '"' && (1..=hashes).all(|hash| at(i + hash) == '#');
                    i += hashes + 1;
                    while i < chars.len() && !closes(i) {
                        i += 1;
                    }
                    i += hashes + 1;
                } else {
                    tokens.push(word);
                }
            }
            c => {
                if !c.is_whitespace() {
                    tokens.push(c.to_string());
                }
                i += 1;
            }
        }
    }
    tokens
}

/// Returns the index after the group that opens at `start`.
fn after_group(tokens: &[String], start: usize) -> usize {
    let mut depth = 0_usize;
    for (i, token) in tokens.iter().enumerate().skip(start) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    tokens.len()
}

/// Returns `tokens` without what only tests compile, and without all other attributes.
fn without_tests(tokens: &[String]) -> Vec<String> {
    let mut kept = Vec::new();
    let mut i = 0;
    while i < tokens.len() {
        let attribute = tokens[i] == "#" && tokens.get(i + 1).is_some_and(|token| token == "[");
        if !attribute {
            kept.push(tokens[i].clone());
            i += 1;
            continue;
        }
        let end = after_group(tokens, i + 1);
        let body = &tokens[i + 2..end - 1];
        let has = |word: &str| body.iter().any(|token| token == word);
        let only_tests =
            body.first().is_some_and(|first| first == "cfg") && has("test") && !has("not") && !has("any");
        i = end;
        if only_tests {
            // What is meant ends with a block, a semicolon, a comma of a list, or with the list.
            while i < tokens.len() {
                match tokens[i].as_str() {
                    "{" => {
                        i = after_group(tokens, i);
                        break;
                    }
                    ";" | "," => {
                        i += 1;
                        break;
                    }
                    ")" | "]" | "}" => break,
                    "(" | "[" => i = after_group(tokens, i),
                    _ => i += 1,
                }
            }
        }
    }
    kept
}

/// Reads a `use` tree from `*i` on, below `prefix`.
fn use_tree(tokens: &[String], i: &mut usize, prefix: &[String], exported: bool, imports: &mut Vec<Import>) {
    let mut path = prefix.to_vec();
    while let Some(token) = tokens.get(*i) {
        *i += 1;
        match token.as_str() {
            "::" => {}
            "{" => {
                while tokens.get(*i).is_some_and(|token| token != "}") {
                    use_tree(tokens, i, &path, exported, imports);
                    if tokens.get(*i).is_some_and(|token| token == ",") {
                        *i += 1;
                    }
                }
                *i += 1;
                return;
            }
            "*" => return imports.push(Import { path, name: "*".to_owned(), exported }),
            "as" => {
                let name = tokens[*i].clone();
                *i += 1;
                return imports.push(Import { path, name, exported });
            }
            "," | "}" | ";" => {
                *i -= 1;
                break;
            }
            "self" if !path.is_empty() => {}
            word => path.push(word.to_owned()),
        }
    }
    let name = path.last().cloned().unwrap_or_default();
    imports.push(Import { path, name, exported });
}

fn read(file: String, text: &str) -> Source {
    let tokens = without_tests(&tokens(text));
    let mut source = Source { file, imports: Vec::new(), paths: BTreeSet::new(), items: BTreeSet::new() };
    let before = |i: usize, back: usize| i.checked_sub(back).map_or("", |i| tokens[i].as_str());
    let mut i = 0;
    while i < tokens.len() {
        match tokens[i].as_str() {
            "use" if before(i, 1) != "<" && tokens.get(i + 1).is_some_and(|next| next != "<") => {
                let exported = before(i, 1) == "pub" || before(i, 1) == ")";
                i += 1;
                use_tree(&tokens, &mut i, &[], exported, &mut source.imports);
            }
            "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" => {
                source.items.extend(tokens.get(i + 1).cloned());
                i += 1;
            }
            word if word.starts_with(|c: char| c.is_alphabetic() || c == '_') => {
                let mut path = vec![tokens[i].clone()];
                i += 1;
                while tokens.get(i).is_some_and(|token| token == "::")
                    && tokens
                        .get(i + 1)
                        .is_some_and(|next| next.starts_with(|c: char| c.is_alphabetic() || c == '_'))
                {
                    path.push(tokens[i + 1].clone());
                    i += 2;
                }
                if path.len() > 1 {
                    source.paths.insert(path);
                }
            }
            _ => i += 1,
        }
    }
    source
}

/// The files of a crate by their modules.
struct Crate(BTreeMap<Module, Source>);

impl Crate {
    fn read(root: &Path) -> Crate {
        let mut sources = BTreeMap::new();
        let mut folders = vec![root.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                let of_tests = name == "tests" || name.ends_with("_tests");
                let program = path.starts_with(root.join("bin"))
                    || (path == root.join("main.rs") && root.join("lib.rs").exists());
                if of_tests || program {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    let below = path.strip_prefix(root).unwrap();
                    let mut module: Module = below
                        .with_extension("")
                        .iter()
                        .map(|part| part.to_str().unwrap().to_owned())
                        .collect();
                    let last = module.last().unwrap();
                    if last == "mod" || (module.len() == 1 && (last == "lib" || last == "main")) {
                        module.pop();
                    }
                    let text = fs::read_to_string(&path).unwrap();
                    sources.insert(module, read(below.display().to_string(), &text));
                }
            }
        }
        Crate(sources)
    }

    /// Returns the module of the file that defines what `path` names in the file of `from`; `None` if that is a module
    /// itself, or nothing of this crate. `depth` ends what goes in a circle of re-exports.
    fn definition(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let (module, rest) = self.place(from, path, depth)?;
        (!rest.is_empty()).then_some(module)
    }

    /// Returns the module that `path` leads to from `from`, and the segments that are no modules.
    fn place(&self, from: &Module, path: &[String], depth: usize) -> Option<(Module, Vec<String>)> {
        let depth = depth.checked_sub(1)?;
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => self.walk(Module::new(), rest, depth),
            "self" => self.walk(from.clone(), rest, depth),
            "super" => {
                let mut parent = from.clone();
                parent.pop()?;
                if rest.first().is_some_and(|next| next == "super") {
                    return self.place(&parent, rest, depth);
                }
                self.walk(parent, rest, depth)
            }
            _ => {
                let source = &self.0[from];
                let child: Module = from.iter().chain([first]).cloned().collect();
                let named = source
                    .imports
                    .iter()
                    .any(|import| import.name == *first && import.path != [first.clone()]);
                (self.0.contains_key(&child) || named).then(|| self.walk(from.clone(), path, depth)).flatten()
            }
        }
    }

    /// Returns where the segments of `path` lead to below `module`.
    fn walk(&self, mut module: Module, path: &[String], depth: usize) -> Option<(Module, Vec<String>)> {
        let mut rest = path;
        while let Some((first, more)) = rest.split_first() {
            let child: Module = module.iter().chain([first]).cloned().collect();
            if self.0.contains_key(&child) {
                (module, rest) = (child, more);
                continue;
            }
            let source = self.0.get(&module)?;
            if source.items.contains(first) {
                break;
            }
            if let Some(import) =
                source.imports.iter().find(|import| import.name == *first && import.path.len() > 1)
            {
                let whole: Vec<String> = import.path.iter().chain(more).cloned().collect();
                return self.place(&module, &whole, depth);
            }
            // A glob re-exports what the other file defines.
            for import in source.imports.iter().filter(|import| import.name == "*") {
                let whole: Vec<String> = import.path.iter().chain(rest).cloned().collect();
                let found = self.place(&module, &whole, depth);
                let defines = |(module, rest): &(Module, Vec<String>)| {
                    rest.first().is_none_or(|item| self.0[module].items.contains(item))
                };
                if let Some(found) = found.filter(defines) {
                    return Some(found);
                }
            }
            break;
        }
        Some((module, rest.to_vec()))
    }

    /// Returns, for each file, the files that it imports, with the paths by which it does.
    fn edges(&self) -> Edges<'_> {
        const DEPTH: usize = 16;
        let mut edges = Edges::new();
        for (module, source) in &self.0 {
            let mut to: BTreeMap<Module, BTreeSet<String>> = BTreeMap::new();
            for import in source.imports.iter().filter(|import| !import.exported) {
                let found = if import.name == "*" {
                    self.place(module, &import.path, DEPTH).map(|(module, _)| module)
                } else {
                    self.definition(module, &import.path, DEPTH)
                };
                if let Some(found) = found {
                    to.entry(found).or_default().insert(import.path.join("::"));
                }
            }
            for path in &source.paths {
                if let Some(found) = self.definition(module, path, DEPTH) {
                    to.entry(found).or_default().insert(path.join("::"));
                }
            }
            to.remove(module);
            edges.insert(module, to);
        }
        edges
    }
}

/// For each file, the files that it imports, with the paths by which it does.
type Edges<'a> = BTreeMap<&'a Module, BTreeMap<Module, BTreeSet<String>>>;

/// Returns the sets of files that reach each other.
fn circles<'a>(edges: &Edges<'a>) -> BTreeSet<BTreeSet<&'a Module>> {
    let reach = |from: &Module| {
        let mut seen = BTreeSet::new();
        let mut next: Vec<&Module> = edges[from].keys().collect();
        while let Some(module) = next.pop() {
            if seen.insert(module.clone()) {
                next.extend(edges[module].keys());
            }
        }
        seen
    };
    let reached: BTreeMap<&Module, BTreeSet<Module>> =
        edges.keys().map(|from| (*from, reach(from))).collect();
    let circle = |from: &Module| {
        let mutual = |other: &&&Module| reached[from].contains(**other) && reached[*other].contains(from);
        reached.keys().filter(mutual).copied().collect::<BTreeSet<&Module>>()
    };
    reached.keys().map(|from| circle(from)).filter(|circle| !circle.is_empty()).collect()
}

#[test]
fn no_crate_keeps_a_large_import_circle() {
    let crates = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let mut faults = String::new();
    let mut excused: BTreeSet<&(&str, &str, usize, &str)> = BTreeSet::new();
    let mut all_edges = 0;
    for entry in fs::read_dir(&crates).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let root = crates.join(&name).join("src");
        if !root.is_dir() {
            continue;
        }
        let files = Crate::read(&root);
        let file = |module: &Module| files.0[module].file.as_str();
        let edges = files.edges();
        all_edges += edges.values().map(BTreeMap::len).sum::<usize>();
        for circle in circles(&edges) {
            let holds = |excuse: &&(&str, &str, usize, &str)| {
                excuse.0 == name && circle.iter().any(|module| file(module) == excuse.1)
            };
            let excuse = EXCEPTIONS.iter().find(holds);
            let most = excuse.map_or(MOST, |excuse| excuse.2);
            excused.extend(excuse.filter(|_| circle.len() > MOST));
            if circle.len() <= most {
                continue;
            }
            faults +=
                &format!("{name}: {} files import each other in a circle (at most {most})\n", circle.len());
            for from in circle.iter() {
                for (to, paths) in edges[*from].iter().filter(|(to, _)| circle.contains(to)) {
                    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
                    faults += &format!("    {} -> {} ({})\n", file(from), file(to), paths.join(", "));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
    assert_eq!(excused.len(), EXCEPTIONS.len(), "every exception is still a large circle");
    assert!(all_edges > 1_000, "the reader finds the imports: {all_edges}");
}
