//! Rows of the chain in the text of an explanation: which links are shown, and what is said of the
//! writer of each. Pure.

use crate::certainty::given;
use crate::named_places::{function_at, plain_place, shown_place, with_caller};
use crate::report::{FrameRecord, LinkRecord, OriginRecord};
use crate::story::{is_told_by_offset, look_first};

/// Describes what the failing run has done with the heap block to which the pointer of `link` leads,
/// if both runs have the same pointer: `allocated here, where drop at list.c:9 has freed a block`;
/// `None` if the pointers differ, or if that is not known.
pub fn block(link: &LinkRecord) -> Option<String> {
    let by = function_at(link.freed.first()?);
    Some(match link.allocated.is_empty() {
        false => format!("allocated here, where {by} has freed a block"),
        true => "freed here".to_owned(),
    })
}

/// Returns words that say that the value of a link in the cause–effect chain was read from the
/// input, and the value's offset in the input; without the offset if it is unknown, or already in
/// the name by [`shown_name`].
pub(crate) fn from_input(link: &LinkRecord) -> String {
    match link.input_offset.filter(|_| !is_told_by_offset(link)) {
        Some(offset) => format!("read from the input, byte {offset} ({offset:#x})"),
        None => "read from the input".to_owned(),
    }
}

/// Describes where the value of a link's variable came from (a call, an earlier write, or another
/// place), where the runs went different ways before, and in which rounds of a loop the values were
/// compared, if not in the same; empty if nothing of it is known.
pub fn origin(link: &LinkRecord) -> String {
    let returned = link
        .returned
        .as_ref()
        .map(|from| format!(", returned by {}", function_at(from)));
    let kept = (link.kept.as_ref()).map(|it| format!(", after {} wrote it", function_at(it)));
    let selected = (link.selected.as_ref().and_then(|it| it.written.first()))
        .map(|it| format!(", from what {} wrote", function_at(it)));
    // That the runs part is the reason for a write in one of them, but not for all that differs then.
    let since = if link.writer.is_some() { "as" } else { "after" };
    let parting = parting(since, &link.parted, &link.decided, link.line);
    returned.or(kept).or(selected).unwrap_or_default() + &parting + &instead(link) + &rounds(link)
}

/// Formats, as a part of a sentence, in which round of a loop each run was when the values of a link
/// were compared; empty if the rounds are the same.
fn rounds(link: &LinkRecord) -> String {
    let told = link.rounds.as_ref().map(|it| {
        let (at, failing, passing) = (plain_place(&it.at), it.failing, it.passing);
        format!(", in round {failing} of the loop at {at}, in the passing run in round {passing}")
    });
    told.unwrap_or_default()
}

/// Formats, as a part of a sentence, the statements that the failing run executes in place of a
/// write that only the passing run makes; empty where none are known.
fn instead(link: &LinkRecord) -> String {
    let Some(first) = link.instead.first() else {
        return String::new();
    };
    let rest = link.instead[1..].iter().filter_map(|it| it.line);
    let rest: String = rest.map(|line| format!(", {line}")).collect();
    format!(
        ", and the failing one executes {}{rest}",
        plain_place(first)
    )
}

/// Formats, as the end of a sentence, the statement `parted` after which the two runs went
/// different ways, and the origin `decided` of the value that decided the way; `since` is the word
/// before it, `as` for a reason and `after` for a time. Empty if the statement is not known, or if
/// it is on `line`, which the text names already, and `decided` is not known.
pub(crate) fn parting(
    since: &str,
    parted: &Option<FrameRecord>,
    decided: &Option<OriginRecord>,
    line: Option<u64>,
) -> String {
    let by = (decided.as_ref()).map(|it| match it.unset {
        true => format!(
            " by what nothing has set in the memory from {}",
            with_caller(it)
        ),
        false => format!(" by a value of {}", with_caller(it)),
    });
    match parted {
        Some(place) if place.line != line || by.is_some() => {
            let by = by.unwrap_or_default();
            format!(", {since} the runs part {}{by}", shown_place(place))
        }
        _ => String::new(),
    }
}

/// Returns the indices of the links that the text shows, at most `most`, in order. If the chain is
/// longer, links are preferred by these criteria: the first link, the link at which to look first,
/// and the one that the end of the text names; a higher confidence; a known writer; a variable of
/// the program, not a register; the last of several links with the same writer; a link that says
/// where its value came from; a later link.
pub(crate) fn shown(chain: &[LinkRecord], most: usize) -> Vec<usize> {
    let named = [Some(0), look_first(chain), given(chain)];
    let mut all: Vec<usize> = (0..chain.len()).collect();
    let rank = |index: &usize| {
        let link = &chain[*index];
        let is_followed = link.decided.is_some()
            || link.returned.is_some()
            || link.kept.is_some()
            || link.selected.is_some();
        let is_same = |it: &LinkRecord| (&it.file, it.line) == (&link.file, link.line);
        let is_repeated = (chain[index + 1..].iter())
            .any(|it| it.writer.is_some() && is_same(it) && it.confidence >= link.confidence);
        std::cmp::Reverse((
            named.contains(&Some(*index)),
            link.confidence,
            link.writer.is_some(),
            !link.variable.starts_with("register "),
            !is_repeated,
            is_followed,
            *index,
        ))
    };
    all.sort_by_key(rank);
    all.truncate(most);
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Confidence;
    use crate::report::{Explanation, WriterRecord};
    use crate::story::text;

    fn link(line: u64, confidence: Confidence) -> LinkRecord {
        let place = FrameRecord {
            function: "f".to_owned(),
            file: Some("main.c".to_owned()),
            line: Some(line),
        };
        LinkRecord {
            variable: format!("v{line}"),
            function: Some(place.function.clone()),
            file: place.file.clone(),
            line: place.line,
            confidence,
            writer: Some(WriterRecord::Statement(place)),
            ..LinkRecord::default()
        }
    }

    #[test]
    fn of_a_long_chain_confirmed_links_and_the_one_named_at_the_end_are_shown() {
        use Confidence::{Confirmed, NotConfirmed, OneWayOnly};
        let mut chain: Vec<LinkRecord> = (1..9).map(|line| link(line, NotConfirmed)).collect();
        for confirmed in [2, 4] {
            chain[confirmed].confidence = Confirmed;
        }
        chain[7].confidence = OneWayOnly;
        // More is known of a link that is not confirmed.
        chain[5].kept = Some(FrameRecord {
            function: "f".to_owned(),
            file: None,
            line: None,
        });
        assert_eq!(shown(&chain, 4), [0, 2, 4, 7]);
        assert_eq!(shown(&chain, 5), [0, 2, 4, 5, 7]);
        let it = Explanation {
            chain,
            ..Explanation::default()
        };
        let text = text(&it);
        let rows = text.lines().filter_map(|line| {
            let number = line.split_whitespace().next()?;
            number.parse().ok()
        });
        // Numbers of the whole chain, of which the failure is the last row.
        assert_eq!(rows.collect::<Vec<usize>>(), [1, 3, 5, 6, 7, 8, 9]);
        assert!(text.contains("Given v8 ="), "{text}");
    }

    #[test]
    fn a_row_without_a_writer_says_that_it_is_where_the_variable_differs() {
        let mut it = Explanation {
            chain: vec![link(1, Confidence::NotConfirmed)],
            ..Explanation::default()
        };
        it.chain[0].parted = Some(FrameRecord {
            function: "g".to_owned(),
            file: Some("main.c".to_owned()),
            line: Some(7),
        });
        let says = |it: &Explanation, words: &str| text(it).contains(words);
        assert!(says(&it, "written here, as the runs part at main.c:7  ["));
        it.chain[0].writer = None;
        assert!(says(
            &it,
            "differs here, after the runs part at main.c:7  ["
        ));
    }

    #[test]
    fn a_block_behind_the_same_pointer_is_told_by_its_free() {
        let place = |line| link(line, Confidence::Confirmed).writer;
        let frame = |line| match place(line) {
            Some(WriterRecord::Statement(place)) => place,
            _ => unreachable!(),
        };
        let mut it = LinkRecord {
            allocated: vec![frame(9)],
            ..LinkRecord::default()
        };
        // A block that was never freed is the same in both runs.
        assert_eq!(block(&it), None);
        it.freed = vec![frame(7)];
        let told = "allocated here, where f at main.c:7 has freed a block";
        assert_eq!(block(&it).as_deref(), Some(told));
        it.allocated.clear();
        assert_eq!(block(&it).as_deref(), Some("freed here"));
    }
}
