//! The subset of a target that tells no coverage: one input of each class of equal behaviour.

use std::collections::{BTreeSet, HashSet};

use super::subset::{KeptFile, KeptSet, micros};
use super::totals::CleanTotals;
use super::{CleanError, Doing, Engine, Watcher};
use crate::behaviour::{
    Aspect, BehaviourJournal, BehaviourSettings, ClassId, Classes, CorpusInput, Measured, measure,
};
use crate::health::FailingInput;
use crate::measure::Contents;
use ddfuzz_campaign::identity;
use ddfuzz_minimize::log::ContentHash;

/// Contents by how the target behaves on them.
#[derive(Default)]
struct ClassifiedContents {
    /// The classes of those that end well, by their number, ascending.
    found: Vec<(usize, ClassId)>,
    /// Those that fail in some run.
    failing: Vec<FailingInput>,
    /// The numbers of those that cannot be read any more.
    gone: Vec<usize>,
}

impl Engine<'_> {
    /// Keeps the least input of each class that the corpus which is added to has not.
    pub(super) fn one_of_each_class(
        &self,
        contents: &Contents,
        onto: Option<Contents>,
        kept: &mut KeptSet,
        watcher: &mut dyn Watcher,
        totals: &mut CleanTotals,
    ) -> Result<(), CleanError> {
        watcher.say(
            "the target reports no coverage: of the inputs with the same behaviour the smallest is \
             kept, and no file is trimmed",
        );
        let (mut healthy, recovered) = self.sort_out(contents, watcher, totals)?;
        healthy.extend(recovered);
        healthy.sort_unstable();
        for number in &healthy {
            totals.spread.sizes_before.add(contents.id(*number).size());
            let time = contents.seen(*number)?.time;
            totals.spread.times_before.add(micros(time));
        }
        let chosen = match self.cleaning.subset {
            false => healthy,
            true => self.least_of_new_classes(contents, &healthy, onto, watcher, totals)?,
        };
        for number in chosen {
            kept.files.push(self.of_class(contents, number)?);
        }
        Ok(())
    }

    /// The least of each class that the corpus which is added to has not.
    fn least_of_new_classes(
        &self,
        contents: &Contents,
        healthy: &[usize],
        onto: Option<Contents>,
        watcher: &mut dyn Watcher,
        totals: &mut CleanTotals,
    ) -> Result<Vec<usize>, CleanError> {
        let mut before = Classes::default();
        if let Some(onto) = onto {
            let all: Vec<usize> = (0..onto.len())
                .filter(|at| !onto.is_suspicious(*at))
                .collect();
            // What of that corpus is not well, or gone, is none of this one: only what is well
            // counts there, and nothing is filed.
            self.classify(&onto, &all, &mut before, watcher)?;
        }
        let mut classes = Classes::default();
        let sorted = self.classify(contents, healthy, &mut classes, watcher)?;
        for number in sorted.gone {
            totals.gone(&contents.path(number)?, contents.id(number).size());
        }
        self.file(&sorted.failing, watcher, totals)?;
        self.say_what_counts(&classes, watcher);
        let least: HashSet<ContentHash> = classes.kept().into_iter().collect();
        let chosen = sorted.found.into_iter().filter(|(number, class)| {
            least.contains(&hash(contents, *number)) && before.of(*class).is_none()
        });
        Ok(chosen.map(|(number, _)| number).collect())
    }

    /// A content that is kept.
    fn of_class(&self, contents: &Contents, number: usize) -> Result<KeptFile, CleanError> {
        let id = contents.id(number);
        Ok(KeptFile {
            from: contents.path(number)?,
            content: id.to_string(),
            size_before: id.size(),
            time: contents.seen(number)?.time,
            why: match self.cleaning.subset {
                true => "it is the smallest input with this behaviour".to_owned(),
                false => "every different file that ends normally is kept".to_owned(),
            },
            ..KeptFile::default()
        })
    }

    /// Sorts these contents into classes.
    fn classify(
        &self,
        contents: &Contents,
        numbers: &[usize],
        classes: &mut Classes,
        watcher: &mut dyn Watcher,
    ) -> Result<ClassifiedContents, CleanError> {
        let cleaning = self.cleaning;
        watcher.doing(Doing::Repeating {
            contents: numbers.len() as u64,
        });
        let settings = BehaviourSettings {
            target: cleaning.target.clone(),
            way: cleaning.way,
            jobs: cleaning.jobs,
        };
        let mut journal =
            BehaviourJournal::open(&self.place.classes(), identity(&cleaning.target)?)?;
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
                // It ended well when it was measured, and does not each time.
                Measured::Behaves(behaviour) if !behaviour.ended.is_exit() => {
                    sorted.failing.push(FailingInput {
                        path: subject.path.clone(),
                        content: subject.content,
                        size: subject.size,
                        ended: behaviour.ended,
                        again: true,
                    })
                }
                Measured::Behaves(behaviour) => {
                    classes.take(subject.content, subject.size, &behaviour);
                    sorted.found.push((number, behaviour.class()));
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

    /// Tells the user which aspects of behaviour count.
    fn say_what_counts(&self, classes: &Classes, watcher: &mut dyn Watcher) {
        let names = |aspects: &BTreeSet<Aspect>| {
            let names: Vec<String> = aspects.iter().map(ToString::to_string).collect();
            names.join(", ")
        };
        if !classes.lacks().is_empty() {
            let lacks = names(classes.lacks());
            watcher.say(&format!(
                "not compared, because it cannot be observed in this target: {lacks}"
            ));
        }
        if !classes.varies().is_empty() {
            let varies = names(classes.varies());
            watcher.say(&format!(
                "not compared, because it differs from run to run: {varies}"
            ));
        }
    }
}

fn hash(contents: &Contents, number: usize) -> ContentHash {
    ContentHash::from_bytes(*contents.id(number).blake3())
}
