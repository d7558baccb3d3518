//! The behaviour of a target on one input, derived from several runs, and the classes of equal
//! behaviour in a corpus.

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use ddfuzz_exec::Ended;
use ddfuzz_minimize::log::ContentHash;

/// One of the things that make up a behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// How the run ended.
    Ended,
    /// What it wrote to its standard output.
    Stdout,
    /// What it wrote to its standard error.
    Stderr,
    /// How many bytes of the input it read.
    Read,
    /// The stacks of calls from which it read them.
    Stacks,
}

impl Aspect {
    /// All of them.
    pub const ALL: [Aspect; 5] = [
        Aspect::Ended,
        Aspect::Stdout,
        Aspect::Stderr,
        Aspect::Read,
        Aspect::Stacks,
    ];
}

impl std::fmt::Display for Aspect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Aspect::Ended => "how it ends",
            Aspect::Stdout => "its standard output",
            Aspect::Stderr => "its standard error",
            Aspect::Read => "how much it reads",
            Aspect::Stacks => "where it reads",
        })
    }
}

/// All output of a run to one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Output {
    /// How much, in bytes.
    pub bytes: u64,
    /// Its hash.
    pub hash: ContentHash,
}

/// How a target behaves on one input. An aspect is null where it [varies](Behaviour::varies), and
/// where this target does not show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Behaviour {
    /// How its runs ended; of several ways the worst.
    pub ended: Ended,
    /// What it wrote to its standard output.
    pub stdout: Option<Output>,
    /// What it wrote to its standard error.
    pub stderr: Option<Output>,
    /// Bytes of the input that were read.
    pub read: Option<u64>,
    /// The hash of the stacks from which they were.
    pub stacks: Option<ContentHash>,
    /// What was not the same in each run.
    pub varies: Vec<Aspect>,
    /// Aspects that this target does not show.
    pub lacks: Vec<Aspect>,
}

/// A class of inputs on which a target behaves equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClassId(pub ContentHash);

impl std::fmt::Display for ClassId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.short().fmt(f)
    }
}

impl Behaviour {
    /// Its class: a function of all that does not vary, and of what does.
    pub fn class(&self) -> ClassId {
        let ended = (!self.varies.contains(&Aspect::Ended)).then_some(self.ended);
        let of_output = |output: Option<Output>| match output {
            Some(output) => format!("{} {}", output.bytes, output.hash),
            None => "-".to_owned(),
        };
        // None of the fields holds a line feed.
        let text = format!(
            "ddfuzz-behaviour-1\n{ended:?}\n{}\n{}\n{:?}\n{}\n{:?}",
            of_output(self.stdout),
            of_output(self.stderr),
            self.read,
            self.stacks.map_or("-".to_owned(), |hash| hash.to_string()),
            self.varies,
        );
        ClassId(ContentHash::of(text.as_bytes()))
    }
}

/// The observation of one run.
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
    /// They were not recorded.
    NotAsked,
    /// Their hash; `None` where the target does not show them.
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

/// The value that all runs have in common; else the aspect is recorded as one that varies, or that
/// the target does not show.
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

/// The behaviour that at least one run of an input showed.
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

/// The smallest input of one class, and the number of its inputs.
struct SmallestInput {
    content: ContentHash,
    size: u64,
    files: u64,
}

/// The classes of a corpus, and the least input of each: the shortest, and of several of one
/// length the one of the least hash. Memory grows with classes, not with inputs.
#[derive(Default)]
pub struct Classes {
    classes: HashMap<ClassId, SmallestInput>,
    varies: BTreeSet<Aspect>,
    lacks: BTreeSet<Aspect>,
}

impl Classes {
    /// Takes one content, of so many bytes, and how the target behaves on it. Contents may come in
    /// any order, each once.
    pub fn take(&mut self, content: ContentHash, size: u64, behaviour: &Behaviour) {
        self.varies.extend(&behaviour.varies);
        self.lacks.extend(&behaviour.lacks);
        let least = self
            .classes
            .entry(behaviour.class())
            .or_insert(SmallestInput {
                content,
                size,
                files: 0,
            });
        least.files += 1;
        let rank = |content: ContentHash, size: u64| (size, content.to_string());
        if rank(content, size) < rank(least.content, least.size) {
            (least.content, least.size) = (content, size);
        }
    }

    /// The input that stands for a class, and how many inputs are in it.
    pub fn of(&self, class: ClassId) -> Option<(ContentHash, u64)> {
        let least = self.classes.get(&class)?;
        Some((least.content, least.files))
    }

    /// How many classes there are.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// The inputs that stand for the classes, the shortest first.
    pub fn kept(&self) -> Vec<ContentHash> {
        let mut kept: Vec<&SmallestInput> = self.classes.values().collect();
        kept.sort_by_cached_key(|least| (least.size, least.content.to_string()));
        kept.into_iter().map(|least| least.content).collect()
    }

    /// Aspects that varied for at least one input, and did not count for it.
    pub fn varies(&self) -> &BTreeSet<Aspect> {
        &self.varies
    }

    /// Aspects that the target does not show, and which counted for no input.
    pub fn lacks(&self) -> &BTreeSet<Aspect> {
        &self.lacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit_three() -> Behaviour {
        Behaviour {
            ended: Ended::Exit(0),
            stdout: Some(Output {
                bytes: 3,
                hash: ContentHash::of(b"out"),
            }),
            stderr: None,
            read: Some(4),
            stacks: None,
            varies: Vec::new(),
            lacks: vec![Aspect::Stacks],
        }
    }

    #[test]
    fn each_aspect_tells_classes_apart() {
        let one = exit_three();
        let other_output = Some(Output {
            bytes: 3,
            hash: ContentHash::of(b"in!"),
        });
        let others = [
            Behaviour {
                ended: Ended::Exit(1),
                ..one.clone()
            },
            Behaviour {
                stdout: other_output,
                ..one.clone()
            },
            Behaviour {
                stdout: None,
                stderr: one.stdout,
                ..one.clone()
            },
            Behaviour {
                read: Some(5),
                ..one.clone()
            },
            Behaviour {
                stacks: Some(ContentHash::of(b"")),
                ..one.clone()
            },
            Behaviour {
                varies: vec![Aspect::Read],
                ..one.clone()
            },
        ];
        for other in &others {
            assert_ne!(one.class(), other.class(), "{other:?}");
        }
        assert_eq!(one.class(), exit_three().class());
    }

    #[test]
    fn an_ending_that_varies_does_not_count() {
        let varies = vec![Aspect::Ended];
        let one = Behaviour {
            varies,
            ..exit_three()
        };
        let ended = Ended::Exit(7);
        let other = Behaviour {
            ended,
            ..one.clone()
        };
        assert_eq!(one.class(), other.class());
    }

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
