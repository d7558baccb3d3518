//! The subset for a target that reports no coverage: the smallest input of each behaviour class.

use std::collections::{BTreeSet, HashSet};

use super::result::CleanTotals;
use super::subset::{KeptFile, KeptSet, micros};
use super::{CleanError, CleanPhase, Engine};
use crate::behaviour::{
    Aspect, BehaviourJournal, BehaviourSettings, ClassId, Classes, CorpusInput, Measured, measure,
};
use crate::measure::Contents;
use crate::quarantine::FailingInput;
use ddfuzz_campaign::{Screen, identity};
use ddfuzz_minimize::log::ContentHash;

/// The inputs of a corpus, sorted by what measuring their behaviour has shown: inputs that end
/// normally (each with its behaviour class), inputs that fail, and inputs that cannot be read.
#[derive(Default)]
struct ClassifiedContents {
    /// Numbers of inputs that end normally, ascending, with their behaviour classes.
    found: Vec<(usize, ClassId)>,
    /// Inputs that fail in at least one run.
    failing: Vec<FailingInput>,
    /// Numbers of inputs whose files can no longer be read, and which therefore have no class.
    gone: Vec<usize>,
    /// Whether there are inputs for which it cannot be observed how the target reads them.
    hides_reads: bool,
}

impl Engine<'_> {
    /// Decides which inputs of a corpus to keep if the target reports no coverage: the smallest
    /// input of each behaviour class that has no input in the `--onto` corpus, or every input that
    /// does not fail if the user wants no subset. Failing inputs are stored in groups.
    pub(super) fn one_of_each_class(
        &self,
        contents: &Contents,
        onto: Option<Contents>,
        kept: &mut KeptSet,
        screen: &mut dyn Screen<CleanPhase>,
        totals: &mut CleanTotals,
    ) -> Result<(), CleanError> {
        let why = contents.not_covered.map(|why| format!(" ({why})"));
        screen.note(&format!(
            "the target reports no coverage{}: of the inputs with the same behaviour the smallest \
             is kept, and no file is trimmed",
            why.unwrap_or_default()
        ));
        let (mut healthy, recovered) = self.sort_out(contents, screen, totals)?;
        healthy.extend(recovered);
        healthy.sort_unstable();
        for number in &healthy {
            totals.spread.sizes_before.add(contents.id(*number).size());
            let time = contents.first_run(*number)?.time;
            totals.spread.times_before.add(micros(time));
        }
        let chosen = match self.cleaning.subset {
            false => healthy,
            true => self.least_of_new_classes(contents, &healthy, onto, screen, totals)?,
        };
        let why = match self.cleaning.subset {
            true => "no smaller input is known to have the same behaviour",
            false => "every different file that ends normally is kept",
        };
        for number in chosen {
            kept.files.push(KeptFile::of(contents, number, why)?);
        }
        Ok(())
    }

    /// Returns the numbers of the inputs to keep: the smallest input of each behaviour class that
    /// has no input in the `--onto` corpus.
    fn least_of_new_classes(
        &self,
        contents: &Contents,
        healthy: &[usize],
        onto: Option<Contents>,
        screen: &mut dyn Screen<CleanPhase>,
        totals: &mut CleanTotals,
    ) -> Result<Vec<usize>, CleanError> {
        let mut before = Classes::default();
        if let Some(onto) = onto {
            let all: Vec<usize> = (0..onto.len())
                .filter(|at| !onto.is_suspicious(*at))
                .collect();
            // Failing and unreadable inputs of the `--onto` corpus are ignored: they are not
            // stored.
            self.classify(&onto, &all, &mut before, screen)?;
        }
        let mut classes = Classes::default();
        let sorted = self.classify(contents, healthy, &mut classes, screen)?;
        for number in sorted.gone {
            totals.count_gone(&contents.path(number)?, contents.id(number).size());
        }
        self.file(&sorted.failing, screen, totals)?;
        self.say_what_counts(&classes, screen);
        if sorted.hides_reads {
            screen.note(
                "how the target reads its input cannot be observed: inputs on which it ends and \
                 writes alike may be different ones, and all of them are kept",
            );
        }
        let least: HashSet<ContentHash> = classes.kept().into_iter().collect();
        let chosen = sorted.found.into_iter().filter(|(number, class)| {
            least.contains(&hash(contents, *number)) && before.of(*class).is_none()
        });
        Ok(chosen.map(|(number, _)| number).collect())
    }

    /// Finds the behaviour class of each of the inputs `numbers`, by running those that are not in
    /// the journal, and adds the inputs to `classes`. Returns the inputs with their classes, those
    /// that fail, and those that cannot be read.
    fn classify(
        &self,
        contents: &Contents,
        numbers: &[usize],
        classes: &mut Classes,
        screen: &mut dyn Screen<CleanPhase>,
    ) -> Result<ClassifiedContents, CleanError> {
        let cleaning = self.cleaning;
        screen.progress(&CleanPhase::Repeating {
            contents: numbers.len() as u64,
        });
        let settings = BehaviourSettings {
            target: cleaning.target.clone(),
            way: cleaning.way,
            jobs: cleaning.jobs,
        };
        let mut journal =
            BehaviourJournal::open(&self.paths.classes(), identity(&cleaning.target)?)?;
        let mut subjects = Vec::with_capacity(numbers.len());
        for number in numbers {
            subjects.push(CorpusInput {
                path: contents.path(*number)?,
                content: hash(contents, *number),
                size: contents.id(*number).size(),
            });
        }
        let mut sorted = ClassifiedContents::default();
        let mut next = numbers.iter();
        let told = |subject: &CorpusInput, measured| {
            let number = next.next().copied().unwrap_or_default();
            match measured {
                // It ended normally when it was measured, and failed in a later run.
                Measured::Behaves(behaviour) if !behaviour.ended.is_exit() => {
                    sorted.failing.push(FailingInput {
                        path: subject.path.clone(),
                        content: subject.content,
                        size: subject.size,
                        ended: behaviour.ended,
                        passed_before: true,
                    })
                }
                Measured::Behaves(behaviour) => {
                    let class = classes.take(subject.content, subject.size, &behaviour);
                    sorted.found.push((number, class));
                    sorted.hides_reads |= behaviour.hides_reads();
                }
                Measured::Gone => sorted.gone.push(number),
            }
            Ok(())
        };
        if !measure(subjects, &settings, &mut journal, self.stop, told)? {
            return Err(CleanError::Interrupted);
        }
        Ok(sorted)
    }

    /// Tells the user which aspects of behaviour are not compared, and why.
    fn say_what_counts(&self, classes: &Classes, screen: &mut dyn Screen<CleanPhase>) {
        let names = |aspects: &BTreeSet<Aspect>| {
            let names: Vec<String> = aspects.iter().map(ToString::to_string).collect();
            names.join(", ")
        };
        if !classes.lacks().is_empty() {
            let lacks = names(classes.lacks());
            screen.note(&format!(
                "not compared, because it cannot be observed in this target: {lacks}"
            ));
        }
        if !classes.varies().is_empty() {
            let varies = names(classes.varies());
            screen.note(&format!(
                "not compared, because it differs from run to run: {varies}"
            ));
        }
    }
}

fn hash(contents: &Contents, number: usize) -> ContentHash {
    ContentHash::from_bytes(*contents.id(number).blake3())
}
