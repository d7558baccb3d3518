//! The small symbol table that some distributions leave in stripped programs: the section
//! `.gnu_debugdata` is an ELF file, compressed by xz, with the functions that are not exported.

use std::io::Read;

use lzma_rust2::XzReader;
use object::{Object, SymbolMap, SymbolMapName};

/// The most that it may unpack to, in bytes. The section is hostile input.
const LARGEST: u64 = 64 << 20;

/// Names of functions by address.
pub(super) struct MiniSymbols {
    /// (address, name), ascending.
    names: Vec<(u64, String)>,
}

impl MiniSymbols {
    /// Unpacks the section; `None` where it is malformed.
    pub(super) fn read(section: &[u8]) -> Option<MiniSymbols> {
        let mut image = Vec::new();
        let unpacked = XzReader::new(section, true).take(LARGEST + 1);
        let mut unpacked = unpacked;
        unpacked.read_to_end(&mut image).ok()?;
        if image.len() as u64 > LARGEST {
            return None;
        }
        let map: SymbolMap<SymbolMapName<'_>> = object::File::parse(&*image).ok()?.symbol_map();
        let names = map.symbols().iter();
        let names = names.map(|symbol| (symbol.address(), symbol.name().to_owned()));
        Some(MiniSymbols {
            names: names.collect(),
        })
    }

    /// The name of the function at or before `address`.
    pub(super) fn name(&self, address: u64) -> Option<&str> {
        let behind = self.names.partition_point(|(start, _)| *start <= address);
        let (_, name) = self.names.get(behind.checked_sub(1)?)?;
        Some(name)
    }
}
