//! When runs of a target are abandoned: because the call of ddfuzz ends, not because of what the
//! run does.

use std::fmt::{Debug, Formatter};
use std::os::fd::AsFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::ExecError;
use crate::watch::wait_until_readable;

/// Longest time that a wait for data goes on between two checks of the conditions.
const CHECK_EVERY: Duration = Duration::from_millis(20);

/// The conditions under which runs of a target are abandoned, whatever their limits are: as soon as
/// one condition is met, the run is killed and has no result, and the executor fails with
/// [`ExecError::Abandoned`]. A condition that is met has to stay met. Any two values of this type
/// are equal, so that the conditions do not count when targets are compared.
#[derive(Clone, Default)]
pub struct AbandonWhen(Vec<Arc<dyn Fn() -> bool + Send + Sync>>);

impl AbandonWhen {
    /// Adds a condition: runs are abandoned as soon as `is_met` returns true. `is_met` must be
    /// fast, since it is called every 10 to 20 ms while a run is waited for.
    #[must_use]
    pub fn or(mut self, is_met: impl Fn() -> bool + Send + Sync + 'static) -> AbandonWhen {
        self.0.push(Arc::new(is_met));
        self
    }

    /// Adds the condition that the time `end` is reached; adds none if `end` is `None`.
    #[must_use]
    pub fn or_at(self, end: Option<Instant>) -> AbandonWhen {
        match end {
            Some(end) => self.or(move || Instant::now() >= end),
            None => self,
        }
    }

    /// Returns conditions that are met later: when `delay` has passed since a check of the returned
    /// conditions first found one of the present conditions to be met.
    #[must_use]
    pub fn delayed(self, delay: Duration) -> AbandonWhen {
        let met_at = OnceLock::new();
        AbandonWhen::default()
            .or(move || self.is_met() && met_at.get_or_init(Instant::now).elapsed() >= delay)
    }

    /// Returns true if one of the conditions is met, so that runs are to be abandoned.
    pub fn is_met(&self) -> bool {
        self.0.iter().any(|is_met| is_met())
    }

    /// Returns the error [`ExecError::Abandoned`] if one of the conditions is met.
    pub(crate) fn check(&self) -> Result<(), ExecError> {
        match self.is_met() {
            true => Err(ExecError::Abandoned),
            false => Ok(()),
        }
    }

    /// Waits, for at most `timeout`, until `fd` can be read or its other end is closed. Returns
    /// false if the time is over, or one of the conditions is met, before that.
    pub(crate) fn wait_until_readable(&self, fd: impl AsFd, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if wait_until_readable(&fd, left.min(CHECK_EVERY)) {
                return true;
            }
            if left.is_zero() || self.is_met() {
                return false;
            }
        }
    }
}

impl PartialEq for AbandonWhen {
    fn eq(&self, _: &AbandonWhen) -> bool {
        true
    }
}

impl Eq for AbandonWhen {}

impl Debug for AbandonWhen {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        write!(f, "AbandonWhen({} conditions)", self.0.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn any_condition_is_enough_and_clones_share_it() {
        let (one, other) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let flag = Arc::clone(&one);
        let when = AbandonWhen::default().or(move || flag.load(Ordering::Relaxed));
        let clone = when.clone();
        assert!(!clone.is_met() && clone.check().is_ok());
        assert!(when.or_at(Some(other)).is_met());
        one.store(true, Ordering::Relaxed);
        assert!(matches!(clone.check(), Err(ExecError::Abandoned)));
        assert!(!AbandonWhen::default().or_at(None).is_met());
    }

    #[test]
    fn a_delay_begins_when_the_conditions_are_first_seen_to_be_met() {
        let met = AbandonWhen::default().or(|| true);
        assert!(met.clone().delayed(Duration::ZERO).is_met());
        let late = met.delayed(Duration::from_secs(3600));
        assert!(!late.is_met() && !late.is_met());
        assert!(!AbandonWhen::default().delayed(Duration::ZERO).is_met());
    }

    #[test]
    fn a_wait_ends_when_a_condition_is_met() {
        let (reader, writer) = std::io::pipe().unwrap();
        let met = AbandonWhen::default().or(|| true);
        assert!(!met.wait_until_readable(&reader, Duration::from_secs(3600)));
        drop(writer);
        // What is there is read all the same.
        assert!(met.wait_until_readable(&reader, Duration::from_secs(3600)));
    }
}
