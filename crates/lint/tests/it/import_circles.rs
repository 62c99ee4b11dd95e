//! The source files of a crate import each other in one direction, except for circles of at most three files.
//!
//! A re-export is followed to the file that defines the name. By itself it does not count as an import, and neither
//! does `mod`; tests are left out.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, ImplItemFn, Item, Macro, UseTree, Visibility};

/// The largest number of files that may import each other in a circle.
const MOST: usize = 3;

/// Circles above [`MOST`] that are left: a crate, one of the circle's files, the most files it may have, and the
/// reason.
const EXCEPTIONS: &[(&str, &str, usize, &str)] = &[(
    "fabric",
    "net/topology.rs",
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

/// Reads a file into its [`Source`].
struct Reader(Source);

impl<'ast> Visit<'ast> for Reader {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = match item {
            Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
            Item::Struct(item) => (&item.attrs, Some(&item.ident)),
            Item::Enum(item) => (&item.attrs, Some(&item.ident)),
            Item::Union(item) => (&item.attrs, Some(&item.ident)),
            Item::Trait(item) => (&item.attrs, Some(&item.ident)),
            Item::Type(item) => (&item.attrs, Some(&item.ident)),
            Item::Const(item) => (&item.attrs, Some(&item.ident)),
            Item::Static(item) => (&item.attrs, Some(&item.ident)),
            Item::Mod(item) => (&item.attrs, None),
            Item::Impl(item) => (&item.attrs, None),
            Item::Use(item) => (&item.attrs, None),
            _ => return visit::visit_item(self, item),
        };
        if is_for_tests(attributes) {
            return;
        }
        self.0.items.extend(name.map(ToString::to_string));
        match item {
            Item::Use(of) => {
                let exported = !matches!(of.vis, Visibility::Inherited);
                use_tree(&of.tree, &[], exported, &mut self.0.imports);
            }
            _ => visit::visit_item(self, item),
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_for_tests(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.keep(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    /// The text between the parentheses of a macro need not be Rust, but its paths are.
    fn visit_macro(&mut self, of: &'ast Macro) {
        self.visit_path(&of.path);
        self.read_tokens(of.tokens.clone());
    }
}

impl Reader {
    fn keep(&mut self, path: Vec<String>) {
        if path.len() > 1 {
            self.0.paths.insert(path);
        }
    }

    fn read_tokens(&mut self, tokens: TokenStream) {
        let (mut path, mut colons) = (Vec::new(), 0);
        for token in tokens {
            match token {
                TokenTree::Ident(word) => {
                    if colons != 2 {
                        self.keep(std::mem::take(&mut path));
                    }
                    path.push(word.to_string());
                    colons = 0;
                }
                TokenTree::Punct(sign) if sign.as_char() == ':' && !path.is_empty() => colons += 1,
                other => {
                    self.keep(std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.read_tokens(group.stream());
                    }
                }
            }
        }
        self.keep(path);
    }
}

/// Returns whether an item with these attributes is compiled for tests only.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    let only_tests = |attribute: &Attribute| {
        let Ok(list) = attribute.meta.require_list() else { return false };
        let text = list.tokens.to_string();
        let has = |word: &str| text.split(|c: char| !c.is_alphanumeric()).any(|other| other == word);
        attribute.path().is_ident("cfg") && has("test") && !has("not") && !has("any")
    };
    attributes.iter().any(only_tests)
}

/// Reads a `use` tree below `prefix`.
fn use_tree(tree: &UseTree, prefix: &[String], exported: bool, imports: &mut Vec<Import>) {
    let with = |word: &str| -> Vec<String> { prefix.iter().cloned().chain([word.to_owned()]).collect() };
    let mut import = |path: Vec<String>, name: String| imports.push(Import { path, name, exported });
    match tree {
        UseTree::Path(path) => use_tree(&path.tree, &with(&path.ident.to_string()), exported, imports),
        UseTree::Name(of) if of.ident == "self" => {
            import(prefix.to_vec(), prefix.last().cloned().unwrap_or_default());
        }
        UseTree::Name(of) => import(with(&of.ident.to_string()), of.ident.to_string()),
        UseTree::Rename(of) if of.ident == "self" => import(prefix.to_vec(), of.rename.to_string()),
        UseTree::Rename(of) => import(with(&of.ident.to_string()), of.rename.to_string()),
        UseTree::Glob(_) => import(prefix.to_vec(), "*".to_owned()),
        UseTree::Group(group) => {
            group.items.iter().for_each(|tree| use_tree(tree, prefix, exported, imports))
        }
    }
}

fn read(file: String, text: &str) -> Source {
    let parsed = syn::parse_file(text).unwrap_or_else(|error| panic!("{file}: {error}"));
    let source = Source { file, imports: Vec::new(), paths: BTreeSet::new(), items: BTreeSet::new() };
    let mut reader = Reader(source);
    reader.visit_file(&parsed);
    reader.0
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

    /// Returns the module of the file that defines the item to which `path` leads in the file of `from`; `None` if that
    /// is a module itself, or not of this crate. `depth` ends a circle of re-exports.
    fn definition(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let (module, rest) = self.place(from, path, depth)?;
        (!rest.is_empty()).then_some(module)
    }

    /// Returns the module that `path` leads to from `from`, and the segments behind it.
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

    /// Returns the end of the segments of `path` below `module`.
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
            // A glob re-exports all names that the other file defines.
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
