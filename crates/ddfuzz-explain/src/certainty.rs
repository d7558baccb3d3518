//! The end of an explanation's text: what is sure, what it has cost, and what was not tried.

use crate::chain::Confidence;
use crate::links::is_in_buffer;
use crate::report::{Explanation, LinkRecord};
use crate::story::{plain, shown_name};

/// Returns a sentence that names what the explanation did not try because its time was over; `None`
/// if it has tried all.
pub(crate) fn untried(it: &Explanation) -> Option<String> {
    let left = it.untried.join("; ");
    (!left.is_empty()).then(|| format!("Not tried, or not to the end, for want of time: {left}."))
}

/// Returns the index of the link of a chain that the end of the text names: the last one whose
/// variable makes the passing run fail, not in a library's buffer where there is another. `None` if
/// no link is confirmed, at least one way.
pub(crate) fn given(chain: &[LinkRecord]) -> Option<usize> {
    let is_sure = |link: &usize| chain[*link].confidence > Confidence::NotConfirmed;
    let mut all = 0..chain.len();
    let mut in_program = all.clone().filter(|link| !is_in_buffer(&chain[*link]));
    in_program.rfind(is_sure).or_else(|| all.rfind(is_sure))
}

/// Returns the sentence that ends an explanation: which variable surely makes the run fail (or that
/// none was confirmed), how many tests and runs were made, and how long that took.
pub(crate) fn certainty(it: &Explanation) -> Vec<String> {
    let seconds = it.wall_ms as f64 / 1000.0;
    let changed = match it.changed_runs {
        0 => String::new(),
        count => format!(" and {count} changed runs"),
    };
    let mutants = match it.mutant_runs {
        0 => String::new(),
        count => format!(", {count} runs of mutants"),
    };
    let left = untried(it).map_or_else(String::new, |it| format!(" {it}"));
    let spent = format!(
        "{} tests{changed}{mutants}, {seconds:.1} s.{left}",
        it.tests
    );
    let sure = given(&it.chain).map(|link| &it.chain[link]);
    let verb = if it.crash.class.is_some() {
        "crashes"
    } else {
        "fails"
    };
    vec![match sure {
        Some(link) => format!(
            "Given {} = {} at that moment, the passing run {verb} the same way (tested). {spent}",
            shown_name(link),
            plain(&link.failing)
        ),
        None if it.out_of_time => {
            format!(
                "The time was over before it was tested which variable makes the passing run fail. {spent}"
            )
        }
        None => format!("No variable is confirmed as a cause of the failure. {spent}"),
    }]
}

/// Returns the last sentences of an explanation that has a chain of causes: what remains unknown,
/// and what tests have shown about the cause.
pub(crate) fn unknown(it: &Explanation) -> String {
    let is_of = |confidence| it.chain.iter().any(|link| link.confidence == confidence);
    let cause = if is_of(Confidence::Confirmed) && is_of(Confidence::OneWayOnly) {
        " The cause shown makes the difference; it need not be the only one. What is called one way \
         only makes the passing run fail, and the failing one fails without it as well."
    } else if is_of(Confidence::Confirmed) {
        " The cause shown makes the difference; it need not be the only one."
    } else if is_of(Confidence::OneWayOnly) {
        " The cause shown makes the passing run fail; the failing one fails without it as well."
    } else if it.look_first.iter().any(|it| it.tested) {
        " What is called tested makes the difference in the failing run; it need not be the only cause."
    } else {
        ""
    };
    format!("Not known: why the program should behave otherwise.{cause}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::story::text;

    #[test]
    fn what_was_not_tested_is_not_called_harmless() {
        let mut it = Explanation {
            chain: vec![LinkRecord::default()],
            ..Explanation::default()
        };
        let nothing = "No variable is confirmed as a cause of the failure.";
        assert!(text(&it).contains(nothing));
        // A variable that makes the passing run fail, and follows from none, is not confirmed, too.
        assert!(!text(&it).contains("alone"));
        let cause = |it: &Explanation| text(it).contains("The cause shown makes the difference");
        assert!(!cause(&it) && text(&it).contains("Not known: why"));
        it.chain[0].confidence = Confidence::OneWayOnly;
        assert!(!cause(&it) && text(&it).contains("fails without it as well."));
        it.chain[0].confidence = Confidence::Confirmed;
        assert!(cause(&it));
        it.chain[0].confidence = Confidence::NotConfirmed;
        it.out_of_time = true;
        assert!(!text(&it).contains(nothing));
        assert!(text(&it).contains("The time was over before"));
    }
}
