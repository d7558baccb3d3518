//! What other tools keep, written down from their sources as plainly as possible.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use ddfuzz::corpus::{Amount, Feature};

use super::instances::{Instance, Item};

fn amount(kept: &[&Item]) -> Amount {
    let mut amount = Amount::default();
    kept.iter().for_each(|item| amount.add(item.bytes));
    amount
}

/// libFuzzer's `Merger::Merge` (`-merge=1`, `cargo fuzz cmin`): by size, of equal size by more
/// features; kept if it has a new one.
pub fn merge(instance: &Instance) -> Amount {
    let mut files: Vec<&Item> = instance.0.iter().collect();
    files.sort_by_key(|item| (item.bytes, Reverse(item.features.len())));
    let mut seen: BTreeSet<Feature> = BTreeSet::new();
    files.retain(|item| {
        let before = seen.len();
        seen.extend(item.features.as_slice());
        seen.len() > before
    });
    amount(&files)
}

/// `afl-cmin`: tuples from the rarest, for each that is not covered yet its smallest file.
pub fn cmin(instance: &Instance) -> Amount {
    let mut files: BTreeMap<Feature, Vec<&Item>> = BTreeMap::new();
    for item in &instance.0 {
        for feature in item.features.as_slice() {
            files.entry(*feature).or_default().push(item);
        }
    }
    let mut order: Vec<(Feature, Vec<&Item>)> = files.into_iter().collect();
    order.sort_by_key(|(feature, files)| (files.len(), *feature));
    let (mut seen, mut kept) = (BTreeSet::new(), Vec::new());
    for (feature, files) in order {
        if !seen.contains(&feature) {
            // They stand by size.
            seen.extend(files[0].features.as_slice().iter().copied());
            kept.push(files[0]);
        }
    }
    amount(&kept)
}

/// libFuzzer's `-set_cover_merge=1`: always the file with the most new features.
pub fn set_cover_merge(instance: &Instance) -> Amount {
    let (mut seen, mut kept): (BTreeSet<Feature>, Vec<&Item>) = Default::default();
    loop {
        let new = |item: &Item| {
            let features = item.features.as_slice().iter();
            features.filter(|feature| !seen.contains(feature)).count()
        };
        let best = instance
            .0
            .iter()
            .max_by_key(|item| (new(item), Reverse(item.bytes)));
        match best.filter(|item| new(item) > 0) {
            Some(best) => {
                seen.extend(best.features.as_slice().iter().copied());
                kept.push(best);
            }
            None => return amount(&kept),
        }
    }
}
