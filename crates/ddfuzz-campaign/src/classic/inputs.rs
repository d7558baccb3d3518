//! What the inputs of a campaign are made of, and that a resumed one has the same.

use std::sync::Mutex;

use super::plan::Plan;
use crate::checkpoint::Checkpoint;
use crate::error::CampaignError;
use crate::ledger::lock;
use crate::mutation::Mutation;
use crate::seeds::Seeds;
use crate::settings::{DEFAULT_MAX_LEN, Settings};
use crate::words::{Source, Words};
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
            // Words alone are what there is to begin with: of nothing, mutations make next to nothing.
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
        // A program that was built anew may have others.
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
