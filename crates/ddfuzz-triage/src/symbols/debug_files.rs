//! Debug information that is installed apart from its program.
//!
//! Distributions strip their programs and put what they took away into packages of their own:
//! below `/usr/lib/debug`, by build id, or by the name that the section `.gnu_debuglink` gives.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ReadCache, ReadRef};

/// Where a distribution installs debug files.
const INSTALLED: &str = "/usr/lib/debug";

/// The largest section that is read, in bytes.
const LARGEST: u64 = 16 << 20;

/// What one ELF file says of its symbols.
#[derive(Debug, Default)]
pub(super) struct Facts {
    /// Whether it holds debug information itself.
    pub has_lines: bool,
    /// Its `.gnu_debugdata`: a small symbol table, compressed.
    pub mini: Option<Vec<u8>>,
    build_id: Option<Vec<u8>>,
    /// Base name of its debug file (`.gnu_debuglink`).
    link: Option<PathBuf>,
    /// Path and build id of the part that its debug information shares with other programs'
    /// (`.gnu_debugaltlink`).
    shared: Option<(PathBuf, Vec<u8>)>,
}

/// The facts of the ELF file at `path`; `None` where it is none.
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

/// The folders in which debug files are looked for.
#[derive(Debug)]
pub(super) struct DebugFiles {
    roots: Vec<PathBuf>,
    /// What the client of a debug file server has fetched: `BUILDID/debuginfo`.
    fetched: Vec<PathBuf>,
}

impl DebugFiles {
    /// The distribution's, and what has been fetched by build id before. Nothing is fetched.
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

    /// Those below these folders only.
    pub(super) fn in_folders(roots: Vec<PathBuf>) -> DebugFiles {
        DebugFiles {
            roots,
            fetched: Vec::new(),
        }
    }

    /// The debug file of the program at `path`: one of the same build.
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

    /// The file with what the debug information in `path` shares with that of other programs.
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
        let fetched = self
            .fetched
            .iter()
            .map(|cache| cache.join(&digits).join("debuginfo"));
        (self.roots.iter().map(|root| root.join(&name)))
            .chain(fetched)
            .collect()
    }

    /// Beside the program, in `.debug` beside it, and below the roots as the program lies below
    /// the root of the file system.
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
