//! Runs of mutants (see [`mutants`](super::mutants)): which of them keep the failing run from
//! failing, and what they change in other runs.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use ddfuzz_exec::Ended;
use ddfuzz_triage::memory::Memory;
use iced_x86::Register;

use super::mutants::{Code, Mutant, Patch, jump_tables, mutants};
use super::prepared::library_symbol;
use super::process::{Process, register_mut};
use super::run::{Halt, Pace};
use super::spectrum::{ENOUGH, Executions, OtherInputs, Spectrum, Telling};
use super::tests_at_point::Stand;
use super::watchdog::TimeLimit;
use super::{Engine, EngineError, Point, Side, Trace};
use crate::dwarf::Function;
use crate::suspects::MAIN;

/// Largest number of times that a mutant's run may stop at its breakpoint; then it counts as
/// hanging.
const STOPS: usize = 400;
/// Each instruction has fewer bytes than this (at most 15), so the next one begins before that.
const LONGEST: u64 = 16;
/// Largest number of entries of a jump table that are read.
const CASES: usize = 256;
/// Largest number of mutants that are run to explain one failure.
const MUTANTS: usize = 8_000;
/// No more mutants are run once mutants of this many kinds and lines (pairs) did not end in time.
const HANGING: usize = 600;
/// Largest number of mutants that are compared with the program in runs of other inputs.
const COMPARED: usize = 600;
/// Largest number of mutants that are compared in runs of all other inputs, not only of chosen ones.
const COMPARED_CLOSELY: usize = 60;
/// Number of failing runs, and of others, after which a mutant is not compared with more of them.
const CLOSELY: usize = 12;
/// How much weight a mutant loses for each mutant of the same function that weighs more.
const AGAIN: f64 = 0.25;
/// Largest number of mutants that the search for mutants without the failure returns.
const FOUND: usize = 6;

/// How a run of a mutant, or of the unchanged program, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MutantEnd {
    /// Exit status or signal with which the run ended, or a timeout.
    pub ended: Ended,
    /// What the run wrote to stdout.
    pub output: Vec<u8>,
    /// What the run wrote, by file descriptor; `None` where that was not recorded, or could not be.
    pub(super) written: Option<BTreeMap<u64, Vec<u8>>>,
}

impl MutantEnd {
    /// Returns true if the run is known to have written something, so that what other runs have
    /// written can be compared with it.
    fn is_comparable(&self) -> bool {
        (self.written.as_ref()).is_some_and(|it| it.values().any(|bytes| !bytes.is_empty()))
    }
}

/// A mutant that averts the failure: it does not fail on the failing input.
#[derive(Clone, Debug)]
pub(crate) struct Averting {
    /// The mutant that does not fail on the failing input.
    pub mutant: Mutant,
    /// Whether the mutant's output on the failing input begins with what the failing run wrote.
    pub is_like: bool,
    /// How many eighths of the lines that the failing run wrote are in the mutant's output as well.
    kept: usize,
    /// Whether the mutant exits with status 0 on the failing input.
    pub succeeds: bool,
    /// Whether the changed statement is the one at which the failing run fails.
    fails: bool,
    /// Whether the changed statement is in `main`.
    is_main: bool,
    /// Which runs execute the changed statement; `None` where that is not known.
    executed: Option<Executions>,
    /// Number of other inputs with which the program, unchanged, ends well, writes something and
    /// executes the changed instruction.
    pub others: usize,
    /// Number of the inputs counted by `others` on which the mutant ends and writes as the program.
    pub alike: usize,
    /// Number of other inputs with which the unchanged program fails and executes the instruction.
    pub failing: usize,
    /// Number of the inputs counted by `failing` on which the mutant ends well.
    pub mended: usize,
}

/// What runs of mutants, and of the program on other inputs, have shown.
#[derive(Default)]
pub(crate) struct Mutated {
    /// The mutants with the most evidence, one for each source line.
    pub found: Vec<Averting>,
    /// Number of mutants that were not run because the time was over, and number of all.
    pub left: (usize, usize),
    /// The statement that tells runs that fail from others best; `None` where none does.
    pub telling: Option<Telling>,
}

impl Averting {
    /// Returns true if most runs of the mutant on other inputs, of those on which the program does
    /// not fail, end otherwise than the program does.
    fn changes_much(&self) -> bool {
        self.others > 0 && self.alike * 2 < self.others
    }

    /// Returns true if runs of other inputs support the mutant. Of those that do not fail, at least
    /// one, and at least half, must end as without the mutation. If all of them fail, the mutant
    /// must avert at least [`ENOUGH`] of these failures; one is enough if more than [`ENOUGH`]
    /// failing runs execute its statement, and no others.
    fn is_telling(&self) -> bool {
        let all = self.executed.unwrap_or_default();
        let is_seen = all.passing == 0 && all.failing.0 > ENOUGH && self.mended > 0;
        (is_seen || self.alike > 0 || self.mended >= ENOUGH) && self.alike * 2 >= self.others
    }

    /// Returns how much evidence there is that the mutant's statement is wrong, as a logarithm of a
    /// likelihood up to a constant. It grows with the share of other runs that the mutant leaves
    /// alike, the output that it keeps, how well the statement tells failing from passing runs, and
    /// a little with the share of other failures that it averts.
    fn weight(&self) -> f64 {
        let share = |part: usize, all: usize| ((1.0 + part as f64) / (1.0 + all as f64)).ln();
        let eighths = |part: usize| (0.1 + part as f64 / 8.0).ln();
        let suspicion = self.executed.map_or(0, Executions::suspicion);
        let known = share(self.alike, self.others) + 0.2 * share(self.mended, self.failing)
            // Each run that stays as it is says something, the first ones most.
            + 0.15 * (1.0 + self.alike as f64).ln();
        let ends = eighths(self.kept) + 0.6 * eighths(suspicion);
        // What a failed assertion decides itself says little.
        let penalties = [
            (self.fails, 1.0),
            (!self.succeeds, 0.4),
            (self.is_main, 0.3),
        ];
        let penalties = penalties.iter().filter(|it| it.0).map(|it| it.1);
        known + ends - 0.02 * f64::from(self.mutant.kind as u8) - penalties.sum::<f64>()
    }

    /// Compares two mutants by their weights; the one with more evidence is less, so that it is
    /// sorted first.
    fn compare(&self, other: &Averting) -> Ordering {
        other.weight().total_cmp(&self.weight())
    }
}

impl Engine {
    /// Returns the functions that contain the code addresses `pcs`, each once, sorted by address.
    pub(super) fn functions_of(&self, pcs: impl Iterator<Item = u64>) -> Vec<&Function> {
        let all = pcs.filter_map(|pc| self.info.function(pc.wrapping_sub(self.bias)));
        let mut all: Vec<&Function> = all.collect();
        all.sort_by_key(|it| it.ranges.first().map(|it| it.start));
        all.dedup_by(|one, other| std::ptr::eq(*one, *other));
        all
    }

    /// Returns the functions to which the points `points` of a run belong, with their decoded code.
    fn executed_code(
        &self,
        process: &mut Process,
        points: &[Point],
    ) -> Vec<(&Function, Vec<Code>)> {
        let executed: HashSet<u64> = points.iter().map(|it| it.pc).collect();
        let functions = self.functions_of(executed.into_iter()).into_iter();
        let mut code = |range: &Range<u64>| {
            let start = range.start.wrapping_add(self.bias);
            Code::new(
                process.bytes(start, (range.end - range.start) as usize),
                start,
            )
        };
        let decoded = functions.map(|it| (it, it.ranges.iter().map(&mut code).collect()));
        decoded.collect()
    }

    /// Returns the mutants of statements of the failing run, which has the points `points`, that
    /// may change how it ends; forks of the stopped run `stand` show which ones may.
    fn mutants(&mut self, stand: &mut Stand, points: &[Point]) -> Result<Vec<Mutant>, EngineError> {
        let executed: HashSet<u64> = points.iter().map(|it| it.pc).collect();
        let process = stand.process();
        let functions = self.executed_code(process, points);
        let line = |pc| {
            let line = self.line(pc)?.1;
            let statement = self.statement_at(pc);
            let is_executed = statement.is_some_and(|it| executed.contains(&it));
            Some((line, is_executed && self.is_user(pc)))
        };
        let (mut found, mut conditions) = (Vec::new(), Vec::new());
        for code in functions.iter().flat_map(|it| &it.1) {
            let cases = jump_tables(code).into_iter();
            let cases: Vec<u64> = cases.flat_map(|it| targets(process, it)).collect();
            found.extend(mutants(code, line, &cases));
            conditions.extend(code.conditions());
        }
        found.extend(self.additions(&functions));
        let places = found.iter().map(|it| it.patch.begins()).collect();
        if let Some(profile) = self.profile(stand, places, conditions.into_iter())? {
            found.retain(|it| profile.matters(it));
            found.extend(profile.bounds());
        }
        let mut known = HashSet::new();
        found.retain(|it| known.insert(it.patch.clone()));
        Ok(found)
    }

    /// Runs a fork of the stopped run `stand` as the mutant that `patch` makes, or unchanged if it
    /// is `None`. Returns how the fork ended, with what it wrote if `pace` is
    /// [`Pace::SystemCalls`]; `None` if it did something that cannot be followed.
    pub(super) fn run_mutant(
        &mut self,
        stand: &mut Stand,
        patch: Option<&Patch>,
        pace: Pace,
    ) -> Result<Option<MutantEnd>, EngineError> {
        self.in_new_fork(stand, |engine, child| {
            match patch {
                Some(Patch::Code(at, bytes)) => child.write(*at, bytes)?,
                Some(Patch::Exchange(at, _) | Patch::Add(at, ..) | Patch::Leave(at, _)) => {
                    child.set_breakpoint(*at)?;
                }
                Some(Patch::Addition(added)) => child.set_breakpoint(added.entry)?,
                None => {}
            }
            match engine.end_of_mutant(child, patch, pace) {
                // It was killed while it was stopped.
                Err(EngineError::System(_)) if engine.watchdog.has_fired() => {
                    engine.check_time()?;
                    Ok(Some(MutantEnd {
                        ended: Ended::Timeout,
                        output: Vec::new(),
                        written: None,
                    }))
                }
                other => other.map(Some),
            }
        })
    }

    fn end_of_mutant(
        &mut self,
        child: &mut Process,
        patch: Option<&Patch>,
        pace: Pace,
    ) -> Result<MutantEnd, EngineError> {
        let (mut signal, mut stops) = (0, 0);
        let mut pending = Vec::new();
        let mut written = (pace == Pace::SystemCalls).then(BTreeMap::new);
        let ended = loop {
            match self.next_halt(child, pace, std::mem::take(&mut signal))? {
                Halt::Trap => match (child.at_breakpoint()?, patch) {
                    (Some(mut registers), Some(patch)) => {
                        stops += 1;
                        change(&mut registers, patch);
                        child.set_registers(registers)?;
                        if let Patch::Addition(added) = patch {
                            added.apply(child, &registers, &mut pending)?;
                        }
                        child.step_over(registers.rip)?;
                        leave(child, patch)?;
                        if stops >= STOPS {
                            break Ended::Timeout;
                        }
                    }
                    _ => signal = libc::SIGTRAP,
                },
                Halt::Dying(number) => {
                    if patch.is_none()
                        && let Some(flush) = library_symbol(child, "fflush")
                    {
                        let _ = child.call(flush, 0);
                    }
                    break Ended::Signal(number);
                }
                Halt::SystemCall => add_written(&mut written, child)?,
                Halt::Exiting => {}
                Halt::Ended(ended) => break ended,
            }
        };
        Ok(MutantEnd {
            ended,
            output: self.written(),
            written,
        })
    }

    /// Finds mutants of the program that keep the failing run from failing (`averts` tells by how a
    /// mutant's run ends), and compares them with the program in runs of the inputs `others`.
    /// `limit` is the time limit of a test. The search ends early when the time for it is over.
    ///
    /// # Errors
    /// When the runs cannot be made.
    pub(crate) fn averting_mutants(
        &mut self,
        failing: &Trace,
        limit: TimeLimit,
        averts: impl Fn(&MutantEnd) -> bool,
        others: &OtherInputs<'_>,
    ) -> Result<Mutated, EngineError> {
        let Some(first) = failing.points.first().copied() else {
            return Ok(Mutated::default());
        };
        let limit = limit.shorter();
        let spectrum = self.spectrum(failing, first, limit, &averts, others)?;
        let mut stand = self.stand(Side::Failing, first, limit)?;
        let mut all = self.mutants(&mut stand, &failing.points)?;
        self.sort_mutants(&mut all, &spectrum);
        all.truncate(MUTANTS);
        let count = all.len();
        let (mut found, run) = self.averting(stand, all, &averts)?;
        for it in &mut found {
            let statement = self.statement_at(it.mutant.pc);
            it.executed = statement.and_then(|it| spectrum.of(it));
            it.is_main = self.function(it.mutant.pc) == Some(MAIN);
            let last = failing.points.last();
            it.fails = last.is_some_and(|last| self.line(last.pc) == self.line(it.mutant.pc));
        }
        found.sort_by(Averting::compare);
        found.truncate(COMPARED);
        let compared = self.compare_all(&mut found, (first, limit), &averts, (others, &spectrum));
        // What was compared until the time was over counts.
        if let Err(error) = compared
            && self.check_time().is_ok()
        {
            return Err(error);
        }
        found.retain(|it| it.is_telling() && !it.changes_much());
        found.sort_by(Averting::compare);
        let mut lines = HashSet::new();
        found.retain(|it| lines.insert(self.line(it.mutant.pc)));
        let function = |it: &Averting| self.function(it.mutant.pc);
        let order = spread(found.iter().map(|it| (it.weight(), function(it))));
        let mut ranked: Vec<(f64, Averting)> = order.into_iter().zip(found).collect();
        ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
        let mut found: Vec<Averting> = ranked.into_iter().map(|it| it.1).collect();
        found.truncate(FOUND);
        Ok(Mutated {
            found,
            left: (count - run, count),
            telling: spectrum.telling(&failing.points),
        })
    }

    /// Compares the mutants `found` with the program in runs of the inputs `others`, each stopped
    /// at the point `first` and limited by `limit`: all mutants on inputs that `spectrum` chooses,
    /// the best ones on all. Removes those that change much. `averts` says of a run's end whether
    /// it is no failure.
    fn compare_all(
        &mut self,
        found: &mut Vec<Averting>,
        (first, limit): (Point, TimeLimit),
        averts: impl Fn(&MutantEnd) -> bool,
        (others, spectrum): (&OtherInputs<'_>, &Spectrum),
    ) -> Result<(), EngineError> {
        let statements = found
            .iter()
            .filter_map(|it| self.statement_at(it.mutant.pc));
        let chosen = spectrum.chosen(&statements.collect());
        let rest = (0..others.all.len()).filter(|it| !chosen.contains(it));
        let rest: Vec<usize> = rest.collect();
        for (inputs, enough) in [(chosen, ENOUGH), (rest, CLOSELY)] {
            for input in inputs {
                if self.facts_until.is_over() || found.is_empty() {
                    break;
                }
                let Some(mut stand) = self.stand_with(&others.all[input].bytes, first, limit)?
                else {
                    continue;
                };
                let fails = |end: &MutantEnd| others.fails(input, end, averts(end));
                self.compare_mutants(&mut stand, found, (&averts, fails), enough)?;
                // Others are not told any more.
                found.retain(|it| !it.changes_much());
            }
            found.sort_by(Averting::compare);
            found.truncate(COMPARED_CLOSELY);
        }
        Ok(())
    }

    /// Runs the mutants `all` in forks of the failing run, stopped in `stand`, and returns those
    /// that keep it from failing, with the number of those for which there was time.
    fn averting(
        &mut self,
        mut stand: Stand,
        all: Vec<Mutant>,
        averts: impl Fn(&MutantEnd) -> bool,
    ) -> Result<(Vec<Averting>, usize), EngineError> {
        let most = self.facts_until.but(4);
        let plain = self.run_mutant(&mut stand, None, Pace::Free)?;
        let begins = plain.map(|it| it.output).unwrap_or_default();
        let (mut found, mut hanging, mut run) = (Vec::new(), HashSet::new(), 0);
        for mutant in all {
            let place = (self.line(mutant.pc), mutant.kind);
            if most.is_over() || self.check_time().is_err() || hanging.len() >= HANGING {
                break;
            }
            run += 1;
            if hanging.contains(&place) {
                continue;
            }
            let Some(end) = self.run_mutant(&mut stand, Some(&mutant.patch), Pace::Free)? else {
                continue;
            };
            if end.ended == Ended::Timeout {
                hanging.insert(place);
            } else if averts(&end) {
                found.push(Averting {
                    is_like: end.output.starts_with(&begins),
                    kept: kept(&begins, &end.output),
                    succeeds: end.ended == Ended::Exit(0),
                    mutant,
                    fails: false,
                    is_main: false,
                    executed: None,
                    others: 0,
                    alike: 0,
                    failing: 0,
                    mended: 0,
                });
            }
        }
        Ok((found, run))
    }

    /// Sorts mutants, the most promising first: kinds that few instructions have; then those in
    /// statements that mostly failing runs execute (`spectrum`); then those in rarely executed
    /// statements, and the first of each kind on a line; then small changes.
    fn sort_mutants(&self, all: &mut Vec<Mutant>, spectrum: &Spectrum) {
        let mut rounds: HashMap<_, usize> = HashMap::new();
        let mut ranked: Vec<_> = Vec::new();
        for mutant in all.drain(..) {
            let place = (self.line(mutant.pc), mutant.kind);
            let round = rounds.entry(place).or_default();
            let statement = self.statement_at(mutant.pc);
            let executed = statement.and_then(|it| spectrum.of(it));
            let executed = executed.unwrap_or_default();
            let magnitude = executed.times.checked_ilog2();
            let order = magnitude.unwrap_or(0) as usize + 2 * *round;
            let suspicion = Reverse(executed.suspicion() / 2);
            let key = (!mutant.kind.is_rare(), suspicion, order, mutant.kind);
            ranked.push((key, mutant));
            *round += 1;
        }
        ranked.sort_by_key(|it| it.0);
        all.extend(ranked.into_iter().map(|it| it.1));
    }

    /// Runs mutants (`found`) on one other input, in forks of the run that is stopped in `stand`,
    /// and counts how they end. A mutant is run if the program executes its instruction there,
    /// until it has more than `enough` runs. If the unchanged program ends well, `others` counts
    /// the run, `alike` those that end like the program; if it fails (`fails`; `None`: unknown, no
    /// runs), `failing` counts the run, `mended` those that do not fail (`averts`).
    fn compare_mutants(
        &mut self,
        stand: &mut Stand,
        found: &mut [Averting],
        (averts, fails): (
            impl Fn(&MutantEnd) -> bool,
            impl Fn(&MutantEnd) -> Option<bool>,
        ),
        enough: usize,
    ) -> Result<(), EngineError> {
        let Some(plain) = self.run_mutant(stand, None, Pace::SystemCalls)? else {
            return Ok(());
        };
        let Some(fails) = fails(&plain).filter(|fails| *fails || plain.is_comparable()) else {
            return Ok(());
        };
        let places: HashSet<u64> = found.iter().map(|it| it.mutant.pc).collect();
        let executed = self.executed(stand, &places)?.map(|it| it.0);
        let executed = executed.unwrap_or_default();
        for it in found.iter_mut() {
            if self.facts_until.is_over() {
                break;
            }
            let known = if fails { it.failing } else { it.others };
            if known > enough || !executed.contains(&it.mutant.pc) {
                continue;
            }
            let Some(end) = self.run_mutant(stand, Some(&it.mutant.patch), Pace::SystemCalls)?
            else {
                continue;
            };
            match fails {
                false => {
                    it.others += 1;
                    it.alike += usize::from(end == plain);
                }
                true => {
                    it.failing += 1;
                    it.mended += usize::from(averts(&end));
                }
            }
        }
        Ok(())
    }
}

/// Adds to `written` what a process has written by the system call from which it returns. Sets it
/// to `None` if that cannot be read: what the process writes is then unknown.
fn add_written(
    written: &mut Option<BTreeMap<u64, Vec<u8>>>,
    process: &mut Process,
) -> Result<(), EngineError> {
    let registers = process.registers()?;
    let count = registers.rax as i64;
    // An error, or the entry to the call.
    if count < 0 {
        return Ok(());
    }
    let is_shared = registers.r10 & libc::MAP_SHARED as u64 != 0
        && registers.rdx & libc::PROT_WRITE as u64 != 0;
    let bytes = match registers.orig_rax as i64 {
        libc::SYS_write | libc::SYS_pwrite64 => Some(process.bytes(registers.rsi, count as usize)),
        libc::SYS_writev | libc::SYS_pwritev | libc::SYS_pwritev2 => {
            let parts = registers.rdx.min(libc::UIO_MAXIOV as u64);
            let mut all = Vec::new();
            for at in (0..parts).map(|it| registers.rsi + 16 * it) {
                let part = process.word(at).zip(process.word(at + 8));
                all.extend(part.map(|(from, size)| process.bytes(from, size as usize)));
            }
            let mut all = all.concat();
            all.truncate(count as usize);
            Some(all)
        }
        libc::SYS_mmap if !is_shared => return Ok(()),
        libc::SYS_mmap
        | libc::SYS_sendfile
        | libc::SYS_copy_file_range
        | libc::SYS_splice
        | libc::SYS_vmsplice
        | libc::SYS_tee
        | libc::SYS_sendmsg
        | libc::SYS_sendto
        | libc::SYS_io_uring_enter => None,
        _ => return Ok(()),
    };
    match bytes.filter(|it| it.len() == count as usize) {
        Some(bytes) => {
            if let Some(written) = written {
                written.entry(registers.rdi).or_default().extend(bytes);
            }
        }
        None => *written = None,
    }
    Ok(())
}

/// Returns the weights of mutants, given with their functions in `all`, largest weight first. Each
/// further mutant of one function loses [`AGAIN`], since a person who reads the function for the
/// first one sees the others, too.
fn spread<T: Eq + std::hash::Hash>(all: impl Iterator<Item = (f64, T)>) -> Vec<f64> {
    let mut known: HashMap<T, u8> = HashMap::new();
    let weight = |(weight, function)| {
        let before = known.entry(function).or_default();
        *before += 1;
        weight - AGAIN * f64::from(*before - 1)
    };
    all.map(weight).collect()
}

/// Compares the outputs of two runs: returns how many eighths of the lines of `before` are also in
/// `after`, from 0 to 8. A line that occurs several times counts as often. 8 if `before` is empty.
fn kept(before: &[u8], after: &[u8]) -> usize {
    let mut left: HashMap<&[u8], usize> = HashMap::new();
    for line in ddfuzz_delta::lines(after) {
        *left.entry(line).or_default() += 1;
    }
    let lines: Vec<&[u8]> = ddfuzz_delta::lines(before);
    let mut is_kept = |line: &&&[u8]| match left.get_mut(**line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    };
    let kept = lines.iter().filter(&mut is_kept).count();
    (kept * 8).checked_div(lines.len()).unwrap_or(8)
}

/// Changes the registers of a process as the mutant `patch` says, before its instruction runs.
fn change(registers: &mut libc::user_regs_struct, patch: &Patch) {
    match patch {
        Patch::Exchange(_, [one, other]) => {
            let of = |register| dwarf_number(register);
            let first = register_mut(registers, of(*one)).map(|it| *it);
            let second = register_mut(registers, of(*other)).map(|it| *it);
            if let (Some(first), Some(second)) = (first, second) {
                if let Some(it) = register_mut(registers, of(*one)) {
                    *it = second;
                }
                if let Some(it) = register_mut(registers, of(*other)) {
                    *it = first;
                }
            }
        }
        Patch::Add(_, register, by) => {
            if let Some(it) = register_mut(registers, dwarf_number(*register)) {
                *it = it.wrapping_add_signed(*by);
            }
        }
        Patch::Code(..) | Patch::Leave(..) | Patch::Addition(_) => {}
    }
}

/// Makes the process leave its code for another address if `patch` ([`Patch::Leave`]) says so for
/// the instruction that it has just executed. If that was a call, it leaves when the call returns.
fn leave(process: &mut Process, patch: &Patch) -> Result<(), EngineError> {
    let Patch::Leave(at, to) = patch else {
        return Ok(());
    };
    let mut registers = process.registers()?;
    let behind = at + 1..at + LONGEST;
    let back = process.word(registers.rsp).filter(|it| behind.contains(it));
    if back.is_some() && !behind.contains(&registers.rip) {
        // It was a call, which returns to where the program is to go on.
        process.write(registers.rsp, &to.to_le_bytes())?;
    } else if registers.rip != *at {
        // An instruction that repeats itself is not over before that.
        registers.rip = *to;
        process.set_registers(registers)?;
    }
    Ok(())
}

/// Returns the addresses to which a jump table leads; each entry is a distance from the table's
/// address.
fn targets(process: &mut Process, table: u64) -> Vec<u64> {
    let entries = process.bytes(table, 4 * CASES);
    let entries = entries.chunks_exact(4).map(|it| {
        let distance = i32::from_le_bytes(it.try_into().unwrap_or_default());
        table.wrapping_add_signed(distance.into())
    });
    entries.collect()
}

/// Returns the number by which DWARF names a general register of x86-64.
fn dwarf_number(register: Register) -> u16 {
    match register {
        Register::RAX => 0,
        Register::RDX => 1,
        Register::RCX => 2,
        Register::RBX => 3,
        Register::RSI => 4,
        Register::RDI => 5,
        Register::RBP => 6,
        Register::RSP => 7,
        other => 8 + (other as u16).wrapping_sub(Register::R8 as u16),
    }
}

#[cfg(test)]
mod tests {
    use super::super::mutants::MutantKind;
    use super::*;

    #[test]
    fn a_mutant_tells_something_if_runs_show_that_it_changes_nothing_else() {
        let is_telling = |others, alike, failing, mended| {
            let patch = Patch::Leave(0, 0);
            let kind = MutantKind::Break;
            let all = Averting {
                mutant: Mutant { pc: 0, kind, patch },
                is_like: false,
                kept: 8,
                succeeds: true,
                fails: false,
                is_main: false,
                executed: None,
                others,
                alike,
                failing,
                mended,
            };
            all.is_telling()
        };
        assert!(is_telling(8, 4, 0, 0) && is_telling(1, 1, 2, 1));
        assert!(!is_telling(8, 3, 0, 0) && !is_telling(1, 0, 3, 3));
        // No other run that ends well executes it.
        assert!(is_telling(0, 0, 4, 3));
        assert!(!is_telling(0, 0, 2, 2) && !is_telling(0, 0, 3, 2));
    }

    #[test]
    fn the_second_mutant_of_a_function_weighs_less() {
        let all = [(-0.5, "f"), (-0.6, "f"), (-0.7, "g"), (-0.8, "f")];
        assert_eq!(spread(all.into_iter()), [-0.5, -0.85, -0.7, -1.3]);
    }

    #[test]
    fn lines_are_kept_as_often_as_they_are_there() {
        let before = b"a\nb\nb\nc\n";
        assert_eq!(kept(before, before), 8);
        assert_eq!(kept(before, b"0\nb\na\n1\nb\n2\n"), 6);
        assert_eq!(kept(before, b""), 0);
        assert_eq!(kept(b"", b"a\n"), 8);
    }
}
