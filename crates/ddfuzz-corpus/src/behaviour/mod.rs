//! Behaviour classes, for targets that report no coverage.
//!
//! Two inputs are in the same class if the target ends in the same way, writes the same standard
//! output and standard error, and reads equally many bytes of its input from the same call stacks
//! in the same order. A cleanup keeps one input per class.
//!
//! Each input is run three times, the first time with randomized addresses. An aspect that varies
//! between the runs of an input (because of a process id, the time or an address) does not count
//! for that input; an aspect that cannot be observed counts for no input. A [`Behaviour`] lists
//! both. If the reads cannot be observed at all, because an entry function gets the input in
//! memory, each input is a class by itself: most programs end and write alike on many inputs.

mod measure;

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use ddfuzz_exec::Ended;
use ddfuzz_minimize::log::ContentHash;

pub use measure::{BehaviourJournal, BehaviourSettings, CorpusInput, Measured, measure};

/// An aspect of a target's observable behaviour, by which inputs are divided into classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// How the run ended: exit status, signal or exceeded limit.
    Ended,
    /// What the target wrote to its standard output.
    Stdout,
    /// What the target wrote to its standard error.
    Stderr,
    /// Number of bytes of the input that the target read.
    Read,
    /// The call stacks from which the target read its input, in order.
    Stacks,
}

impl Aspect {
    /// All five aspects of a target's behaviour: how the run ended, stdout, stderr, number of bytes
    /// read, and call stacks of the reads.
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

/// Length and hash of what a run wrote to stdout or to stderr.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Output {
    /// Number of bytes that the run wrote to the stream (stdout or stderr).
    pub bytes: u64,
    /// Hash of the bytes that the run wrote to the stream (stdout or stderr).
    pub hash: ContentHash,
}

/// How a target behaves on one input, observed over several runs. A field is null if it
/// [varies](Behaviour::varies) between the runs, or cannot be observed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Behaviour {
    /// How the runs on the input ended. If they differ, the most severe ending: signals are the
    /// most severe, then the memory limit, the time limit, and exits.
    pub ended: Ended,
    /// Length and hash of what the target wrote to its standard output in each run; `None` if that
    /// varies between the runs or cannot be observed.
    pub stdout: Option<Output>,
    /// Length and hash of what the target wrote to its standard error in each run; `None` if that
    /// varies between the runs or cannot be observed.
    pub stderr: Option<Output>,
    /// Number of bytes of the input that the target read in each run; `None` if that varies between
    /// the runs or cannot be observed.
    pub read: Option<u64>,
    /// Hash of the call stacks from which the target read its input in each traced run; `None` if
    /// they vary between the runs or cannot be observed.
    pub stacks: Option<ContentHash>,
    /// Aspects of behaviour that differ between the runs of the input.
    pub varies: Vec<Aspect>,
    /// Aspects of behaviour that cannot be observed with this target.
    pub lacks: Vec<Aspect>,
}

/// Id of a class of inputs on which a target behaves equally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClassId(pub ContentHash);

impl std::fmt::Display for ClassId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.short().fmt(f)
    }
}

impl Behaviour {
    /// Returns true if nothing could be observed of how the target reads the input: neither how
    /// many bytes nor from which call stacks. Inputs with equal behaviour may then still be read in
    /// different ways, so they are not put into one class. Else returns false.
    pub fn hides_reads(&self) -> bool {
        [Aspect::Read, Aspect::Stacks]
            .iter()
            .all(|aspect| self.lacks.contains(aspect))
    }

    /// Returns the id of the behaviour class to which the input `content` belongs. Usually that is
    /// the class of this behaviour ([`Behaviour::class`]). If nothing could be observed of how the
    /// target reads the input ([`Behaviour::hides_reads`]), it is a class of this input alone.
    pub fn class_of(&self, content: ContentHash) -> ClassId {
        match self.hides_reads() {
            true => ClassId(content),
            false => self.class(),
        }
    }

    /// Returns the id of the class that the behaviour belongs to: a hash of all aspects that do not
    /// vary between runs, and of the names of the varying aspects.
    pub fn class(&self) -> ClassId {
        let ended = (!self.varies.contains(&Aspect::Ended)).then_some(self.ended);
        let of_output = |output: Option<Output>| match output {
            Some(output) => format!("{} {}", output.bytes, output.hash),
            None => "-".to_owned(),
        };
        // No field contains a line feed.
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

/// What one run of the target on an input showed: its ending, its output, and how it read the
/// input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Observed {
    pub(super) ended: Ended,
    pub(super) stdout: Option<Output>,
    pub(super) stderr: Option<Output>,
    pub(super) read: Option<u64>,
    pub(super) stacks: Stacks,
}

/// The call stacks from which a run read its input, if they were recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stacks {
    /// The run was not traced, so that the call stacks of its reads are unknown.
    NotAsked,
    /// The run was traced: hash of the call stacks of its reads, or `None` if they cannot be
    /// observed.
    Asked(Option<ContentHash>),
}

/// Returns a pair that orders endings by severity, the least severe first: exit (by status),
/// timeout, out of memory, signal (by number).
fn severity(ended: Ended) -> (u8, i32) {
    match ended {
        Ended::Exit(status) => (0, status),
        Ended::Timeout => (1, 0),
        Ended::OutOfMemory => (2, 0),
        Ended::Signal(signal) => (3, signal),
    }
}

/// Compares the values of one `aspect` of behaviour (such as the output) over all runs of an input,
/// and returns the common value. If the values differ, returns `None` and lists the aspect as
/// varying in `into`. If no run has a value, returns `None` and lists the aspect as one that cannot
/// be observed.
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

/// Returns the target's behaviour on an input, combined from what its `runs` (at least one) showed:
/// the most severe ending, and the output, the number of bytes read and the call stacks. An aspect
/// other than the ending that differs between the runs is listed as varying.
pub(super) fn behaviour(runs: &[Observed]) -> Behaviour {
    let worst = runs
        .iter()
        .map(|run| run.ended)
        .max_by_key(|it| severity(*it));
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

/// The smallest input of one behaviour class, and the number of the class's inputs.
struct SmallestInput {
    content: ContentHash,
    size: u64,
    files: u64,
}

/// The behaviour classes of a corpus, each with its smallest input; of several inputs of the least
/// size, the one with the least hash. Memory grows with the number of classes, not of inputs.
#[derive(Default)]
pub struct Classes {
    classes: HashMap<ClassId, SmallestInput>,
    varies: BTreeSet<Aspect>,
    lacks: BTreeSet<Aspect>,
}

impl Classes {
    /// Adds a content of `size` bytes to its behaviour class, the class of `behaviour` (how the
    /// target behaves on it), and returns that class. The order in which contents are added does
    /// not matter.
    pub fn take(&mut self, content: ContentHash, size: u64, behaviour: &Behaviour) -> ClassId {
        let class = behaviour.class_of(content);
        self.varies.extend(&behaviour.varies);
        self.lacks.extend(&behaviour.lacks);
        let least = self.classes.entry(class).or_insert(SmallestInput {
            content,
            size,
            files: 0,
        });
        least.files += 1;
        let rank = |content: ContentHash, size: u64| (size, content.to_string());
        if rank(content, size) < rank(least.content, least.size) {
            (least.content, least.size) = (content, size);
        }
        class
    }

    /// Returns the hash of the smallest input of the behaviour class `class`, and how many inputs
    /// the class has; `None` if no input of this class was added.
    pub fn of(&self, class: ClassId) -> Option<(ContentHash, u64)> {
        let least = self.classes.get(&class)?;
        Some((least.content, least.files))
    }

    /// Returns the number of behaviour classes.
    pub fn len(&self) -> usize {
        self.classes.len()
    }

    /// Returns true if no behaviour class is known, because no content was added yet.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Returns the hashes of the contents to keep: the smallest input of each behaviour class,
    /// shortest first.
    pub fn kept(&self) -> Vec<ContentHash> {
        let mut kept: Vec<&SmallestInput> = self.classes.values().collect();
        kept.sort_by_cached_key(|least| (least.size, least.content.to_string()));
        kept.into_iter().map(|least| least.content).collect()
    }

    /// Returns the aspects of behaviour that vary between runs for at least one input.
    pub fn varies(&self) -> &BTreeSet<Aspect> {
        &self.varies
    }

    /// Returns the aspects of behaviour that cannot be observed with this target.
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
        let changes: [fn(&mut Behaviour); 6] = [
            |other| other.ended = Ended::Exit(1),
            |other| other.stdout = None,
            |other| std::mem::swap(&mut other.stdout, &mut other.stderr),
            |other| other.read = Some(5),
            |other| other.stacks = Some(ContentHash::of(b"")),
            |other| other.varies.push(Aspect::Read),
        ];
        for change in changes {
            let mut other = one.clone();
            change(&mut other);
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
