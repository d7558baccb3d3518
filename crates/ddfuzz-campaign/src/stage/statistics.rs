//! What LibAFL's monitors show of the minimization.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::marker::PhantomData;
use std::time::Duration;

use libafl::Error;
use libafl::events::{Event, EventFirer, EventWithStats};
use libafl::monitors::stats::{AggregatorOps, UserStats, UserStatsValue};
use libafl::state::HasExecutions;

use crate::desk::KnownKey;
use ddfuzz_store::Kind;

/// Between two reports.
const TOLD_EVERY: Duration = Duration::from_secs(5);

/// The counts of one stage.
#[derive(Debug, Default)]
pub(super) struct Statistics {
    /// Groups of this stage that have ended.
    pub(super) minimized: u64,
    /// Sizes of the last one, before and after, in bytes.
    pub(super) last: Option<(u64, u64)>,
    changed: bool,
    told: Option<Duration>,
}

impl Statistics {
    /// A group has ended; `sizes`: before and after, where it was minimized.
    pub(super) fn end(&mut self, sizes: Option<(u64, u64)>) {
        self.minimized += 1;
        self.last = sizes.or(self.last);
        self.changed = true;
    }

    /// Something was handed in.
    pub(super) fn change(&mut self) {
        self.changed = true;
    }

    /// Whether it is time to tell. `now`: the time since the beginning.
    pub(super) fn is_due(&self, now: Duration) -> bool {
        let recent = |told: Duration| now.saturating_sub(told) < TOLD_EVERY;
        self.changed && !self.told.is_some_and(recent)
    }

    /// Tells it through the event manager, by `ddmin_groups`, `ddmin_minimized`, `ddmin_share` and
    /// `ddmin_last`.
    pub(super) fn tell<EM, I, S>(
        &mut self,
        now: Duration,
        known: &[KnownKey],
        (spent, passed): (Duration, Duration),
        state: &mut S,
        manager: &mut EM,
    ) -> Result<(), Error>
    where
        EM: EventFirer<I, S>,
        S: HasExecutions,
    {
        self.changed = false;
        self.told = Some(now);
        let groups: BTreeSet<_> = (known.iter())
            .filter(|key| key.kind != Kind::Flaky)
            .map(|key| (key.kind, key.major))
            .collect();
        let share = spent.as_secs_f64() / passed.as_secs_f64().max(f64::EPSILON);
        let mut values = vec![
            ("ddmin_groups", UserStatsValue::Number(groups.len() as u64)),
            ("ddmin_minimized", UserStatsValue::Number(self.minimized)),
            ("ddmin_share", UserStatsValue::Percent(share)),
        ];
        if let Some((before, after)) = self.last {
            let sizes = format!("{before} to {after} bytes");
            values.push(("ddmin_last", UserStatsValue::String(Cow::Owned(sizes))));
        }
        for (name, value) in values {
            let operation = match value {
                UserStatsValue::Number(_) if name == "ddmin_minimized" => AggregatorOps::Sum,
                UserStatsValue::Percent(_) => AggregatorOps::Avg,
                UserStatsValue::Number(_) => AggregatorOps::Max,
                _ => AggregatorOps::None,
            };
            let event = Event::UpdateUserStats {
                name: Cow::Borrowed(name),
                value: UserStats::new(value, operation),
                phantom: PhantomData,
            };
            let executions = *state.executions();
            manager.fire(state, EventWithStats::with_current_time(event, executions))?;
        }
        Ok(())
    }
}
