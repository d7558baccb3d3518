//! Which known name was meant.

/// The name that takes the fewest edits to become from `name`, if it takes few of them.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let edits = known.into_iter().map(|one| (edits(name, one), one));
    let most = 1 + name.chars().count() / 3;
    edits
        .filter(|(edits, _)| *edits <= most)
        .min()
        .map(|(_, one)| one)
}

/// The Levenshtein distance of two names.
fn edits(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (above, of_one) in one.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (at, of_other) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(of_one != *of_other);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_pen_is_understood_and_another_word_is_not() {
        let known = ["timeout", "time", "runs", "budget-time"];
        assert_eq!(nearest("tiem", known), Some("time"));
        assert_eq!(nearest("budget_time", known), Some("budget-time"));
        assert_eq!(nearest("colour", known), None);
    }
}
