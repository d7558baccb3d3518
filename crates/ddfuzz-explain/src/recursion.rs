//! The facts of a recursion by which the failing run overflows its stack, for the result: its
//! calls, how their parameters change, what leads from one call to the next, and what would end it.

use crate::engine::closing::Rounds;
use crate::engine::recursion::{Recursion, Seen, Values};
use crate::engine::watchdog::TimeLimit;
use crate::engine::{Criterion, Ending, Engine, EngineError, Trace, if_supported};
use crate::explain::{Early, Explaining, refuse};
use crate::failing_facts::{ends_well, origin_record};
use crate::places::{cycle, frame_record, frame_records};
use crate::report::{CallValueRecord, ClosingRecord, Explanation, RecursionRecord};
use crate::series::Pattern;
use crate::stages::Stage;

/// Class of crashes by an overflow of the stack.
const STACK_OVERFLOW: &str = "stackoverflow";
/// Largest number of values of a parameter that are told, from where its pattern begins on.
const TOLD: usize = 8;
/// Largest number of calls after which a parameter repeats that is followed from call to call.
const LONGEST_CYCLE: usize = 16;

/// How a variable changes from call to call.
struct Course<'a> {
    name: &'a str,
    pattern: Pattern,
    /// Number of the call from which on the pattern holds up to the crash; `None` where it is not
    /// among the first ones.
    since: Option<usize>,
    first: Vec<&'a Seen>,
    last: Vec<&'a Seen>,
}

/// Returns the values of the variable `name` in calls; nothing if it is missing in one.
fn values_of<'a>(calls: &'a [Values], name: &str) -> Vec<&'a Seen> {
    let find = |it: &'a Values| it.iter().find(|it| it.0 == name).map(|it| &it.1);
    let found: Option<Vec<&Seen>> = calls.iter().map(find).collect();
    found.unwrap_or_default()
}

fn numbers(seen: &[&Seen]) -> Vec<i128> {
    seen.iter().map(|it| it.value).collect()
}

/// Returns the value that a variable has in the call `number`, by its values in the first calls and
/// the pattern that they follow from `since` on.
fn expected(first: &[i128], pattern: Pattern, since: usize, number: usize) -> Option<i128> {
    let start = first.get(since)?;
    let later = number.checked_sub(since)?;
    match pattern {
        Pattern::Constant => Some(*start),
        Pattern::Steps(step) => Some(start + step * later as i128),
        Pattern::Repeats(period) => first.get(since + later % period).copied(),
        Pattern::Other => None,
    }
}

impl<'a> Course<'a> {
    /// Returns how the variable `name` changes; `None` where it was not seen in the first calls.
    fn of(recursion: &'a Recursion, name: &'a str) -> Option<Course<'a>> {
        let first = values_of(&recursion.first, name);
        let last = values_of(&recursion.last, name);
        let (early, late) = (numbers(&first), numbers(&last));
        first.first()?;
        // At the beginning the recursion may still do what it should.
        let pattern = Pattern::of(if late.is_empty() { &early } else { &late });
        let is_kept = |since: &usize| {
            let mut all = late.iter().enumerate();
            all.all(|(at, it)| {
                expected(&early, pattern, *since, recursion.last_from + at) == Some(*it)
            })
        };
        let since = pattern.since(&early).filter(is_kept);
        Some(Course {
            name,
            pattern,
            since,
            first,
            last,
        })
    }

    /// Returns true if the variable is worth telling: a parameter, or a field of a record that is
    /// the same in all calls and changes with them, or stops to change.
    fn is_telling(&self, constant: &[&str]) -> bool {
        let Some(by) = &self.first[0].by else {
            return true;
        };
        constant.contains(&by.as_str())
            && match (self.pattern, self.since) {
                (Pattern::Steps(_) | Pattern::Repeats(_), _) => true,
                (Pattern::Constant, since) => since != Some(0) && !self.last.is_empty(),
                (Pattern::Other, _) => false,
            }
    }

    fn record(&self) -> CallValueRecord {
        let (pattern, step) = match self.pattern {
            Pattern::Constant => ("same", None),
            Pattern::Steps(step) => ("steps", i64::try_from(step).ok()),
            Pattern::Repeats(_) => ("repeats", None),
            Pattern::Other => ("changes", None),
        };
        let from = self.since.unwrap_or(0);
        let most = self.pattern.period().unwrap_or(TOLD).min(TOLD);
        let told = self.first[from..].iter().take(most);
        CallValueRecord {
            name: self.name.to_owned(),
            pattern: pattern.to_owned(),
            step,
            period: self.pattern.period(),
            since: self.since.map(|it| it + 1),
            values: told.map(|it| it.shown.clone()).collect(),
            last: self.last.last().map(|it| it.shown.clone()),
        }
    }
}

/// Returns how the parameters of the recursion change, and the fields of records to which they
/// point.
fn courses(recursion: &Recursion) -> Vec<Course<'_>> {
    let names = recursion.first.first().into_iter().flatten();
    let all: Vec<Course<'_>> = names
        .filter_map(|it| Course::of(recursion, &it.0))
        .collect();
    let is_constant = |it: &&Course<'_>| (it.pattern, it.since) == (Pattern::Constant, Some(0));
    let constant: Vec<&str> = all.iter().filter(is_constant).map(|it| it.name).collect();
    all.into_iter()
        .filter(|it| it.is_telling(&constant))
        .collect()
}

impl Explaining<'_> {
    /// Stores in the result the facts of the recursion by which the failing run overflows its
    /// stack, and returns the recursion; `None` for another failure. Refuses the explanation where
    /// no recursion is seen.
    pub(crate) fn recursion(
        &mut self,
        engine: &mut Engine,
        (criterion, failing, limit): (&Criterion, &Ending, TimeLimit),
    ) -> Result<Option<Recursion>, Early> {
        let class = failing.crash.as_ref().map(|it| it.class.0.as_str());
        if class != Some(STACK_OVERFLOW) || !matches!(criterion, Criterion::Crash(_)) {
            return Ok(None);
        }
        engine.until = self.time.and(Stage::Facts.share(self.request.budget));
        engine.facts_until = engine.until;
        let averts = |it: &Ending| ends_well(it, criterion, failing);
        let fails = |it: &Ending| criterion.fails(it);
        let found = match engine.info.is_empty() || self.request.raw {
            true => Ok(None),
            false => found(&mut self.result, engine, limit, (averts, fails)),
        };
        let is_over = engine.until.is_over();
        (engine.until, engine.facts_until) = (self.time, self.time);
        match if_supported(found) {
            Ok(Some(found)) => return Ok(Some(found)),
            Ok(None) => {}
            // What was killed because the time was over cannot be traced any more.
            Err(EngineError::OutOfTime | EngineError::System(_)) if is_over => {}
            Err(error) => return Err(error.into()),
        }
        let names = failing.stack.iter();
        let names = names.filter_map(|pc| engine.function(*pc).map(str::to_owned));
        Err(without_recursion(&names.collect::<Vec<String>>()))
    }
}

/// Returns the refusal to explain an overflow of the stack without a known recursion; `names` are
/// the functions on the stack, innermost first.
fn without_recursion(names: &[String]) -> Early {
    let cycle = cycle(names);
    let recurs = |name: &&str| names.iter().filter(|it| it == name).count() > 2;
    match (cycle.first().filter(|it| recurs(it)), names.first()) {
        (None, Some(name)) => refuse(
            &format!("the stack overflows: {name} needs more of it than there is"),
            "look at the sizes of the variables that it has on the stack",
        ),
        _ => {
            let cycle = cycle.join(" < ");
            let reason = format!("the stack overflows: {cycle} calls itself without an end");
            refuse(&reason, "look at what should end the recursion")
        }
    }
}

/// Finds the recursion by which the failing run overflows its stack, and stores its facts in
/// `result`. The two functions tell of the end of a run whether it does not fail, and whether it
/// fails as the failing run does.
fn found(
    result: &mut Explanation,
    engine: &mut Engine,
    limit: TimeLimit,
    (averts, fails): (impl Fn(&Ending) -> bool, impl Fn(&Ending) -> bool),
) -> Result<Option<Recursion>, EngineError> {
    let Some(recursion) = engine.overflowing_recursion()? else {
        return Ok(None);
    };
    let larger = engine.with_larger_stack(limit)?;
    let is_ended = larger.as_ref().and_then(|(ending, _)| match ending {
        it if averts(it) => Some(true),
        it if fails(it) => Some(false),
        _ => None,
    });
    let all = courses(&recursion);
    let mut record = RecursionRecord {
        round: (recursion.round.iter())
            .map(|pc| frame_record(engine, *pc))
            .collect(),
        calls: recursion.depth,
        bytes: recursion.bytes,
        larger_stack: larger.filter(|_| is_ended.is_some()).map(|it| it.1),
        is_ended,
        values: all.iter().map(Course::record).collect(),
        parameter: None,
        links: Vec::new(),
        closed: None,
        decided: Vec::new(),
        first: None,
    };
    let record_of = &mut record;
    let more = match is_ended {
        // It has an end.
        Some(true) => Ok(()),
        _ => causes(record_of, engine, (&recursion, &all), limit, averts),
    };
    result.recursion = Some(record);
    if_supported(more.map(Some))?;
    Ok(Some(recursion))
}

/// Adds to `record` what leads from one call of the recursion to the next, who wrote it last, and
/// the conditions that end the recursion when they are decided otherwise.
fn causes(
    record: &mut RecursionRecord,
    engine: &mut Engine,
    (recursion, all): (&Recursion, &[Course<'_>]),
    limit: TimeLimit,
    averts: impl Fn(&Ending) -> bool,
) -> Result<(), EngineError> {
    for it in all.iter().filter(|it| it.first[0].by.is_none()) {
        let period = it.pattern.period().filter(|it| *it <= LONGEST_CYCLE);
        let (Some(since), Some(period)) = (it.since, period) else {
            continue;
        };
        let Some(rounds) = engine.rounds(recursion, (since, period))? else {
            continue;
        };
        if add_links(record, engine, (recursion, &rounds), it, limit, &averts)? {
            break;
        }
    }
    let begins = all.iter().filter_map(|it| it.since).max().unwrap_or(0);
    if let Some(rounds) = engine.rounds(recursion, (begins, 1))? {
        let decided = engine.deciding(recursion, &rounds, limit, averts)?;
        let mut decided: Vec<_> = decided.iter().map(|pc| frame_record(engine, *pc)).collect();
        decided.dedup();
        record.decided = decided;
    }
    Ok(())
}

/// Adds to `record` the places in memory from which the repeating parameter `it` is read for each
/// next call, and who wrote the last of them; returns false if it is not read from memory.
fn add_links(
    record: &mut RecursionRecord,
    engine: &mut Engine,
    (recursion, rounds): (&Recursion, &Rounds),
    it: &Course<'_>,
    limit: TimeLimit,
    averts: impl Fn(&Ending) -> bool,
) -> Result<bool, EngineError> {
    let slots = engine.slots(recursion, rounds, it.name)?;
    // What is the same in all calls may be read from anywhere.
    let is_link = it.pattern != Pattern::Constant || slots.iter().all(|it| it.is_of_parameter);
    if slots.is_empty() || !is_link {
        return Ok(false);
    }
    record.parameter = Some(it.name.to_owned());
    record.links = slots.iter().map(|it| it.name.clone()).collect();
    let written = if_supported(engine.closing_write(&slots, limit, averts))?;
    record.closed = written.map(|written| ClosingRecord {
        place: frame_records(engine, &written.writer.calls),
        link: slots[written.slot].name.clone(),
        holder: (it.first.get(it.since.unwrap_or(0) + written.slot))
            .map_or_else(String::new, |it| it.shown.clone()),
        is_averted: written.is_averted,
    });
    Ok(true)
}

/// Adds to a result where the first value of the parameter came from that changes steadily in the
/// recursion.
///
/// # Errors
/// When the runs cannot be made.
pub(crate) fn add_first_value(
    result: &mut Explanation,
    engine: &mut Engine,
    recursion: Option<&Recursion>,
    trace: &Trace,
) -> Result<(), EngineError> {
    let (Some(record), Some(recursion)) = (&mut result.recursion, recursion) else {
        return Ok(());
    };
    let Some(name) = record.moving().map(str::to_owned) else {
        return Ok(());
    };
    let origin = if_supported(engine.first_value(recursion, &trace.points, &name))?;
    record.first = origin.map(|it| origin_record(engine, &it));
    Ok(())
}

/// Writes the facts of the recursion as text; `None` where the run does not overflow its stack, or
/// no recursion was seen.
pub(crate) fn text(it: &Explanation) -> Option<String> {
    let it = it.recursion.as_ref()?;
    let mut facts = vec![calls_text(it)];
    let is_same = |it: &&CallValueRecord| it.pattern == "same" && it.since == Some(1);
    let moves = |it: &CallValueRecord| !is_same(&it) && value_text(it).is_some();
    let does_one_move = it.values.iter().any(moves);
    let told = it.values.iter().filter(|it| !does_one_move || !is_same(it));
    let values: Vec<String> = told.filter_map(value_text).collect();
    if !values.is_empty() {
        facts.push(format!("From call to call, {}.", values.join("; ")));
    }
    if let (Some(first), Some(name)) = (&it.first, it.moving()) {
        let by = crate::named_places::calls(&first.written);
        facts.push(format!("The first {name} comes from {by}."));
    }
    facts.extend(link_text(it));
    if !it.decided.is_empty() {
        let places: Vec<String> = it
            .decided
            .iter()
            .map(crate::named_places::function_at)
            .collect();
        facts.push(format!(
            "With the other decision, in one of the calls, of {}, the run does not fail (tested).",
            places.join(", or of ")
        ));
    }
    Some(facts.join(" "))
}

impl RecursionRecord {
    /// Returns the name of the first parameter that changes by the same number with each call;
    /// `None` where none does, or the recursion has an end, or one parameter is read from memory.
    fn moving(&self) -> Option<&str> {
        if self.parameter.is_some() || self.is_ended == Some(true) {
            return None;
        }
        let moves = |it: &&CallValueRecord| it.pattern == "steps" && !it.name.contains("->");
        self.values.iter().find(moves).map(|it| it.name.as_str())
    }
}

/// Returns a number of bytes as text.
fn size(bytes: u64) -> String {
    let rounded = |unit: u64| (bytes + unit / 2) / unit;
    match rounded(1 << 20) {
        0 => format!("{} KiB", rounded(1 << 10)),
        megabytes => format!("{megabytes} MiB"),
    }
}

fn calls_text(it: &RecursionRecord) -> String {
    let round: Vec<String> = it
        .round
        .iter()
        .map(crate::named_places::function_at)
        .collect();
    let itself = match it.round.len() {
        1 => "calls itself",
        _ => "call each other",
    };
    let how = match (it.is_ended, it.larger_stack) {
        (Some(true), Some(larger)) => format!(
            "which has an end: with a stack of {} the run does not fail (tested). A limit of the depth is missing",
            size(larger)
        ),
        (Some(false), Some(larger)) => {
            format!("and a stack of {} overflows as well", size(larger))
        }
        _ => "until the stack is full".to_owned(),
    };
    format!(
        "{} {itself}, {} times in {} of stack, {how}.",
        round.join(", "),
        it.calls,
        size(it.bytes)
    )
}

/// Describes how a parameter changes from call to call; `None` where it follows no pattern.
fn value_text(it: &CallValueRecord) -> Option<String> {
    let name = &it.name;
    let since = match it.since {
        None => " at the end".to_owned(),
        Some(1) => String::new(),
        Some(since) => format!(" since call {since}"),
    };
    let values = it.values.join(", ");
    let last = it
        .last
        .as_ref()
        .map_or_else(String::new, |it| format!(", … {it}"));
    let value = match it.since {
        None => it.last.clone().unwrap_or_default(),
        Some(_) => values.clone(),
    };
    match (it.pattern.as_str(), it.step) {
        ("same", _) => Some(format!("{name} stays the same{since} ({value})")),
        ("repeats", _) => {
            let period = it.period.unwrap_or(0);
            let shown = if it.since.is_some() {
                format!(" ({values})")
            } else {
                String::new()
            };
            Some(format!("{name} repeats after {period} calls{since}{shown}"))
        }
        ("steps", Some(step)) => {
            let how = if step < 0 { "falls" } else { "grows" };
            let shown = match it.since {
                Some(_) => format!(" ({values}{last})"),
                None => String::new(),
            };
            Some(format!(
                "{name} {how} by {}{since}{shown}",
                step.unsigned_abs()
            ))
        }
        _ => None,
    }
}

/// Describes what leads from one call to the next, and who wrote it; `None` where that is not
/// known.
fn link_text(it: &RecursionRecord) -> Option<String> {
    let parameter = it.parameter.as_ref()?;
    let first = it.links.first()?;
    let closed = it.closed.as_ref().map(|closed| {
        let undone = match closed.is_averted {
            true => " With this write undone, the run does not fail (tested).",
            false => "",
        };
        format!(
            " {} wrote it last, where {parameter} is {}.{undone}",
            crate::named_places::calls(&closed.place),
            closed.holder
        )
    });
    Some(format!(
        "The next {parameter} is read from {first}.{}",
        closed.unwrap_or_default()
    ))
}
