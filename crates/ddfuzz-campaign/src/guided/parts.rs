//! The types of LibAFL that a worker is put together from.

use libafl::corpus::InMemoryCorpus;
use libafl::events::LlmpEventManager;
use libafl::inputs::BytesInput;
use libafl::observers::{ExplicitTracking, HitcountsMapObserver, StdMapObserver};
use libafl::state::StdState;
use libafl_bolts::rands::StdRand;
use libafl_bolts::shmem::UnixShMem;

use super::observer::EndObserver;
use super::shmem::Vanishing;

/// The counters of the last run, by ranges of their values.
pub(super) type Map =
    ExplicitTracking<HitcountsMapObserver<StdMapObserver<'static, u8, false>>, true, false>;

/// What is observed of a run.
pub(super) type Observers = (Map, (EndObserver, ()));

/// A worker's state.
pub(super) type State =
    StdState<InMemoryCorpus<BytesInput>, BytesInput, StdRand, InMemoryCorpus<BytesInput>>;

/// A worker's link to the others.
pub(super) type Manager = LlmpEventManager<(), BytesInput, State, UnixShMem, Vanishing>;
