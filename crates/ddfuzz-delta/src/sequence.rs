//! Functions that simplify any sequence by a test closure, and functions that split a text into
//! lines or tokens.

use crate::{
    AxiomError, Config, Dd, Ddmin, Difference, Mode, NotFailing, NotPassing, Outcome, Search,
    Tester,
};

/// Minimizes a failing sequence with [`Ddmin`]. The result is a subsequence of `items` whose test
/// gives FAIL, and removing any one of its items makes the failure disappear (1-minimal, A.12).
///
/// All items are tested first, then none. If the test of no items gives FAIL, the result is empty.
/// No configuration is tested twice.
///
/// # Errors
/// [`NotFailing`] if the test of all items does not give FAIL.
///
/// ```
/// use ddfuzz_delta::{Outcome, ddmin};
///
/// let has_both = |kept: &[char]| match kept.contains(&'<') && kept.contains(&'>') {
///     true => Outcome::Fail,
///     false => Outcome::Pass,
/// };
/// let letters: Vec<char> = "some <b>bold</b> text".chars().collect();
/// assert_eq!(ddmin(&letters, has_both), Ok(vec!['<', '>']));
/// ```
pub fn ddmin<T: Clone>(
    items: &[T],
    test: impl FnMut(&[T]) -> Outcome,
) -> Result<Vec<T>, NotFailing> {
    minimize(items, Ddmin::new, test)
}

/// Minimizes a failing sequence with any search, in the same way as [`ddmin`]. `search` makes the
/// search from the number of items. The documentation of each search says what the result
/// guarantees. Items are only deleted: candidates that replace bytes are not tested, so drive
/// [`Full`](crate::Full) by its steps, as `examples/minimize.rs` does.
///
/// # Errors
/// [`NotFailing`] if the test of all items does not give FAIL.
///
/// ```
/// use ddfuzz_delta::{Dd1999, Outcome, minimize};
///
/// let options = ["-O2", "-ffast-math", "-g", "-funroll-loops"];
/// let fails = |kept: &[&str]| match kept.contains(&"-ffast-math") {
///     true => Outcome::Fail,
///     false => Outcome::Pass,
/// };
/// assert_eq!(minimize(&options, Dd1999::new, fails), Ok(vec!["-ffast-math"]));
/// ```
pub fn minimize<T: Clone, S: Search>(
    items: &[T],
    search: impl FnOnce(usize) -> S,
    mut test: impl FnMut(&[T]) -> Outcome,
) -> Result<Vec<T>, NotFailing> {
    let outcome = test(items);
    if outcome != Outcome::Fail {
        return Err(NotFailing { outcome });
    }
    if items.is_empty() || test(&[]) == Outcome::Fail {
        return Ok(Vec::new());
    }
    let mut search = search(items.len());
    tester(items, &mut test).run(&mut search);
    Ok(keep(items, search.best()))
}

/// Runs general delta debugging ([`Dd`]) on a failing sequence: returns a passing part, a failing
/// part, and their difference. No items are tested first, then all items. No configuration is
/// tested twice.
///
/// # Errors
/// [`NotFailing`] if the test of all items does not give FAIL. If the test of no items gives FAIL,
/// [`NotPassing`], except that [`Mode::Minimize`] then returns an empty result.
///
/// ```
/// use ddfuzz_delta::{Mode, Outcome, dd};
///
/// let fails_with_3_and_6 = |kept: &[u32]| match kept.contains(&3) && kept.contains(&6) {
///     true => Outcome::Fail,
///     false => Outcome::Pass,
/// };
/// let isolated = dd(&[1, 2, 3, 4, 5, 6, 7, 8], Mode::Isolate, fails_with_3_and_6)?;
/// assert_eq!(isolated.pass, [5, 6, 7, 8]);
/// assert_eq!(isolated.fail, [3, 5, 6, 7, 8]);
/// assert_eq!(isolated.difference, [3]);
/// # Ok::<(), ddfuzz_delta::AxiomError>(())
/// ```
pub fn dd<T: Clone>(
    items: &[T],
    mode: Mode,
    mut test: impl FnMut(&[T]) -> Outcome,
) -> Result<Difference<Vec<T>>, AxiomError> {
    let nothing = test(&[]);
    let outcome = match items {
        [] => nothing,
        _ => test(items),
    };
    if outcome != Outcome::Fail {
        return Err(NotFailing { outcome }.into());
    }
    let mut search = Dd::new(items.len(), mode);
    if nothing == Outcome::Fail {
        if mode != Mode::Minimize {
            return Err(NotPassing.into());
        }
        search = Dd::new(0, mode);
    }
    tester(items, &mut test).run(&mut search);
    Ok(Difference {
        pass: keep(items, search.pass()),
        fail: keep(items, search.fail()),
        difference: keep(items, search.difference()),
    })
}

/// Returns a tester of configurations of `items`: it calls `test` with the items that a
/// configuration keeps.
fn tester<'a, T: Clone>(items: &'a [T], test: &'a mut impl FnMut(&[T]) -> Outcome) -> Tester<'a> {
    let mut kept = Vec::new();
    Tester::new(move |config| {
        config.write_into(items, &mut kept);
        test(&kept)
    })
}

fn keep<T: Clone>(items: &[T], config: &Config) -> Vec<T> {
    let mut kept = Vec::new();
    config.write_into(items, &mut kept);
    kept
}

/// Splits a text into lines, each with its line end; the last line may have none. The concatenation
/// of the lines is the text.
///
/// ```
/// use ddfuzz_delta::{Outcome, ddmin, lines};
///
/// let program = b"int x;\nint *p = 0;\n*p = 1;\nreturn;\n";
/// let crashes = |kept: &[&[u8]]| match kept.contains(&b"*p = 1;\n".as_slice()) {
///     true => Outcome::Fail,
///     false => Outcome::Pass,
/// };
/// assert_eq!(ddmin(&lines(program), crashes)?.concat(), b"*p = 1;\n");
/// # Ok::<(), ddfuzz_delta::NotFailing>(())
/// ```
pub fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Splits a text into tokens: words (letters, digits, `_` and all bytes beyond ASCII), sequences of
/// blanks, line ends, and every other byte by itself. The concatenation of the tokens is the text.
///
/// ```
/// use ddfuzz_delta::tokens;
///
/// let found = tokens(b"if (x1 >= 10)\n");
/// let expected: [&[u8]; 10] = [b"if", b" ", b"(", b"x1", b" ", b">", b"=", b" ", b"10", b")"];
/// assert_eq!(found[..10], expected);
/// assert_eq!(found[10..], [b"\n"]);
/// ```
pub fn tokens(text: &[u8]) -> Vec<&[u8]> {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let joined =
        |one: &u8, next: &u8| (is_word(one) && is_word(next)) || (is_blank(one) && is_blank(next));
    text.chunk_by(joined).collect()
}
