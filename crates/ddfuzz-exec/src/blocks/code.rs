//! The code of a program and of the libraries that it brings along: its files, blocks and
//! functions.

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::starts;
use crate::observe::image::{Image, Segment};

/// Beginnings of the file names of system libraries: the C library, runtimes of compilers and
/// sanitizers, and ddfuzz's own. Their blocks are not covered: what runs reach in them says little
/// about the program.
const OF_SYSTEM: [&str; 20] = [
    "ddfuzz-",
    "ld-linux",
    "libanl.",
    "libasan.",
    "libc++",
    "libc.",
    "libdl.",
    "libgcc_s.",
    "liblsan.",
    "libm.",
    "libmvec.",
    "libnsl.",
    "libnss_",
    "libpthread.",
    "libresolv.",
    "librt.",
    "libstdc++.",
    "libtsan.",
    "libubsan.",
    "libutil.",
];
/// Maximum total size in bytes of the code of those libraries that are covered in addition to the
/// program.
const MOST_CODE: u64 = 32 << 20;
/// Number of bits by which the index of a module (the program or a library) is shifted left; the
/// result is added to the module's addresses, so that no two modules have equal addresses.
const MODULE_SHIFT: u32 = 48;

/// The code of one file, the program or a library: its segments, functions and basic blocks.
pub(super) struct CodeModule {
    pub(super) path: PathBuf,
    pub(super) device: u64,
    pub(super) inode: u64,
    /// Executable segments of the program or library whose blocks are covered.
    pub(super) segments: Vec<Segment>,
    /// Addresses at which the basic blocks of the file begin, before loading, ascending.
    starts: Vec<u64>,
    /// Addresses at which the functions of the file begin, before loading, ascending.
    functions: Vec<u64>,
}

impl CodeModule {
    /// Returns the blocks and functions of the file at `path`, from a cache if this version of the
    /// file was read before. `None` if the file cannot be read, has no blocks at which breakpoints
    /// can be set, or the processor is not an x86-64.
    pub(super) fn read(path: &Path) -> Option<Arc<CodeModule>> {
        type Version = (PathBuf, u64, u64, i64, i64);
        static KNOWN: Mutex<Option<HashMap<Version, Option<Arc<CodeModule>>>>> = Mutex::new(None);
        let facts = path.metadata().ok()?;
        let time = (facts.ctime(), facts.ctime_nsec());
        let version = (path.to_owned(), facts.ino(), facts.len(), time.0, time.1);
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || CodeModule::analyse(path, (facts.dev(), facts.ino())).map(Arc::new);
        let known = known.get_or_insert_default();
        known.entry(version).or_insert_with(read).clone()
    }

    fn analyse(path: &Path, (device, inode): (u64, u64)) -> Option<CodeModule> {
        let image = Image::read(path).filter(|_| cfg!(target_arch = "x86_64"))?;
        let starts = starts::block_starts(&image);
        let is_small = |segment: &Segment| segment.address >> MODULE_SHIFT == 0;
        if starts.is_empty() || !image.segments.iter().all(is_small) {
            return None;
        }
        let functions = image.functions.iter().map(|(start, _)| start).collect();
        let mut segments = image.segments;
        segments.retain(|segment| segment.executable);
        Some(CodeModule {
            path: path.to_owned(),
            device,
            inode,
            segments,
            starts,
            functions,
        })
    }

    fn size(&self) -> u64 {
        let sizes = self.segments.iter().map(|it| it.bytes.len() as u64);
        sizes.sum()
    }
}

/// Returns the number that is added to all addresses of the module (the program or a library) with
/// the index `module`, so that no two modules have equal addresses.
pub(super) fn key(module: usize) -> u64 {
    (module as u64) << MODULE_SHIFT
}

/// Reads the code of the program at `path` and of the libraries among `loaded`, the files that a
/// process of the program has mapped; system libraries are left out, and libraries beyond
/// [`MOST_CODE`] bytes in total. Returns the program's code first; empty if the program has no
/// blocks that can be covered.
pub(super) fn modules(path: &Path, loaded: &[PathBuf]) -> Vec<Arc<CodeModule>> {
    let Some(program) = CodeModule::read(path) else {
        return Vec::new();
    };
    let mut room = MOST_CODE;
    let own = loaded.iter().filter(|library| !is_of_system(library));
    let libraries = own.filter_map(|library| CodeModule::read(library));
    let others = libraries.filter(|library| library.inode != program.inode);
    let fitting = others.filter(|library| {
        let fits = library.size() <= room;
        room -= if fits { library.size() } else { 0 };
        fits
    });
    let fitting: Vec<_> = fitting.collect();
    std::iter::once(program).chain(fitting).collect()
}

fn is_of_system(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    OF_SYSTEM.iter().any(|known| name.starts_with(known))
}

/// Returns the paths of the shared libraries that are mapped with code, each once, from the text of
/// `/proc/PID/maps`. Paths may contain blanks and bytes that are not UTF-8.
pub(crate) fn libraries_in(maps: &[u8]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = Vec::new();
    for line in maps.split(|byte| *byte == b'\n') {
        let mut fields = line.splitn(6, |byte| *byte == b' ');
        let is_code = fields.nth(1).is_some_and(|rights| rights.contains(&b'x'));
        let Some(path) = fields.nth(3).filter(|_| is_code) else {
            continue;
        };
        let path = mapped_path(path);
        let is_library = path
            .as_os_str()
            .as_bytes()
            .windows(3)
            .any(|it| it == b".so");
        if is_library && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

/// Returns the path of a mapped file from the last field of a line of `/proc/PID/maps`: without the
/// blanks in front of it, and with each `\012` replaced by the line feed that it stands for.
pub fn mapped_path(field: &[u8]) -> PathBuf {
    let path = field.trim_ascii_start();
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, behind)) = rest.split_first() {
        if let Some(behind) = rest.strip_prefix(b"\\012") {
            bytes.push(b'\n');
            rest = behind;
        } else {
            bytes.push(*first);
            rest = behind;
        }
    }
    PathBuf::from(OsString::from_vec(bytes))
}

/// The files, functions and basic blocks of an unmodified program whose blocks are covered; reports
/// of coverage name them.
pub struct CoveredCode {
    pub(super) modules: Vec<Arc<CodeModule>>,
    /// For each block of the covered files, whether the program passes it before the point where
    /// its runs begin.
    pub(super) at_start: Vec<bool>,
}

/// A function of the program or a library with covered blocks: its file, address, name and blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeFunction {
    /// Index of the file (program or library) that contains the function, in
    /// [`CoveredCode::files`].
    pub module: usize,
    /// Address of the function in its file, before loading.
    pub address: u64,
    /// Name of the function in the symbol table or the dynamic symbol table; `None` if it has none.
    pub name: Option<String>,
    /// Indices of the function's blocks among the blocks of all covered files; a run's coverage
    /// counters have the same indices.
    pub blocks: Range<usize>,
}

impl CoveredCode {
    /// Returns the files with covered code, the program first.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.modules.iter().map(|module| &*module.path)
    }

    /// Returns, for each block, whether the program passes it before the point where its runs
    /// begin. Runs do not report such a block.
    pub fn at_start(&self) -> &[bool] {
        &self.at_start
    }

    /// Returns the functions that have covered blocks, in the order of their files and addresses.
    /// Functions that run only before or after `main`, such as the program's entry point, and stubs
    /// of the linker are left out.
    pub fn functions(&self) -> Vec<CodeFunction> {
        let starts = starts_of(&self.modules);
        let mut all = Vec::new();
        for (number, module) in self.modules.iter().enumerate() {
            let symbols = Symbols::read(&module.path);
            for (index, address) in module.functions.iter().enumerate() {
                let end = module.functions.get(index + 1).copied();
                let place =
                    |address: u64| starts.partition_point(|start| *start < key(number) + address);
                let blocks = place(*address)..place(end.unwrap_or(key(1)));
                if !blocks.is_empty() && !symbols.is_outside_main(*address) {
                    all.push(CodeFunction {
                        module: number,
                        address: *address,
                        name: symbols.names.get(address).cloned(),
                        blocks,
                    });
                }
            }
        }
        all
    }
}

/// Returns the addresses at which the blocks of all `modules` begin, in ascending order. To each
/// address, its module's [`key`] is added, so that no two modules have equal addresses.
pub(super) fn starts_of(modules: &[Arc<CodeModule>]) -> Vec<u64> {
    let modules = modules.iter().enumerate();
    let starts = modules.map(|(number, module)| {
        let starts = module.starts.iter();
        starts.map(move |start| key(number) + start)
    });
    starts.flatten().collect()
}

/// Names of sections whose code linkers and compilers add. Functions in these sections are left out
/// of the list of covered functions.
const AROUND_MAIN: [&str; 5] = [".plt", ".plt.got", ".plt.sec", ".init", ".fini"];
/// Beginnings of the names of functions that compilers add to a program, and that run before or
/// after `main`. Such functions are left out of the list of covered functions.
const RUN_BEFORE: [&str; 6] = [
    "_GLOBAL__sub_I_",
    "__do_global_",
    "deregister_tm_clones",
    "frame_dummy",
    "register_tm_clones",
    "__libc_csu_",
];

/// The symbols and sections of a file. They give functions their names, and tell which functions
/// run before or after `main`.
#[derive(Default)]
struct Symbols {
    entry: u64,
    names: BTreeMap<u64, String>,
    around: Vec<Range<u64>>,
}

impl Symbols {
    fn read(path: &Path) -> Symbols {
        let data = crate::elf::read(path).unwrap_or_default();
        let Ok(file) = object::File::parse(data.as_slice()) else {
            return Symbols::default();
        };
        let mut symbols = Symbols {
            entry: file.entry(),
            ..Symbols::default()
        };
        let sections = file.sections().filter(|section| {
            let name = section.name();
            name.is_ok_and(|name| AROUND_MAIN.contains(&name))
        });
        let ranges = sections.map(|it| it.address()..it.address().saturating_add(it.size()));
        symbols.around = ranges.collect();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let Some(name) = symbol.name().ok().filter(|name| !name.is_empty()) else {
                continue;
            };
            if symbol.kind() != SymbolKind::Text || symbol.address() == 0 {
                continue;
            }
            // Of several names the shortest, so that the order of symbols does not matter.
            let known = symbols.names.entry(symbol.address()).or_default();
            if known.is_empty() || (name.len(), name) < (known.len(), known.as_str()) {
                *known = name.to_owned();
            }
        }
        symbols
    }

    fn is_outside_main(&self, address: u64) -> bool {
        let name = self.names.get(&address);
        let is_before = |name: &String| RUN_BEFORE.iter().any(|known| name.starts_with(known));
        address == self.entry
            || self.around.iter().any(|range| range.contains(&address))
            || name.is_some_and(is_before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;

    #[test]
    fn libraries_are_those_mapped_with_code_each_once() {
        let maps = b"5500-5600 r-xp 00000000 08:01 17 /usr/bin/jq\n\
                    7000-7100 r--p 00000000 08:01 18 /usr/lib/libjq.so.1.0.4\n\
                    7100-7200 r-xp 00000000 08:01 18 /usr/lib/libjq.so.1.0.4\n\
                    7200-7300 r-xp 00000000 08:01 18 /usr/lib/libjq.so.1.0.4\n\
                    7300-7400 r-xp 00000000 08:01 19 /usr/lib/libc.so.6\n\
                    7310-7320 r-xp 00000000 08:01 20       /home/my lib\xff/l\\0121.so\n\
                    7400-7500 r-xp 00000000 00:00 0 [vdso]\n";
        let found = libraries_in(maps);
        let expected: [&[u8]; 3] = [
            b"/usr/lib/libjq.so.1.0.4",
            b"/usr/lib/libc.so.6",
            b"/home/my lib\xff/l\n1.so",
        ];
        let expected = expected.map(|path| PathBuf::from(OsStr::from_bytes(path)));
        assert_eq!(found, expected);
        assert!(!is_of_system(&found[0]) && is_of_system(&found[1]));
    }
}
