//! Debug information outside of the program's own sections.
//!
//! Distributions strip their programs and install the debug information separately, below
//! `/usr/lib/debug`, by build id or by the name in the section `.gnu_debuglink`. Some leave a
//! compressed symbol table in the section `.gnu_debugdata`.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use lzma_rust2::XzReader;
use object::{Object, ObjectSection, ReadCache, ReadRef, SymbolMap, SymbolMapName};

/// Folder in which Linux distributions install debug files.
const INSTALLED: &str = "/usr/lib/debug";

/// Maximum size in bytes of a section of an ELF file that is read to find debug files; larger
/// sections count as missing.
const LARGEST: u64 = 16 << 20;

/// Which debug information and symbol tables one ELF file contains, and to which debug files it
/// refers.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Whether the ELF file contains debug information.
    pub has_lines: bool,
    /// Contents of the section `.gnu_debugdata`, a small compressed symbol table; `None` if the ELF
    /// file has none.
    pub mini: Option<Vec<u8>>,
    build_id: Option<Vec<u8>>,
    /// Base name of the separate debug file to which the section `.gnu_debuglink` refers; `None`
    /// without this section.
    link: Option<PathBuf>,
    /// Path and build id of the file with debug information that several programs share, to which
    /// the section `.gnu_debugaltlink` refers; `None` without this section.
    shared: Option<(PathBuf, Vec<u8>)>,
}

impl Facts {
    /// Returns true if part of the debug information is in a file that several programs share.
    pub(super) fn is_shared(&self) -> bool {
        self.shared.is_some()
    }
}

/// Reads which debug information the ELF file at `path` contains and refers to; `None` if it is not
/// an ELF file.
pub(super) fn facts(path: &Path) -> Option<Facts> {
    let file = File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    facts_of(&ReadCache::new(file))
}

fn facts_of<'data, R: ReadRef<'data>>(data: R) -> Option<Facts> {
    let elf = object::File::parse(data).ok()?;
    let build_id = |id: &[u8]| (id.len() >= 2).then(|| id.to_vec());
    let section = |name: &str| {
        let section = elf.section_by_name(name)?;
        (section.size() <= LARGEST).then(|| section.data().ok())?
    };
    let name = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name));
    let lines = elf.section_by_name(".debug_info").is_some();
    Some(Facts {
        // A debug file's own sections are there, and without content, in what was stripped.
        has_lines: lines || elf.section_by_name(".zdebug_info").is_some(),
        mini: section(".gnu_debugdata").map(<[u8]>::to_vec),
        build_id: elf.build_id().ok().flatten().and_then(build_id),
        link: (elf.gnu_debuglink().ok().flatten()).map(|(link, _)| name(link)),
        shared: (elf.gnu_debugaltlink().ok().flatten()).map(|(link, id)| (name(link), id.to_vec())),
    })
}

/// The folders in which separately installed debug files are searched for.
#[derive(Debug)]
pub(super) struct DebugFiles {
    roots: Vec<PathBuf>,
    /// Folders in which debuginfod clients cache debug files, as `BUILDID/debuginfo`.
    fetched: Vec<PathBuf>,
}

impl DebugFiles {
    /// Returns the folders in which debug files are searched for by default: the distribution's
    /// folder and the cache of debuginfod. Nothing is downloaded.
    pub(super) fn installed() -> DebugFiles {
        let folder = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let cache = folder("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(Path::new(&folder("HOME")?).join(".cache")))
            .map(|cache| cache.join("debuginfod_client"));
        DebugFiles {
            roots: vec![INSTALLED.into()],
            fetched: folder("DEBUGINFOD_CACHE_PATH")
                .map(PathBuf::from)
                .into_iter()
                .chain(cache)
                .collect(),
        }
    }

    /// Creates a search for separately installed debug files that looks in the folders `roots`
    /// only, and not in the cache of debuginfod.
    pub(super) fn in_folders(roots: Vec<PathBuf>) -> DebugFiles {
        let fetched = Vec::new();
        DebugFiles { roots, fetched }
    }

    /// Returns the path of the separately installed debug file of the program at `path`, of the
    /// same build as the program, as far as build ids tell; `None` where there is none. `program`:
    /// what the program's own file says about debug files, such as its build id.
    pub(super) fn of(&self, path: &Path, program: &Facts) -> Option<PathBuf> {
        let by_id = program.build_id.as_deref().map(|id| self.by_build_id(id));
        let by_link = program.link.as_deref().map(|link| self.by_link(path, link));
        let candidates = by_id.into_iter().chain(by_link).flatten();
        let mut of_same_build = candidates.filter(|candidate| {
            let Some(found) = facts(candidate).filter(|_| candidate != path) else {
                return false;
            };
            // Without a build id there is only the name to go by.
            found.has_lines && (program.build_id.is_none() || found.build_id == program.build_id)
        });
        of_same_build.next()
    }

    /// Returns the path of the file with the debug information that the file at `path` shares with
    /// other programs; `None` if it shares none, or the shared file is missing.
    pub(super) fn shared_part_of(&self, path: &Path) -> Option<PathBuf> {
        let (link, id) = facts(path)?.shared?;
        let beside = path.parent()?.join(link);
        let mut candidates = std::iter::once(beside).chain(self.by_build_id(&id));
        candidates.find(|candidate| {
            facts(candidate).is_some_and(|found| found.build_id.as_ref() == Some(&id))
        })
    }

    fn by_build_id(&self, id: &[u8]) -> Vec<PathBuf> {
        let digits: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
        let Some((folder, rest)) = digits.split_at_checked(2) else {
            return Vec::new();
        };
        let name = Path::new(".build-id")
            .join(folder)
            .join(format!("{rest}.debug"));
        let fetched = self.fetched.iter();
        let fetched = fetched.map(|cache| cache.join(&digits).join("debuginfo"));
        let installed = self.roots.iter().map(|root| root.join(&name));
        installed.chain(fetched).collect()
    }

    /// Returns the paths at which the debug file `link`, which the program at `path` names in
    /// `.gnu_debuglink`, may be: in the program's folder, in `.debug` there, and, at the program's
    /// path, below each folder in which debug files are installed.
    fn by_link(&self, path: &Path, link: &Path) -> Vec<PathBuf> {
        // The name of a file: whoever writes a path there wants us to read something else.
        let (Some(name), Some(folder)) = (link.file_name(), path.parent()) else {
            return Vec::new();
        };
        let below = folder.strip_prefix("/").unwrap_or(folder);
        let beside = [folder.join(name), folder.join(".debug").join(name)];
        let apart = (self.roots.iter()).map(|root| root.join(below).join(name));
        beside.into_iter().chain(apart).collect()
    }
}

/// Maximum size in bytes of the symbol table in `.gnu_debugdata` after decompression. The section
/// is hostile input.
const LARGEST_UNPACKED: u64 = 64 << 20;

/// Function names by address from the section `.gnu_debugdata` of a stripped program: an ELF file,
/// compressed by xz, with the functions that are not exported.
pub(super) struct MiniSymbols {
    /// Address and name of each function in the section's symbol table, ascending by address.
    names: Vec<(u64, String)>,
}

impl MiniSymbols {
    /// Decompresses and parses the contents of a section `.gnu_debugdata`; `None` where they are
    /// malformed.
    pub(super) fn read(section: &[u8]) -> Option<MiniSymbols> {
        let mut image = Vec::new();
        let mut unpacked = XzReader::new(section, true).take(LARGEST_UNPACKED + 1);
        unpacked.read_to_end(&mut image).ok()?;
        if image.len() as u64 > LARGEST_UNPACKED {
            return None;
        }
        let map: SymbolMap<SymbolMapName<'_>> = object::File::parse(&*image).ok()?.symbol_map();
        let names = map.symbols().iter();
        let names = names.map(|symbol| (symbol.address(), symbol.name().to_owned()));
        Some(MiniSymbols {
            names: names.collect(),
        })
    }

    /// Returns the name of the last function that starts at or before `address`; `None` where there
    /// is none.
    pub(super) fn name(&self, address: u64) -> Option<&str> {
        let behind = self.names.partition_point(|(start, _)| *start <= address);
        let (_, name) = self.names.get(behind.checked_sub(1)?)?;
        Some(name)
    }
}
