//! The passes that write other words over words: names become one name, or one letter each, and
//! literals become as short as possible, at all places at once.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::{iter, slice};

use crate::passes::current_best::CurrentBest;
use crate::passes::list::ListSearch;
use crate::passes::units::Units;
use crate::{Edit, Outcome, Replacement};

/// Name, in logs, of the pass that replaces several names of a program by the same name, and names
/// by shorter ones.
const NAMES: &str = "names";

/// Number of successive names that cannot be replaced by another name, after which the merging of
/// names ends.
const FRUITLESS: usize = 8;

/// If a text has more names than this, one test replaces several of them by shorter ones.
const MANY: usize = 16;

/// Number of successive tests without success, after which no more shorter words are written over
/// longer ones.
const FRUITLESS_WORDS: usize = 64;

/// Minimum number of occurrences of a name for it to be written over other names.
const FREQUENT: usize = 8;

/// A function that returns the ranges of a text at which words, such as names, stand.
pub(super) type Find<'a> = dyn Fn(&[u8]) -> Vec<Range<usize>> + Sync + 'a;

/// Names that were needed in an earlier test, because the text did not fail when a shorter name was
/// written over them; they are not tried again.
pub(super) type KeptNames = BTreeSet<Vec<u8>>;

/// The words of a text as units of a list search. To delete a unit means to write another word over
/// the unit's word, wherever it occurs.
pub(super) struct Rewritten<'a> {
    rule: &'static str,
    find: &'a Find<'a>,
    /// Each remaining word of the list with the word to write over it, which is not longer.
    words: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Rewritten<'_> {
    /// Lists the different words that `find` finds in the current best text, in the order of their
    /// first occurrences, each with the shorter or equally long word that `least` gives to be
    /// written over it; words for which it gives none are left out. `rule` names the pass in the
    /// log.
    pub fn by<'a>(
        work: &mut CurrentBest,
        rule: &'static str,
        find: &'a Find<'a>,
        least: &dyn Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Rewritten<'a> {
        let text = work.text();
        let mut words: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut seen: BTreeSet<&[u8]> = BTreeSet::new();
        for place in find(&text) {
            let word = &text[place];
            let new = least(word).filter(|new| new.len() <= word.len() && *new != word);
            if let Some(new) = new.filter(|_| seen.insert(word)) {
                words.push((word.to_vec(), new));
            }
        }
        Rewritten { rule, find, words }
    }
}

impl Units for Rewritten<'_> {
    fn rule(&self) -> &'static str {
        self.rule
    }

    fn len(&self) -> usize {
        self.words.len()
    }

    fn edit(&self, work: &mut CurrentBest, cuts: &[Range<usize>]) -> Option<Edit> {
        let text = work.text();
        let words = cuts.iter().flat_map(|cut| &self.words[cut.clone()]);
        let words: BTreeMap<&[u8], &[u8]> = words.map(|(old, new)| (&old[..], &new[..])).collect();
        let written = |place: Range<usize>| {
            let with = words.get(&text[place.clone()])?.to_vec();
            Some(Replacement { at: place, with })
        };
        let mut edits: Vec<Replacement> = Vec::new();
        for edit in (self.find)(&text).into_iter().filter_map(written) {
            // Words may stand inside another word, which is written first.
            if edits.last().is_none_or(|last| last.at.end <= edit.at.start) {
                edits.push(edit);
            }
        }
        (!edits.is_empty()).then_some(Edit::Set(edits))
    }

    fn accept(&mut self, _: &mut CurrentBest, cuts: &[Range<usize>]) -> Vec<usize> {
        for cut in cuts.iter().rev() {
            self.words.drain(cut.clone());
        }
        vec![0; cuts.len()]
    }
}

/// Writes one new letter over as many names of a text as possible; `names` finds the names. Then
/// takes the most frequent name that was not replaced, if it occurs at least [`FREQUENT`] times,
/// and writes it over as many as possible of the others that are at least as long. Returns true if
/// the letter has replaced at least two names.
pub(super) async fn merge(work: &mut CurrentBest, names: &Find<'_>) -> bool {
    let text = work.text();
    let used: BTreeSet<&[u8]> = names(&text).into_iter().map(|place| &text[place]).collect();
    let Some(new) = letters().find(|letter| !used.contains(&letter[..])) else {
        return false;
    };
    let mut all = Rewritten::by(work, NAMES, names, &|_| Some(new.clone()));
    let before = all.len();
    if before < 2 {
        return false;
    }
    let mut list = ListSearch::new(work, &mut all).stop_after(FRUITLESS);
    list.reduce().await;
    let text = work.text();
    let mut count: BTreeMap<&[u8], usize> = BTreeMap::new();
    for place in names(&text) {
        *count.entry(&text[place]).or_default() += 1;
    }
    let others = all.words.iter().map(|(word, _)| &word[..]);
    let frequent = others.max_by_key(|word| count.get(word));
    if let Some(frequent) = frequent.filter(|word| count.get(word) >= Some(&FREQUENT)) {
        let is_other = |word: &[u8]| *word != new && word.len() >= frequent.len();
        let least = |word: &[u8]| is_other(word).then(|| frequent.to_vec());
        let mut others = Rewritten::by(work, NAMES, names, &least);
        let mut list = ListSearch::new(work, &mut others).stop_after(FRUITLESS);
        list.reduce().await;
    }
    all.len() + 2 <= before
}

/// Writes a shorter word of a small text over a longer one, such as `let` over `lambda`: at all
/// places of the longer word or, if that does not fail, at single ones. `words` finds the words.
/// Ends after [`FRUITLESS_WORDS`] successive tests without success.
pub(super) async fn write_shorter_words(work: &mut CurrentBest, words: &Find<'_>) {
    let mut fruitless = 0;
    'anew: loop {
        let text = work.text();
        let mut places: BTreeMap<&[u8], Vec<Range<usize>>> = BTreeMap::new();
        for place in words(&text) {
            places.entry(&text[place.clone()]).or_default().push(place);
        }
        let mut pairs: Vec<(&[u8], &[u8])> = (places.keys())
            .flat_map(|long| places.keys().map(|short| (*long, *short)))
            .filter(|(long, short)| short.len() < long.len())
            .collect();
        // Those first that shorten the text most.
        pairs.sort_by_key(|(long, short)| Reverse(long.len() - short.len()));
        for (long, short) in pairs {
            let all = &places[long];
            let alone = all.iter().filter(|_| all.len() > 1);
            for places in iter::once(&all[..]).chain(alone.map(slice::from_ref)) {
                if fruitless == FRUITLESS_WORDS {
                    return;
                }
                let written = places.iter().map(|place| Replacement {
                    at: place.clone(),
                    with: short.to_vec(),
                });
                let edit = Edit::Set(written.collect());
                if work.test(NAMES, edit).await == Outcome::Fail {
                    fruitless = 0;
                    continue 'anew;
                }
                fruitless += 1;
            }
        }
        return;
    }
}

/// Replaces many long names in a text, which `names` finds, by new ones of one or two letters and
/// digits, several names in one test. Does nothing if there are at most [`MANY`] of them. Names in
/// `kept` are not tried, and names that cannot be replaced are added to it.
pub(super) async fn rename_many(work: &mut CurrentBest, names: &Find<'_>, kept: &mut KeptNames) {
    let mut many = shorter_names(&work.text(), names, kept);
    if many.len() > MANY {
        ListSearch::new(work, &mut many).reduce().await;
        kept.extend(many.words.into_iter().map(|(old, _)| old));
    }
}

/// Writes one-letter names over the names that `names` finds in a text: first many in one test
/// ([`rename_many`]), then one name in each test, at all of its occurrences. Adds names that cannot
/// be replaced to `kept`, and does not try those that are in it.
pub(super) async fn rename(work: &mut CurrentBest, names: &Find<'_>, kept: &mut KeptNames) {
    rename_many(work, names, kept).await;
    let text = work.text();
    let mut used: BTreeSet<Vec<u8>> = names(&text)
        .into_iter()
        .map(|place| text[place].to_vec())
        .collect();
    let long = used
        .iter()
        .filter(|name| name.len() > 1 && !kept.contains(*name));
    let long: Vec<Vec<u8>> = long.cloned().collect();
    for old in long {
        let Some(new) = letters().find(|letter| !used.contains(letter)) else {
            return;
        };
        let renamed = Rewritten {
            rule: NAMES,
            find: names,
            words: vec![(old.clone(), new.clone())],
        };
        let all = 0..1;
        let Some(edit) = renamed.edit(work, std::slice::from_ref(&all)) else {
            continue;
        };
        match work.test(NAMES, edit).await {
            Outcome::Fail => used.insert(new),
            Outcome::Pass | Outcome::Unresolved => kept.insert(old),
        };
    }
}

/// Lists the names that `names` finds in `text`, except for those in `kept`, each with a new name
/// of one letter or, after the last letter, of a letter and a digit. The names whose replacement
/// saves most bytes get the letters, and come last.
fn shorter_names<'a>(text: &[u8], names: &'a Find<'a>, kept: &KeptNames) -> Rewritten<'a> {
    let mut count: BTreeMap<&[u8], usize> = BTreeMap::new();
    for place in names(text) {
        *count.entry(&text[place]).or_default() += 1;
    }
    let mut long: Vec<(&[u8], usize)> = count.iter().map(|(name, count)| (*name, *count)).collect();
    long.retain(|(name, _)| name.len() > 1 && !kept.contains(*name));
    long.sort_by_key(|(name, count)| std::cmp::Reverse((name.len() - 1) * count));
    let numbered = letters()
        .flat_map(|letter| (b'0'..=b'9').map(move |digit| [&letter[..], &[digit]].concat()));
    let free = letters()
        .chain(numbered)
        .filter(|new| !count.contains_key(&new[..]));
    let words = long.into_iter().zip(free);
    let words = words.filter(|((old, _), new)| new.len() < old.len());
    let mut words: Vec<(Vec<u8>, Vec<u8>)> =
        words.map(|((old, _), new)| (old.to_vec(), new)).collect();
    words.reverse();
    Rewritten {
        rule: NAMES,
        find: names,
        words,
    }
}

fn letters() -> impl Iterator<Item = Vec<u8>> {
    (b'a'..=b'z').chain(b'A'..=b'Z').map(|letter| vec![letter])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::{Full, Grammar, Outcome, Search, Structure, SyntaxClass, SyntaxNode, SyntaxTree};

    /// A test grammar of lines `first::second`, in which each line is a name that contains two
    /// names, as in Rust.
    struct Scoped;

    impl Grammar for Scoped {
        fn name(&self) -> &str {
            "scoped"
        }

        fn parse(&self, text: &[u8]) -> Option<SyntaxTree> {
            let node = |place, kind, class, parent, last| SyntaxNode {
                place,
                kind,
                class,
                parent,
                last,
            };
            let mut nodes = vec![node(0..text.len(), 0, SyntaxClass::Other, None, 0)];
            let mut at = 0;
            for line in text.split(|byte| *byte == b'\n') {
                let colons = line.windows(2).position(|two| two == b"::");
                if let Some(colons) = colons.filter(|colons| (1..line.len() - 2).contains(colons)) {
                    let (whole, name) = (nodes.len(), SyntaxClass::Identifier);
                    let (middle, end) = (at + colons, at + line.len());
                    nodes.push(node(at..end, 1, name, Some(0), whole + 3));
                    nodes.push(node(at..middle, 2, name, Some(whole), whole + 2));
                    nodes.push(node(middle + 2..end, 2, name, Some(whole), whole + 3));
                }
                at += line.len() + 1;
            }
            nodes[0].last = nodes.len();
            Some(SyntaxTree { nodes, errors: 0 })
        }
    }

    #[test]
    fn names_inside_of_names_are_not_written_twice() {
        let lines: Vec<String> = (10..34).map(|i| format!("space_{i}::name_{i}")).collect();
        let input = lines.join("\n").into_bytes();
        // Each line is needed, with two names.
        let fails = |text: &[u8]| {
            let lines = text.split(|byte| *byte == b'\n');
            let names = lines.filter(|line| {
                let colons = line.windows(2).position(|two| two == b"::");
                colons.is_some_and(|colons| colons > 0 && colons + 2 < line.len())
            });
            names.count() == 24
        };
        let mut search = Full::structured(&input, Structure::Syntax(Arc::new(Scoped)));
        let (mut best, mut text) = (input.clone(), Vec::new());
        while let Some(candidate) = search.next() {
            text.clear();
            candidate.write_into(&input, &best, &mut text);
            let outcome = match fails(&text) {
                true => Outcome::Fail,
                false => Outcome::Pass,
            };
            if outcome == Outcome::Fail {
                best.clone_from(&text);
            }
            search.tell(outcome);
        }
        assert_eq!(best.len(), 24 * 4 + 23);
    }
}
