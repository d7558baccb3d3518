//! Which input each run of a classic campaign gets: a function of the campaign's seed, the number
//! of the run, and the user's seeds and dictionaries. A campaign can be resumed only with the same
//! seeds and dictionaries.

use std::fmt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::generator::{Draw, InputName, Kind};
use crate::{
    CampaignError, DEFAULT_MAX_LEN, MutatedName, Mutation, RecordedSettings, Seeds, Settings,
    Source, Words, campaign_state::Checkpoint, lock,
};
use ddfuzz_exec::Target;
use ddfuzz_model::files::{Base64, FileError};
use ddfuzz_store::{Store, StoreError};

/// Everything that determines the inputs of a classic campaign: the plan (seed of random numbers
/// and greatest length), the inputs to mutate, and the words for mutations.
#[derive(Clone)]
pub(super) struct Inputs {
    pub(super) plan: Plan,
    pub(super) seeds: Seeds,
    words: Words,
}

impl Inputs {
    /// Returns the greatest length, the seeds and the words from which the inputs of the campaign
    /// are made. A new campaign takes them from the settings, and records them in the checkpoint
    /// (seeds and dictionaries as a hash). A resumed campaign must have the same ones; if the user
    /// gives no seeds again, reads them from the output directory, or from the paths where they
    /// were first read.
    pub(super) fn settle(
        store: &Mutex<Store>,
        checkpoint: &mut Checkpoint,
        settings: &Settings,
    ) -> Result<Inputs, CampaignError> {
        let begins = checkpoint.max_len.is_none() && checkpoint.next == 0;
        let max_len = max_len(settings.max_len, checkpoint.max_len)?;
        checkpoint.max_len = Some(max_len);
        let mut inputs = Inputs {
            plan: Plan {
                seed: settings.seed,
                max_len,
            },
            seeds: settings.seeds.clone(),
            words: settings.words.clone(),
        };
        match begins {
            true => inputs.begin(checkpoint),
            false => inputs.resume(store, checkpoint, settings)?,
        }
        checkpoint.settings = Some(RecordedSettings::of(settings));
        Ok(inputs)
    }

    /// Stores the seeds in the corpus of the output directory. Ends early if `stop` turns true; the
    /// next call of ddfuzz that resumes the campaign stores the remaining ones.
    pub(super) fn store_seeds(
        &self,
        store: &Mutex<Store>,
        stop: &AtomicBool,
    ) -> Result<(), StoreError> {
        for seed in self.seeds.all() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            lock(store).add_to_corpus_unsynced(&seed.bytes)?;
        }
        Ok(())
    }

    fn begin(&mut self, checkpoint: &mut Checkpoint) {
        checkpoint.dictionary = self.dictionary();
        if self.seeds.is_empty() {
            self.seeds = self.words_as_seeds();
        }
        if self.seeds.is_empty() {
            return; // words are used by mutations only
        }
        checkpoint.seeds = Some(self.seeds.digest());
        let words = self.words.of(Source::Program);
        checkpoint.words = words.map(|word| Base64(word.to_vec())).collect();
    }

    /// Returns the words of the user's dictionaries, which serve as seeds if the user gives no
    /// others.
    fn words_as_seeds(&self) -> Seeds {
        let words = self.words.of(Source::Dictionary);
        Seeds::of(words.filter(|word| word.len() as u64 <= self.plan.max_len))
    }

    fn resume(
        &mut self,
        store: &Mutex<Store>,
        checkpoint: &Checkpoint,
        settings: &Settings,
    ) -> Result<(), CampaignError> {
        if self.dictionary() != checkpoint.dictionary {
            return Err(CampaignError::OtherDictionary);
        }
        if self.seeds.is_empty()
            && let Some(digest) = &checkpoint.seeds
        {
            let target = &settings.minimizing.target;
            self.seeds = self.find_seeds(store, checkpoint, target, digest)?;
        } else if let Some(digest) = &checkpoint.seeds
            && self.seeds.digest() != *digest
        {
            let added = &settings.seed_sources.added;
            let whole = self.with_added(store, added, digest)?;
            self.seeds = whole.unwrap_or_else(|| self.seeds.clone());
        }
        let seeds = (!self.seeds.is_empty()).then(|| self.seeds.digest());
        if seeds != checkpoint.seeds {
            return Err(CampaignError::OtherSeeds);
        }
        // A rebuilt program may have other words than those recorded.
        let mut words = Words::default();
        words.add(Source::Dictionary, self.words.of(Source::Dictionary));
        let program = checkpoint.words.iter().map(|word| &word.0[..]);
        words.add(Source::Program, program);
        self.words = words;
        Ok(())
    }

    /// Finds the seeds that the campaign began with, recognized by their hash `digest`. Looks in
    /// the output directory, among the words of the dictionaries, and at the paths from which the
    /// seeds were first read: an earlier call may have been killed before it had copied all of
    /// them.
    fn find_seeds(
        &self,
        store: &Mutex<Store>,
        checkpoint: &Checkpoint,
        target: &Target,
        digest: &str,
    ) -> Result<Seeds, CampaignError> {
        let is_it = |seeds: &Seeds| seeds.digest() == digest;
        let stored = stored_seeds(store)?;
        if is_it(&stored) {
            return Ok(stored);
        }
        let recorded = checkpoint.settings.as_ref();
        let read = recorded.and_then(|it| it.read_seeds(target, self.plan.max_len).ok());
        let mut others = [Some(self.words_as_seeds()), read].into_iter().flatten();
        others.find(is_it).ok_or_else(|| {
            let sources = recorded.map(RecordedSettings::seed_sources);
            CampaignError::MissingSeeds {
                paths: sources.unwrap_or_default().paths,
            }
        })
    }

    /// Returns the seeds of a resumed campaign, whose common hash is `digest`: the seeds given to
    /// this call, and those at the paths `added`, which the command itself adds in each call. Reads
    /// the seeds in the output directory if they match `digest`, because new files may have come to
    /// `added`. `None` if no seeds match `digest`, or `added` is empty.
    fn with_added(
        &self,
        store: &Mutex<Store>,
        added: &[PathBuf],
        digest: &str,
    ) -> Result<Option<Seeds>, CampaignError> {
        if added.is_empty() {
            return Ok(None);
        }
        let given = self.seeds.all();
        let stored = stored_seeds(store)?;
        let has_given = given
            .iter()
            .all(|seed| stored.place_of(&seed.hash).is_some());
        if has_given && stored.digest() == digest {
            return Ok(Some(stored));
        }
        let Ok((added, _)) = Seeds::read(added, self.plan.max_len) else {
            return Ok(None);
        };
        let all = given.iter().chain(added.all());
        let all = Seeds::of(all.map(|seed| seed.bytes.clone()));
        Ok((all.digest() == digest).then_some(all))
    }

    /// Returns the hash of all words of the user's dictionaries; `None` if there are no such words.
    fn dictionary(&self) -> Option<String> {
        let some = self.words.of(Source::Dictionary).next().is_some();
        some.then(|| self.words.digest(Source::Dictionary))
    }

    /// Creates the mutator of seeds for one worker; `None` if the campaign has no seeds.
    pub(super) fn mutation(&self) -> Option<Mutation> {
        let some = !self.seeds.is_empty();
        some.then(|| Mutation::new(&self.seeds, &self.words, self.plan.max_len))
    }
}

/// Reads the seeds that an earlier call of ddfuzz has stored: all files of the corpus of the output
/// directory.
fn stored_seeds(store: &Mutex<Store>) -> Result<Seeds, CampaignError> {
    let files = lock(store).reader().corpus()?;
    let read = files.iter().map(|path| {
        std::fs::read(path).map_err(|error| StoreError::from(FileError::at("read", path)(error)))
    });
    Ok(Seeds::of(read.collect::<Result<Vec<_>, _>>()?))
}

/// Returns the greatest length of the inputs of the campaign that `store` belongs to, in bytes;
/// `asked` is the length that the user asks for.
///
/// # Errors
/// When the campaign began with another length, or makes no inputs, or its checkpoint cannot be
/// read.
pub fn greatest_length(store: &Store, asked: Option<u64>) -> Result<u64, CampaignError> {
    let checkpoint = store.reader().load_state::<Checkpoint>()?;
    // Only campaigns that make inputs record a greatest length.
    if (checkpoint.as_ref()).is_some_and(|checkpoint| checkpoint.max_len.is_none()) {
        return Err(CampaignError::NoRun);
    }
    max_len(asked, checkpoint.and_then(|checkpoint| checkpoint.max_len))
}

/// Returns the greatest length of inputs in bytes: `asked` by the user, otherwise `so_far`
/// (recorded when the campaign began), and if both are `None` the default. Fails if both are given
/// and differ.
fn max_len(asked: Option<u64>, so_far: Option<u64>) -> Result<u64, CampaignError> {
    match (asked, so_far) {
        (Some(now), Some(was)) if now != was => Err(CampaignError::OtherLengths { was, now }),
        (asked, so_far) => Ok(asked.or(so_far).unwrap_or(DEFAULT_MAX_LEN)),
    }
}

/// Ranges from which the length of a generated input is drawn, each with its shortest and longest
/// length in bytes. Short inputs are drawn more often, since a megabyte takes as long as a thousand
/// short inputs.
const DECADES: [(u64, u64); 3] = [(1_000, 10_000), (10_000, 100_000), (100_000, 1_000_000)];
/// Two bounds with which a random byte chooses the range that the length of an input is drawn from:
/// the shortest range below the first bound, otherwise the middle one below the second bound,
/// otherwise the longest.
const SHARES: [u8; 2] = [160, 236];

/// The name of the input of a run; the input can be built again from its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunInput {
    /// The name of an input of the classic generator.
    Generated(InputName),
    /// The name of a seed that is mutated or run unchanged.
    FromSeed(MutatedName),
}

impl fmt::Display for RunInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunInput::Generated(name) => name.fmt(f),
            RunInput::FromSeed(name) => name.fmt(f),
        }
    }
}

/// Chooses the input of each run of a classic campaign, as a function of the campaign's random seed
/// and the run's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Seed of the campaign's random numbers, from which the inputs are drawn.
    pub seed: u64,
    /// Greatest length of an input, in bytes.
    pub max_len: u64,
}

impl Plan {
    /// Chooses the input of run `run` (counted from 0), and returns its name. At first, odd runs
    /// get the `seeds`, unchanged and in order, until each was run once, and even runs get inputs
    /// of the classic generator. Later, each run gets with equal probability a mutated seed or an
    /// input of the generator. Without seeds, all runs get inputs of the generator.
    pub fn draw(&self, run: u64, seeds: &Seeds) -> RunInput {
        let count = seeds.len() as u64;
        let draw = self.bytes(run);
        let (place, mutation) = match (run / 2 < count, run % 2, draw.0[26] & 1) {
            (true, 1, _) => (run / 2, None),
            (false, _, 1) if count > 0 => (draw.number(16) % count, Some(draw.number(0))),
            _ => return RunInput::Generated(self.input(run)),
        };
        RunInput::FromSeed(MutatedName {
            hash: seeds.all()[place as usize].hash.clone(),
            mutation,
        })
    }

    fn bytes(&self, run: u64) -> Draw<32> {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ddfuzz-plan-1");
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&run.to_le_bytes());
        Draw(*hasher.finalize().as_bytes())
    }

    /// Returns the name of the input that the classic generator makes for run `run`.
    pub fn input(&self, run: u64) -> InputName {
        let draw = self.bytes(run);
        let bytes = &draw.0;
        let decade = SHARES
            .iter()
            .take_while(|&&below| bytes[24] >= below)
            .count();
        let (shortest, longest) = DECADES[decade];
        let length = shortest + draw.number(8) % (longest - shortest + 1);
        InputName {
            kind: Kind::ALL[usize::from(bytes[25]) % Kind::ALL.len()],
            seed: draw.number(0),
            length: length.min(self.max_len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_given_seeds_and_those_that_the_command_adds_are_found_by_their_hash() {
        let root = tempfile::tempdir().expect("a directory");
        let added = root.path().join("corpus");
        std::fs::create_dir(&added).expect("a directory");
        std::fs::write(added.join("a"), b"added").expect("written");
        let store = Mutex::new(Store::open(&root.path().join("out"), None).expect("a store"));
        let inputs = Inputs {
            plan: Plan {
                seed: 1,
                max_len: 100,
            },
            seeds: Seeds::of([b"given".to_vec()]),
            words: Words::default(),
        };
        let whole = Seeds::of([b"given".to_vec(), b"added".to_vec()]);
        let find = |added: &[PathBuf], digest: &str| {
            let found = inputs.with_added(&store, added, digest);
            found.expect("it is read").map(|seeds| seeds.digest())
        };
        let (digest, added) = (whole.digest(), [added]);
        assert_eq!(find(&added, &digest), Some(digest.clone()));
        assert_eq!(find(&[], &digest), None);
        assert_eq!(find(&added, "another"), None);
        // The corpus has grown, but the output directory has the seeds of the start.
        std::fs::write(added[0].join("b"), b"later").expect("written");
        assert_eq!(find(&added, &digest), None);
        let all = Inputs {
            seeds: whole,
            ..inputs.clone()
        };
        let store_all = |stop| all.store_seeds(&store, &AtomicBool::new(stop));
        store_all(true).expect("nothing is stored");
        assert_eq!(find(&added, &digest), None);
        store_all(false).expect("they are stored");
        assert_eq!(find(&added, &digest), Some(digest.clone()));
    }
}
