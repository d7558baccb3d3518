//! Classes of equal behaviour.

mod classes;
mod odd;
mod resumed;
mod systems;

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use ddfuzz::campaign::identity;
use ddfuzz::corpus::behaviour::{
    Behaviour, BehaviourJournal, BehaviourSettings, Classes, CorpusInput, Measured, measure,
};
use ddfuzz::exec::{Target, Way};
use ddfuzz::minimize::log::ContentHash;

use crate::places::Place;

/// Behaviours by the inputs that they are of.
pub type Behaviours = HashMap<Vec<u8>, Behaviour>;

pub fn subject(place: &Place, name: &str, bytes: &[u8]) -> CorpusInput {
    CorpusInput {
        path: place.write(name, bytes),
        content: ContentHash::of(bytes),
        size: bytes.len() as u64,
    }
}

/// Measures these inputs; gives their behaviours and their classes.
pub fn measured(target: &Target, way: Way, inputs: &[&[u8]]) -> (Behaviours, Classes) {
    let place = Place::new();
    let name = |at: usize| format!("input-{at}");
    let subjects = inputs.iter().enumerate();
    let subjects: Vec<CorpusInput> = subjects
        .map(|(at, bytes)| subject(&place, &name(at), bytes))
        .collect();
    let (told, classes) = measured_in(&place.path("journal"), target, way, 2, &subjects);
    let of = |subject: &CorpusInput| std::fs::read(&subject.path).unwrap();
    let behaviours = told.into_iter().map(|(subject, told)| match told {
        Measured::Behaves(behaviour) => (of(&subject), *behaviour),
        Measured::Gone => panic!("{subject:?} is gone"),
    });
    (behaviours.collect(), classes)
}

/// Measures these inputs with this journal; gives what was told, in its order.
pub fn measured_in(
    journal: &Path,
    target: &Target,
    way: Way,
    jobs: usize,
    subjects: &[CorpusInput],
) -> (Vec<(CorpusInput, Measured)>, Classes) {
    let settings = BehaviourSettings {
        target: target.clone(),
        way,
        jobs,
    };
    let mut journal = BehaviourJournal::open(journal, identity(target).unwrap()).unwrap();
    let (mut told, mut classes) = (Vec::new(), Classes::default());
    let all = measure(
        subjects.iter().cloned(),
        &settings,
        &mut journal,
        &AtomicBool::new(false),
        |subject, measured| {
            if let Measured::Behaves(behaviour) = &measured {
                classes.take(subject.content, subject.size, behaviour);
            }
            told.push((subject.clone(), measured));
            Ok(())
        },
    );
    assert!(all.unwrap());
    (told, classes)
}
