//! Watches what another fuzzer drops: every crash file is run, named and filed, and each new group
//! is minimized meanwhile.
//!
//! Who drops the files is a [`Producer`]; where, [`Watching::sources`] say. A file counts once: by
//! its content. What was done stands in the journal of triage, so that a call which goes on with
//! the same campaign runs nothing twice.
//!
//! `engine.rs` looks, hands out and commits, in the order in which the files were found;
//! `examiner.rs` runs inputs, and one thread beside it minimizes.

mod books;
mod clock;
mod engine;
mod examiner;
mod producer;
mod queue;
mod rebuilding;
mod shrinking;
mod sources;
mod watching;

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use crossbeam::channel;

use super::error::CampaignError;
use super::orders::minimize_orders;
use super::room::Gate;
use super::screen::Screen;
use super::summary::Summary;
use ddfuzz_store::Store;
use engine::{Engine, Lines};
use examiner::Examiner;
pub use producer::{Others, Producer, Producing};
pub use watching::Watching;

/// Watches until the producer has ended and all it left is done, until the time is over or
/// something that was waited for is reached, or until `stop` turns true. The groups that are new
/// then are minimized to the end, except where `stop` is true.
///
/// A bundled program is to be installed in the store before. What the journal of the output
/// directory says of `campaign` and this target is not run again.
///
/// # Errors
/// When the target cannot be run, the producer fails, or the output directory cannot be written;
/// what was committed until then is kept.
pub fn watch(
    store: &Mutex<Store>,
    campaign: &str,
    settings: &Watching,
    producer: &mut dyn Producer,
    screen: &mut dyn Screen,
    stop: &AtomicBool,
) -> Result<Summary, CampaignError> {
    let gate = Gate::default();
    let mut engine = Engine::begin(store, campaign, settings, producer, screen, stop, &gate)?;
    loop {
        if let Some(summary) = watch_build(&mut engine, settings, stop)? {
            return Ok(summary);
        }
        engine.take_build()?;
    }
}

/// Watches with one build of the program; `None` where it is another one now.
fn watch_build(
    engine: &mut Engine<'_>,
    settings: &Watching,
    stop: &AtomicBool,
) -> Result<Option<Summary>, CampaignError> {
    let jobs = settings.jobs.max(1);
    std::thread::scope(|scope| {
        let (task, tasks) = channel::bounded(jobs);
        let (answer, answers) = channel::unbounded();
        let (order, orders) = channel::unbounded();
        let (word, words) = channel::unbounded();
        for _ in 0..jobs {
            let examiner = Examiner {
                settings,
                stop,
                known: engine.steady_keys(),
                least: HashMap::new(),
                tasks: tasks.clone(),
                answers: answer.clone(),
            };
            scope.spawn(move || examiner.work());
        }
        drop((tasks, answer));
        let (store, minimizing) = (engine.store, &settings.minimizing);
        scope.spawn(move || minimize_orders(store, minimizing, stop, &orders, &word));
        engine.run(Lines {
            task,
            answers,
            order,
            words,
        })
    })
}
