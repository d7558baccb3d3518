//! How a worker stands, read off its state.

use libafl::corpus::Corpus;
use libafl::feedbacks::MapFeedbackMetadata;
use libafl::stages::calibrate::UnstableEntriesMetadata;
use libafl::state::HasCorpus;
use libafl::{HasMetadata, HasNamedMetadata};

use super::executor::{EDGES, TargetExecutor};
use super::parts::State;
use super::wire::Beat;

/// What the next beat tells.
pub(super) fn standing(state: &State, executor: &TargetExecutor) -> Beat {
    let history = state
        .named_metadata_map()
        .get::<MapFeedbackMetadata<u8>>(EDGES);
    let unstable = state.metadata_map().get::<UnstableEntriesMetadata>();
    Beat {
        corpus: state.corpus().count() as u64,
        edges: history.map_or(0, |history| history.num_covered_map_indexes as u64),
        edges_of: executor.executor.places().unwrap_or(0) as u64,
        unstable: unstable.map_or(0, |unstable| unstable.unstable_entries().len() as u64),
        ..executor.pulse.standing
    }
}
