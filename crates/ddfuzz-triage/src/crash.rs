//! The record of one crash (`crash.json`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Details, Frame, Key};
use ddfuzz_exec::{Ended, Limits, Sanitizer, TargetRecord, Way};
use ddfuzz_model::files::Base64;

/// What kind of death (crash-keys.md, "Class").
#[derive(
    Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Class(pub String);

impl Class {
    /// The sanitizer whose reports make this class.
    pub fn sanitizer(&self) -> Option<Sanitizer> {
        Sanitizer::of_class(&self.0)
    }
}

impl std::fmt::Display for Class {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The keys of one crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// Which bug: groups are counted by it, the minimizer holds it equal.
    pub major: Key,
    /// Which way into it: one reproducer is kept per minor key.
    pub minor: Key,
    /// For matching across rebuilds; only where symbols exist.
    pub stable: Option<Key>,
    /// Version of the keys' definition.
    pub version: u32,
}

/// How far the keys can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// The stack was read, or the program said where it dies.
    High,
    /// Only the signal or the exit status is known, or the runtime cannot be told from the program.
    Low,
}

/// An estimate of how bad a crash is (crash-keys.md, "Record").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Null dereference, assert, fpe, stack overflow, panic, hang, oom.
    Low,
    /// Wild read, heap abort.
    Medium,
    /// Wild call, smash, write to a wild address.
    High,
}

/// Where a crash came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum Found {
    /// Run number `run` of campaign `campaign`; `input` rebuilds it (`KIND:SEED:LENGTH`),
    /// with the seeds and words of the campaign where it is a mutated seed (`seed+HASH:SEED`).
    Run {
        /// The campaign's id.
        campaign: String,
        /// Index of the run, from 0.
        run: u64,
        /// The generator's name of the input.
        input: String,
    },
    /// A test of the minimization of the input whose hash is `of` slipped into it.
    Slip {
        /// The 16 hex digits of the minimized input's hash.
        of: String,
        /// Index of the test in the log; null for a check, and for a test that was run ahead in
        /// vain, which has no line.
        test: Option<u64>,
    },
    /// A file that the user gave.
    File {
        /// Its path.
        path: std::path::PathBuf,
    },
}

/// The program that crashed, in a study of many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// What the study calls it.
    pub utility: String,
    /// How it was run, limits aside.
    pub target: TargetRecord,
}

/// Everything known of one crash. The input itself is stored beside it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Crash {
    /// Version of this record's schema.
    pub v: u32,
    /// Its keys.
    pub keys: Keys,
    /// What kind of death.
    pub class: Class,
    /// How the run ended.
    pub ended: Ended,
    /// How far the keys can be trusted.
    pub confidence: Confidence,
    /// An estimate.
    pub severity: Severity,
    /// Why that estimate.
    pub severity_reason: String,
    /// The way of execution in which it was captured.
    pub way: Way,
    /// How it was captured: `ptrace`; where tracing is refused, `copy`; `report` where the frames
    /// are those of a sanitizer's report; `text` where only what it said names it; `status` where
    /// nothing does.
    pub capture: String,
    /// Tries that crashed so.
    pub hits: u32,
    /// Tries made.
    pub tries: u32,
    /// All frames, innermost first.
    pub frames: Vec<Frame>,
    /// Limits in force.
    pub limits: Limits,
    /// Where it came from; `None` until the store files it.
    pub found: Option<Found>,
    /// Of a crash that did not come again in a process of its own: the inputs that the process
    /// had run before, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preceding: Vec<Base64>,
    /// What was run, where the output directory is one of many programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Box<Subject>>,
    /// What else was read off the dying process.
    #[serde(flatten)]
    pub details: Details,
}

impl Crash {
    /// The GNU build id of the main program, where the stack tells it.
    pub fn build(&self) -> Option<&str> {
        let main = self.frames.iter().find(|frame| frame.module == "exe");
        main.and_then(|frame| frame.build_id.as_deref())
    }

    /// The frame to show: the innermost one of the user's own code.
    pub fn innermost_own(&self) -> Option<&Frame> {
        self.frames.iter().find(|frame| frame.own)
    }
}
