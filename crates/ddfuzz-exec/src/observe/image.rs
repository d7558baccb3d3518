//! What is needed of a program's ELF file to observe it. The file is hostile input.

use std::path::Path;

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, Object, ObjectSegment, ObjectSymbol, SegmentFlags, SymbolKind, elf};

use super::functions::{Functions, ranges_of_unwind_table};
use super::hook::{Hook, hooks_among};
use super::runtimes::is_of_runtime;

/// Programs with more code than this, in bytes, have their functions observed only.
const MOST_CODE: u64 = 64 << 20;

/// A loadable segment.
pub(crate) struct Segment {
    /// Its address before loading.
    pub(crate) address: u64,
    /// Its bytes in the file.
    pub(crate) bytes: Vec<u8>,
    /// Whether it is code.
    pub(crate) executable: bool,
}

/// A program as its file has it.
pub(crate) struct Image {
    /// Address of its entry point before loading.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
    pub(crate) entry: u64,
    /// Its segments of code, and those that describe them.
    pub(crate) segments: Vec<Segment>,
    /// Its functions, less those of runtimes.
    pub(crate) functions: Functions,
    /// Callbacks that it defines itself.
    pub(crate) hooks: Vec<Hook>,
}

impl Image {
    /// Reads the program at `path`; `None` if it is no 64-bit ELF file.
    pub fn read(path: &Path) -> Option<Image> {
        let data = crate::elf::read(path).ok()?;
        let header = elf::FileHeader64::<Endianness>::parse(data.as_slice()).ok()?;
        let endian = header.endian().ok()?;
        let unwind_table = header
            .program_headers(endian, data.as_slice())
            .ok()?
            .iter()
            .find(|segment| segment.p_type(endian) == elf::PT_GNU_EH_FRAME)
            .map(|segment| segment.p_vaddr(endian));
        let file = object::File::parse(data.as_slice()).ok()?;
        let mut image = Image {
            entry: file.entry(),
            segments: segments(&file),
            functions: Functions::default(),
            hooks: Vec::new(),
        };
        if let Some(at) = unwind_table {
            for (start, end) in ranges_of_unwind_table(&image, at) {
                image.functions.add(start, end);
            }
        }
        image.read_symbols(&file);
        Some(image)
    }

    fn read_symbols(&mut self, file: &object::File) {
        let mut named = Vec::new();
        for symbol in file.symbols().chain(file.dynamic_symbols()) {
            let address = symbol.address();
            if symbol.kind() != SymbolKind::Text || address == 0 {
                continue;
            }
            if let Some(end) = address.checked_add(symbol.size()) {
                self.functions.add(address, end);
            }
            if let Ok(name) = symbol.name() {
                named.push((name, address));
            }
        }
        for (_, address) in named.iter().filter(|(name, _)| is_of_runtime(name)) {
            self.functions.remove(*address);
        }
        let mut hooks = hooks_among(&named);
        hooks.retain(|hook| self.is_code(hook.address));
        self.hooks = hooks;
    }

    fn is_code(&self, address: u64) -> bool {
        self.segments
            .iter()
            .any(|segment| segment.executable && segment.part(address, 1).is_some())
    }

    /// The bytes at `address` before loading.
    pub(crate) fn at(&self, address: u64, length: usize) -> Option<&[u8]> {
        let mut segments = self.segments.iter();
        segments.find_map(|segment| segment.part(address, length))
    }
}

impl Segment {
    /// Where in it `length` bytes from `address` on lie.
    pub(crate) fn place(&self, address: u64, length: usize) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(address.checked_sub(self.address)?).ok()?;
        let end = start.checked_add(length)?;
        (end <= self.bytes.len()).then_some(start..end)
    }

    fn part(&self, address: u64, length: usize) -> Option<&[u8]> {
        self.bytes.get(self.place(address, length)?)
    }
}

fn segments(file: &object::File) -> Vec<Segment> {
    let mut room = MOST_CODE;
    let mut segments = Vec::new();
    for segment in file.segments() {
        let (Ok(bytes), SegmentFlags::Elf { p_flags, .. }) = (segment.data(), segment.flags())
        else {
            continue;
        };
        if p_flags.contains(elf::PF_W) || bytes.len() as u64 > room {
            continue;
        }
        room -= bytes.len() as u64;
        segments.push(Segment {
            address: segment.address(),
            bytes: bytes.to_vec(),
            executable: p_flags.contains(elf::PF_X),
        });
    }
    segments
}
