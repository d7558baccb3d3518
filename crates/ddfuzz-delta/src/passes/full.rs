//! `full`: all passes.

use std::sync::Arc;

use super::dialogue::{Dialogue, is_search};
use super::normalize::LEAST;
use super::script::{Plan, script};
use super::shortlex::SMALL;
use super::workpiece::Workpiece;

/// Minimizes bytes by all passes: it deletes, replaces bytes by `0`, and keeps the numbers of
/// binary formats right. No result is longer than what it was made of.
///
/// The result is 1-minimal where no byte of it can go alone, which its last round of tests shows.
/// No byte of a result of at most [`Full::SMALL`] bytes can become `0` alone, unless that took too
/// many tests: of results of one size it tends to the least in *shortlex* order.
#[derive(Clone)]
pub struct Full(Dialogue);

impl Full {
    /// The name of this search on the command line and in logs.
    pub const NAME: &'static str = "full";

    /// Results of more bytes keep the values that they have come to.
    pub const SMALL: usize = SMALL;

    /// What takes the place of bytes whose values do not matter.
    pub const LEAST: u8 = LEAST;

    /// Begins with a text whose test must have been FAIL.
    pub fn new(text: &[u8]) -> Full {
        let text: Arc<[u8]> = text.into();
        Full(Dialogue::new(text.len(), move |asker| {
            let work = Workpiece::new(asker, text.clone());
            Box::pin(script(work, Plan::Rewrite))
        }))
    }
}

is_search!(Full);
