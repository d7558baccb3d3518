//! Passes over a small text that replace names by what they stand for, and delete the definitions.

use std::ops::Range;

use crate::passes::current_best::CurrentBest;
use crate::passes::words::{Levels, Token, WORDS, tokens};
use crate::{Edit, Outcome, Replacement};

/// Deletes assignments of a value to a name, and writes the value in place of each use of the name,
/// where that makes the text shorter; then does the same with declarations, and joins similar ones.
pub(super) async fn inline(work: &mut CurrentBest) {
    let mut at = 0;
    loop {
        let text = work.text();
        let all = tokens(&text);
        let Some(name) = (at..all.len()).find(|index| is_assigned(&all, *index, &text)) else {
            break;
        };
        at = name + 1;
        let Some(written) = inlined(&all, name, &text) else {
            continue;
        };
        let edit = Edit::Set(written);
        if edit.of_best(&text).len() < text.len() && work.test(WORDS, edit).await == Outcome::Fail {
            at = 0;
        }
    }
    inline_declared(work).await;
    join_declarations(work).await;
}

/// Joins two successive statements that begin with the same word: writes a comma in place of the
/// semicolon and the second word, so that `let a;let b` becomes `let a,b`.
async fn join_declarations(work: &mut CurrentBest) {
    let mut at = 1;
    loop {
        let text = work.text();
        let all = tokens(&text);
        let levels = Levels::of(&all);
        let joins = |end: &usize| {
            let mut before = levels.clause_start(&all, end - 1);
            while before > 1 && all[before - 1].class == b',' {
                before = levels.clause_start(&all, before - 1);
            }
            let is_word = all[*end].class == b';' && all[before].class == b'a';
            let next = all.get(end + 1).filter(|_| is_word);
            next.is_some_and(|next| next.of(&text) == all[before].of(&text))
        };
        let Some(end) = (at..all.len()).find(joins) else {
            return;
        };
        let joined = Replacement {
            at: all[end].place.start..all[end + 1].place.end,
            with: b",".to_vec(),
        };
        if work.test(WORDS, Edit::Set(vec![joined])).await != Outcome::Fail {
            at = end + 1;
        }
    }
}

/// Deletes statements that declare a name, and writes what they declare in place of the name, where
/// that makes the text shorter. In place of the name of a `typedef`, writes its type; in place of
/// the first words of a declaration (`struct a`), the whole declaration (`struct a{}`).
async fn inline_declared(work: &mut CurrentBest) {
    'anew: loop {
        let text = work.text();
        let all = tokens(&text);
        for statement in statements(&all) {
            let both = [
                named_last(&all, &statement, &text),
                named_first(&all, &statement, &text),
            ];
            for written in both.into_iter().flatten() {
                let edit = Edit::Set(written);
                let is_shorter = edit.of_best(&text).len() < text.len();
                if is_shorter && work.test(WORDS, edit).await == Outcome::Fail {
                    continue 'anew;
                }
            }
        }
        return;
    }
}

/// Returns the statements of a text that end with a semicolon, each as the range of the indices of
/// its tokens without the semicolon.
fn statements(all: &[Token]) -> Vec<Range<usize>> {
    let levels = Levels::of(all);
    let ends = (1..all.len()).filter(|end| all[*end].class == b';');
    let statements = ends.map(|end| levels.clause_start(all, end - 1)..end);
    statements.filter(|statement| statement.len() > 1).collect()
}

/// Returns the edit for a `statement` that declares its last word as a name for what stands before,
/// as `typedef int a` does: deletes the statement, and writes it, without its first and last word
/// (here `int`), over all other occurrences of the name. `None` if the name occurs nowhere else, or
/// the statement does not have this form.
fn named_last(all: &[Token], statement: &Range<usize>, text: &[u8]) -> Option<Vec<Replacement>> {
    let (first, last) = (statement.start, statement.end - 1);
    if all[first].class != b'a' || all[last].class != b'a' || last < first + 2 {
        return None;
    }
    let value = &text[all[first + 1].place.start..all[last].place.start];
    let others = (0..all.len()).filter(|index| !statement.contains(index));
    let uses = others.filter(|index| all[*index].of(text) == all[last].of(text));
    let written = uses.map(|index| Replacement {
        at: all[index].place.start..all[index].place.start + all[index].of(text).len(),
        with: value.trim_ascii_end().to_vec(),
    });
    without(all, statement, written.collect())
}

/// Returns the edit for a declaration `statement` that begins with the name it declares, as in
/// `struct a{}; struct a b`: deletes the statement, and writes all of it over the first other place
/// at which its first words (here `struct a`) stand. These are as many words as also stand together
/// elsewhere; `None` if they are fewer than two.
fn named_first(all: &[Token], statement: &Range<usize>, text: &[u8]) -> Option<Vec<Replacement>> {
    let inside = &all[statement.clone()];
    let words = inside
        .iter()
        .take_while(|token| token.class == b'a')
        .count();
    let value = &text[inside.first()?.place.start..inside.last()?.place.end];
    let stands = |count: usize, at: usize| {
        let there = all.get(at..at + count)?;
        let is_elsewhere = at + count <= statement.start || at >= statement.end;
        let mut pairs = there.iter().zip(inside);
        let is_same = pairs.all(|(one, other)| one.of(text) == other.of(text));
        let last = there.last()?;
        let end = last.place.start + last.of(text).len();
        (is_elsewhere && is_same).then_some(there[0].place.start..end)
    };
    let mut counts = (2..=words).rev();
    let place = counts.find_map(|count| (0..all.len()).find_map(|at| stands(count, at)))?;
    let written = Replacement {
        at: place,
        with: value.trim_ascii_end().to_vec(),
    };
    without(all, statement, vec![written])
}

/// Completes the edits `written`, which write a declared value in place of its name, by one that
/// deletes the declaration: the tokens `statement` of `all` and the semicolon behind them. Returns
/// all edits, sorted by position; `None` if `written` is empty, because the name then is not used.
fn without(
    all: &[Token],
    statement: &Range<usize>,
    mut written: Vec<Replacement>,
) -> Option<Vec<Replacement>> {
    let is_used = !written.is_empty();
    written.push(Replacement {
        at: all[statement.start].place.start..all[statement.end].place.end,
        with: Vec::new(),
    });
    written.sort_by_key(|one| one.at.start);
    is_used.then_some(written)
}

/// Returns true if the token at `index` is a name to which a value is assigned: a word before a
/// single `=`.
fn is_assigned(all: &[Token], index: usize, text: &[u8]) -> bool {
    let sign = |at: usize| all.get(at).map(|token| token.class);
    let is_word = all[index].class == b'a' && sign(index + 1) == Some(b'=');
    let is_compared = sign(index + 2) == Some(b'=') || sign(index + 2).is_none();
    let before = index.checked_sub(1).map(|before| all[before].of(text));
    is_word && !is_compared && before.is_none_or(|before| !matches!(before, b"." | b">"))
}

/// Returns the edit that deletes the assignment to the name at the token `name`, and writes the
/// assigned value in place of all other occurrences of the name (and of a `$` before them). `None`
/// if there are none, or if the value contains the name.
fn inlined(all: &[Token], name: usize, text: &[u8]) -> Option<Vec<Replacement>> {
    let levels = Levels::of(all);
    let ends_line = |index: &usize| ends_line(&all[*index], text);
    let is_declared = |index: &usize| all[*index].class == b'a' && !ends_line(index);
    let words = (0..name).rev().take_while(is_declared).count();
    let stop = levels.clause_end(all, name);
    let line = (name..stop).find(ends_line);
    let last = line.unwrap_or(stop - 1);
    if last < name + 2 {
        return None;
    }
    let after = all
        .get(last + 1)
        .filter(|next| line.is_none() && next.class == b';');
    let value = text[all[name + 2].place.start..all[last].place.end].trim_ascii_end();
    let statement = all[name - words].place.start..after.unwrap_or(&all[last]).place.end;
    let own = all[name].of(text);
    let mut written = vec![Replacement {
        at: statement.clone(),
        with: Vec::new(),
    }];
    for token in all.iter().filter(|token| token.of(text) == own) {
        let start = token.place.start;
        if statement.contains(&start) {
            if start != all[name].place.start {
                return None;
            }
            continue;
        }
        written.push(Replacement {
            at: reference(text, start..start + own.len(), &statement),
            with: value.to_vec(),
        });
    }
    written.sort_by_key(|one| one.at.start);
    (written.len() > 1).then_some(written)
}

/// Returns the range of the text to replace where the name at `name` is used: the name with a `$`
/// before it, with `$(` and `)` or `${` and `}` around it, or else the name alone. `statement` is
/// the range of the assignment of the name, which the same edit deletes; a `$` or bracket at its
/// end is not taken for a part of the use.
fn reference(text: &[u8], name: Range<usize>, statement: &Range<usize>) -> Range<usize> {
    let before = match name.start < statement.start {
        true => &text[..name.start],
        false => &text[statement.end..name.start],
    };
    let is_closed = match before.last() {
        Some(b'(') => text.get(name.end) == Some(&b')'),
        Some(b'{') => text.get(name.end) == Some(&b'}'),
        _ => false,
    };
    match before {
        [.., b'$', _] if is_closed => name.start - 2..name.end + 1,
        [.., b'$'] => name.start - 1..name.end,
        _ => name,
    }
}

/// Returns true if a token is the last one in its line: a newline is among the blanks after it.
fn ends_line(token: &Token, text: &[u8]) -> bool {
    text[token.place.start + token.of(text).len()..token.place.end].contains(&b'\n')
}

#[cfg(test)]
mod tests {
    use crate::passes::refine::tests::refined;

    #[test]
    fn values_are_written_in_place_of_names() {
        let fails = |text: &str| match text.split_once("; ") {
            Some((set, call)) => set == "let n=[7]" && call == "f(n)",
            None => text == "f([7])",
        };
        let [plain, short] = refined(b"let n=[7]; f(n)", fails);
        assert_eq!(plain, "let n=[7]; f(n)");
        assert_eq!(short, "f([7])");
        for text in ["n=[7]\nf($(n))", "n=[7]\nf(${n})", "n=[7]\nf($n)"] {
            let fails = |shorter: &str| [text, "f([7])"].contains(&shorter);
            assert_eq!(refined(text.as_bytes(), fails)[1], "f([7])", "{text}");
        }
    }

    #[test]
    fn statements_with_the_same_first_word_become_one() {
        let fails = |text: &str| ["let b;let b;let b", "let b,b,b"].contains(&text);
        let steps = |text: &str| fails(text) || text == "let b,b;let b";
        let [plain, joined] = refined(b"let b;let b;let b", steps);
        assert_eq!([plain.len(), joined.len()], [17, 9]);
    }

    #[test]
    fn what_is_declared_is_written_in_place_of_its_name() {
        for (text, shorter) in [
            ("typedef struct{}a;b(a*b){b->rest", "b(struct{}*b){b->rest"),
            (
                "struct a{};b(struct a*c){c->rest",
                "b(struct a{}*c){c->rest",
            ),
        ] {
            let fails = |one: &str| [text, shorter].contains(&one);
            assert_eq!(refined(text.as_bytes(), fails), [text, shorter]);
        }
    }
}
