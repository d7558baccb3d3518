//! The objective: names what did not pass, and hands in what is worth it.

use std::borrow::Cow;
use std::collections::HashMap;

use libafl::Error;
use libafl::executors::ExitKind;
use libafl::feedbacks::{Feedback, StateInitializer};
use libafl::inputs::BytesInput;
use libafl::state::HasExecutions;
use libafl_bolts::Named;

use super::executor::fail;
use super::parts::{Observers, State};
use super::remote::Remote;
use crate::campaign::{Desk, Report};
use crate::exec::{Ended, ExecError};
use crate::store::{Kind, StoreError};
use crate::triage::{Crash, Key, Quick, Triager, Verdict};

/// Interesting is what is the first of its minor key, or smaller than all that is stored of it.
pub(super) struct Findings {
    name: Cow<'static, str>,
    triager: Triager,
    remote: Remote,
    /// The smallest input of each way into a bug.
    least: HashMap<(Kind, Key, Key), u64>,
    /// Runs of known groups that are not told yet.
    tally: HashMap<(Kind, Key), u64>,
    crash_exit: Option<i32>,
}

impl Findings {
    /// Knows what the hub knows.
    pub(super) fn new(
        triager: Triager,
        remote: Remote,
        crash_exit: Option<i32>,
    ) -> Result<Findings, StoreError> {
        let mut findings = Findings {
            name: Cow::Borrowed("groups"),
            triager,
            remote,
            least: HashMap::new(),
            tally: HashMap::new(),
            crash_exit,
        };
        findings.refresh()?;
        Ok(findings)
    }

    /// Takes over what others have found.
    pub(super) fn refresh(&mut self) -> Result<(), StoreError> {
        for known in self.remote.known()? {
            let key = (known.kind, known.major, known.minor);
            self.least.insert(key, known.least);
        }
        Ok(())
    }

    /// Tells the counts of known groups.
    pub(super) fn flush(&mut self) -> Result<(), StoreError> {
        for ((kind, major), runs) in std::mem::take(&mut self.tally) {
            self.remote.count(kind, major, runs)?;
        }
        Ok(())
    }

    /// Names a run that did not pass; `None` where it did, for all that it said.
    fn judge(
        &mut self,
        ended: Ended,
        input: &[u8],
    ) -> Result<Option<(Kind, Box<Crash>)>, ExecError> {
        match self.triager.key(input)? {
            Quick::Crash {
                class,
                major,
                minor,
            } => {
                let kind = Kind::of_class(&class);
                let least = self.least.get(&(kind, major, minor));
                if least.is_some_and(|least| *least <= input.len() as u64) {
                    *self.tally.entry((kind, major)).or_default() += 1;
                    return Ok(None);
                }
            }
            Quick::Ended(_) if ended.is_exit() && !ended.is_crash(self.crash_exit) => {
                return Ok(None);
            }
            Quick::Ended(_) => {}
        }
        Ok(Some(match self.triager.examine(input)? {
            Verdict::Crash(crash) => (Kind::of_class(&crash.class), crash),
            Verdict::Flaky { .. } => (Kind::Flaky, Box::new(self.triager.left_behind(ended, None))),
        }))
    }
}

impl Named for Findings {
    fn name(&self) -> &Cow<'static, str> {
        &self.name
    }
}

impl<S> StateInitializer<S> for Findings {}

impl<EM> Feedback<EM, BytesInput, Observers, State> for Findings {
    fn is_interesting(
        &mut self,
        state: &mut State,
        _manager: &mut EM,
        input: &BytesInput,
        observers: &Observers,
        exit_kind: &ExitKind,
    ) -> Result<bool, Error> {
        let (_, (end, ())) = observers;
        let Some(ended) = end.ended.filter(|_| *exit_kind != ExitKind::Ok) else {
            return Ok(false);
        };
        let bytes: &[u8] = input.as_ref();
        let judged = self.judge(ended, bytes).map_err(|error| fail(&error))?;
        let Some((kind, crash)) = judged else {
            return Ok(false);
        };
        let report = Report {
            kind,
            crash: &crash,
            input: bytes,
            run: *state.executions(),
            name: "guided",
        };
        let filed = self.remote.hand_in(&report).map_err(|error| fail(&error))?;
        let key = (kind, crash.keys.major, crash.keys.minor);
        let least = self.least.entry(key).or_insert(u64::MAX);
        *least = (*least).min(bytes.len() as u64);
        Ok(filed.is_some())
    }
}
