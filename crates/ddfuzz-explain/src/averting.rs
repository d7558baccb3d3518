//! Adds to the statements at which to look first those at which a change averts the failure:
//! mutants of the program (one changed instruction), and conditions that are forced to the other
//! decision. Pure.

use crate::failing_facts::damaged_block;
use crate::report::{
    CriticalRecord, Explanation, FrameRecord, MutantRecord, SuspectRecord, TellingRecord,
};
use crate::suspects::{MAIN, NAMED, Suspects, own_place};

/// Largest number of conditions that avert the failure in the list of statements at which to look
/// first: when the condition is decided the other way, the run does not fail, but still reaches the
/// failing statement.
const CONDITIONS: usize = 2;
/// Text about a condition: when it is decided the other way, the run does not fail.
const CRITICAL: &str = "decided otherwise, the run does not fail";
/// Text about a condition: when it is decided the other way, the run does not fail, but also
/// reaches the failing statement less often.
const GUARD: &str =
    "decided otherwise, the run does not fail, and comes to the failing statement less often";
/// Largest number of mutants (programs with one changed instruction) that are named near the front
/// of the list of statements at which to look first; further mutants only fill up its end.
const TELLING: usize = 3;
/// Maximum length of the complete list of statements at which to look first: those found before,
/// mutants and conditions together.
const MOST: usize = NAMED + CONDITIONS;

/// Adds to the statements `found` those at which a change averts the failure, and returns all, each
/// once, the most suspect first:
///
/// - the best mutant, unless a run has tested the first of `found`, or the mutant changes `main`:
///   most programs read their input there, so a change may only make them read another input,
/// - the first of `found`,
/// - up to [`CONDITIONS`] conditions after which the run still reaches the failing statement, if
///   there are no mutants; of those in the function that frees a block too early, in any case,
/// - other mutants,
/// - the rest of `found`,
/// - while there are fewer than [`MOST`]: a condition after which the run reaches the failing
///   statement less often, and the statement that tells failing runs from others,
/// - while there are fewer than [`NAMED`]: statements that wrote confirmed variables of the chain,
/// - further mutants.
///
/// If a run has shown that a block is freed too early, mutants in other functions than those that
/// free it and use it later are among the further ones: most only move blocks elsewhere. If the run
/// writes past the end of a block, all mutants are among the further ones, and those in other
/// functions than the ones that write there and allocate the block are left out.
pub(crate) fn with_averting(found: Vec<SuspectRecord>, it: &Explanation) -> Vec<SuspectRecord> {
    let mut all = Suspects::default();
    let (frees, uses) = functions_of_freed(it);
    let overrun = functions_of_overrun(it);
    let related = match &overrun {
        Some(all) => Some(all.clone()),
        None => frees
            .as_ref()
            .map(|it| [Some(it.clone()), uses].into_iter().flatten().collect()),
    };
    let (near, mut far) = mutants_by_place(it, related.as_deref());
    let mut near = near.into_iter();
    let first = match overrun {
        Some(_) => {
            far.clear();
            0
        }
        None => TELLING,
    };
    let mut mutants = near.by_ref().take(first).peekable();
    let is_told = mutants.peek().is_some();
    let mut rest = found.into_iter();
    let is_second = rest.as_slice().first().is_some_and(|it| it.tested);
    if let Some(first) = mutants.next_if(|it| !is_second && it.place.function != MAIN) {
        all.add_tested(&calls_of(first), &why_averting(first));
    }
    if let Some(first) = rest.next()
        && !all.has(&first.place)
    {
        all.found.push(first);
    }
    let is_named = |it: &&CriticalRecord| {
        let function = it.place.first().map(|it| &it.function);
        frees
            .as_ref()
            .map_or(!is_told, |frees| function == Some(frees))
    };
    let reaching = it.critical.iter().filter(|it| it.reaches).filter(is_named);
    let tested = add_conditions(&mut all, reaching.take(CONDITIONS), rest.as_slice());
    for mutant in mutants {
        all.add_tested(&calls_of(mutant), &why_averting(mutant));
    }
    add_rest(&mut all, rest, &tested);
    let mut further = near.chain(far);
    if overrun.is_some() {
        for mutant in further.by_ref() {
            add_mutant(&mut all, mutant);
        }
    }
    add_guard(&mut all, &it.critical);
    let telling = it.telling.as_ref();
    if let Some(telling) = telling.filter(|it| it.place.function != MAIN) {
        add_telling(&mut all, telling);
    }
    all.add_carriers(&it.chain);
    for mutant in further {
        add_mutant(&mut all, mutant);
    }
    all.found
}

/// Adds the statement that `mutant` changes to the suspects `all`, unless there are [`MOST`] of them
/// already.
fn add_mutant(all: &mut Suspects, mutant: &MutantRecord) {
    if all.found.len() < MOST {
        all.add_tested(&calls_of(mutant), &why_averting(mutant));
    }
}

/// Adds the conditions `reaching`, which avert the failure when they are decided the other way, to
/// the suspects `all`, except for those at statements that are in `rest`. For these, returns the
/// position in `rest` and the text about the condition.
fn add_conditions<'a>(
    all: &mut Suspects,
    reaching: impl Iterator<Item = &'a CriticalRecord>,
    rest: &[SuspectRecord],
) -> Vec<(usize, String)> {
    let mut tested = Vec::new();
    for condition in reaching {
        let known = own_place(&condition.place);
        let named = known.and_then(|place| rest.iter().position(|it| it.place == place));
        match named {
            Some(at) => tested.push((at, why_critical(condition, CRITICAL))),
            None => all.add_tested(&condition.place, &why_critical(condition, CRITICAL)),
        }
    }
    tested
}

/// Adds `rest` to the suspects `all`, while there are fewer than [`MOST`]. `tested` has the position
/// in `rest`, and the text, of statements that a run has tested for another reason than the one for
/// which they are in `rest`.
fn add_rest(
    all: &mut Suspects,
    rest: impl Iterator<Item = SuspectRecord>,
    tested: &[(usize, String)],
) {
    for (at, mut suspect) in rest.enumerate() {
        let why = tested.iter().find(|it| it.0 == at).map(|it| &it.1);
        if let Some(why) = why.filter(|_| !suspect.tested) {
            (suspect.why, suspect.tested) = (why.clone(), true);
        }
        if all.found.len() < MOST && !all.has(&suspect.place) {
            all.found.push(suspect);
        }
    }
}

/// Adds to the suspects `all` the first of the conditions `critical` with which, decided the other
/// way, the run reaches the failing statement less often than the failing run does, while its output
/// begins as that of the failing run. Adds none of `main`, and nothing if there are [`MOST`] suspects
/// already.
fn add_guard(all: &mut Suspects, critical: &[CriticalRecord]) {
    let guard = critical.iter().find(|it| !it.reaches && it.is_like);
    let guard = guard.filter(|it| it.place.first().is_some_and(|it| it.function != MAIN));
    if let Some(guard) = guard.filter(|_| all.found.len() < MOST) {
        all.add_tested(&guard.place, &why_critical(guard, GUARD));
    }
}

/// Returns the mutants of `it` in two parts: first those in the functions `related`, or all if that
/// is `None`; of these, mutants of `main` come last. The second part has the others.
fn mutants_by_place<'a>(
    it: &'a Explanation,
    related: Option<&[String]>,
) -> (Vec<&'a MutantRecord>, Vec<&'a MutantRecord>) {
    let is_near =
        |it: &&MutantRecord| related.is_none_or(|related| related.contains(&it.place.function));
    let (mut near, far): (Vec<_>, Vec<_>) = it.mutants.iter().partition(is_near);
    near.sort_by_key(|it| it.place.function == MAIN);
    (near, far)
}

/// Returns the functions of the program that free (or move) a block too early and that use it later;
/// `None` for both unless a run has shown that the failure depends on this.
fn functions_of_freed(it: &Explanation) -> (Option<String>, Option<String>) {
    if it.freed_together == 0 {
        return (None, None);
    }
    let function = |calls: &[FrameRecord]| own_place(calls).map(|place| place[0].function.clone());
    let frees = function(&it.freed_early).or_else(|| function(&it.moved_early));
    (frees, function(&it.used_late))
}

/// Returns the functions of the program that write past the end of a heap block and that allocate
/// the block, if the failing run does so and no sanitizer has ended it before.
fn functions_of_overrun(it: &Explanation) -> Option<Vec<String>> {
    let block = damaged_block(it)?;
    let allocates = block.allocated.iter().take(block.wrappers + 1);
    let all = std::iter::once(&block.writer).chain(allocates);
    Some(all.map(|place| place.function.clone()).collect())
}

/// Returns the statement that the mutant `it` changes, and the calls around it if the mutant
/// changes the statement only when it is called from there.
fn calls_of(it: &MutantRecord) -> Vec<FrameRecord> {
    [std::slice::from_ref(&it.place), &it.calls].concat()
}

/// Text about a changed run whose end is not that of the failing run.
const PASSES: &str = "the run does not fail";

/// Returns [`PASSES`], with the status with which the run exits if it is not 0, as after an error
/// message.
fn passes(status: Option<i32>) -> String {
    match status.filter(|it| *it != 0) {
        Some(status) => format!("{PASSES} (it exits with {status})"),
        None => PASSES.to_owned(),
    }
}

/// Returns the text that a report shows for the condition `it`: `why`, with the values of variables
/// (`when n is 30`) inserted after `decided otherwise`, and with the run's exit status if it is not
/// 0. The values are those that the variables of the condition had at the decision, if known.
fn why_critical(it: &CriticalRecord, why: &str) -> String {
    let why = why.replacen(PASSES, &passes(it.status), 1);
    match it.values.is_empty() {
        true => why,
        false => {
            let when = format!("decided otherwise when {}", it.values.join(" and "));
            why.replacen("decided otherwise", &when, 1)
        }
    }
}

/// Returns what a report says of the mutant `it`: its change, and how it changes the ends of other
/// runs.
fn why_averting(it: &MutantRecord) -> String {
    let MutantRecord { change, alike, .. } = it;
    let others = match it.passing {
        0 if it.failing == 1 => "nor with another failing input".to_owned(),
        0 if it.mended == it.failing => format!("nor with {} other failing inputs", it.mended),
        0 => format!(
            "nor with {} of {} other failing inputs",
            it.mended, it.failing
        ),
        1 => "and with another input it is as before".to_owned(),
        all if all == *alike => format!("and with {alike} other inputs it is as before"),
        all => format!("and with {alike} of {all} other inputs it is as before"),
    };
    format!("{change} {}, {others}", passes(it.status))
}

/// Adds `telling`, the statement that best tells failing runs from others, to the suspects `all`,
/// unless there are [`MOST`] of them already.
fn add_telling(all: &mut Suspects, telling: &TellingRecord) {
    if all.found.len() < MOST {
        let (failing, passing, others) = (telling.failing, telling.passing, telling.others);
        let why = format!(
            "executed with all {failing} inputs that fail, and with {passing} of {others} others"
        );
        all.add(std::slice::from_ref(&telling.place), &why);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::FrameRecord;

    fn own(line: u64) -> FrameRecord {
        FrameRecord {
            function: "f".to_owned(),
            file: Some("main.c".to_owned()),
            line: Some(line),
        }
    }

    fn mutant(line: u64, alike: usize) -> MutantRecord {
        MutantRecord {
            place: own(line),
            calls: Vec::new(),
            change: "with another variable".to_owned(),
            is_like: true,
            status: Some(0),
            passing: 3,
            alike,
            failing: 0,
            mended: 0,
        }
    }

    fn condition(place: FrameRecord) -> CriticalRecord {
        CriticalRecord {
            place: vec![place],
            execution: 1,
            reaches: true,
            is_like: false,
            status: Some(0),
            decided: 0,
            values: Vec::new(),
        }
    }

    #[test]
    fn mutants_that_change_nothing_else_are_named_in_place_of_conditions() {
        let suspect = |line| SuspectRecord {
            place: vec![own(line)],
            why: "wrote the value by which it fails".to_owned(),
            tested: false,
        };
        let mut it = Explanation {
            mutants: vec![mutant(10, 3), mutant(20, 3)],
            critical: vec![condition(own(50))],
            ..Explanation::default()
        };
        let mut led = vec![suspect(1), suspect(3)];
        led[0].tested = true;
        let first = &with_averting(led, &it)[0];
        assert_eq!(first.place[0].line, Some(1));
        let lines = |it: &Explanation| {
            let found = with_averting(vec![suspect(1), suspect(20), suspect(3)], it);
            let found = found.into_iter().map(|it| (it.place[0].line, it.tested));
            found.collect::<Vec<_>>()
        };
        let expected = [(10, true), (1, false), (20, true), (3, false)];
        assert_eq!(lines(&it), expected.map(|(line, told)| (Some(line), told)));
        // More than three only where there is room.
        it.mutants = [11, 10, 12, 13].map(|line| mutant(line, 3)).to_vec();
        let found = with_averting(Vec::new(), &it);
        let found: Vec<_> = found.iter().map(|it| it.place[0].line).collect();
        assert_eq!(found, [11, 10, 12, 13].map(Some));
        let expected = [(11, true), (1, false), (10, true), (12, true), (20, false)];
        assert_eq!(lines(&it), expected.map(|(line, told)| (Some(line), told)));
        it.mutants.clear();
        let expected = [(1, false), (50, true), (20, false), (3, false)];
        assert_eq!(lines(&it), expected.map(|(line, told)| (Some(line), told)));
        it.critical[0].values = vec!["n is 30".to_owned(), "left is 35".to_owned()];
        let why = "decided otherwise when n is 30 and left is 35, the run does not fail";
        assert_eq!(with_averting(Vec::new(), &it)[0].why, why);
        it.critical[0].values.clear();
        it.critical[0].status = Some(2);
        let why = "decided otherwise, the run does not fail (it exits with 2)";
        assert_eq!(with_averting(Vec::new(), &it)[0].why, why);
        it.critical[0].status = Some(0);
        // What a condition has tested is tested, whatever it is named for.
        it.critical[0].place = vec![own(20)];
        let expected = [(1, false), (20, true), (3, false)];
        assert_eq!(lines(&it), expected.map(|(line, told)| (Some(line), told)));
        let mut guard = it.critical[0].clone();
        (guard.place, guard.reaches, guard.is_like) = (vec![own(60)], false, true);
        it.critical.push(guard);
        let expected = [(1, false), (20, true), (3, false), (60, true)];
        assert_eq!(lines(&it), expected.map(|(line, told)| (Some(line), told)));
    }

    #[test]
    fn where_a_block_is_freed_too_early_only_what_is_near_it_is_named_early() {
        let frees = |line| FrameRecord {
            function: "frees".to_owned(),
            ..own(line)
        };
        let mut it = Explanation {
            mutants: [11, 10, 12].map(|line| mutant(line, 3)).to_vec(),
            critical: vec![condition(own(60)), condition(frees(50))],
            freed_together: 1,
            freed_early: vec![frees(1)],
            ..Explanation::default()
        };
        it.mutants[2].place.function = "frees".to_owned();
        let tested = SuspectRecord {
            place: vec![frees(1)],
            why: "frees what is used later".to_owned(),
            tested: true,
        };
        let lines = |it: &Explanation| -> Vec<_> {
            let found = with_averting(vec![tested.clone()], it).into_iter();
            found.map(|it| it.place[0].line).collect()
        };
        assert_eq!(lines(&it), [1, 50, 12, 11, 10].map(Some));
        // Unless a run has shown that, each mutant says as much.
        it.freed_together = 0;
        assert_eq!(lines(&it), [1, 11, 10, 12].map(Some));
    }
}
