//! The passes over a small result after it was shown to be 1-minimal: they reduce it by its
//! structure once more, and delete pieces that only together can be deleted.

use std::ops::Range;

use crate::document::Structure;
use crate::passes::blocks::few_blocks;
use crate::passes::clauses::{delete_around, delete_pairs, redirect};
use crate::passes::current_best::CurrentBest;
use crate::passes::definitions::inline;
use crate::passes::deletions::every_run;
use crate::passes::directives::directives;
use crate::passes::names::{KeptNames, rename, write_shorter_words};
use crate::passes::normalize::mark_proved;
use crate::passes::ranges::union;
use crate::passes::structure::{reduce_tree, structure};
use crate::passes::syntax::syntax_again;
use crate::passes::words::{
    Ends, Levels, Token, WORDS, compounds, delete_clauses, names, tokens, words,
};
use crate::{Edit, ExtraTests, Outcome, Replacement};

/// Maximum size, in bytes, of results of a search that are reduced once more by their structure,
/// after they were shown to be 1-minimal.
const REFINED: usize = 1 << 10;
/// Maximum number of successive tests without success after which the refinement of a result ends;
/// tests whose outcomes are known from the cache count, too.
const REFINING_TESTS: usize = 1 << 10;
/// A refinement must delete at least the result's size, in bytes, divided by this number for the
/// result to be refined again even if no other pass changes it.
const WORTHWHILE: usize = 8;
/// Maximum length, in items, of the lists from which columns are deleted; a column is the items at
/// one index in all lists of one length.
const MOST_COLUMNS: usize = 16;

/// Reduces a small result further, after it was shown to be 1-minimal; these tests do not belong to
/// the proof. A text is reduced by its structure and words; in a result of a few bytes, the
/// deletion of every sequence of bytes is tested. Returns true if the result became smaller, so
/// that deletions of single bytes must be tried again. `refined` remembers the number of reductions
/// ([`CurrentBest::reductions`]) after a call that deleted little: while that number is the same, a
/// further call makes no test.
pub(super) async fn refine(
    work: &mut CurrentBest,
    known: &Structure,
    refined: &mut Option<usize>,
) -> bool {
    let (asked, before, size) = (work.asked(), work.reductions(), work.len());
    let patience = match work.extra_tests() {
        ExtraTests::Many => REFINING_TESTS,
        ExtraTests::Few => REFINING_TESTS.min(asked / 2),
        ExtraTests::None => 0,
    };
    // Searches that are replayed from logs without a structure do not know these passes.
    let is_known = !matches!(known, Structure::Unknown);
    if patience == 0 || !is_known || *refined == Some(before) || work.len() > REFINED {
        return false;
    }
    mark_proved(work).await;
    work.limit_fruitless(Some(patience));
    work.halve_fruitless();
    if matches!(known, Structure::Text | Structure::Syntax(_)) {
        // What takes few tests comes first: the others are not made if nothing comes of them.
        if work.is_text() {
            directives(work).await;
            reduce_tree(work, &few_blocks).await;
            rename(work, &compounds, &mut KeptNames::new()).await;
            delete_columns(work).await;
            shorten_numbers(work).await;
            inline(work).await;
            write_shorter_words(work, &names).await;
            join_lines(work).await;
            delete_pairs(work).await;
            redirect(work).await;
        }
        if let Structure::Syntax(grammar) = known {
            syntax_again(work, grammar).await;
        }
        if work.is_text() {
            structure(work, 1).await;
            words(work).await;
            // With the tests that are left, those first that keep what is around a clause as it was.
            delete_clauses(work, patience, Ends::Alike).await;
            delete_around(work).await;
            delete_clauses(work, patience, Ends::Any).await;
        }
    }
    work.limit_fruitless(Some(patience));
    every_run(work).await;
    work.limit_fruitless(None);
    work.discount(work.asked() - asked);
    // What was needed by much that is gone may not be needed now.
    let is_worth_it = (size - work.len()) * WORTHWHILE >= size;
    *refined = (!is_worth_it).then_some(work.reductions());
    work.reductions() > before
}

/// Deletes the items at one index from all lists in brackets, or rows of a table, that have the
/// same number of items: a column of a table is deleted from its declaration and from all of its
/// rows.
async fn delete_columns(work: &mut CurrentBest) {
    let (mut size, mut index) = (2, 0);
    while size <= MOST_COLUMNS {
        let text = work.text();
        let lists = [lists(&tokens(&text)), rows(&text)].concat();
        let alike = lists.iter().filter(|items| items.len() == size);
        let cuts: Vec<Range<usize>> = alike.map(|items| items[index].clone()).collect();
        let is_worth_it = cuts.len() > 1;
        if is_worth_it && work.test(WORDS, Edit::Cut(union(cuts))).await == Outcome::Fail {
            // The shorter lists may be as long as others now.
            (size, index) = (2, 0);
            continue;
        }
        index += 1;
        if index == size || !is_worth_it {
            (size, index) = (size + 1, 0);
        }
    }
}

/// Minimum number of digits of a number that is shortened in a test that makes another number
/// greater in exchange.
const LONG_NUMBER: usize = 16;
/// Minimum number of digits that a number has after a test has made it greater, such as an
/// exponent.
const GREAT: usize = 3;
/// Maximum number of other numbers that are made greater for one long number.
const MOST_OTHERS: usize = 8;

/// Shortens a long number to its first digit and, in the same test, writes nines over another
/// number of the text, such as the exponent: together they may still be as great.
async fn shorten_numbers(work: &mut CurrentBest) {
    let text = work.text();
    let numbers = digits(&text);
    let long = |number: &&Range<usize>| number.len() >= LONG_NUMBER;
    for number in numbers.iter().filter(long) {
        let others = numbers.iter().filter(|other| *other != number);
        for other in others.take(MOST_OTHERS) {
            let mut edits = vec![
                Replacement {
                    at: number.start + 1..number.end,
                    with: Vec::new(),
                },
                Replacement {
                    at: other.clone(),
                    with: vec![b'9'; other.len().max(GREAT)],
                },
            ];
            edits.sort_by_key(|edit| edit.at.start);
            if work.test(WORDS, Edit::Set(edits)).await == Outcome::Fail {
                return;
            }
        }
    }
}

/// Returns the longest ranges of the text that consist of decimal digits.
fn digits(text: &[u8]) -> Vec<Range<usize>> {
    let mut numbers: Vec<Range<usize>> = Vec::new();
    for at in (0..text.len()).filter(|at| text[*at].is_ascii_digit()) {
        match numbers.last_mut().filter(|number| number.end == at) {
            Some(number) => number.end += 1,
            None => numbers.push(at..at + 1),
        }
    }
    numbers
}

/// Returns the lists in brackets whose items are separated by commas: for each list, the ranges of
/// the text that its items take, each with a comma next to it.
fn lists(all: &[Token]) -> Vec<Vec<Range<usize>>> {
    let levels = Levels::of(all);
    let mut lists = Vec::new();
    for open in 0..all.len() {
        let items = levels.items(all, open);
        let last = items.len().saturating_sub(1);
        let places = items.iter().enumerate().map(|(index, item)| {
            // The last item goes with the comma before it, any other with the one after it.
            let tokens = match index {
                0 => item.start..item.end + usize::from(last > 0),
                _ if index == last => item.start - 1..item.end,
                _ => item.start..item.end + 1,
            };
            all[tokens.start].place.start..all[tokens.end - 1].place.end
        });
        lists.push(places.collect());
    }
    lists
}

/// Signs that may separate the values in a row of a table.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// Reads a text as a table, with one row in each line: returns, for each row, the ranges of its
/// values. A range includes one separator beside the value, so that it can be deleted. Empty if
/// there are no separators, or if rows have different numbers of them.
fn rows(text: &[u8]) -> Vec<Vec<Range<usize>>> {
    let count = |line: &[u8], sign: u8| line.iter().filter(|byte| **byte == sign).count();
    let lines = || text.split_inclusive(|byte| *byte == b'\n');
    let first = lines().next().unwrap_or_default();
    let Some(sign) = SEPARATORS.into_iter().find(|sign| first.contains(sign)) else {
        return Vec::new();
    };
    let (mut rows, mut from) = (Vec::new(), 0);
    for line in lines() {
        if count(line, sign) != count(first, sign) {
            return Vec::new();
        }
        let is_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let end_of_line = from + line.len();
        let end = end_of_line - line.iter().rev().take_while(|byte| is_end(byte)).count();
        let mut row: Vec<Range<usize>> = Vec::new();
        for value in text[from..end].split(|byte| *byte == sign) {
            let next = from + value.len() + 1;
            row.push(from..next.min(end));
            from = next;
        }
        from = end_of_line;
        // The last value goes with the separator before it.
        row.last_mut().into_iter().for_each(|last| last.start -= 1);
        rows.push(row);
    }
    rows
}

/// Joins lines: replaces each newline, with the blanks after it, by a semicolon or, if that does
/// not fail, by a blank.
async fn join_lines(work: &mut CurrentBest) {
    let mut at = 0;
    loop {
        let text = work.text();
        let Some(newline) = text[at..].iter().position(|byte| *byte == b'\n') else {
            return;
        };
        let start = at + newline;
        let end = text.len() - text[start..].trim_ascii_start().len();
        at = start + 1;
        if end == at || end == text.len() {
            continue;
        }
        for with in [b";", b" "] {
            let joined = Replacement {
                at: start..end,
                with: with.to_vec(),
            };
            if work.test(WORDS, Edit::Set(vec![joined])).await == Outcome::Fail {
                break;
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashSet;

    use crate::passes::deletions::SHORT;
    use crate::{ExtraTests, Full, Outcome, Search, Structure};

    /// Runs the search [`Full`] on a text, and returns its result and the set of texts that it
    /// tested.
    fn reduce(
        input: &[u8],
        extra: ExtraTests,
        fails: impl Fn(&[u8]) -> bool,
    ) -> (Vec<u8>, HashSet<Vec<u8>>) {
        let mut search = Full::structured(input, Structure::Text);
        search.allow_extra_tests(extra);
        let (mut best, mut tested) = (input.to_vec(), HashSet::new());
        while let Some(candidate) = search.next() {
            let mut text = Vec::new();
            candidate.write_into(input, &best, &mut text);
            tested.insert(text.clone());
            if fails(&text) {
                best = text;
                search.tell(Outcome::Fail);
            } else {
                search.tell(Outcome::Pass);
            }
        }
        (best, tested)
    }

    #[test]
    fn runs_of_a_short_result_are_all_tried() {
        let is_mangled = |text: &[u8]| text == b"_Z1vW_" || text == b"_Z_";
        let reduced = |extra| reduce(b"_Z1vW_", extra, is_mangled).0;
        assert_eq!(reduced(ExtraTests::None), b"_Z1vW_");
        assert_eq!(reduced(ExtraTests::Many), b"_Z_");
        let all: Vec<u8> = (b'a'..).take(SHORT).collect();
        let (best, tested) = reduce(&all, ExtraTests::Many, |text| text == all);
        assert_eq!(best, all);
        for (start, end) in
            (0..SHORT).flat_map(|start| (start + 1..=SHORT).map(move |end| (start, end)))
        {
            let rest = [&all[..start], &all[end..]].concat();
            assert!(rest.is_empty() || tested.contains(&rest), "{start}..{end}");
        }
        let (_, few) = reduce(&all, ExtraTests::Few, |text| text == all);
        let (_, none) = reduce(&all, ExtraTests::None, |text| text == all);
        assert!(none.len() < few.len() && few.len() <= tested.len());
    }

    /// Returns the results of the search [`Full`] without and with refinement.
    pub(in crate::passes) fn refined(input: &[u8], fails: impl Fn(&str) -> bool) -> [String; 2] {
        let is_failure = |text: &[u8]| std::str::from_utf8(text).is_ok_and(&fails);
        [ExtraTests::None, ExtraTests::Many].map(|extra| {
            let best = reduce(input, extra, is_failure).0;
            String::from_utf8(best).expect("the text is UTF-8")
        })
    }

    #[test]
    fn columns_go_from_all_rows() {
        let fails = |text: &str| {
            let rows: Option<Vec<&str>> = text
                .split(' ')
                .map(|row| row.strip_prefix('(')?.strip_suffix(')'))
                .collect();
            let rows = rows.unwrap_or_default();
            let count = |row: &&str| row.split(',').count();
            let has_name = rows.first().is_some_and(|row| row.contains("id"));
            rows.len() == 3 && has_name && rows.iter().all(|row| count(row) == count(&rows[0]))
        };
        let [plain, refined] = refined(b"(a,b,c,id) (1,2,3,4) (5,6,7,8)", fails);
        assert_eq!(plain, "(,,,id) (,,,) (,,,)");
        assert_eq!(refined, "(id) () ()");
    }

    #[test]
    fn columns_go_from_all_lines_of_a_table() {
        for sign in [",", ";", "\t"] {
            let fails = |text: &str| {
                let rows: Vec<Vec<&str>> = text
                    .lines()
                    .map(|line| line.split(sign).collect())
                    .collect();
                let place = rows
                    .first()
                    .and_then(|row| row.iter().position(|name| *name == "price"));
                let is_even = rows.iter().all(|row| row.len() == rows[0].len());
                is_even && place.is_some_and(|place| rows.iter().any(|row| row[place] == "-1"))
            };
            let table = "id,price,color\n1,20,red\n2,-1,blue\n".replace(',', sign);
            assert_eq!(refined(table.as_bytes(), fails)[1], "price\n-1");
        }
        for hostile in ["\t\n\t", "a\t\t\n\t\t", ",", ",\r\n,\n"] {
            for row in super::rows(hostile.as_bytes()) {
                assert!(
                    row.iter().all(|value| value.start <= value.end),
                    "{hostile:?}"
                );
            }
        }
    }

    #[test]
    fn one_block_of_keywords_goes_without_what_is_inside() {
        let text = "function a()local b function a(b)end\nend";
        let fails = |shorter: &str| [text, "local b function a(b)end"].contains(&shorter.trim());
        let [plain, refined] = refined(text.as_bytes(), fails);
        assert_eq!(plain, text);
        assert_eq!(refined, "local b function a(b)end");
    }

    #[test]
    fn names_with_signs_become_short_at_all_places() {
        let fails = |text: &str| {
            let sides = text.split_once(':');
            sides.is_some_and(|(rule, makes)| !rule.is_empty() && rule == makes)
        };
        let text = b"make-all:make-all";
        let has_names = |text: &str| text == "make-all:make-all" || fails(text) && text.len() == 3;
        assert_eq!(refined(text, has_names)[1], "a:a");
    }

    #[test]
    fn shorter_words_stand_in_place_of_longer_ones() {
        let fails = |text: &str| ["(let()(lambda()(b!)))", "(let()(let()(b!)))"].contains(&text);
        let [plain, refined] = refined(b"(let()(lambda()(b!)))", fails);
        assert_eq!(plain, "(let()(lambda()(b!)))");
        assert_eq!(refined, "(let()(let()(b!)))");
    }

    #[test]
    fn a_long_number_becomes_short_where_another_one_is_greater() {
        let fails = |text: &str| text.parse::<f64>().is_ok_and(f64::is_infinite);
        let text = format!("1{}e201", "0".repeat(108));
        let fails_as_number =
            |text: &str| text.starts_with(|sign: char| sign.is_ascii_digit()) && fails(text);
        let [plain, refined] = refined(text.as_bytes(), fails_as_number);
        assert_eq!(plain.len(), text.len());
        assert_eq!(refined, "1e900");
    }

    #[test]
    fn lines_are_joined() {
        let fails = |text: &str| text == "if a:\n  b" || text == "if a:;b";
        let [plain, refined] = refined(b"if a:\n  b", fails);
        assert_eq!(plain, "if a:\n  b");
        assert_eq!(refined, "if a:;b");
    }
}
