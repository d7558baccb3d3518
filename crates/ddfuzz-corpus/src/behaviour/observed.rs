//! From what single runs showed to a behaviour.

use super::record::{Aspect, Behaviour, Output};
use ddfuzz_exec::Ended;
use ddfuzz_minimize::log::ContentHash;

/// What one run showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) ended: Ended,
    pub(super) stdout: Option<Output>,
    pub(super) stderr: Option<Output>,
    pub(super) read: Option<u64>,
    pub(super) stacks: Stacks,
}

/// The stacks of a run's reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stacks {
    /// They were not asked for.
    NotAsked,
    /// Their hash; `None` where they cannot be had.
    Asked(Option<ContentHash>),
}

/// How bad an ending is.
fn badness(ended: Ended) -> (u8, i32) {
    match ended {
        Ended::Exit(status) => (0, status),
        Ended::Timeout => (1, 0),
        Ended::OutOfMemory => (2, 0),
        Ended::Signal(signal) => (3, signal),
    }
}

/// What is the same in all runs; else the aspect is noted as one that varies, or that cannot be
/// had.
fn agreed<T: Copy + PartialEq>(
    values: impl Iterator<Item = Option<T>> + Clone,
    aspect: Aspect,
    into: &mut Behaviour,
) -> Option<T> {
    let first = values.clone().next().flatten();
    if values.clone().any(|value| value != first) {
        into.varies.push(aspect);
        return None;
    }
    if first.is_none() {
        into.lacks.push(aspect);
    }
    first
}

/// The behaviour that these runs of one input, one at least, have shown.
pub(super) fn behaviour(runs: &[Observed]) -> Behaviour {
    let worst = runs
        .iter()
        .map(|run| run.ended)
        .max_by_key(|it| badness(*it));
    let mut of = Behaviour {
        ended: worst.unwrap_or(Ended::Exit(0)),
        stdout: None,
        stderr: None,
        read: None,
        stacks: None,
        varies: Vec::new(),
        lacks: Vec::new(),
    };
    if runs.iter().any(|run| run.ended != of.ended) {
        of.varies.push(Aspect::Ended);
    }
    of.stdout = agreed(runs.iter().map(|run| run.stdout), Aspect::Stdout, &mut of);
    of.stderr = agreed(runs.iter().map(|run| run.stderr), Aspect::Stderr, &mut of);
    of.read = agreed(runs.iter().map(|run| run.read), Aspect::Read, &mut of);
    let stacks = runs.iter().filter_map(|run| match run.stacks {
        Stacks::Asked(stacks) => Some(stacks),
        Stacks::NotAsked => None,
    });
    of.stacks = agreed(stacks, Aspect::Stacks, &mut of);
    of
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observed() -> Observed {
        Observed {
            ended: Ended::Exit(0),
            stdout: None,
            stderr: None,
            read: Some(4),
            stacks: Stacks::Asked(Some(ContentHash::of(b"stack"))),
        }
    }

    #[test]
    fn what_varies_is_left_out_and_named() {
        let other = Observed {
            ended: Ended::Signal(13),
            stacks: Stacks::Asked(None),
            ..observed()
        };
        let of = behaviour(&[observed(), other, observed()]);
        assert_eq!(of.ended, Ended::Signal(13));
        assert_eq!(of.varies, [Aspect::Ended, Aspect::Stacks]);
        assert_eq!(of.lacks, [Aspect::Stdout, Aspect::Stderr]);
        assert_eq!((of.read, of.stacks), (Some(4), None));
    }

    #[test]
    fn what_is_always_the_same_is_kept() {
        let unasked = Observed {
            stacks: Stacks::NotAsked,
            ..observed()
        };
        let of = behaviour(&[observed(), observed(), unasked]);
        assert_eq!(of.ended, Ended::Exit(0));
        assert!(of.varies.is_empty());
        assert_eq!(of.stacks, Some(ContentHash::of(b"stack")));
    }
}
