//! A bank of counters that is told what to do by a list of operations.
//!
//! Two bugs are planted: a counter that was removed is expected to be there, and a transfer may
//! take more than there is. The feature `fixed` takes both out.

use std::collections::{BTreeMap, BTreeSet};

use arbitrary::Arbitrary;

/// One thing that a bank can be told to do.
#[derive(Arbitrary, Clone, Debug)]
pub enum Operation {
    /// Opens a counter under a name.
    Open {
        /// Its name.
        name: u8,
        /// What it begins with.
        amount: u16,
    },
    /// Adds to a counter.
    Add {
        /// Its name.
        name: u8,
        /// How much.
        amount: u16,
    },
    /// Moves from one counter to another.
    Transfer {
        /// From which.
        from: u8,
        /// To which.
        to: u8,
        /// How much.
        amount: u16,
    },
    /// Removes a counter.
    Close(u8),
    /// Notes something.
    Note(String),
}

/// What a bank is told, in this order.
#[derive(Arbitrary, Clone, Debug)]
pub struct Plan {
    /// How many counters there may be.
    pub limit: u8,
    /// The operations.
    pub operations: Vec<Operation>,
}

/// A bank of counters.
#[derive(Debug, Default)]
pub struct Bank {
    counters: BTreeMap<u8, u32>,
    closed: BTreeSet<u8>,
    notes: Vec<String>,
}

impl Bank {
    /// Does all that stands in a plan. Gives the sum of all counters.
    pub fn follow(plan: &Plan) -> u64 {
        let mut bank = Bank::default();
        for operation in &plan.operations {
            match operation {
                Operation::Open { name, amount } => {
                    if bank.counters.len() < usize::from(plan.limit) {
                        bank.counters.insert(*name, u32::from(*amount));
                    }
                }
                Operation::Add { name, amount } => bank.add(*name, *amount),
                Operation::Transfer { from, to, amount } => bank.transfer(*from, *to, *amount),
                Operation::Close(name) => bank.close(*name),
                Operation::Note(text) => bank.notes.push(text.clone()),
            }
        }
        bank.counters.values().copied().map(u64::from).sum()
    }

    fn close(&mut self, name: u8) {
        if self.counters.remove(&name).is_some() {
            self.closed.insert(name);
        }
    }

    fn add(&mut self, name: u8, amount: u16) {
        #[cfg(not(feature = "fixed"))]
        if self.closed.contains(&name) {
            // It may have been opened again.
            let counter = self.counters.get_mut(&name).unwrap();
            *counter = counter.saturating_add(u32::from(amount));
            return;
        }
        if let Some(counter) = self.counters.get_mut(&name) {
            *counter = counter.saturating_add(u32::from(amount));
        }
    }

    fn transfer(&mut self, from: u8, to: u8, amount: u16) {
        let amount = u32::from(amount);
        let Some(&source) = self.counters.get(&from) else {
            return;
        };
        #[cfg(feature = "fixed")]
        if amount > source {
            return;
        }
        let left = source
            .checked_sub(amount)
            .expect("a counter holds what is taken from it");
        self.counters.insert(from, left);
        let sink = self.counters.entry(to).or_default();
        *sink = sink.saturating_add(amount);
    }
}
