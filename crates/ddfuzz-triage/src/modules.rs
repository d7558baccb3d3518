//! The modules mapped in a process, and a cache of their facts.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use nix::unistd::Pid;
use object::ReadCache;

use crate::memory::{Mapping, Maps, Memory, ProcessMemory};
use crate::module::Module;
use crate::runtime_modules::is_runtime_module;
use crate::unwind::Unwinder;

/// Identifies one version of an ELF file (device, inode, size, time of modification), and says
/// whether it is parsed as a runtime module (C library, sanitizer).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    device: u64,
    inode: u64,
    modified: (i64, i64),
    size: u64,
    runtime: bool,
}

/// A parsed module (program or library) that a triager uses: the identity of its file, the names of
/// functions that count as runtime functions because the user wants keys to ignore them, and the
/// parsed facts.
type InUse = (Identity, Vec<String>, Weak<Module>);

/// Parsed modules that the triagers of this process share: one with debug information takes some
/// megabytes, and every minimization has its own triager.
static IN_USE: Mutex<Vec<InUse>> = Mutex::new(Vec::new());

/// Maximum number of parsed modules in a cache; a target that executes many programs may need more.
const MODULES: usize = 64;

/// An executable mapping of a process, with the module (program or library) that is mapped there.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    /// Range of addresses of the executable mapping in its process.
    pub range: Range<u64>,
    /// Load bias of the mapped module: the difference between its addresses in memory and in the
    /// file.
    pub bias: u64,
    /// Base name of the mapped file; `exe` for the target's own executable.
    pub name: Arc<str>,
    /// Whether the mapped module is the main executable of its process.
    pub main: bool,
    /// Whether the mapped module as a whole belongs to a runtime (C library, sanitizer).
    pub runtime: bool,
    /// Path at which the file of the mapped module can be read; `None` for the vDSO, and where the
    /// file is gone.
    pub path: Option<Arc<Path>>,
    /// Parsed facts of the mapped module: functions, segments, names.
    pub module: Arc<Module>,
}

impl Region {
    /// Checks whether the code at `address` belongs to a runtime (C library, sanitizer).
    pub(crate) fn is_runtime(&self, address: u64) -> bool {
        let offset = address.wrapping_sub(self.bias);
        self.runtime || self.module.linked.contains(offset)
    }
}

/// The main executable of a process, and whether it is the fuzzing target's own executable.
struct Main {
    /// Path of the main executable, as in the memory map of its process; `None` if it is unknown.
    path: Option<PathBuf>,
    /// Whether the main executable is the target's own, and not that of another program that the
    /// target started.
    own: bool,
}

impl Main {
    fn is_at(&self, mapping: &Mapping) -> bool {
        self.path.as_ref() == Some(&mapping.path)
    }
}

/// The executable mappings of one process with their modules, and a stack unwinder for them.
pub(crate) struct Layout {
    regions: Vec<Region>,
    fingerprint: Vec<(Mapping, Option<Identity>)>,
    /// Whether the process runs the target's own executable, and not another program that the
    /// target started.
    own: bool,
    /// Stack unwinder for the modules that are mapped in the process.
    pub unwinder: Unwinder,
}

impl Layout {
    /// Returns the executable mapping that contains `address`; `None` where there is none.
    pub(crate) fn region(&self, address: u64) -> Option<&Region> {
        let regions = &self.regions;
        let behind = regions.partition_point(|region| region.range.start <= address);
        let region = regions.get(behind.checked_sub(1)?)?;
        region.range.contains(&address).then_some(region)
    }

    /// Checks whether the program is static and stripped, so that its C library cannot be
    /// distinguished from user code.
    pub(crate) fn has_opaque_runtime(&self) -> bool {
        self.regions
            .iter()
            .any(|region| region.main && region.module.is_static && !region.module.has_symbols)
    }

    /// Returns all executable mappings of the process, ascending by address.
    pub(crate) fn regions(&self) -> &[Region] {
        &self.regions
    }
}

/// A cache of parsed modules, and of the executable mappings of the process that was read last.
/// Without address randomization, the next process has the same mappings.
pub(crate) struct ModuleCache {
    modules: HashMap<Identity, Arc<Module>>,
    vdso: Option<Arc<Module>>,
    layout: Option<Layout>,
    /// Device and inode of the target's own executable file, by which it is recognized; `None` if
    /// they are not known yet.
    target: Option<(u64, u64)>,
    dropped: Vec<String>,
}

impl ModuleCache {
    /// Creates an empty cache of parsed modules. Functions named in `dropped` count as runtime
    /// functions, so that keys ignore them.
    pub(crate) fn new(dropped: Vec<String>) -> ModuleCache {
        ModuleCache {
            modules: HashMap::new(),
            vdso: None,
            layout: None,
            target: None,
            dropped,
        }
    }

    /// Returns this cache, and leaves an empty one with the same settings in its place.
    pub(crate) fn take(&mut self) -> ModuleCache {
        let empty = ModuleCache::new(self.dropped.clone());
        std::mem::replace(self, empty)
    }

    /// Records that the executable which `process` runs now is the target's own: its module gets
    /// the name `exe`. Modules of other executables are named by their files, so that their offsets
    /// are not confused with the target's.
    pub(crate) fn know_target(&mut self, process: Pid) {
        self.target = Source::Live(process).executable();
    }

    /// Records device and inode of the target's own executable, where the target is read from a
    /// copy that it made of itself and not from a live process.
    pub(crate) fn know_copied_target(&mut self, executable: (u64, u64)) {
        self.target = Some(executable);
    }

    /// Returns the executable mappings of a process with their parsed modules; mappings that did
    /// not change since the last call of this function, even for an earlier process, come from the
    /// cache.
    pub(crate) fn layout(
        &mut self,
        source: &Source,
        maps: &Maps,
        memory: &mut dyn Memory,
    ) -> &mut Layout {
        let main = Main {
            path: main_mapping(source, maps),
            own: self.target.is_none() || source.executable() == self.target,
        };
        let fingerprint: Vec<(Mapping, Option<Identity>)> = maps
            .iter()
            .filter(|mapping| mapping.executable && (mapping.is_file() || is_vdso(mapping)))
            .map(|mapping| {
                let is_main = main.is_at(mapping);
                let identity = identify(source, mapping, is_main).map(|(identity, _)| identity);
                (mapping.clone(), identity)
            })
            .collect();
        let layout = match self.layout.take() {
            Some(layout) if layout.fingerprint == fingerprint && layout.own == main.own => layout,
            _ => self.build(source, fingerprint, &main, memory),
        };
        self.layout.insert(layout)
    }

    /// Returns the memory and the executable mappings of the process of the stopped thread `tid`,
    /// whose stack pointer is `sp`.
    pub(crate) fn live(&mut self, tid: Pid, sp: u64) -> (ProcessMemory, &mut Layout) {
        let mut memory = ProcessMemory::new(tid, sp);
        let layout = self.layout(&Source::Live(tid), &Maps::of(tid), &mut memory);
        (memory, layout)
    }

    fn build(
        &mut self,
        source: &Source,
        fingerprint: Vec<(Mapping, Option<Identity>)>,
        main: &Main,
        memory: &mut dyn Memory,
    ) -> Layout {
        let regions: Vec<Region> = fingerprint
            .iter()
            .map(|(mapping, _)| self.region(source, mapping, main, memory))
            .collect();
        let unwinder = Unwinder::new(&regions);
        Layout {
            regions,
            fingerprint,
            own: main.own,
            unwinder,
        }
    }

    fn region(
        &mut self,
        source: &Source,
        mapping: &Mapping,
        main: &Main,
        memory: &mut dyn Memory,
    ) -> Region {
        let is_main = main.is_at(mapping);
        let base_name = mapping.base_name();
        let runtime = !is_main && is_runtime_module(&base_name);
        let (module, path) = if is_vdso(mapping) {
            (self.vdso(mapping, memory), None)
        } else {
            self.file(source, mapping, is_main, runtime)
        };
        Region {
            range: mapping.start..mapping.end,
            bias: module.bias(mapping.start, mapping.offset),
            name: if is_main && main.own {
                "exe".into()
            } else {
                base_name.into()
            },
            main: is_main,
            runtime,
            path: path.map(Arc::from),
            module,
        }
    }

    fn file(
        &mut self,
        source: &Source,
        mapping: &Mapping,
        is_main: bool,
        runtime: bool,
    ) -> (Arc<Module>, Option<PathBuf>) {
        let Some((identity, path)) = identify(source, mapping, is_main) else {
            return (Arc::default(), None);
        };
        let identity = Identity {
            runtime,
            ..identity
        };
        if let Some(module) = self.modules.get(&identity) {
            return (module.clone(), Some(path));
        }
        let module = in_use(&path, &identity, &self.dropped);
        if self.modules.len() >= MODULES {
            self.modules.clear();
        }
        self.modules.insert(identity, module.clone());
        (module, Some(path))
    }

    /// Returns the parsed vDSO (code that the kernel maps into each process), which has no file and
    /// is the same in all processes.
    fn vdso(&mut self, mapping: &Mapping, memory: &mut dyn Memory) -> Arc<Module> {
        let read = || {
            let length = (mapping.end - mapping.start).min(1 << 20);
            let image = memory.bytes(mapping.start, length as usize);
            Arc::new(Module::parse(image.as_slice(), true, &[]).unwrap_or_default())
        };
        self.vdso.get_or_insert_with(read).clone()
    }
}

/// Returns the parsed module of the ELF file at `path`: the one that another triager of this
/// process uses, else a newly parsed one; empty if the file cannot be read or parsed.
fn in_use(path: &Path, identity: &Identity, dropped: &[String]) -> Arc<Module> {
    let known = || IN_USE.lock().unwrap_or_else(PoisonError::into_inner);
    let same = |(one, names, _): &&InUse| one == identity && names == dropped;
    let found = known().iter().find(same).map(|(.., module)| module.clone());
    if let Some(module) = found.and_then(|module| module.upgrade()) {
        return module;
    }
    let module = Arc::new(parse(path, identity, dropped).unwrap_or_default());
    let mut known = known();
    known.retain(|(.., module)| module.strong_count() > 0);
    known.push((identity.clone(), dropped.to_vec(), Arc::downgrade(&module)));
    module
}

/// Returns the parsed module of the ELF file at `path`, shared with all triagers of this process;
/// empty if the file cannot be parsed, `None` if there is no such file. `runtime` says that it is a
/// runtime module (C library …); functions named in `dropped` count as runtime functions.
pub(crate) fn parsed_file(path: &Path, runtime: bool, dropped: &[String]) -> Option<Arc<Module>> {
    let identity = Identity {
        runtime,
        ..identity_of(path)?
    };
    Some(in_use(path, &identity, dropped))
}

/// Maximum size in bytes of an ELF file that is read as a whole, which is faster. Larger files
/// mostly consist of debug information, and only the needed parts are read.
const READ_AT_ONCE: u64 = 128 << 20;

fn parse(path: &Path, identity: &Identity, dropped: &[String]) -> Option<Module> {
    if identity.size <= READ_AT_ONCE {
        let image = ddfuzz_exec::read_tables(path).ok()?;
        return Module::parse(image.as_slice(), identity.runtime, dropped);
    }
    let file = File::open(path).ok()?;
    Module::parse(&ReadCache::new(file), identity.runtime, dropped)
}

fn is_vdso(mapping: &Mapping) -> bool {
    mapping.path.as_os_str() == "[vdso]"
}

/// Returns the path of the main executable: of the file in whose mapping the program's entry point
/// lies. Device and inode are not compared, because some file systems show different ones in maps
/// and metadata. `None` if the entry point is unknown, or not in a mapping.
fn main_mapping(source: &Source, maps: &Maps) -> Option<PathBuf> {
    let mapping = maps.find(source.entry()?);
    mapping.map(|mapping| mapping.path.clone())
}

/// Returns the identity of the file of a mapping, and a path at which it can be read: its own path
/// if the same file is still there, else the kernel's link to the deleted or replaced file. `None`
/// for a mapping without a file, or if the file is gone. `is_main`: whether the file is the main
/// executable.
fn identify(source: &Source, mapping: &Mapping, is_main: bool) -> Option<(Identity, PathBuf)> {
    if !mapping.is_file() {
        return None;
    }
    let path = mapping.file_path();
    let by_path = identity_of(&path);
    if by_path.as_ref().is_some_and(|it| it.inode == mapping.inode) {
        return by_path.map(|identity| (identity, path));
    }
    let Some(kept) = source.kept(mapping, is_main) else {
        // The process has ended and the file was deleted: a file that has its name now is another
        // one.
        let gone = mapping.path != path;
        return by_path.filter(|_| !gone).map(|identity| (identity, path));
    };
    match identity_of(&kept) {
        Some(identity) => Some((identity, kept)),
        None => by_path.map(|identity| (identity, path)),
    }
}

fn identity_of(path: &Path) -> Option<Identity> {
    let metadata = std::fs::metadata(path).ok().filter(|it| it.is_file())?;
    Some(Identity {
        device: metadata.dev(),
        inode: metadata.ino(),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        size: metadata.len(),
        runtime: false,
    })
}

/// A process whose modules are read: a live one, or one that has ended and left a copy of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A live process, given by the id of a stopped thread of it.
    Live(Pid),
    /// A process that has ended and left a copy of its registers and memory.
    Copied {
        /// Address of the entry point of the program that the process ran.
        entry: u64,
        /// Device and inode of the executable file that the process ran.
        executable: (u64, u64),
    },
}

impl Source {
    /// Returns device and inode of the executable that the process runs; `None` where they cannot
    /// be read.
    pub(crate) fn executable(&self) -> Option<(u64, u64)> {
        match self {
            Source::Live(tid) => {
                let facts = std::fs::metadata(format!("/proc/{tid}/exe")).ok()?;
                Some((facts.dev(), facts.ino()))
            }
            Source::Copied { executable, .. } => Some(*executable),
        }
    }

    /// Returns the address of the entry point of the program that the process runs; `None` where it
    /// cannot be read (from the auxiliary vector of a live process).
    pub(crate) fn entry(&self) -> Option<u64> {
        const AT_ENTRY: u64 = 9;
        let tid = match self {
            Source::Live(tid) => tid,
            Source::Copied { entry, .. } => return Some(*entry),
        };
        let vector = ddfuzz_exec::proc_bytes(format!("/proc/{tid}/auxv").as_ref()).ok()?;
        vector.chunks_exact(16).find_map(|pair| {
            let (tag, value) = pair.split_at(8);
            let tag = u64::from_le_bytes(tag.try_into().ok()?);
            (tag == AT_ENTRY).then_some(u64::from_le_bytes(value.try_into().ok()?))
        })
    }

    /// Returns a path in `/proc` by which the kernel gives access to the file of `mapping`, even if
    /// it was deleted; `is_main`: whether the file is the main executable. `None` for a process
    /// that has ended.
    pub(crate) fn kept(&self, mapping: &Mapping, is_main: bool) -> Option<PathBuf> {
        let Source::Live(tid) = self else {
            return None;
        };
        Some(PathBuf::from(if is_main {
            format!("/proc/{tid}/exe")
        } else {
            let (start, end) = (mapping.start, mapping.end);
            format!("/proc/{tid}/map_files/{start:x}-{end:x}")
        }))
    }
}
