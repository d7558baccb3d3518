//! Why an explanation is refused after the program has been run, and what is certain nonetheless.

use ddfuzz_exec::Ended;

use crate::chain::Link;
use crate::engine::Ending;
use crate::experiments::Runs;
use crate::explain::{Early, ExplainError, Explaining, Request, refuse};
use crate::failure::{reported, shown_output, with_command, without_debug_info};
use crate::places::out_of_time;
use crate::plain_build::level;

/// Smallest part of the failing run's points, in percent, that the passing run must share.
pub(crate) const LEAST_MATCHING: usize = 10;

/// Returns the error for a passing run that does not pass but ended as `ending`.
pub(crate) fn not_passing(request: &Request, ending: &Ending) -> ExplainError {
    match &request.wrong {
        Some(wrong) if wrong.is_match(&ending.output) => ExplainError::WrongAsWell {
            pattern: wrong.to_string(),
            output: shown_output(&ending.output),
        },
        _ => ExplainError::NotPassing(ending.ended),
    }
}

impl Explaining<'_> {
    /// Stores in the result of a refused explanation what runs without a tracer show: how the
    /// failing run ends, if the result lacks it, and the difference between the two given inputs,
    /// if the passing input makes the target exit with status 0. Adds nothing once the time is
    /// over.
    pub(crate) fn add_given(&mut self) {
        let request = self.request;
        let time = self.time;
        if self.result.crash.ended.is_empty()
            && !time.is_over()
            && let Ok(crash) = reported(&request.failing_target, &request.failing)
        {
            self.result.crash = crash;
        }
        let is_told = self.result.input.failing.is_some();
        let passing = request
            .passing
            .as_ref()
            .filter(|_| !is_told && !time.is_over());
        if let Some(passing) = passing
            && let Ok(record) = reported(&request.passing_target, passing)
            && record.class.is_none()
            && record.ended == Ended::Exit(0).to_string()
        {
            self.input(passing);
        }
    }

    pub(crate) fn check_points(&self, runs: &Runs) -> Result<(), Early> {
        let is_known = !runs.engine.info.is_empty();
        if !is_known && (!self.request.raw || runs.failing.points.is_empty()) {
            let (reason, hint) =
                without_debug_info(&runs.engine.info, &self.request.failing_target);
            return Err(refuse(&reason, &hint));
        }
        let (all, same) = (runs.failing.points.len(), runs.matched.len());
        // Most points of an endless recursion can be in no passing run.
        let is_endless = self.result.recursion.is_some();
        if same * 100 < all * LEAST_MATCHING && !is_endless || same == 0 {
            let reason = format!(
                "only {same} of the {all} points of the failing run are in the passing one"
            );
            return Err(refuse(
                &reason,
                "give a passing input that is closer to the failing one",
            ));
        }
        Ok(())
    }

    /// Returns the refusal to explain the failure of two runs for which no chain was found, with
    /// its reason: no debug information; no time; the variables that matter are not in memory; or
    /// nothing could be set at the points that both runs share.
    pub(crate) fn without_chain(&self, runs: &Runs) -> Early {
        if runs.engine.info.has_lines_only() && !self.request.raw {
            let (reason, hint) =
                without_debug_info(&runs.engine.info, &self.request.failing_target);
            return refuse(&reason, &hint);
        }
        if runs.states.values().any(|it| it.stays_with_all) {
            if self.result.overflow.is_some() {
                return refuse(
                    "setting all variables of the passing run to the values of the failing one \
                     does not make it fail, as what is written behind the block is not among them",
                    "look at what is written behind the block, and at its size",
                );
            }
            return refuse(
                "setting all variables of the passing run to the values of the failing one does \
                 not make it fail: what matters is not in its memory",
                "look at files, the time, and what the kernel knows of the process",
            );
        }
        if runs.half_time.is_over() || self.time.is_over() {
            return Early::Refused(out_of_time());
        }
        let shared = runs.matched.len();
        let (points, they) = match shared {
            1 => ("1 point".to_owned(), "it"),
            all => (format!("{all} points"), "them"),
        };
        let reason = match runs.states.values().any(|it| it.tests > 0) {
            false => format!("the runs share {points}, and no variable could be tested at {they}"),
            true => format!(
                "the runs share {points}, and what differs at {they} could not be set in the passing run"
            ),
        };
        refuse(
            &reason,
            "give a passing input that is closer to the failing one, and put each statement on a line of its own",
        )
    }

    /// Refuses to explain a program that was optimized so much that less than half of the variables
    /// on its stack are visible. A program built for debuggers (`-Og`) is accepted if a chain was
    /// found (`links`): its variables are invisible only before they have a value and after their
    /// last use.
    pub(crate) fn check_visibility(&self, runs: &Runs, links: &[Link]) -> Result<(), Early> {
        if !links.is_empty() && runs.engine.info.is_debuggable() {
            return Ok(());
        }
        let Some((_, states)) = runs.states.last_key_value() else {
            return Ok(());
        };
        let (visible, in_scope) = states.visible;
        if visible * 2 >= in_scope {
            return Ok(());
        }
        let reason = format!(
            "the program is optimized so far that only {visible} of {in_scope} variables on the stack are visible"
        );
        let raw = "compare registers and words by --raw";
        let hint = match level(&runs.engine.info) {
            Some(level) => with_command(
                &format!("compile it with {level} -g, or {raw}"),
                &self.request.failing_target,
            ),
            None => raw.to_owned(),
        };
        Err(refuse(&reason, &hint))
    }
}
