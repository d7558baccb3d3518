//! The pass over the conditional groups of a C preprocessor, such as `#if … #else … #endif`:
//! deletes whole groups, and then directives without the lines between them. Two groups are deleted
//! together if one opens braces that the other closes.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::passes::current_best::CurrentBest;
use crate::passes::list::ListSearch;
use crate::passes::units::{Positions, Units};

/// Name, in logs, of the pass that deletes conditional groups of a preprocessor, or their
/// directives.
const DIRECTIVES: &str = "directives";
/// Number of successive conditional groups that turn out to be needed for the failure, after which
/// the deletion of groups ends.
const FRUITLESS: usize = 16;
/// Conditional groups (from `#if` to `#endif`) are deleted as a whole only if fewer than this many
/// others are around them.
const DEEPEST: usize = 8;

/// A conditional group of a C preprocessor: the lines from an `#if` to its `#endif`.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    /// Range of the line with `#if`, `#ifdef` or `#ifndef`, including its newline.
    head: Range<usize>,
    /// Ranges of the lines with `#elif` and `#else` that belong to the group.
    branches: Vec<Range<usize>>,
    /// Range of the line with `#endif`.
    end: Range<usize>,
    /// Index, in the list of all groups, of the group directly around this group; `None` if there
    /// is none.
    parent: Option<usize>,
}

impl Group {
    fn whole(&self) -> Range<usize> {
        self.head.start..self.end.end
    }
}

/// Which branch of a conditional group (`#if` … `#endif`) is kept when its directives and the other
/// branches are deleted: the first or the last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    First,
    Last,
}

/// Deletes whole conditional groups, from the outermost to the innermost; then, of each group that
/// is left, deletes the directives and all branches but the first or the last one. Does nothing to
/// a text without conditional groups.
pub(super) async fn directives(work: &mut CurrentBest) {
    for depth in 0..DEEPEST {
        let text = work.text();
        let groups = groups(&text);
        let units = at_depth(&groups, depth, &text);
        if units.is_empty() {
            break;
        }
        delete(work, units).await;
    }
    for kept in [Kept::First, Kept::Last] {
        let units = unwrapped(&groups(&work.text()), kept);
        delete(work, units).await;
    }
}

/// Deletes those of `units` that the failure does not need. A unit is a list of ranges of the text,
/// all of which are deleted together.
async fn delete(work: &mut CurrentBest, units: Vec<Vec<Range<usize>>>) {
    let mut units = Positions::new(DIRECTIVES, units);
    if units.len() > 0 {
        let mut list = ListSearch::new(work, &mut units).stop_after(FRUITLESS);
        list.reduce().await;
    }
}

/// Returns the complete conditional groups of a text, in the order of their beginnings.
fn groups(text: &[u8]) -> Vec<Group> {
    let mut groups: Vec<Option<Group>> = Vec::new();
    let mut open: Vec<usize> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let line = at..line_end(text, at);
        at = line.end;
        match directive(&text[line.clone()]) {
            Some(b"if" | b"ifdef" | b"ifndef") => {
                groups.push(Some(Group {
                    head: line,
                    branches: Vec::new(),
                    end: 0..0,
                    parent: open.last().copied(),
                }));
                open.push(groups.len() - 1);
            }
            Some(b"elif" | b"else" | b"elifdef" | b"elifndef") => {
                if let Some(group) = open.last().and_then(|index| groups[*index].as_mut()) {
                    group.branches.push(line);
                }
            }
            Some(b"endif") => {
                if let Some(group) = open.pop().and_then(|index| groups[index].as_mut()) {
                    group.end = line;
                }
            }
            _ => {}
        }
    }
    // Groups inside of one without an end are inside of none.
    for index in open {
        groups[index] = None;
    }
    let number = |count: &mut usize, group: &Option<Group>| {
        let number = group.is_some().then_some(*count);
        *count += usize::from(group.is_some());
        Some(number)
    };
    let numbers: Vec<Option<usize>> = groups.iter().scan(0, number).collect();
    let ended = groups.into_iter().flatten().map(|mut group| {
        group.parent = group.parent.and_then(|parent| numbers[parent]);
        group
    });
    ended.collect()
}

/// Returns the offset after the newline of the line that begins at `start`. A newline after a
/// backslash does not end the line.
fn line_end(text: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(newline) = text[at..].iter().position(|byte| *byte == b'\n') {
        let end = at + newline;
        let line = text[at..end].strip_suffix(b"\r").unwrap_or(&text[at..end]);
        at = end + 1;
        if !line.ends_with(b"\\") {
            return at;
        }
    }
    text.len()
}

/// Returns the name of the preprocessor directive in a line, such as `if`; `None` if the line is
/// not a directive.
fn directive(line: &[u8]) -> Option<&[u8]> {
    let rest = line.trim_ascii_start().strip_prefix(b"#")?;
    let rest = rest.trim_ascii_start();
    let name = rest.iter().take_while(|byte| byte.is_ascii_alphabetic());
    Some(&rest[..name.count()])
}

/// Returns the conditional groups with `depth` groups around them, each as a unit to delete. If a
/// group opens braces that the next of these groups closes, both make one unit.
fn at_depth(groups: &[Group], depth: usize, text: &[u8]) -> Vec<Vec<Range<usize>>> {
    let mut depths: Vec<usize> = Vec::with_capacity(groups.len());
    for group in groups {
        depths.push(group.parent.map_or(0, |parent| depths[parent] + 1));
    }
    let mut units: Vec<Vec<Range<usize>>> = Vec::new();
    // Units that open braces, with the parents of their groups and the numbers of braces.
    let mut opening: Vec<(usize, Option<usize>, usize)> = Vec::new();
    for (group, _) in groups.iter().zip(&depths).filter(|(_, one)| **one == depth) {
        let (closed, opened) = braces(&text[group.whole()]);
        let is_counterpart = opened == 0 && closed > 0;
        let last = opening.last().copied();
        match last.filter(|(_, parent, open)| (*parent, *open) == (group.parent, closed)) {
            Some((unit, ..)) if is_counterpart => {
                units[unit].push(group.whole());
                opening.pop();
            }
            _ => {
                if opened > 0 && closed == 0 {
                    opening.push((units.len(), group.parent, opened));
                }
                units.push(vec![group.whole()]);
            }
        }
    }
    units
}

/// Returns how many braces a text closes that it did not open, and how many it opens without
/// closing them.
fn braces(text: &[u8]) -> (usize, usize) {
    let (mut closed, mut opened) = (0, 0);
    for byte in text {
        match byte {
            b'{' => opened += 1,
            b'}' if opened > 0 => opened -= 1,
            b'}' => closed += 1,
            _ => {}
        }
    }
    (closed, opened)
}

/// Returns, for each conditional group (`#if` to `#endif`), a unit that deletes its directives and
/// all branches except the `kept` one (first or last). Leaves out groups inside of a branch that
/// another unit deletes and, if the last branch is kept, groups with only one branch.
fn unwrapped(groups: &[Group], kept: Kept) -> Vec<Vec<Range<usize>>> {
    let mut units: Vec<Vec<Range<usize>>> = Vec::new();
    // What the units delete: ends of ranges that do not overlap, by their starts.
    let mut deleted: BTreeMap<usize, usize> = BTreeMap::new();
    for group in groups {
        let [front, back] = match (group.branches.as_slice(), kept) {
            ([], Kept::First) => [group.head.clone(), group.end.clone()],
            ([first, ..], Kept::First) => [group.head.clone(), first.start..group.end.end],
            ([.., last], Kept::Last) => [group.head.start..last.end, group.end.clone()],
            ([], Kept::Last) => continue,
        };
        let before = deleted.range(..=front.start).next_back();
        if before.is_none_or(|(_, end)| *end <= front.start) {
            deleted.extend([&front, &back].map(|cut| (cut.start, cut.end)));
            units.push(vec![front, back]);
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::{Kept, at_depth, directives, groups, unwrapped};
    use crate::passes::coroutine::{Coroutine, is_search};
    use crate::passes::current_best::CurrentBest;
    use crate::{Outcome, Search};
    use std::ops::Range;

    const HEADER: &str = "#ifndef H\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n# if \\\n A\nint a;\n\
        # else\nint b;\n# endif\n#ifdef __cplusplus\n}\n#endif\n#endif\n";

    fn texts(text: &str, units: Vec<Vec<Range<usize>>>) -> Vec<Vec<&str>> {
        let texts = units.into_iter().map(|unit| {
            let places = unit.into_iter().map(|place| &text[place]);
            places.collect()
        });
        texts.collect()
    }

    #[test]
    fn groups_that_open_and_close_the_same_braces_go_together() {
        let all = groups(HEADER.as_bytes());
        let parents: Vec<Option<usize>> = all.iter().map(|group| group.parent).collect();
        assert_eq!(parents, [None, Some(0), Some(0), Some(0)]);
        let at = |depth| texts(HEADER, at_depth(&all, depth, HEADER.as_bytes()));
        assert_eq!(at(0), [[HEADER]]);
        let open = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n";
        let close = "#ifdef __cplusplus\n}\n#endif\n";
        let other = "# if \\\n A\nint a;\n# else\nint b;\n# endif\n";
        assert_eq!(at(1), [vec![open, close], vec![other]]);
        assert!(at(2).is_empty());
    }

    #[test]
    fn directives_go_with_all_branches_but_one() {
        let text = "#if A\na\n#elif B\n#if C\n#endif\n#else\nb\n#endif";
        let all = groups(text.as_bytes());
        let kept = |kept| texts(text, unwrapped(&all, kept));
        let rest = "#elif B\n#if C\n#endif\n#else\nb\n#endif";
        assert_eq!(kept(Kept::First), [["#if A\n", rest]]);
        let front = "#if A\na\n#elif B\n#if C\n#endif\n#else\n";
        assert_eq!(kept(Kept::Last), [[front, "#endif"]]);
        // What does not begin or end is no group.
        assert_eq!(groups(b"#endif\n#if A\n#if B\n#else\n#endif\n").len(), 1);
        assert!(groups(b"a # if\n##if\n#include\n").is_empty());
    }

    #[test]
    fn a_hundred_thousand_groups_in_each_other_take_no_time_for_each_pair() {
        const MANY: usize = 100_000;
        let text = ["#if A\n".repeat(MANY), "#endif\n".repeat(MANY)].concat();
        let all = groups(text.as_bytes());
        let parents = all.iter().map(|group| group.parent);
        assert!(parents.skip(1).eq((0..MANY - 1).map(Some)));
        assert_eq!(unwrapped(&all, Kept::First).len(), MANY);
        assert!(unwrapped(&all, Kept::Last).is_empty());
    }

    #[derive(Clone)]
    struct Directives(Coroutine);

    is_search!(Directives);

    #[test]
    fn what_conditions_are_about_stays_without_them() {
        let mut search = Directives(Coroutine::new(HEADER.len(), |asker| {
            let mut work = CurrentBest::new(asker, HEADER.as_bytes().into());
            Box::pin(async move { directives(&mut work).await })
        }));
        let mut best = HEADER.as_bytes().to_vec();
        let mut tests = 0;
        while let Some(candidate) = search.next() {
            let mut text = Vec::new();
            candidate.write_into(HEADER.as_bytes(), &best, &mut text);
            let shown = String::from_utf8_lossy(&text);
            let count = |word: &str| shown.matches(word).count();
            let is_whole =
                count("#if") + count("# if") == count("endif") && count("{") == count("}");
            let fails = is_whole && shown.contains("int b;");
            search.tell(if fails { Outcome::Fail } else { Outcome::Pass });
            best = if fails { text } else { best };
            tests += 1;
        }
        assert_eq!(String::from_utf8_lossy(&best), "int b;\n");
        assert!(tests <= 12, "{tests} tests");
    }
}
