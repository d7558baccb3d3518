//! What a test writes into a fork of the passing run: blocks to allocate, and bytes or addresses.

use crate::graph::Place;

/// A place that a plan writes to or whose address it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// A place of the passing state, and an offset in bytes.
    At(Place, u64),
    /// A block that the plan allocates, by its index, and an offset in bytes.
    New(usize, u64),
}

/// What a plan writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// These bytes.
    Bytes(Vec<u8>),
    /// The bits of these bytes that are set in the mask.
    Masked(Vec<u8>, Vec<u8>),
    /// The address of a place.
    Address(Spot),
}

/// One write of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Where it is written.
    pub to: Spot,
    /// What is written.
    pub content: Content,
}

/// How a subset of differences is applied to the passing state: blocks to allocate (their sizes in
/// bytes), then writes in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Sizes of the blocks to allocate, in bytes.
    pub allocations: Vec<u64>,
    /// What to write after that.
    pub writes: Vec<Write>,
}

impl Plan {
    /// Splits what is written into memory as bytes to single bytes, and keeps those at some addresses;
    /// other writes are kept.
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

    /// The addresses of the bytes that a plan writes; `None` where it does anything else.
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
