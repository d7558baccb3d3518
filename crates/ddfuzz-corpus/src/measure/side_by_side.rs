//! Workers, and somebody who looks at how far they are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use super::error::MeasureError;

/// Between two looks at how far the workers are.
const LOOK: Duration = Duration::from_millis(100);

/// Has so many workers work, and calls `look` ten times a second until all have ended, and once
/// then. `failed` turns true when one of them fails.
pub(super) fn side_by_side(
    jobs: usize,
    failed: &AtomicBool,
    worker: &(dyn Fn() -> Result<(), MeasureError> + Sync),
    look: &mut dyn FnMut(),
) -> Result<(), MeasureError> {
    let (sender, ends) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            let sender = sender.clone();
            scope.spawn(move || {
                let done = worker();
                if done.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
                // Whoever listens does so until all have ended.
                let _ = sender.send(done);
            });
        }
        drop(sender);
        let mut result = Ok(());
        loop {
            match ends.recv_timeout(LOOK) {
                Ok(done) => result = result.and(done),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            look();
        }
        result
    })
}
