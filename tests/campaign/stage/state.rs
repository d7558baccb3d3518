//! The state of a fuzzer without a fuzzer: what it has found is put there by the tests.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use ddfuzz::campaign::{CrashSink, DdminStage, StageSettings};
use ddfuzz::exec::{Program, Target};
use ddfuzz::store::{Entry, Kind, Reader};
use libafl::corpus::{Corpus, CorpusId, InMemoryCorpus, Testcase};
use libafl::events::NopEventManager;
use libafl::inputs::BytesInput;
use libafl::stages::Stage;
use libafl::state::{HasSolutions, StdState};
use libafl_bolts::rands::StdRand;

use crate::ddfuzz::Desk;

/// The state of a fuzzer whose solutions are in a corpus of type `C`.
pub type State<C = InMemoryCorpus<BytesInput>> =
    StdState<InMemoryCorpus<BytesInput>, BytesInput, StdRand, C>;

/// A state that has found nothing yet.
pub fn state() -> State {
    let corpus = InMemoryCorpus::new;
    StdState::new(StdRand::with_seed(1), corpus(), corpus(), &mut (), &mut ()).unwrap()
}

/// Lets the fuzzer find a crash.
pub fn find<C: Corpus<BytesInput>>(state: &mut State<C>, input: &[u8]) -> CorpusId {
    let testcase = Testcase::new(BytesInput::new(input.to_vec()));
    state.solutions_mut().add(testcase).unwrap()
}

/// The three bugs, compiled.
pub fn three_bugs(desk: &Desk) -> Target {
    let program = desk.compile("tests/campaign/programs/three_bugs.c", "three_bugs");
    let mut target = Target::new(Program::Path(program));
    target.env = vec![("DESK".into(), desk.path().into())];
    target
}

/// An input of this length with `bug` in its midst.
pub fn with_bug(length: usize, bug: &str) -> Vec<u8> {
    let mut input: Vec<u8> = (0..length).map(|at| b'a' + (at * 7 % 26) as u8).collect();
    let middle = length / 2;
    input[middle..middle + bug.len()].copy_from_slice(bug.as_bytes());
    input
}

/// A stage on that directory.
pub fn open(out: &Path, target: &Target, settings: StageSettings) -> DdminStage {
    DdminStage::open_with(out, target.clone(), settings).unwrap()
}

/// Performs the stage once, as a fuzzer does in each round.
pub fn perform<D: CrashSink>(stage: &mut DdminStage<D>, state: &mut State) {
    let mut manager = NopEventManager::new();
    stage
        .perform(&mut (), &mut (), state, &mut manager)
        .unwrap();
}

/// Lets the stage come to its end.
pub fn finish<D, C>(stage: &mut DdminStage<D>, state: &mut State<C>)
where
    D: CrashSink,
    C: Corpus<BytesInput>,
{
    let stop = AtomicBool::new(false);
    stage
        .finish(state, &mut NopEventManager::new(), &stop)
        .unwrap();
}

/// All entries of crashes.
pub fn crashes(out: &Path) -> Vec<Entry> {
    let reader = Reader::open(out).unwrap();
    let groups = reader.groups(Kind::Crash).unwrap();
    let entries = groups
        .iter()
        .flat_map(|group| (reader.entries(Kind::Crash, &group.record.major.short())).unwrap());
    entries.collect()
}

/// The reproducers of those that were minimized to the end, as text.
pub fn reproducers(out: &Path) -> Vec<String> {
    let entries = crashes(out);
    let ended = entries.iter().filter(|entry| entry.minimized.is_some());
    let mut texts: Vec<String> = ended
        .map(|entry| String::from_utf8_lossy(&entry.reproducer_bytes().unwrap()).into_owned())
        .collect();
    texts.sort();
    texts
}
