//! The time of a whole call (`--total-time`): fuzzing, naming hangs, minimizing.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// When a call is to have ended. It ends as it does when the user stops it: what is under way is
/// saved, and the next call goes on with it.
#[derive(Clone, Debug, Default)]
pub struct Deadline {
    over: Arc<AtomicBool>,
}

impl Deadline {
    /// Raises `stop` after `total`, if there is one.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn begin(total: Option<Duration>, stop: &Arc<AtomicBool>) -> io::Result<Deadline> {
        let at = total.and_then(|total| Instant::now().checked_add(total));
        let deadline = Deadline::default();
        if let Some(at) = at {
            let (over, stop) = (Arc::clone(&deadline.over), Arc::clone(stop));
            let wait = move || {
                while let Some(left) = at.checked_duration_since(Instant::now()) {
                    std::thread::sleep(left);
                }
                // Who has been stopped before was stopped by the user.
                over.store(!stop.load(Ordering::Relaxed), Ordering::Relaxed);
                stop.store(true, Ordering::Relaxed);
            };
            std::thread::Builder::new().spawn(wait)?;
        }
        Ok(deadline)
    }

    /// Whether it has stopped the call.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// How long the call may fuzz that was asked for `time`: where that is left open, it leaves a
    /// quarter of the whole for what comes behind the fuzzing.
    pub fn fuzzing(total: Option<Duration>, time: Option<Duration>) -> Option<Duration> {
        match (total, time) {
            (Some(total), Some(time)) => Some(time.min(total)),
            (Some(total), None) => Some(total * 3 / 4),
            (None, time) => time,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_whole_is_left_for_what_comes_behind_the_fuzzing() {
        let seconds = |total, time| {
            let duration = |seconds: Option<u64>| seconds.map(Duration::from_secs);
            Deadline::fuzzing(duration(total), duration(time)).map(|time| time.as_secs())
        };
        assert_eq!(seconds(Some(60), None), Some(45));
        assert_eq!(seconds(Some(60), Some(50)), Some(50));
        assert_eq!(seconds(Some(60), Some(90)), Some(60));
        assert_eq!(seconds(None, Some(90)), Some(90));
        assert_eq!(seconds(None, None), None);
    }

    #[test]
    fn it_is_over_only_where_the_user_has_not_stopped_before() {
        let until = |stop: &Arc<AtomicBool>, deadline: &Deadline, raised: bool| {
            let begun = Instant::now();
            while deadline.is_over() != raised && begun.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            (stop.load(Ordering::Relaxed), deadline.is_over())
        };
        let stop = Arc::new(AtomicBool::new(false));
        let deadline = Deadline::begin(Some(Duration::from_millis(5)), &stop).unwrap();
        assert_eq!(until(&stop, &deadline, true), (true, true));
        let stop = Arc::new(AtomicBool::new(true));
        let deadline = Deadline::begin(Some(Duration::ZERO), &stop).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(until(&stop, &deadline, false), (true, false));
    }
}
