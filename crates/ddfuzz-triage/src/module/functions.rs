//! Which function covers an address, by the unwind tables.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use addr2line::gimli::{
    BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Pointer, UnwindSection,
};

/// A section's bytes and the address that the file gives it.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// The address that the file gives it.
    pub address: u64,
    /// Its bytes.
    pub data: Arc<[u8]>,
}

/// The unwind tables of one module: `.eh_frame` and its index.
#[derive(Debug)]
pub(crate) struct UnwindTables {
    /// `.eh_frame`.
    pub eh_frame: Section,
    /// `.eh_frame_hdr`, the index.
    pub eh_frame_hdr: Option<Section>,
    /// Address of `.text`, to which entries may be relative.
    pub text: u64,
    /// Address of `.got`, to which entries may be relative.
    pub got: u64,
    /// (start, end) of every entry, for a module without an index.
    index: OnceLock<Vec<(u64, u64)>>,
}

type Slice<'a> = EndianSlice<'a, LittleEndian>;

impl UnwindTables {
    /// The tables made of these sections. An index that is not sound is left out.
    pub(crate) fn new(
        eh_frame: Section,
        eh_frame_hdr: Option<Section>,
        text: u64,
        got: u64,
    ) -> UnwindTables {
        let index = OnceLock::new();
        let mut tables = UnwindTables {
            eh_frame,
            eh_frame_hdr,
            text,
            got,
            index,
        };
        if tables.has_sound_header().is_none() {
            tables.eh_frame_hdr = None;
        }
        tables
    }

    /// Whether the index is sorted and points into the table, as `gimli` takes for granted: its
    /// subtractions overflow otherwise.
    fn has_sound_header(&self) -> Option<()> {
        let bases = self.bases();
        let header = EhFrameHdr::new(&self.eh_frame_hdr.as_ref()?.data, LittleEndian);
        let header = header.parse(&bases, 8).ok()?;
        let Pointer::Direct(start) = header.eh_frame_ptr() else {
            return None;
        };
        let inside = start..start.saturating_add(self.eh_frame.data.len() as u64);
        let table = header.table().filter(|_| start == self.eh_frame.address)?;
        let (mut entries, mut last) = (table.iter(&bases), None);
        while let Some((function, entry)) = entries.next().ok()? {
            let (Pointer::Direct(function), Pointer::Direct(entry)) = (function, entry) else {
                return None;
            };
            if last > Some(function) || !inside.contains(&entry) {
                return None;
            }
            last = Some(function);
        }
        // A lookup reads the first entry even of an empty table.
        last.map(drop)
    }

    /// The function that covers `address`, all as the file counts addresses.
    pub(crate) fn function(&self, address: u64) -> Option<Range<u64>> {
        match self.by_header(address) {
            Some(answer) => answer,
            None => self.by_index(address),
        }
    }

    fn bases(&self) -> BaseAddresses {
        let header = self
            .eh_frame_hdr
            .as_ref()
            .map_or(0, |section| section.address);
        BaseAddresses::default()
            .set_eh_frame(self.eh_frame.address)
            .set_eh_frame_hdr(header)
            .set_text(self.text)
            .set_got(self.got)
    }

    fn eh_frame(&self) -> EhFrame<Slice<'_>> {
        let mut eh_frame = EhFrame::new(&self.eh_frame.data, LittleEndian);
        eh_frame.set_address_size(8);
        eh_frame
    }

    /// By the sorted table of the header; the outer `None` says that there is none.
    fn by_header(&self, address: u64) -> Option<Option<Range<u64>>> {
        let bases = self.bases();
        let header = EhFrameHdr::new(&self.eh_frame_hdr.as_ref()?.data, LittleEndian);
        let header = header.parse(&bases, 8).ok()?;
        let table = header.table()?;
        let fde =
            table.fde_for_address(&self.eh_frame(), &bases, address, EhFrame::cie_from_offset);
        Some(fde.ok().map(|fde| fde.initial_address()..fde.end_address()))
    }

    fn by_index(&self, address: u64) -> Option<Range<u64>> {
        let index = self.index.get_or_init(|| self.build_index());
        let behind = index.partition_point(|(start, _)| *start <= address);
        let (start, end) = *index.get(behind.checked_sub(1)?)?;
        (address < end).then_some(start..end)
    }

    /// Reads every entry up to the first that is malformed.
    fn build_index(&self) -> Vec<(u64, u64)> {
        let (bases, eh_frame) = (self.bases(), self.eh_frame());
        let mut entries = eh_frame.entries(&bases);
        let mut index = Vec::new();
        while let Ok(Some(entry)) = entries.next() {
            if let CieOrFde::Fde(partial) = entry
                && let Ok(fde) = partial.parse(EhFrame::cie_from_offset)
            {
                index.push((fde.initial_address(), fde.end_address()));
            }
        }
        index.sort_unstable();
        index
    }
}
