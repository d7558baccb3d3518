//! What a test writes into a fork of the passing run: blocks to allocate, and bytes or addresses.

use crate::graph::{Graph, Origin, Place};

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

/// How a user can make the writes of a test by hand, in the passing run under a debugger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ByHand {
    /// These bytes are written to these addresses, which are the same in each run without address
    /// randomization.
    Writes(Vec<(u64, Vec<u8>)>),
    /// The only write sets a pointer to this address, which is the same in each run, too.
    Pointer(u64),
    /// The test allocates a block that only the failing run has.
    NewBlock,
    /// The test writes to the stack, or an address on it: stacks of other processes are elsewhere.
    OnStack,
    /// It is not known how: the test writes registers, single bits, or more than 256
    /// bytes.
    #[default]
    Unknown,
}

/// Largest number of bytes that a user is told to write by hand.
const MOST_BY_HAND: usize = 256;
/// First address above the program, its data and its heap, without address randomization.
const ABOVE_HEAP: u64 = 0x7000_0000_0000;

impl Plan {
    /// Returns how a user can make the writes of this plan by hand; `passing` is the state of the
    /// passing run that they change.
    pub fn by_hand(&self, passing: &Graph) -> ByHand {
        if !self.allocations.is_empty() {
            return ByHand::NewBlock;
        }
        let is_fixed = |address: u64| {
            let object = passing.containing(address);
            let is_local = object
                .is_some_and(|(id, _)| matches!(passing.objects[id].origin, Origin::Local { .. }));
            address < ABOVE_HEAP && !is_local
        };
        if let [write] = &self.writes[..]
            && let Content::Address(Spot::At(Place::Memory(to), offset)) = write.content
            && is_fixed(to + offset)
        {
            return ByHand::Pointer(to + offset);
        }
        let mut all: Vec<(u64, Vec<u8>)> = Vec::new();
        for write in &self.writes {
            let Spot::At(Place::Memory(start), offset) = write.to else {
                return ByHand::Unknown;
            };
            let bytes = match &write.content {
                Content::Bytes(bytes) => bytes.clone(),
                Content::Address(Spot::At(Place::Memory(to), further)) => {
                    if !is_fixed(to + further) {
                        return ByHand::OnStack;
                    }
                    (to + further).to_le_bytes().to_vec()
                }
                Content::Address(_) | Content::Masked(..) => return ByHand::Unknown,
            };
            if !is_fixed(start + offset) {
                return ByHand::OnStack;
            }
            match all.last_mut() {
                Some((at, before)) if *at + before.len() as u64 == start + offset => {
                    before.extend(bytes);
                }
                _ => all.push((start + offset, bytes)),
            }
        }
        let count: usize = all.iter().map(|it| it.1.len()).sum();
        match (1..=MOST_BY_HAND).contains(&count) {
            true => ByHand::Writes(all),
            false => ByHand::Unknown,
        }
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_hand_is_what_needs_neither_a_block_nor_the_stack() {
        let at = |address: u64| Spot::At(Place::Memory(address), 0);
        let write = |address: u64, content: Content| Write {
            to: at(address),
            content,
        };
        let made = |writes: Vec<Write>| Plan {
            allocations: Vec::new(),
            writes,
        };
        let graph = Graph::default();
        let bytes = |all: &[u8]| Content::Bytes(all.to_vec());
        let both = made(vec![
            write(0x5000, bytes(&[1, 2])),
            write(0x5002, bytes(&[3])),
            write(0x6000, Content::Address(at(0x5000))),
        ]);
        let expected = vec![
            (0x5000, vec![1, 2, 3]),
            (0x6000, vec![0, 0x50, 0, 0, 0, 0, 0, 0]),
        ];
        assert_eq!(both.by_hand(&graph), ByHand::Writes(expected));
        let stack = 0x7fff_ffff_0000;
        let of_stack = [
            write(stack, bytes(&[1])),
            write(0x5000, Content::Address(at(stack))),
        ];
        for write in of_stack {
            assert_eq!(made(vec![write]).by_hand(&graph), ByHand::OnStack);
        }
        let pointer = made(vec![write(stack, Content::Address(at(0x5000)))]);
        assert_eq!(pointer.by_hand(&graph), ByHand::Pointer(0x5000));
        let long = made(vec![write(0x5000, bytes(&[0; MOST_BY_HAND + 1]))]);
        assert_eq!(long.by_hand(&graph), ByHand::Unknown);
        let block = Plan {
            allocations: vec![8],
            ..both
        };
        assert_eq!(block.by_hand(&graph), ByHand::NewBlock);
    }
}
