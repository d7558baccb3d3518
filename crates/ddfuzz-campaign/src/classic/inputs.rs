//! Which input each run of a campaign gets: a function of (campaign seed, index of the run, seeds
//! and words of the user), the same when the campaign is resumed.

use std::fmt;
use std::sync::Mutex;

use crate::campaign_state::{Checkpoint, lock};
use crate::dictionary::{Source, Words};
use crate::error::CampaignError;
use crate::generator::{InputName, Kind};
use crate::mutation::{MutatedName, Mutation};
use crate::seeds::Seeds;
use crate::settings::{DEFAULT_MAX_LEN, Settings};
use ddfuzz_model::files::{Base64, FileError};
use ddfuzz_store::{Store, StoreError};

/// What every worker makes its inputs of.
#[derive(Clone)]
pub(super) struct Inputs {
    pub(super) plan: Plan,
    /// Empty where nothing is mutated.
    pub(super) seeds: Seeds,
    words: Words,
}

impl Inputs {
    /// Those of this call. What makes them goes into the checkpoint of a campaign that begins, and
    /// has to be the same in one that goes on; its seeds go to the corpus of the output directory.
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
            false => inputs.resume(store, checkpoint)?,
        }
        for seed in inputs.seeds.all() {
            lock(store).add_to_corpus(&seed.bytes)?;
        }
        Ok(inputs)
    }

    fn begin(&mut self, checkpoint: &mut Checkpoint) {
        checkpoint.dictionary = self.dictionary();
        if self.seeds.is_empty() {
            // Words alone are what there is to begin with: of nothing, mutations make next to
            // nothing.
            let max_len = self.plan.max_len;
            let words = self.words.of(Source::Dictionary);
            self.seeds = Seeds::of(words.filter(|word| word.len() as u64 <= max_len));
        }
        if self.seeds.is_empty() {
            return; // words are for mutations alone
        }
        checkpoint.seeds = Some(self.seeds.digest());
        let words = self.words.of(Source::Program);
        checkpoint.words = words.map(|word| Base64(word.to_vec())).collect();
    }

    fn resume(
        &mut self,
        store: &Mutex<Store>,
        checkpoint: &Checkpoint,
    ) -> Result<(), CampaignError> {
        if self.seeds.is_empty() && checkpoint.seeds.is_some() {
            self.seeds = kept(store)?;
        }
        let seeds = (!self.seeds.is_empty()).then(|| self.seeds.digest());
        if self.dictionary() != checkpoint.dictionary {
            return Err(CampaignError::OtherDictionary);
        }
        if seeds != checkpoint.seeds {
            return Err(CampaignError::OtherSeeds);
        }
        // A program that was rebuilt may have others.
        let mut words = Words::default();
        words.add(Source::Dictionary, self.words.of(Source::Dictionary));
        let program = checkpoint.words.iter().map(|word| &word.0[..]);
        words.add(Source::Program, program);
        self.words = words;
        Ok(())
    }

    fn dictionary(&self) -> Option<String> {
        let some = self.words.of(Source::Dictionary).next().is_some();
        some.then(|| self.words.digest(Source::Dictionary))
    }

    /// What mutates seeds, for one worker; `None` where nothing does.
    pub(super) fn mutation(&self) -> Option<Mutation> {
        let some = !self.seeds.is_empty();
        some.then(|| Mutation::new(&self.seeds, &self.words, self.plan.max_len))
    }
}

/// The seeds that an earlier call has put into the corpus.
fn kept(store: &Mutex<Store>) -> Result<Seeds, CampaignError> {
    let files = lock(store).reader().corpus()?;
    let read = files.iter().map(|path| {
        std::fs::read(path).map_err(|error| StoreError::from(FileError::at("read", path)(error)))
    });
    Ok(Seeds::of(read.collect::<Result<Vec<_>, _>>()?))
}

/// The greatest length of the inputs of the campaign that `store` belongs to, in bytes, when
/// `asked` is asked for.
///
/// # Errors
/// When the campaign has had another one so far, or its checkpoint cannot be read.
pub fn greatest_length(store: &Store, asked: Option<u64>) -> Result<u64, CampaignError> {
    let checkpoint = store.reader().load_state::<Checkpoint>()?;
    max_len(asked, checkpoint.and_then(|checkpoint| checkpoint.max_len))
}

/// The greatest length asked for, which has to be that of the campaign so far.
fn max_len(asked: Option<u64>, so_far: Option<u64>) -> Result<u64, CampaignError> {
    match (asked, so_far) {
        (Some(now), Some(was)) if now != was => Err(CampaignError::OtherLengths { was, now }),
        (asked, so_far) => Ok(asked.or(so_far).unwrap_or(DEFAULT_MAX_LEN)),
    }
}

/// Lengths are drawn from these decades, in bytes, the short ones more often: a megabyte takes
/// as long as a thousand short inputs.
const DECADES: [(u64, u64); 3] = [(1_000, 10_000), (10_000, 100_000), (100_000, 1_000_000)];
/// Below these values of a random byte lie the first two decades.
const SHARES: [u8; 2] = [160, 236];

/// Which input a run gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunInput {
    /// One of the classic generator.
    Generated(InputName),
    /// A seed, mutated or as it is.
    Mutated(MutatedName),
}

impl fmt::Display for RunInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunInput::Generated(name) => name.fmt(f),
            RunInput::Mutated(name) => name.fmt(f),
        }
    }
}

/// The inputs of a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The campaign's seed.
    pub seed: u64,
    /// The greatest length, in bytes.
    pub max_len: u64,
}

/// The random bytes of a run.
struct Draw([u8; 32]);

impl Draw {
    fn number(&self, at: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.0[at..at + 8]);
        u64::from_le_bytes(word)
    }
}

impl Plan {
    /// The input of run `run` in a campaign with these seeds: that of the classic generator, or, on
    /// an even chance, a mutated seed. In the first runs, of every two the second is a seed as it
    /// is, until each was run once.
    pub fn draw(&self, run: u64, seeds: &Seeds) -> RunInput {
        let count = seeds.len() as u64;
        let draw = self.bytes(run);
        let (place, mutation) = match (run / 2 < count, run % 2, draw.0[26] & 1) {
            (true, 1, _) => (run / 2, None),
            (false, _, 1) if count > 0 => (draw.number(16) % count, Some(draw.number(0))),
            _ => return RunInput::Generated(self.input(run)),
        };
        RunInput::Mutated(MutatedName {
            hash: seeds.all()[place as usize].hash.clone(),
            mutation,
        })
    }

    fn bytes(&self, run: u64) -> Draw {
        let mut hasher = blake3::Hasher::new();
        hasher.update(b"ddfuzz-plan-1");
        hasher.update(&self.seed.to_le_bytes());
        hasher.update(&run.to_le_bytes());
        Draw(*hasher.finalize().as_bytes())
    }

    /// The classic generator's input of run `run`.
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
