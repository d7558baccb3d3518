//! Runs of mutants (see [`mutants`](super::mutants)): which of them keep the failing run from
//! failing, and what they change in other runs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use ddfuzz_exec::{Ended, RUST_PANIC};
use ddfuzz_triage::memory::{Maps, Memory};
use iced_x86::{Decoder, DecoderOptions, Mnemonic, Register};

use super::evidence::{Averting, common, spread, unlike};
use super::heap::heap_blocks;
use super::mutants::{Code, Mutant, MutantKind, Patch, jump_tables, mutants};
use super::prepared::library_symbol;
use super::process::{Process, register_mut};
use super::run::{self, Halt, Pace};
use super::spectrum::{ENOUGH, Executions, OtherInputs, Spectrum, Telling};
use super::tests_at_point::Stand;
use super::watchdog::TimeLimit;
use super::wide::{self, Kept};
use super::written::add_written;
use super::{Ending, Engine, EngineError, Point, Side, Trace};
use crate::dwarf::Function;
use crate::suspects::MAIN;

/// Largest number of times that a mutant's run may stop at its breakpoint; with more stops, it
/// counts as hanging.
const STOPS: usize = 2_000;
/// A number of bytes larger than that of any instruction (at most 15).
const LONGEST: u64 = 16;
/// Largest number of entries of a jump table that are read.
const CASES: usize = 256;
/// Largest number of functions that are searched for places of one or two bytes.
const FUNCTIONS: usize = 4_000;
/// Largest number of mutants that are run.
const MUTANTS: usize = 8_000;
/// Largest number of instructions between the one that computes an address and the check of it by
/// AddressSanitizer.
const CHECKED: usize = 4;
/// No more mutants are run once mutants of this many kinds and lines (pairs) did not end in time.
const HANGING: usize = 600;
/// Largest number of mutants that are compared with the program in runs of other inputs.
const COMPARED: usize = 600;
/// Largest number of mutants that are compared in runs of all other inputs, and not only of the
/// chosen ones.
const COMPARED_CLOSELY: usize = 60;
/// Number of failing runs, and of others, with which a mutant is compared; it is not compared with
/// more of the same kind.
const CLOSELY: usize = 12;
/// Largest number of mutants that are compared in runs of further inputs: each with up to
/// `MOST_CLOSELY` failing runs and as many others.
const LEADING: usize = 24;
const MOST_CLOSELY: usize = 48;
/// Largest number of mutants that the search for mutants without the failure returns.
const FOUND: usize = 6;

/// How a run of a mutant, or of the unchanged program, ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MutantEnd {
    /// Exit status or signal with which the run ended, or a timeout.
    pub ended: Ended,
    /// What the run wrote to stdout.
    pub output: Vec<u8>,
    /// Whether the run has overwritten a size field of the heap's allocator and exits all the same;
    /// looked at only where the failing run damages its heap.
    pub is_heap_damaged: bool,
    /// What the run wrote, by file descriptor; `None` if that was not, or could not be, recorded.
    pub(super) written: Option<BTreeMap<u64, Vec<u8>>>,
}

impl MutantEnd {
    /// Returns true if the run is known to have written something, so that it can be compared with
    /// what other runs have written.
    fn is_comparable(&self) -> bool {
        (self.written.as_ref()).is_some_and(|it| it.values().any(|bytes| !bytes.is_empty()))
    }
}

/// Evidence about the statements of the failing run: which of them avert the failure when their code
/// is changed (runs of mutants of the program), and which one is executed on other inputs that fail
/// and not on those that pass (runs of the unchanged program).
#[derive(Default)]
pub(crate) struct Mutated {
    /// The mutants with the most evidence, one for each source line.
    pub found: Vec<Averting>,
    /// Number of mutants that were not run because the time was over, and number of all mutants.
    pub left: (usize, usize),
    /// The statement that best tells runs that fail from others; `None` if no statement does.
    pub telling: Option<Telling>,
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

    /// Returns functions with their decoded code.
    fn decoded<'a>(
        &self,
        process: &mut Process,
        functions: impl Iterator<Item = &'a Function>,
    ) -> Vec<(&'a Function, Vec<Code>)> {
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

    /// Returns the mutants of statements of the failing run that may change how this run ends, as
    /// forks of the stopped run `stand` show. `points` are the run's points (statement executions).
    fn mutants(&mut self, stand: &mut Stand, points: &[Point]) -> Result<Vec<Mutant>, EngineError> {
        let executed: HashSet<u64> = points.iter().map(|it| it.pc).collect();
        let process = stand.process();
        let called = self.functions_of(executed.iter().copied());
        let functions = self.decoded(process, called.into_iter());
        let start = |it: &Function| it.ranges.first().map_or(0, |it| it.start + self.bias);
        // One that only reads a field may have no statement of its own.
        let own = self
            .info
            .functions
            .iter()
            .filter(|it| self.is_user(start(it)));
        let own = self.decoded(process, own.take(FUNCTIONS));
        let narrow = wide::places(own.iter().flat_map(|it| &it.1));
        let line = |pc| {
            let line = self.line(pc)?.1;
            let statement = self.statement_at(pc);
            let is_executed = statement.is_some_and(|it| executed.contains(&it));
            Some((line, is_executed && self.is_of_statement(pc)))
        };
        let (mut found, mut conditions) = (Vec::new(), Vec::new());
        let codes = functions.iter();
        for (function, code) in codes.flat_map(|it| it.1.iter().map(|code| (it.0, code))) {
            let cases = jump_tables(code).into_iter();
            let cases: Vec<u64> = cases.flat_map(|it| targets(process, it)).collect();
            let of_code = mutants(code, line, &cases).into_iter();
            found.extend(
                of_code.filter(|it| !self.moves_address(code, it) && !code.breaks_equality(it)),
            );
            let is_executed = |pc| line(pc).is_some_and(|it| it.1);
            found.extend(self.same_types(function, code, is_executed));
            conditions.extend(code.conditions());
        }
        found.extend(self.additions(&functions, points));
        let places = found.iter().map(|it| it.patch.begins()).collect();
        if let Some(profile) = self.profile(stand, places, conditions.into_iter())? {
            found.retain(|it| profile.matters(it));
            found.extend(profile.bounds());
        }
        found.extend(self.wide_mutants(stand, &narrow)?);
        let mut known = HashSet::new();
        found.retain(|it| known.insert(it.patch.clone()));
        Ok(found)
    }

    /// Returns true if a mutant in the code `code` moves the address of an access that
    /// AddressSanitizer checks, so that it only misses a bad one: by one byte of an element, or to
    /// the other side of a pointer.
    fn moves_address(&self, code: &Code, mutant: &Mutant) -> bool {
        let Patch::Code(at, bytes) = &mutant.patch else {
            return false;
        };
        let it = Decoder::with_ip(64, bytes, *at, DecoderOptions::NONE).decode();
        if !self.has_asan || !it.op0_register().is_gpr64() {
            return false;
        }
        let is_checked = || {
            let next = code.following(*at, CHECKED);
            next.into_iter().any(|it| self.is_added(it))
        };
        match (mutant.kind, it.mnemonic()) {
            (MutantKind::Constant, Mnemonic::Lea) => it.memory_index_scale() >= 4,
            (MutantKind::Operator, Mnemonic::Sub) => is_checked(),
            _ => false,
        }
    }

    /// Runs a fork of the stopped run `stand` as the mutant that `patch` makes, or unchanged if it
    /// is `None`. Returns how the fork ended, with what it wrote unless `pace` is [`Pace::Free`];
    /// `None` if it did something that cannot be followed.
    pub(super) fn run_mutant(
        &mut self,
        stand: &mut Stand,
        patch: Option<&Patch>,
        pace: Pace,
    ) -> Result<Option<MutantEnd>, EngineError> {
        let is_stopped_often = matches!(patch, Some(Patch::Wide(_)));
        let longer = is_stopped_often.then(|| stand.limit().times(run::STOPS));
        self.in_new_fork(stand, |engine, child| {
            let _limit = longer.map(|it| child.limit(it));
            match patch {
                Some(Patch::Code(at, bytes)) => child.write(*at, bytes)?,
                Some(Patch::Exchange(at, _) | Patch::Add(at, ..) | Patch::Leave(at, _)) => {
                    child.set_breakpoint(*at)?;
                }
                Some(Patch::Addition(added)) => {
                    for at in added.stops() {
                        child.set_breakpoint(at)?;
                    }
                }
                Some(Patch::Wide(place)) => {
                    for at in place.places() {
                        child.set_breakpoint(at)?;
                    }
                }
                None => {}
            }
            if engine.damages_heap {
                child.watch_exit()?;
            }
            match engine.end_of_mutant(child, patch, pace) {
                // It was killed while it was stopped.
                Err(EngineError::System(_)) if engine.watchdog.has_fired() => {
                    engine.check_time()?;
                    Ok(Some(MutantEnd {
                        ended: Ended::Timeout,
                        output: Vec::new(),
                        is_heap_damaged: false,
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
        let (mut pending, mut kept) = (Vec::new(), Kept::default());
        let mut written = (pace != Pace::Free).then(BTreeMap::new);
        let mut is_heap_damaged = false;
        let ended = loop {
            match self.next_halt(child, pace, std::mem::take(&mut signal))? {
                Halt::Trap => match (child.at_breakpoint()?, patch) {
                    (Some(registers), Some(Patch::Wide(place))) => {
                        stops += 1;
                        place.step(child, &registers, &mut kept)?;
                        if stops >= wide::STOPS {
                            break Ended::Timeout;
                        }
                    }
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
                Halt::Exiting if self.damages_heap => {
                    let maps = Maps::of(child.pid);
                    let headers = heap_blocks(&maps, child).headers;
                    is_heap_damaged = headers.iter().any(|it| !it.is_intact);
                }
                Halt::Exiting => {}
                Halt::Ended(ended) => break ended,
            }
        };
        Ok(MutantEnd {
            ended,
            output: self.written(),
            is_heap_damaged,
            written,
        })
    }

    /// Finds mutants of the program that keep the failing run from failing (`averts` tells this
    /// from the end of a mutant's run), and compares them with the program in runs of the inputs
    /// `others`. `limit` is the time limit of a test. The search ends early when its time is over.
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
        let passing = others.all.first().map(|it| &*it.bytes);
        let passing = self.output_of(passing, first, limit)?;
        let mut stand = self.stand(Side::Failing, first, limit)?;
        let mut all = self.mutants(&mut stand, &failing.points)?;
        self.sort_mutants(&mut all, &spectrum);
        all.truncate(MUTANTS);
        let count = all.len();
        let failing_line = failing.points.last().and_then(|last| self.line(last.pc));
        let mut deciding = all.iter().filter(|it| it.kind.decides());
        let is_assertion = deciding.any(|it| self.line(it.pc) == failing_line);
        let (mut found, run) = self.averting(&mut stand, all, (&averts, &passing))?;
        self.narrow(&mut stand, &mut found, &averts)?;
        drop(stand);
        for it in &mut found {
            it.executed = self.executions(&it.mutant, &spectrum);
            it.is_main = self.function(it.mutant.pc) == Some(MAIN);
            it.fails = failing_line.is_some() && self.line(it.mutant.pc) == failing_line;
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
        // A mutant of the check of an index only leaves the check out. So does any mutant of an
        // assertion, whose statement decides and ends the program.
        let is_panic = self.is_of_rust() && failing.ending.ended == Ended::Exit(RUST_PANIC);
        let is_aborted = failing.ending.ended == Ended::Signal(libc::SIGABRT);
        let leaves_out = |it: &Averting| {
            let is_check = is_aborted && is_assertion || is_panic && it.mutant.kind.decides();
            it.fails && is_check || leaves_out_failure(&it.mutant, it.fails, &failing.ending)
        };
        let is_odd = |it: &Averting| leaves_out(it) || self.mixes_types(&it.mutant);
        found.retain(|it| it.is_telling() && !it.changes_much() && !is_odd(it));
        let found = self.ranked(found);
        let elsewhere = failing.points.iter().map(|it| it.pc);
        let elsewhere = elsewhere.filter(|pc| self.line(*pc) != failing_line);
        Ok(Mutated {
            found,
            left: (count - run, count),
            telling: spectrum.telling(elsewhere),
        })
    }

    /// Returns the mutants with the most evidence among `found`, best first, at most [`FOUND`], and
    /// only those that are changes of a source line: one for each source line or, for mutants that
    /// act only in calls from one place, one for each such place.
    fn ranked(&self, found: Vec<Averting>) -> Vec<Averting> {
        let unlike = unlike(&found).into_iter();
        let all = found.into_iter().zip(unlike);
        let mut all: Vec<(f64, Averting)> =
            all.map(|(it, less)| (it.weight() - less, it)).collect();
        let first = |one: &(f64, Averting), other: &(f64, Averting)| other.0.total_cmp(&one.0);
        all.sort_by(first);
        all.retain(|(_, it)| self.is_describable(&it.mutant));
        let mut lines = HashSet::new();
        let line = |pc| self.line(pc).map(|(file, line)| (file.to_owned(), line));
        all.retain(|(_, it)| {
            let calls = it.mutant.calls().into_iter();
            lines.insert(calls.map(line).collect::<Vec<_>>())
        });
        let function = |it: &Averting| self.function(it.mutant.pc);
        let weights = spread(all.iter().map(|(weight, it)| (*weight, function(it))));
        let mut all: Vec<_> = weights
            .into_iter()
            .zip(all.into_iter().map(|it| it.1))
            .collect();
        all.sort_by(first);
        all.into_iter().map(|it| it.1).take(FOUND).collect()
    }

    /// Returns which runs execute the statement that `mutant` changes or, if the mutant acts only
    /// in calls from one place, the calling statement. If `mutant` changes a function's beginning,
    /// which is no statement, the function's first executed statement counts. `None` where that is
    /// not known.
    fn executions(&self, mutant: &Mutant, spectrum: &Spectrum) -> Option<Executions> {
        let pc = *mutant.calls().last()?;
        let own = self.statement_at(pc).and_then(|it| spectrum.of(it));
        own.or_else(|| {
            let after = self.statements.partition_point(|it| *it < pc);
            let is_own = |at: &&u64| self.function(**at) == self.function(pc);
            let mut after = self.statements[after..].iter().take_while(is_own);
            after.find_map(|it| spectrum.of(*it))
        })
    }

    /// Compares the mutants `found` with the program in runs of the inputs `others`, stopped at the
    /// point `first`, each of which may take `limit`: all mutants on the inputs that `spectrum`
    /// chooses, the most telling mutants on all inputs. Removes mutants that change much. `averts`
    /// tells from the end of a run whether it did not fail.
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
        let (rest, more): (Vec<usize>, Vec<usize>) = rest.partition(|it| *it < others.first);
        let rounds = [
            (chosen, ENOUGH, COMPARED_CLOSELY),
            (rest, CLOSELY, LEADING),
            (more, MOST_CLOSELY, LEADING),
        ];
        for (inputs, enough, most) in rounds {
            for input in inputs {
                if self.facts_until.is_over() || found.is_empty() {
                    break;
                }
                let Some(mut stand) = self.stand_with(&others.all[input].bytes, first, limit)?
                else {
                    continue;
                };
                let fails = |end: &MutantEnd| others.fails(input, end, averts(end));
                let is_sure = input == 0 || others.wrong.is_none();
                let ways = (&averts, fails, is_sure);
                self.compare_mutants(&mut stand, found, ways, enough)?;
                // Others are not told any more.
                found.retain(|it| !it.changes_much());
            }
            found.sort_by(Averting::compare);
            found.truncate(most);
        }
        Ok(())
    }

    /// Returns what the program writes to stdout on another input; empty if it cannot be run.
    fn output_of(
        &mut self,
        input: Option<&[u8]>,
        first: Point,
        limit: TimeLimit,
    ) -> Result<Vec<u8>, EngineError> {
        let Some(mut stand) = (match input {
            Some(input) => self.stand_with(input, first, limit)?,
            None => None,
        }) else {
            return Ok(Vec::new());
        };
        let end = self.run_mutant(&mut stand, None, Pace::Free)?;
        Ok(end.map(|it| it.output).unwrap_or_default())
    }

    /// Runs the mutants `all` in forks of the failing run, stopped in `stand`. Returns the mutants
    /// that keep it from failing, and the number of mutants for which there was time. `passing` is
    /// what the passing run writes: lines that the failing run writes as well count as right.
    fn averting(
        &mut self,
        stand: &mut Stand,
        all: Vec<Mutant>,
        (averts, passing): (impl Fn(&MutantEnd) -> bool, &[u8]),
    ) -> Result<(Vec<Averting>, usize), EngineError> {
        let most = self.facts_until.but(4);
        let plain = self.run_mutant(stand, None, Pace::Free)?;
        let begins = plain.map(|it| it.output).unwrap_or_default();
        let right = common(&begins, passing);
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
            let Some(end) = self.run_mutant(stand, Some(&mutant.patch), Pace::Free)? else {
                continue;
            };
            if end.ended == Ended::Timeout {
                hanging.insert(place);
            } else if averts(&end) {
                found.push(Averting::new(mutant, &end, (&begins, &right)));
            }
        }
        Ok((found, run))
    }

    /// Sorts mutants, the most promising first: first kinds that few instructions have; then
    /// mutants of statements that mostly failing runs execute (`spectrum`); then those of rarely
    /// executed statements, and the first of each kind on a line; then small changes.
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

    /// Runs the mutants `found` on one other input, in forks of the run that is stopped in `stand`,
    /// and counts how they end. Runs a mutant only if the program executes its instruction on this
    /// input, and until it has more than `enough` runs of the same kind. If the unchanged program
    /// ends well, the mutant's `others` counts the run, and `alike` if the mutant ends like the
    /// program; if it fails (`fails` tells; if it returns `None`, no mutant is run), `failing`
    /// counts the run, and `mended` if the mutant does not fail (`averts`). Unless `is_sure`, a run
    /// that ends well may still be wrong: it then says nothing of mutants in statements that the
    /// passing input does not execute, since the fault may be in these.
    fn compare_mutants(
        &mut self,
        stand: &mut Stand,
        found: &mut [Averting],
        (averts, fails, is_sure): (
            impl Fn(&MutantEnd) -> bool,
            impl Fn(&MutantEnd) -> Option<bool>,
            bool,
        ),
        enough: usize,
    ) -> Result<(), EngineError> {
        let pace = self.stops_at_writes(stand)?;
        let Some(plain) = self.run_mutant(stand, None, pace)? else {
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
            let is_unknown = !fails && !is_sure && it.is_new();
            if known > enough || is_unknown || !executed.contains(&it.mutant.pc) {
                continue;
            }
            let Some(end) = self.run_mutant(stand, Some(&it.mutant.patch), pace)? else {
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

/// Returns true if `mutant` leaves out a write or a call of the statement at which the run with the
/// end `ending` fails (`fails`), or a call that has not returned when it fails: without it, what
/// fails is not executed.
fn leaves_out_failure(mutant: &Mutant, fails: bool, ending: &Ending) -> bool {
    let behind = mutant.pc + 1..mutant.pc + LONGEST;
    let is_open = ending.stack.iter().skip(1).any(|it| behind.contains(it));
    mutant.kind == MutantKind::LeftOut && (fails || is_open)
}

/// Changes `registers` as `patch` says, before the changed instruction is executed.
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
        Patch::Code(..) | Patch::Leave(..) | Patch::Addition(_) | Patch::Wide(_) => {}
    }
}

/// Makes the process leave its code for another address if `patch` ([`Patch::Leave`]) says so for
/// the instruction that it has just executed. If that was a call, it leaves after the call returns.
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
pub(super) fn dwarf_number(register: Register) -> u16 {
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
