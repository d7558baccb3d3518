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
use crate::campaign::orders::minimize_entry;
use crate::campaign::{Desk, Settings};

/// Between two questions for work.
const IDLE: Duration = Duration::from_millis(100);

/// Minimizes one group after the other until it is told to end. What is under way when the
/// fuzzing ends is finished within its budget, unless the user has stopped.
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
        let mut watch = || match remote.beat(Beat::default()) {
            Ok(order) if !order.at_once => {}
            _ => stop.store(true, Ordering::Relaxed),
        };
        let done = minimize_entry(&shelf, settings, &stop, &id, &mut watch);
        desk.give_back(&id, done.is_ok(), began.elapsed())
            .map_err(|error| fail(&error))?;
        if stop.load(Ordering::Relaxed) {
            break;
        }
        done.map_err(|error| fail(&error))?;
    }
    manager.send_exiting()
}
