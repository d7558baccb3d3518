//! What a test writes into a fork of the passing run: blocks to allocate, and bytes or addresses.

use crate::graph::Place;

/// A place in a plan (the changes that a test makes to a fork of the passing run). The plan writes
/// to this place, or writes the address of this place elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// An address or register in the state of the passing run, and an offset in bytes from it.
    At(Place, u64),
    /// A block that the plan allocates, by its index in `Plan::allocations`, and an offset in bytes
    /// from its beginning.
    New(usize, u64),
}

/// What one write of a plan (the changes that a test makes to a fork of a run) puts into a place:
/// bytes, some bits, or the address of a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Bytes that the write puts into its place as they are.
    Bytes(Vec<u8>),
    /// New bits (first value) and a mask (second value): the write changes only those bits of its
    /// place that are set in the mask.
    Masked(Vec<u8>, Vec<u8>),
    /// A place whose address the write stores as a pointer of 8 bytes.
    Address(Spot),
}

/// One write of a plan (the changes that a test makes to a fork of the passing run).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The place that is written.
    pub to: Spot,
    /// The content that is written to the place `to`.
    pub content: Content,
}

/// Changes that a test makes to a fork of the passing run, to give some variables their values in
/// the failing run: memory blocks to allocate (their sizes in bytes), then writes in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Sizes in bytes of the blocks that are allocated first.
    pub allocations: Vec<u64>,
    /// The writes that are made after the allocations, in order.
    pub writes: Vec<Write>,
}

impl Plan {
    /// Returns the plan with its writes of bytes into memory restricted to the addresses for which
    /// `keeps` is true; such writes are split into single bytes. All other writes stay.
    pub fn restricted(mut self, keeps: impl Fn(u64) -> bool) -> Plan {
        let mut writes = Vec::new();
        for write in self.writes {
            let (Spot::At(Place::Memory(start), offset), Content::Bytes(bytes)) =
                (write.to, &write.content)
            else {
                writes.push(write);
                continue;
            };
            let places = (start + offset..).zip(bytes);
            writes.extend(places.filter(|(at, _)| keeps(*at)).map(|(at, byte)| Write {
                to: Spot::At(Place::Memory(at), 0),
                content: Content::Bytes(vec![*byte]),
            }));
        }
        self.writes = writes;
        self
    }

    /// Returns the addresses of the bytes in memory that this plan (changes to a stopped process)
    /// writes; `None` if it also allocates blocks, or writes registers, single bits or pointers.
    pub fn written(&self) -> Option<Vec<u64>> {
        let mut all = Vec::new();
        for write in &self.writes {
            match (write.to, &write.content) {
                (Spot::At(Place::Memory(start), offset), Content::Bytes(bytes)) => {
                    all.extend((start + offset..).take(bytes.len()));
                }
                _ => return None,
            }
        }
        Some(all).filter(|_| self.allocations.is_empty())
    }
}
