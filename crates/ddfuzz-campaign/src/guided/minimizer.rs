//! A worker that only minimizes, beside those who fuzz (`--minimize worker`).

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use libafl::Error;
use libafl::events::SendExiting;

use super::executor::fail;
use super::parts::Manager;
use super::remote::Remote;
use super::wire::Beat;
use crate::orders::minimize_entry;
use crate::{CampaignError, Desk, Fullness, Settings};
use ddfuzz_minimize::MinimizeError;

/// Between two questions for work.
const IDLE: Duration = Duration::from_millis(100);
/// So long it waits for room on the disk.
const PAUSE: Duration = Duration::from_secs(2);

/// Minimizes one group after the other until it is told to end. What is under way then is gone on
/// with by the main process, from its log: the end of the fuzzing and Ctrl-C look the same here.
pub(super) fn work(
    settings: &Settings,
    remote: &Remote,
    manager: &mut Manager,
) -> Result<(), Error> {
    let mut desk = remote.clone();
    let shelf = Mutex::new(remote.clone());
    let stop = AtomicBool::new(false);
    while !remote
        .beat(Beat::default())
        .map_err(|error| fail(&error))?
        .stop
    {
        let Some(id) = desk.claim().map_err(|error| fail(&error))? else {
            std::thread::sleep(IDLE);
            continue;
        };
        let began = Instant::now();
        let mut watch = || {
            let told = remote.beat(Beat::default());
            stop.store(told.map_or(true, |order| order.stop), Ordering::Relaxed);
        };
        let done = minimize_entry(&shelf, &settings.minimizing, &stop, &id, &mut watch);
        desk.give_back(&id, done.is_ok(), began.elapsed())
            .map_err(|error| fail(&error))?;
        match done {
            Ok(()) | Err(CampaignError::Minimize(MinimizeError::Interrupted { .. })) => {}
            Err(error) if error.full_at().is_some() => std::thread::sleep(PAUSE),
            Err(error) => return Err(fail(&error)),
        }
    }
    manager.send_exiting()
}
