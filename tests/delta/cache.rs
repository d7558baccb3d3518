//! The content cache.

use ddfuzz::delta::{Cache, Caching, Config, Hit, Outcome, Seen, TextId};

const TEXT: TextId = TextId([7; 16]);

fn seen(outcome: Outcome, test: u64) -> Seen {
    Seen {
        outcome,
        test: Some(test),
    }
}

/// A cache in which one text was tested under one configuration.
fn one_test(caching: Caching) -> Cache {
    let mut cache = Cache::new(caching);
    cache.record(Some(Config::all(3).id()), TEXT, seen(Outcome::Pass, 0));
    cache
}

#[test]
fn the_same_configuration_is_repeated_and_another_with_the_same_text_is_cached() {
    let cache = one_test(Caching::Text);
    let lookup = |config: Config| cache.lookup(Some(config.id()), TEXT);
    assert_eq!(lookup(Config::all(3)), Some(Hit::Repeated(Outcome::Pass)));
    assert_eq!(lookup(Config::all(2)), Some(Hit::Cached(Outcome::Pass)));
    assert_eq!(cache.lookup(None, TEXT), Some(Hit::Cached(Outcome::Pass)));
    assert_eq!(
        cache.lookup(Some(Config::all(1).id()), TextId([0; 16])),
        None
    );
}

#[test]
fn the_papers_cache_knows_configurations_only() {
    let cache = one_test(Caching::Configuration);
    let lookup = |config: Config| cache.lookup(Some(config.id()), TEXT);
    assert_eq!(lookup(Config::all(3)), Some(Hit::Repeated(Outcome::Pass)));
    assert_eq!(lookup(Config::all(2)), None);
}

#[test]
fn a_cache_that_is_off_answers_nothing_but_remembers() {
    let cache = one_test(Caching::Off);
    assert_eq!(cache.lookup(Some(Config::all(3).id()), TEXT), None);
    assert_eq!(cache.seen(TEXT), Some(seen(Outcome::Pass, 0)));
}

#[test]
fn a_failure_outweighs_other_outcomes_of_the_same_text() {
    let mut cache = one_test(Caching::Off);
    cache.record(None, TEXT, seen(Outcome::Fail, 1));
    cache.record(None, TEXT, seen(Outcome::Unresolved, 2));
    assert_eq!(cache.seen(TEXT), Some(seen(Outcome::Fail, 1)));
}
