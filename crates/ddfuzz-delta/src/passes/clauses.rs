//! Passes over the clauses of a small text, its statements and items of lists: they delete two
//! clauses together, such as those that begin and end something, and replace a name by another one
//! and delete the clause that declares it.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::passes::current_best::CurrentBest;
use crate::passes::words::{Levels, Token, WORDS, tokens};
use crate::{Edit, Outcome, Replacement};

/// Maximum number of clauses (statements, or items of a list) in one pair of brackets, or outside
/// of all brackets, for two of them to be deleted in one test.
const MOST_CLAUSES: usize = 12;
/// Maximum number of tokens that one test deletes before a token, and after it: the token itself is
/// kept.
const LONGEST_SIDE: usize = 4;
/// Maximum number of tokens of a text in which tokens are deleted on both sides of a token.
const MOST_TOKENS: usize = 64;
/// Two limits for replacing a name by another one: the maximum number of names that are replaced,
/// and the maximum number of names that are tried in place of each.
const MOST_NAMES: usize = 12;

/// Deletes, in one test, two clauses (statements, or items of a list) of the same list that are not
/// next to each other, such as the statements that begin and end a transaction. The pairs that are
/// farthest apart come first.
pub(super) async fn delete_pairs(work: &mut CurrentBest) {
    'anew: loop {
        let text = work.text();
        let all = tokens(&text);
        for list in lists(&all, &text).values() {
            let last = list.len().saturating_sub(1);
            if list.len() > MOST_CLAUSES {
                continue;
            }
            for distance in (2..=last).rev() {
                for first in 0..=last - distance {
                    let pair = vec![list[first].clone(), list[first + distance].clone()];
                    if work.test(WORDS, Edit::Cut(pair)).await == Outcome::Fail {
                        continue 'anew;
                    }
                }
            }
        }
        return;
    }
}

/// Deletes, in one test, up to [`LONGEST_SIDE`] tokens directly before a token and up to as many
/// directly after it: `plural "" text [0]` becomes `text`. The smallest deletions come first. Does
/// nothing to a text of more than [`MOST_TOKENS`] tokens.
pub(super) async fn delete_around(work: &mut CurrentBest) {
    'anew: loop {
        let text = work.text();
        let all = tokens(&text);
        let levels = Levels::of(&all);
        if all.len() > MOST_TOKENS {
            return;
        }
        let lengths = (1..=LONGEST_SIDE)
            .flat_map(|before| (1..=LONGEST_SIDE).map(move |after| (before, after)));
        let mut lengths: Vec<(usize, usize)> = lengths.collect();
        lengths.sort_by_key(|(before, after)| before + after);
        for (before, after) in lengths {
            for kept in before..all.len().saturating_sub(after) {
                let sides = [kept - before..kept, kept + 1..kept + 1 + after];
                if sides
                    .iter()
                    .any(|side| !levels.are_whole(side.start, side.end))
                {
                    continue;
                }
                let cuts = sides.map(|side| place_of(&all, &side)).to_vec();
                if work.test(WORDS, Edit::Cut(cuts)).await == Outcome::Fail {
                    continue 'anew;
                }
            }
        }
        return;
    }
}

/// Returns all lists of clauses (statements, or items between commas) in a text: those in each pair
/// of brackets, and those outside of all brackets. The key of a list is the index of the first
/// token inside of its brackets, or 0 outside; the value is the ranges of the clauses, each with
/// the semicolon or line end after it.
fn lists(all: &[Token], text: &[u8]) -> BTreeMap<usize, Vec<Range<usize>>> {
    let mut lists: BTreeMap<usize, Vec<Range<usize>>> = BTreeMap::new();
    // Beginnings of clauses in the brackets that are open.
    let mut open = vec![(0, 0)];
    for (index, token) in all.iter().enumerate() {
        let place = &token.place;
        let blanks = place.start + token.of(text).len()..place.end;
        let ends = token.class == b';' || text[blanks].contains(&b'\n') || index + 1 == all.len();
        let closes = b")]}".contains(&token.class) && open.len() > 1;
        if closes && let Some((list, start)) = open.pop() {
            let rest = start..place.start;
            lists
                .entry(list)
                .or_default()
                .extend((!rest.is_empty()).then_some(rest));
        }
        if b"([{".contains(&token.class) {
            open.push((index + 1, place.end));
        } else if let Some((list, start)) = open.last_mut().filter(|_| ends) {
            lists.entry(*list).or_default().push(*start..place.end);
            *start = place.end;
        }
    }
    lists
}

/// Tests edits that need one name less: the clause (statement or item of a list) with the first
/// occurrence of a name is deleted, and the other occurrences become another name of the text. An
/// example is to delete the declaration of a function, and to call another function in its place.
/// Edits that delete the longest clauses come first.
pub(super) async fn redirect(work: &mut CurrentBest) {
    'anew: loop {
        let text = work.text();
        for edit in redirections(&text) {
            if work.test(WORDS, Edit::Set(edit)).await == Outcome::Fail {
                continue 'anew;
            }
        }
        return;
    }
}

/// Returns the edits, each as its replacements, that delete the clause (statement or item of a
/// list) with the first occurrence of a name, and write another name over its other occurrences;
/// only those that make the text shorter. Names that differ only in upper and lower case count as
/// the same.
fn redirections(text: &[u8]) -> Vec<Vec<Replacement>> {
    let all = tokens(text);
    let levels = Levels::of(&all);
    let mut names: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    for (index, token) in all.iter().enumerate() {
        let name = token.of(text);
        let is_string = matches!(name, [b'"' | b'\'', _, .., b'"' | b'\'']);
        if token.class == b'a' || is_string && name.len() > 2 {
            names
                .entry(name.to_ascii_lowercase())
                .or_default()
                .push(index);
        }
    }
    names.retain(|_, places| places.len() > 1);
    let mut clauses: Vec<(&[usize], Range<usize>)> = Vec::new();
    for places in names.values() {
        // The clause around the brackets in which the name stands may be what declares it.
        let around = levels.opening(places[0]);
        let around = around.map(|open| clause(&all, &levels, open));
        let both = std::iter::once(clause(&all, &levels, places[0])).chain(around);
        let has_others = |clause: &Range<usize>| places.iter().any(|one| !clause.contains(one));
        clauses.extend(both.filter(has_others).map(|one| (&places[..], one)));
    }
    clauses.sort_by_key(|(_, clause)| std::cmp::Reverse(place_of(&all, clause).len()));
    clauses.truncate(MOST_NAMES);
    let mut edits = Vec::new();
    for (old, clause) in &clauses {
        let others = names.values().filter(|places| places[0] != old[0]);
        let others =
            others.filter_map(|places| places.iter().find(|index| !clause.contains(index)));
        let class = all[old[0]].class;
        let others = others.filter(|new| all[**new].class == class);
        for new in others.take(MOST_NAMES) {
            let mut edit = vec![Replacement {
                at: place_of(&all, clause),
                with: Vec::new(),
            }];
            let uses = old.iter().filter(|index| !clause.contains(index));
            edit.extend(uses.map(|index| {
                let start = all[*index].place.start;
                Replacement {
                    at: start..start + all[*index].of(text).len(),
                    with: all[*new].of(text).to_vec(),
                }
            }));
            edit.sort_by_key(|one| one.at.start);
            edits.extend(is_shorter(&edit).then_some(edit));
        }
    }
    edits
}

/// Returns true if replacements write fewer bytes than they delete.
fn is_shorter(edit: &[Replacement]) -> bool {
    let written: usize = edit.iter().map(|one| one.with.len()).sum();
    let deleted: usize = edit.iter().map(|one| one.at.len()).sum();
    written < deleted
}

/// Returns the clause (a statement, or an item of a list) that contains the token at `index`, as a
/// range of indices of tokens. The range includes the comma or semicolon after the clause or, if
/// there is none, the one before it.
fn clause(all: &[Token], levels: &Levels, index: usize) -> Range<usize> {
    let separates = |index: usize| all.get(index).is_some_and(|one| b",;".contains(&one.class));
    let (start, end) = (
        levels.clause_start(all, index),
        levels.clause_end(all, index),
    );
    match start.checked_sub(1) {
        _ if separates(end) => start..end + 1,
        Some(before) if separates(before) => before..end,
        _ => start..end,
    }
}

/// Returns the range of the text that the tokens with the indices `tokens` take.
fn place_of(all: &[Token], tokens: &Range<usize>) -> Range<usize> {
    match all.get(tokens.clone()) {
        Some([first, .., last]) => first.place.start..last.place.end,
        Some([one]) => one.place.clone(),
        _ => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use super::{lists, redirections};
    use crate::passes::words::tokens;
    use crate::{Edit, ExtraTests, Full, Outcome, Search, Structure};

    /// Runs the search [`Full`] with many extra tests on `input`, in which a text fails if `fails`
    /// returns true, and returns the smallest failing text.
    fn refined(input: &str, fails: impl Fn(&str) -> bool) -> String {
        let mut search = Full::structured(input.as_bytes(), Structure::Text);
        search.allow_extra_tests(ExtraTests::Many);
        let mut best = input.as_bytes().to_vec();
        while let Some(candidate) = search.next() {
            let mut text = Vec::new();
            candidate.write_into(input.as_bytes(), &best, &mut text);
            let is_failure = std::str::from_utf8(&text).is_ok_and(&fails);
            search.tell(match is_failure {
                true => Outcome::Fail,
                false => Outcome::Pass,
            });
            best = if is_failure { text } else { best };
        }
        String::from_utf8(best).expect("the text is UTF-8")
    }

    #[test]
    fn what_begins_goes_with_what_ends() {
        let fails = |text: &str| {
            let statements: Vec<&str> = text.split(';').map(str::trim).collect();
            let has = |one: &str| statements.contains(&one);
            let mut known = statements.iter();
            has("drop")
                && has("BEGIN") == has("COMMIT")
                && known.all(|one| ["BEGIN", "COMMIT", "make", "drop", ""].contains(one))
        };
        assert_eq!(refined("BEGIN; make; drop; COMMIT;", fails), "drop");
    }

    #[test]
    fn tokens_go_on_both_sides_of_one() {
        let fails = |text: &str| {
            ["id \"\" plural \"\" text [ 0 ] \"%\"", "id \"\" text \"%\""]
                .iter()
                .any(|one| text.split_whitespace().eq(one.split(' ')))
        };
        let text = "id \"\" plural \"\" text [ 0 ] \"%\"";
        assert_eq!(refined(text, fails), "id \"\" text \"%\"");
    }

    #[test]
    fn clauses_are_those_of_their_brackets() {
        let text = b"a; f(b; c) d\ne;";
        let lists: Vec<Vec<&[u8]>> = lists(&tokens(text), text)
            .into_values()
            .map(|list| list.into_iter().map(|place| &text[place]).collect())
            .collect();
        assert_eq!(
            lists,
            [vec![&b"a; "[..], b"f(b; c) d\n", b"e;"], vec![b"b; ", b"c"]]
        );
    }

    #[test]
    fn a_name_is_used_in_place_of_another_one() {
        let texts = |text: &[u8]| -> Vec<String> {
            let edits = redirections(text).into_iter();
            let texts = edits.map(|edit| Edit::Set(edit).of_best(text));
            texts
                .map(|text| String::from_utf8_lossy(&text).into_owned())
                .collect()
        };
        let found = texts(b"table(T2);table(T1);use t2;use t1");
        assert!(
            found.contains(&"table(T1);use T1;use t1".to_owned()),
            "{found:?}"
        );
        // Nothing is left of a name that stands only in its own clause.
        assert!(texts(b"f(a a);g(b)").is_empty());
        assert!(texts(b"").is_empty());
        // The text needs a table, and something that is used and declared.
        let fails = |text: &str| {
            let declared = |name: &str| text.contains(&format!("make {name};"));
            let used = text.split("; ").filter_map(|one| one.strip_prefix("use "));
            let used: Vec<&str> = used.collect();
            used.len() == 2 && used.iter().all(|name| name.len() > 2 && declared(name))
        };
        let reduced = refined("make one; make two; use one; use two", fails);
        assert_eq!(reduced.matches("make").count(), 1, "{reduced}");
    }
}
