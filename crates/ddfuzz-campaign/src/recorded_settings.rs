//! The settings that a campaign records when it begins ([`RecordedSettings`]), and that a resumed
//! call takes where the user does not give them again.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::campaign_state::Checkpoint;
use crate::{Generator, SeedError, Seeds, Settings, Source, Words};
use ddfuzz_exec::{Program, Target, bundled};
use ddfuzz_model::files::{Base64, OsText};
use ddfuzz_store::{Reader, StoreError};

/// Where the seeds of a campaign are read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeedSources {
    /// Absolute paths of the files and directories of seeds that the user has given (`--seeds`).
    pub paths: Vec<PathBuf>,
    /// Paths of seeds that the command adds to the user's in each call, such as the corpus of a
    /// cargo-fuzz project; they are not recorded.
    pub added: Vec<PathBuf>,
    /// Whether the seeds of the bundled target are used (`--bundled-seeds`).
    pub bundled: bool,
}

/// The settings of a campaign that its checkpoint records. They are saved before any seed is stored
/// or run, so that a call that was killed at any time can be resumed with its output directory
/// alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedSettings {
    /// Which generator makes the inputs of the campaign.
    pub generator: Generator,
    /// Name of the structure (a file format or language) that mutations of inputs follow; `None` if
    /// mutations use no structure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mutated_structure: Option<String>,
    /// Whether the user has set the time limit of a run, so that no limit is learned.
    #[serde(default)]
    pub has_time_limit: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    seeds: Vec<OsText>,
    #[serde(default)]
    bundled_seeds: bool,
    /// Words of the user's dictionaries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    dictionary: Vec<Base64>,
    /// Words that were taken from the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    program_words: Vec<Base64>,
}

impl RecordedSettings {
    /// Builds the record of the settings of a campaign that begins or is resumed.
    pub(crate) fn of(settings: &Settings) -> RecordedSettings {
        let words = |source| {
            let words = settings.words.of(source);
            words.map(|word| Base64(word.to_vec())).collect()
        };
        let sources = &settings.seed_sources;
        RecordedSettings {
            generator: settings.generator,
            mutated_structure: settings.mutated_structure.clone(),
            has_time_limit: !settings.minimizing.learn_limit,
            seeds: sources.paths.iter().map(OsText::from).collect(),
            bundled_seeds: sources.bundled,
            dictionary: words(Source::Dictionary),
            program_words: words(Source::Program),
        }
    }

    /// Reads the settings of the campaign in an output directory; `None` if none are recorded.
    ///
    /// # Errors
    /// When the checkpoint of the campaign cannot be read.
    pub fn read(reader: &Reader) -> Result<Option<RecordedSettings>, StoreError> {
        let checkpoint = reader.load_state::<Checkpoint>()?;
        Ok(checkpoint.and_then(|checkpoint| checkpoint.settings))
    }

    /// Returns where the seeds of the campaign were read from: the recorded paths, and whether
    /// seeds of the bundled target were used.
    pub fn seed_sources(&self) -> SeedSources {
        SeedSources {
            paths: self
                .seeds
                .iter()
                .map(|path| PathBuf::from(&path.0))
                .collect(),
            added: Vec::new(),
            bundled: self.bundled_seeds,
        }
    }

    /// Returns the words of the campaign: those of the user's dictionaries, and with `of_program`
    /// also those that were taken from the program.
    pub fn words(&self, of_program: bool) -> Words {
        let bytes = |words: &[Base64]| -> Vec<Vec<u8>> {
            words.iter().map(|word| word.0.clone()).collect()
        };
        let mut words = Words::default();
        words.add(Source::Dictionary, bytes(&self.dictionary));
        if of_program {
            words.add(Source::Program, bytes(&self.program_words));
        }
        words
    }

    /// Reads the seeds of the campaign on `target` again, of at most `max_len` bytes, from the
    /// places where they were read when the campaign began.
    ///
    /// # Errors
    /// When a path that the user has given can no longer be read.
    pub(crate) fn read_seeds(&self, target: &Target, max_len: u64) -> Result<Seeds, SeedError> {
        let sources = self.seed_sources();
        let (seeds, _) = Seeds::read(&sources.paths, max_len)?;
        Ok(match &target.program {
            Program::Bundled(name) if sources.bundled => seeds.with_bundled(name, max_len),
            _ => seeds,
        })
    }
}

impl Seeds {
    /// Returns these seeds and those of the bundled target `name` of at most `max_len` bytes.
    #[must_use]
    pub fn with_bundled(&self, name: &str, max_len: u64) -> Seeds {
        let bundled = bundled::seeds(name).iter().map(|seed| seed.to_vec());
        let own = self.all().iter().map(|seed| seed.bytes.clone());
        let fits = |seed: &Vec<u8>| seed.len() as u64 <= max_len;
        Seeds::of(own.chain(bundled.filter(fits)))
    }
}
