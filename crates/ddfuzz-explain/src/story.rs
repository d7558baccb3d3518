//! An explanation as text, at most twelve lines.

use ddfuzz_triage::short_function;

use crate::access_story::{access, freed_early, moved_early};
use crate::certainty::{certainty, unknown, untried};
use crate::chain::Confidence;
pub use crate::chain_rows::{block, origin};
use crate::chain_rows::{from_input, parting, shown};
use crate::links::is_in_buffer;
use crate::named_places::{calls, depends, function_at, shown_place, with_caller};
use crate::outside_story::outside;
use crate::recursion;
use crate::report::{
    Explanation, FrameRecord, LinkRecord, OriginRecord, SuspectRecord, SwitchedRecord, WriterRecord,
};

/// Largest number of lines of the text of an explanation.
const LINES: usize = 12;
/// Beginning of the line of an explanation that names the statements at which to look first.
const LOOK_FIRST: &str = "Look here first: ";
/// Largest number of links of the chain that the text of an explanation shows.
const SHOWN: usize = 6;

/// Number of lines at the end of an explanation's text that are reserved for how sure the
/// explanation is, and for what is not known.
const CLOSING: usize = 2;

/// Writes an explanation as a text of at most twelve lines.
pub fn text(it: &Explanation) -> String {
    let mut lines = vec![headline(it)];
    lines.extend(look_at(it));
    lines.extend(difference(it));
    match &it.refused {
        Some(refusal) => {
            if it.crash.stack.len() > 1 {
                let stack = it.crash.stack.iter();
                let names: Vec<String> =
                    stack.map(|frame| short_function(&frame.function)).collect();
                let shown = names.len().min(12);
                let more = if names.len() > shown { " < …" } else { "" };
                lines.push(format!("Stack: {}{more}", names[..shown].join(" < ")));
            }
            if !it.only_failing.is_empty() {
                let shown = it.only_failing.len().min(10);
                let names = it.only_failing[..shown].join(", ");
                lines.push(format!("Only the failing run enters: {names}"));
            }
            lines.extend(access(it));
            lines.extend(recursion::text(it));
            lines.extend(overflow(it));
            lines.extend(outside(it));
            lines.extend(freed_early(it));
            lines.extend(moved_early(it));
            lines.extend(how_it_failed(it));
            lines.push(format!("Not explained: {}.", refusal.reason));
            lines.extend(untried(it));
            lines.push(format!("What would help: {}.", refusal.hint));
        }
        None if it.chain.is_empty() => lines.extend(slice(it)),
        None => {
            lines.extend(slice(it));
            let mut rest: Vec<String> = access(it).into_iter().chain(recursion::text(it)).collect();
            rest.extend(overflow(it));
            rest.extend(outside(it));
            rest.extend(freed_early(it));
            rest.extend(moved_early(it));
            rest.extend(how_it_failed(it));
            rest.extend(certainty(it));
            rest.push(unknown(it));
            // The last row is that of the failure.
            let room = LINES.saturating_sub(lines.len() + rest.len() + 1);
            lines.extend(chain(it, room.min(SHOWN)));
            let (facts, end) = (rest.len() - CLOSING, lines.len() + rest.len() - CLOSING);
            lines.extend(rest);
            match depends(it, &lines) {
                Some(depends) if facts > 0 => lines[end - 1] += &format!(" {depends}"),
                Some(depends) if lines.len() < LINES => lines.insert(end, depends),
                _ => {}
            }
        }
    }
    lines.truncate(LINES);
    lines.join("\n") + "\n"
}

/// Returns a text with the points of the runs at which states were compared, one on each line.
pub fn points(it: &Explanation) -> String {
    let points = &it.points;
    let mut text = format!(
        "The failing run has {} points, the passing run {}, {} of them in both. States were compared at \
         {} of them:\n",
        points.failing,
        points.passing,
        points.matching,
        it.examined.len()
    );
    for one in &it.examined {
        let at = &one.point;
        let place = match (&at.file, at.line) {
            (Some(file), Some(line)) => format!("{}:{line}", base(file)),
            _ => String::new(),
        };
        let cause = one.cause.as_deref().unwrap_or("none found");
        text += &format!(
            "  {:<16} {place:<20} time {:<5} {:>4} differ  {:>3} tests  {cause}\n",
            short_function(at.function.as_deref().unwrap_or("")),
            at.nth,
            one.differences,
            one.tests,
        );
    }
    text
}

/// Returns the first line of an explanation: what failed, and where.
pub fn headline(it: &Explanation) -> String {
    let crash = &it.crash;
    let function = crash.function.as_deref().map(short_function);
    let place = match (function, &crash.file, crash.line) {
        (Some(function), Some(file), Some(line)) => {
            format!(" in {function}, {}:{line}", base(file))
        }
        (Some(function), ..) => format!(" in {function}"),
        (None, Some(file), Some(line)) => format!(" at {}:{line}", base(file)),
        _ => (it.overrun.as_ref().and_then(|it| it.return_of.as_deref()))
            .map_or_else(String::new, |it| {
                format!(" after the return of {}", short_function(it))
            }),
    };
    let place = match &crash.library {
        Some(library) => format!("{place} of {library}, whose code is not examined"),
        None => place,
    };
    let message = || {
        crash
            .message
            .as_deref()
            .and_then(|text| text.lines().next())
    };
    let source = crash
        .source
        .as_deref()
        .or_else(message)
        .map(|text| format!("  ({text})"))
        .or_else(|| is_newer(it).then(|| "  (the source is newer than the program)".to_owned()))
        .unwrap_or_default();
    let ended = match &crash.wrong {
        Some(wrong) => format!("wrong output: {wrong}"),
        None => crash.ended.clone(),
    };
    match (ended.as_str(), crash.replays) {
        ("", _) => format!("{}: not examined", crash.program),
        (ended, 0) => format!("{}: {ended}{place}{source}", crash.program),
        (ended, replays) => {
            let of = replays.max(3);
            format!(
                "{}: {ended}{place}{source}   {replays} of {of} replays",
                crash.program
            )
        }
    }
}

/// Returns true if the source of the statement at which the run failed is newer than the program.
fn is_newer(it: &Explanation) -> bool {
    (it.crash.file.as_ref()).is_some_and(|file| it.newer_sources.contains(file))
}

/// Returns the line of the explanation's text that names the statements at which to look first,
/// each with the reason; `None` if there are none.
fn look_at(it: &Explanation) -> Option<String> {
    let named = |it: &SuspectRecord| {
        let how = if it.tested { "tested" } else { "suspicion" };
        format!("{} ({how}: {})", calls(&it.place), it.why)
    };
    let all: Vec<String> = it.look_first.iter().map(named).collect();
    (!all.is_empty()).then(|| format!("{LOOK_FIRST}{}", all.join(", then ")))
}

fn difference(it: &Explanation) -> Option<String> {
    let input = &it.input;
    let all = &input.difference;
    if all.is_empty() {
        return None;
    }
    let bytes: usize = all
        .iter()
        .map(|it| it.removed.0.len().max(it.inserted.0.len()))
        .sum();
    let plural = if bytes == 1 { "" } else { "s" };
    let at = all[0].at.map(|at| at as usize);
    let failing = input.failing.as_ref().map_or(&[][..], |it| &it.0);
    let passing = input.passing.as_ref().map_or(&[][..], |it| &it.0);
    // Lines are of no help where there are none.
    let (place, [failing, passing]) = match [failing, passing].iter().all(|it| is_text(it)) {
        true => {
            let (line, failing) = around(failing, at[0]);
            (format!("line {line}"), [failing, around(passing, at[0]).1])
        }
        false => {
            let bytes = [around_byte(failing, at[0]), around_byte(passing, at[0])];
            (format!("byte {0} ({0:#x})", at[0]), bytes)
        }
    };
    let inputs = match input.is_closer {
        true => "The failing input and a passing one, closer than the given one,",
        false => "The failing and the passing input",
    };
    Some(format!(
        "{inputs} differ in {bytes} byte{plural}:   {place}: {failing} fails   {passing} passes"
    ))
}

/// Returns true if an input is a text: valid UTF-8 without control characters other than those that
/// end and indent lines.
fn is_text(bytes: &[u8]) -> bool {
    let is_plain = |it: char| !it.is_control() || matches!(it, '\n' | '\r' | '\t');
    std::str::from_utf8(bytes).is_ok_and(|text| text.chars().all(is_plain))
}

/// Returns the bytes of an input from the offset `at` on, at most eight, as hexadecimal numbers.
fn around_byte(bytes: &[u8], at: usize) -> String {
    let shown = &bytes[at.min(bytes.len())..bytes.len().min(at.saturating_add(8))];
    let hex: Vec<String> = shown.iter().map(|byte| format!("{byte:02x}")).collect();
    match shown.is_empty() {
        true => "its end".to_owned(),
        false => hex.join(" "),
    }
}

/// Returns the number of the line with the byte at offset `at` of a text, and the part of the line
/// within 20 bytes of it, quoted and escaped.
fn around(text: &[u8], at: usize) -> (usize, String) {
    let at = at.min(text.len());
    let line = text[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
    let start = text[..at]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    let end = text[at..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(text.len(), |end| at + end);
    let from = start.max(at.saturating_sub(20));
    let to = end.min(at + 20).max(from);
    (line, format!("\"{}\"", text[from..to].escape_ascii()))
}

/// Returns the file name in a path, without its folders.
pub fn base(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// Returns the index of the link of a chain at which to look first: the last confirmed link whose
/// value a statement of the program wrote. Ignores output buffers, and links that only show a later
/// value of the variable of the confirmed link before. `None` if there is no such link.
pub fn look_first(chain: &[LinkRecord]) -> Option<usize> {
    let is_sure = |link: &LinkRecord| link.confidence == Confidence::Confirmed;
    let is_own = |index: &usize| {
        let link = &chain[*index];
        let before = index.checked_sub(1).map(|before| &chain[before]);
        // A register is none: it holds one value after another.
        let is_later = !link.variable.starts_with("register ")
            && before.is_some_and(|before| before.variable == link.variable && is_sure(before));
        let is_own = matches!(
            link.writer,
            Some(WriterRecord::Statement(_) | WriterRecord::Missed(_))
        );
        is_own && !is_later && !is_in_buffer(link)
    };
    (0..chain.len()).rfind(|index| is_own(index) && is_sure(&chain[*index]))
}

/// Describes how the variable of a link in the cause–effect chain differs between the runs: `tail =
/// NULL instead of a struct node`; `tail = another struct node` if both runs have such a block.
pub fn change(link: &LinkRecord) -> String {
    let variable = shown_name(link);
    let block = ["a ", "an "]
        .iter()
        .find_map(|it| link.failing.strip_prefix(it));
    match block.filter(|_| link.failing == link.passing) {
        Some(block) => format!("{variable} = another {block}"),
        None => format!("{variable} = {} instead of {}", link.failing, link.passing),
    }
}

/// Returns the name by which the text shows the variable of `link`, a link of the cause–effect
/// chain: the variable's name without the inner fields of standard containers or, for a byte of the
/// input in a buffer of the C library, the byte's offset (`byte 7 (0x7) of the input`).
pub(crate) fn shown_name(link: &LinkRecord) -> String {
    match (&link.writer, link.input_offset) {
        (Some(WriterRecord::Input), Some(offset)) if is_in_buffer(link) => {
            format!("byte {offset} ({offset:#x}) of the input")
        }
        _ => plain(&link.variable),
    }
}

/// Fields of containers and smart pointers of the standard libraries of Rust and C++, which the
/// text leaves out of the names of variables.
const INNER: [&str; 6] = [
    ".vec.buf.inner.ptr.pointer.pointer",
    ".buf.inner.ptr.pointer.pointer",
    ".pointer.pointer",
    "._M_t._M_t._M_head_impl",
    "._M_impl._M_start",
    "._M_dataplus._M_p",
];

/// Returns the name of a variable without the fields of standard containers and smart pointers.
pub(crate) fn plain(name: &str) -> String {
    let mut plain = name.to_owned();
    for inner in INNER {
        plain = plain.replace(inner, "");
    }
    plain
}

fn chain(it: &Explanation, most: usize) -> Vec<String> {
    let look = look_first(&it.chain);
    let place = |function: &Option<String>, file: &Option<String>, line: Option<u64>| {
        let place = match (file, line) {
            (Some(file), Some(line)) => format!("{}:{line}", base(file)),
            _ => String::new(),
        };
        let function = function.as_deref().map(short_function);
        (function.unwrap_or_default(), place)
    };
    let mut rows: Vec<(usize, [String; 4])> = Vec::new();
    for index in shown(&it.chain, most) {
        let link = &it.chain[index];
        let (function, place) = place(&link.function, &link.file, link.line);
        let mut note = match &link.writer {
            Some(WriterRecord::Statement(_)) if link.in_both => {
                "written here in both runs".to_owned()
            }
            Some(WriterRecord::Statement(_)) => "written here".to_owned(),
            Some(WriterRecord::Missed(_)) => "written here by the passing run only".to_owned(),
            Some(WriterRecord::Input) => from_input(link),
            Some(WriterRecord::Kernel) => "written by the kernel".to_owned(),
            None => block(link).unwrap_or_else(|| "differs here".to_owned()),
        };
        note += &origin(link);
        if link.confidence != Confidence::Confirmed {
            note = format!("{note}  [{}]", link.confidence.word());
        }
        let is_named = |it: &SuspectRecord| {
            let place = it.place.first();
            place.is_some_and(|it| (&it.file, it.line) == (&link.file, link.line))
        };
        if look == Some(index) && it.look_first.first().is_some_and(is_named) {
            note += "   <- look here first";
        }
        rows.push((index + 1, [function, place, change(link), note]));
    }
    let crash = &it.crash;
    let (function, at) = place(&crash.function, &crash.file, crash.line);
    let what = crash.source.clone().unwrap_or_else(|| crash.ended.clone());
    let is_crash = crash.class.is_some();
    let end = if is_crash { "crash" } else { "failure" };
    let end = format!(
        "{end}{}",
        parting("as", &it.parted, &it.decided, crash.line)
    );
    rows.push((it.chain.len() + 1, [function, at, what, end]));
    aligned(&rows)
}

/// Writes a sentence about the heap block past whose end the failing run has written; `None` if
/// none is known.
fn overflow(it: &Explanation) -> Option<String> {
    let found = it.overflow.as_ref()?;
    let undone = match found.is_averted {
        true => ": with this undone, the run does not fail so",
        false => "",
    };
    let size = match &found.size {
        Some(size) => {
            let written = calls(&size.written);
            let read = (found.size_read_by()).map(|it| format!(", read by {}", function_at(it)));
            let read = read.unwrap_or_default();
            format!(
                " Its size comes from {written}{read}{}.",
                made_of(size, MADE_OF)
            )
        }
        None => String::new(),
    };
    if it.access.is_some() {
        let size = size.replacen(" Its size", "The size of that block", 1);
        return (!size.is_empty()).then_some(size);
    }
    Some(format!(
        "{} {} behind the heap block of {} bytes that is allocated by {}{undone}.{size}",
        function_at(&found.writer),
        if found.reads { "reads" } else { "writes" },
        found.bytes,
        calls(&found.allocated),
    ))
}

/// Describes why the run crashed: where the value that crashed it came from, and which conditions
/// avert the failure when decided the other way; `None` if neither is known.
fn how_it_failed(it: &Explanation) -> Option<String> {
    let facts: Vec<String> = value_origin(it).into_iter().chain(switched(it)).collect();
    (!facts.is_empty()).then(|| facts.join(" "))
}

/// Describes where the value that crashed the run came from; `None` if that is unknown, or if the
/// described cause–effect chain names the same lines.
fn value_origin(it: &Explanation) -> Option<String> {
    let found = it.origin.as_ref()?;
    let is_told = |place: &FrameRecord| {
        let mut links = it.chain.iter();
        links.any(|link| (&link.file, link.line) == (&place.file, place.line))
    };
    let earlier = (found.earlier.iter()).flat_map(|it| it.written.iter().take(2));
    let mut told = found.written.iter().take(2).chain(earlier);
    let first = found.written.first()?;
    if told.all(is_told) {
        return None;
    }
    let read = match &found.read {
        Some(read) if read != first => format!(" read {}", shown_place(read)),
        _ => String::new(),
    };
    let written = calls(&found.written);
    let of = made_of(found, MADE_OF);
    let how = match (found.unset, read.is_empty()) {
        _ if found.selects && !found.unset => format!(
            "is read where nothing has written it, from a place that depends on what was written \
             by {written}"
        ),
        (false, true) => format!("is written by {written}"),
        (false, false) => format!("is written by {written}, and{read}"),
        (true, _) => format!("is{read} before anything sets it: since {written}"),
    };
    Some(format!("The value by which it crashes {how}{of}."))
}

/// Largest number of statements named as sources of the values that made the failing value.
const MADE_OF: usize = 3;
/// Largest number of statements that the text about a condition names as sources: statements that
/// wrote the values from which the tested value was made.
const OF_CONDITION: usize = 2;

/// Formats the statements, at most `most`, that wrote the values from which a value was made.
/// Statements that computed a number out of range come first, statements that only copied a value
/// last; otherwise the latest come first. Empty if none are known.
fn made_of(origin: &OriginRecord, most: usize) -> String {
    let mut earlier: Vec<&OriginRecord> = origin.earlier.iter().collect();
    earlier.sort_by_key(|it| (!it.out_of_range, it.copies));
    let more = match earlier.len().saturating_sub(most) {
        0 => String::new(),
        more => format!(", and {more} more (explanation.json)"),
    };
    earlier.truncate(most);
    let named = |is_unset: bool| {
        let those = earlier.iter().filter(|it| it.unset == is_unset);
        let named: Vec<String> = those.map(|it| with_caller(it)).collect();
        named.join(", ")
    };
    let (set, unset) = (named(false), named(true));
    match (set.is_empty(), unset.is_empty()) {
        (true, true) => String::new(),
        (false, true) => format!("; it depends on what was written by {set}{more}"),
        (true, false) => format!("; it depends on what nothing has set since {unset}{more}"),
        (false, false) => format!(
            "; it depends on what was written by {set}, and on what nothing has set since {unset}{more}"
        ),
    }
}

/// Describes the conditions that avert the failure when decided the other way; `None` if none are
/// known.
fn switched(it: &Explanation) -> Option<String> {
    let condition = |it: &SwitchedRecord| {
        let at = function_at(&it.condition);
        let by = (it.by.as_ref()).map(|by| {
            let value = match by.unset {
                true => "what nothing has set in the memory from",
                false => "a value of",
            };
            format!(
                " ({value} {}{})",
                with_caller(by),
                made_of(by, OF_CONDITION)
            )
        });
        format!("{at}{}", by.unwrap_or_default())
    };
    let all: Vec<String> = it.switched.iter().map(condition).collect();
    (!all.is_empty()).then(|| {
        let or = all.join(", or of ");
        format!("With the other decision of {or}, the run does not fail (tested).")
    })
}

/// Returns rows of text, numbered and with aligned columns, one on each line.
fn aligned(rows: &[(usize, [String; 4])]) -> Vec<String> {
    let width = |column: usize| {
        let widths = rows.iter().map(|(_, row)| row[column].chars().count());
        widths.max().unwrap_or(0)
    };
    let (one, two, three) = (width(0), width(1), width(2).min(52));
    let lines = rows.iter().map(|(number, [function, place, what, note])| {
        let line = format!("{number:2}  {function:one$}  {place:two$}  {what:three$}  {note}");
        line.trim_end().to_owned()
    });
    lines.collect()
}

/// Largest number of source lines of a critical slice that the text names.
const SLICE_LINES: usize = 20;

fn slice(it: &Explanation) -> Option<String> {
    let slice = it.slice.as_ref()?;
    let mut lines: Vec<u64> = slice.kept.iter().filter_map(|event| event.line).collect();
    lines.sort_unstable();
    lines.dedup();
    let more = if lines.len() > SLICE_LINES {
        ", …"
    } else {
        ""
    };
    let shown: Vec<String> = lines.iter().take(SLICE_LINES).map(u64::to_string).collect();
    let (these, reproduce) = match slice.kept.len() {
        1 => ("This".to_owned(), "reproduces"),
        kept => (format!("These {kept}"), "reproduce"),
    };
    let plural = if lines.len() == 1 { "" } else { "s" };
    Some(format!(
        "{these} of {} statement executions alone {reproduce} it ({} tests): line{plural} {}{more}",
        slice.events,
        slice.tests,
        shown.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_where_an_input_has_no_lines() {
        assert!(is_text(b"one\n\ttwo\r\n") && is_text("é".as_bytes()));
        assert!(!is_text(b"PK\x03\x04") && !is_text(b"\xc2"));
        assert_eq!(around_byte(b"ab\x80\xff", 2), "80 ff");
        assert_eq!(around_byte(&[7; 20], 4), "07 07 07 07 07 07 07 07");
        assert_eq!(around_byte(b"ab", 2), "its end");
    }
}
