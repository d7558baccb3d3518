//! How a target behaves on one input.

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

/// All that a run wrote to one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Output {
    /// How much, in bytes.
    pub bytes: u64,
    /// Its hash.
    pub hash: ContentHash,
}

/// How a target behaves on one input. An aspect is null where it [varies](Behaviour::varies), and
/// where it cannot be had.
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
    /// What cannot be had of this target.
    pub lacks: Vec<Aspect>,
}

/// What inputs have in common on which a target behaves equally.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn behaviour() -> Behaviour {
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
        let one = behaviour();
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
        assert_eq!(one.class(), behaviour().class());
    }

    #[test]
    fn an_ending_that_varies_does_not_count() {
        let varies = vec![Aspect::Ended];
        let one = Behaviour {
            varies,
            ..behaviour()
        };
        let ended = Ended::Exit(7);
        let other = Behaviour {
            ended,
            ..one.clone()
        };
        assert_eq!(one.class(), other.class());
    }
}
