//! What an executable's ELF file says about how it can be run.

use std::path::Path;

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol, elf};

/// What only programs with a sanitizer have whose shadow memory no limit on memory leaves room
/// for, in their symbols or among those that they ask of a library.
const SHADOWED: [&str; 4] = ["__asan_init", "__hwasan_init", "__msan_init", "__tsan_init"];

/// Functions of the C library that start processes.
const FORKING: [&str; 11] = [
    "_Fork",
    "clone",
    "daemon",
    "fork",
    "forkpty",
    "popen",
    "posix_spawn",
    "posix_spawnp",
    "system",
    "vfork",
    "wordexp",
];

/// Facts of an executable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The dynamic linker it asks for; `None` for a static program.
    pub(crate) interpreter: Option<String>,
    /// Address of `target_main` before loading, if it is a bundled-style target.
    pub(crate) target_main: Option<u64>,
    /// It is started by the C library's `__libc_start_main`, which the runtime takes the place of.
    pub(crate) starts_by_libc: bool,
    /// It may start other programs or processes, by what it asks of libraries or is linked with.
    pub(crate) may_fork: bool,
    /// It was compiled with a sanitizer that needs terabytes of address space.
    pub(crate) shadowed: bool,
}

/// Reads the facts of the program at `path`; `None` if it is not a 64-bit ELF file of this
/// machine (a script, for one).
pub(crate) fn facts(path: &Path) -> Option<Facts> {
    let data = std::fs::read(path).ok()?;
    let header = elf::FileHeader64::<Endianness>::parse(data.as_slice()).ok()?;
    let endian = header.endian().ok()?;
    let machine = header.e_machine(endian);
    let ours = if cfg!(target_arch = "x86_64") {
        elf::EM_X86_64
    } else {
        elf::EM_AARCH64
    };
    if machine != ours {
        return None;
    }
    let segments = header.program_headers(endian, data.as_slice()).ok()?;
    let interpreter = segments
        .iter()
        .find_map(|segment| segment.interpreter(endian, data.as_slice()).ok().flatten())
        .map(|name| String::from_utf8_lossy(name).into_owned());
    let file = object::File::parse(data.as_slice()).ok()?;
    let mut facts = Facts {
        interpreter,
        target_main: None,
        starts_by_libc: false,
        may_fork: false,
        shadowed: false,
    };
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        match symbol.name() {
            Ok("target_main") if symbol.address() != 0 => {
                facts.target_main.get_or_insert(symbol.address());
            }
            // In the table that strip removes, the name carries its version.
            Ok(name) if name.split('@').next() == Some("__libc_start_main") => {
                facts.starts_by_libc = true;
            }
            Ok(name) if FORKING.contains(&name.split('@').next().unwrap_or(name)) => {
                facts.may_fork = true;
            }
            Ok(name) if SHADOWED.contains(&name) => facts.shadowed = true,
            _ => {}
        }
    }
    Some(facts)
}
