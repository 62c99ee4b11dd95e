//! [`Symbols`] names the functions at addresses of code: the kernel's and the functions of processes.

use std::fs;
use std::path::{Path, PathBuf};

use hashbrown::HashMap;
use object::{Object as _, ObjectSegment as _, ObjectSymbol as _, SymbolKind};
use plimsoll_files::Origin;
use serde::Serialize;

/// A function, or the known part of one.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Symbol {
    /// The name of the function; where the file names none, the offset of the address in the file.
    pub function: String,
    /// The name of the mapped file, such as `memcached`, or `kernel`.
    pub module: String,
}

impl Symbol {
    /// Returns whether the function's name is known.
    pub fn is_named(&self) -> bool {
        !self.function.starts_with("0x")
    }
}

/// The functions of the kernel and of processes, each read at its first use.
#[derive(Debug, Default)]
pub struct Symbols {
    kernel: Option<Functions>,
    processes: HashMap<u32, Vec<ProcessMapping>>,
    files: HashMap<PathBuf, Image>,
}

impl Symbols {
    /// Returns the function of the kernel at this address.
    pub fn of_kernel(&mut self, address: u64) -> Symbol {
        let functions = self.kernel.get_or_insert_with(|| {
            Functions::of_kernel(&fs::read_to_string(KERNEL_SYMBOLS).unwrap_or_default())
        });
        let function = functions.at(address).map_or_else(|| format!("{address:#x}"), str::to_owned);
        Symbol { function, module: KERNEL.to_owned() }
    }

    /// Returns the function at this address of a process, which must still run at the first call.
    pub fn of_process(&mut self, process: u32, address: u64) -> Symbol {
        let Some(mapping) = self.mapping(process, address).cloned() else {
            return Symbol { function: format!("{address:#x}"), module: String::new() };
        };
        let (module, offset) = (mapping.name().to_owned(), mapping.offset(address));
        // Two processes may have different files at one path.
        let key = PathBuf::from(format!("{process}")).join(&mapping.path);
        let image = self.files.entry(key).or_insert_with(|| Image::of(process, &mapping));
        let function = image.at(offset).map_or_else(|| format!("{offset:#x}"), str::to_owned);
        Symbol { function, module }
    }

    /// Returns where an address of a process is: the mapped file and the offset in it, or the name of another mapping,
    /// such as `[heap]`.
    pub fn place(&mut self, process: u32, address: u64) -> Option<String> {
        self.mapping(process, address).map(|mapping| mapping.place(address))
    }

    /// Returns whether there is code at the address of a process.
    pub fn is_code(&mut self, process: u32, address: u64) -> bool {
        self.mapping(process, address).is_some_and(|mapping| mapping.is_code)
    }

    fn mapping(&mut self, process: u32, address: u64) -> Option<&ProcessMapping> {
        let mappings = self.processes.entry(process).or_insert_with(|| {
            ProcessMapping::all(&fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default())
        });
        mappings.iter().find(|mapping| (mapping.from..mapping.to).contains(&address))
    }
}

/// A stretch of a process's memory (proc_pid_maps(5)).
#[derive(Clone, PartialEq, Eq, Debug)]
struct ProcessMapping {
    from: u64,
    to: u64,
    is_code: bool,
    /// Where the stretch begins in its file.
    begin: u64,
    /// The path of the file, or a name in brackets; empty for memory that has neither.
    path: String,
}

impl ProcessMapping {
    fn all(maps: &str) -> Vec<ProcessMapping> {
        maps.lines().filter_map(ProcessMapping::parse).collect()
    }

    fn parse(line: &str) -> Option<ProcessMapping> {
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        // Range, mode, offset, device and inode; then spaces, and a path that may have some itself.
        let mut fields = line.splitn(6, ' ');
        let (from, to) = fields.next()?.split_once('-')?;
        let (mode, begin, path) = (fields.next()?, fields.next()?, fields.nth(2).unwrap_or_default());
        Some(ProcessMapping {
            from: number(from)?,
            to: number(to)?,
            is_code: mode.contains('x'),
            begin: number(begin)?,
            path: path.trim().to_owned(),
        })
    }

    fn is_file(&self) -> bool {
        self.path.starts_with('/')
    }

    /// Returns the name of the file without its folders.
    fn name(&self) -> &str {
        match self.path.rsplit_once('/') {
            Some((_, name)) if self.is_file() => name,
            _ if self.path.is_empty() => "anonymous memory",
            _ => &self.path,
        }
    }

    /// Returns the offset of an address in the file.
    fn offset(&self, address: u64) -> u64 {
        address - self.from + self.begin
    }

    fn place(&self, address: u64) -> String {
        let name = self.name();
        if self.is_file() { format!("{name}+{:#x}", self.offset(address)) } else { name.to_owned() }
    }
}

/// The functions of a mapped file, by their offset in it.
#[derive(Debug, Default)]
struct Image {
    /// The loaded segments: where each begins and ends in the file, and its address.
    segments: Vec<(u64, u64, u64)>,
    functions: Functions,
}

impl Image {
    /// Parses the file of a process's mapping; a file that cannot be read has no functions.
    fn of(process: u32, mapping: &ProcessMapping) -> Image {
        if !mapping.is_file() {
            return Image::default();
        }
        // The first is the file itself, even if its path has another one by now; it needs CAP_CHECKPOINT_RESTORE.
        let paths = [
            format!("/proc/{process}/map_files/{:x}-{:x}", mapping.from, mapping.to),
            format!("/proc/{process}/root{}", mapping.path),
        ];
        let read = |path: &String| plimsoll_files::read(Path::new(path), Origin::Name, FILE_BYTES_MAX).ok();
        paths.iter().find_map(read).map_or_else(Image::default, |bytes| Image::parse(&bytes))
    }

    /// Parses an executable; one of another form has no functions.
    fn parse(bytes: &[u8]) -> Image {
        let Ok(file) = object::File::parse(bytes) else { return Image::default() };
        let segment = |segment: object::Segment<'_, '_>| {
            let (begin, length) = segment.file_range();
            (begin, begin.saturating_add(length), segment.address())
        };
        let functions = file.symbols().chain(file.dynamic_symbols());
        let functions =
            functions.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_definition());
        let functions = functions.filter_map(|symbol| {
            let name = format!("{:#}", rustc_demangle::demangle(symbol.name().ok()?));
            Some((symbol.address(), symbol.size(), name))
        });
        Image {
            segments: file.segments().map(segment).collect(),
            functions: Functions::new(functions.collect()),
        }
    }

    fn at(&self, offset: u64) -> Option<&str> {
        let is_in = |(begin, end, _): &&(u64, u64, u64)| (*begin..*end).contains(&offset);
        let (begin, _, address) = self.segments.iter().find(is_in)?;
        self.functions.at((offset - begin).checked_add(*address)?)
    }
}

/// Functions by their address.
#[derive(Debug, Default)]
struct Functions {
    /// Address, length and name, in the order of addresses. A length of 0 reaches to the next function.
    all: Vec<(u64, u64, String)>,
}

impl Functions {
    fn new(mut all: Vec<(u64, u64, String)>) -> Functions {
        all.sort();
        Functions { all }
    }

    /// Reads the lines of /proc/kallsyms: address, kind, name, and the module if it is of one.
    fn of_kernel(text: &str) -> Functions {
        let parse = |line: &str| {
            let mut fields = line.split_ascii_whitespace();
            let (address, kind, name) = (fields.next()?, fields.next()?, fields.next()?);
            let is_code = matches!(kind, "t" | "T" | "w" | "W");
            is_code.then(|| Some((u64::from_str_radix(address, 16).ok()?, 0, name.to_owned())))?
        };
        // Without the privilege, the kernel shows 0 for every address.
        Functions::new(text.lines().filter_map(parse).filter(|(address, ..)| *address != 0).collect())
    }

    fn at(&self, address: u64) -> Option<&str> {
        let after = self.all.partition_point(|(begin, ..)| *begin <= address);
        let (begin, length, name) = self.all[..after].last()?;
        (*length == 0 || address - begin < *length).then_some(name)
    }
}

/// The module of the kernel's functions.
pub(crate) const KERNEL: &str = "kernel";
const KERNEL_SYMBOLS: &str = "/proc/kallsyms";
/// A file of more bytes is not read for its functions.
const FILE_BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;

    const MAPS: &str = "4000-6000 r-xp 00003000 fe:00 42                  /usr/bin/my server\n\
                        8000-9000 rw-p 00000000 00:00 0                   [heap]\n\
                        9000-a000 rw-p 00000000 00:00 0 \n";

    #[test]
    fn addresses_are_placed_by_their_mapping() {
        let maps = ProcessMapping::all(MAPS);
        let at = |address: u64| maps.iter().find(|mapping| (mapping.from..mapping.to).contains(&address));
        let place = |address| at(address).map(|mapping| mapping.place(address));
        assert_eq!(place(0x5010).as_deref(), Some("my server+0x4010"));
        assert_eq!(place(0x8fff).as_deref(), Some("[heap]"));
        assert_eq!(place(0x9000).as_deref(), Some("anonymous memory"));
        assert_eq!(place(0xa000), None);
        assert_eq!(maps.iter().map(|mapping| mapping.is_code).collect::<Vec<_>>(), [true, false, false]);
    }

    #[test]
    fn the_kernels_functions_reach_to_the_next_and_data_is_none() {
        let functions = Functions::of_kernel(
            "ffff00 T first\nffff80 d data\nffff90 t second [bpf]\n000000 T hidden\nnot a line\n",
        );
        for (address, expected) in [
            (0xfffeff, None),
            (0xffff00, Some("first")),
            (0xffff8f, Some("first")),
            (0xffff90, Some("second")),
        ] {
            assert_eq!(functions.at(address), expected, "{address:#x}");
        }
    }

    #[test]
    fn a_function_of_this_program_is_found_by_its_address() {
        let address = (a_function_of_this_program_is_found_by_its_address as fn()) as usize as u64;
        let mut symbols = Symbols::default();
        assert!(symbols.is_code(std::process::id(), address));
        let symbol = symbols.of_process(std::process::id(), address);
        assert!(
            symbol.function.ends_with("a_function_of_this_program_is_found_by_its_address"),
            "{symbol:?}"
        );
        let nowhere = symbols.of_process(std::process::id(), 1);
        assert_eq!((nowhere.function.as_str(), nowhere.module.as_str()), ("0x1", ""));
    }

    #[test]
    fn a_file_that_is_no_executable_has_no_functions() {
        for bytes in [&b""[..], b"\x7fELF", &[0x7f; 4096]] {
            assert_eq!(Image::parse(bytes).at(0), None);
        }
    }

    #[test]
    fn functions_end_where_they_say() {
        let functions = Functions::new(vec![(20, 5, "b".to_owned()), (10, 5, "a".to_owned())]);
        assert_eq!(
            [9, 10, 14, 15, 24].map(|address| functions.at(address)),
            [None, Some("a"), Some("a"), None, Some("b")]
        );
    }
}
