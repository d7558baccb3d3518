//! An explanation as text, at most twelve lines.

use ddfuzz_triage::short_function;

use crate::access_story::{access, freed_early, moved_early};
use crate::certainty::{certainty, unknown, untried};
use crate::chain::Confidence;
pub use crate::chain_rows::{block, origin};
use crate::chain_rows::{from_input, parting, shown};
use crate::difference_story::difference;
use crate::failing_facts::damaged_block;
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
            let rows = chain(it, room.min(SHOWN));
            if rows.len() <= it.chain.len() {
                rest.last_mut().into_iter().for_each(|it| *it += OMITTED);
            }
            lines.extend(rows);
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

/// End of a text that does not have all rows of the chain.
const OMITTED: &str = " Rows that are left out here are on the page.";

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
/// NULL instead of a struct node`; `tail = another struct node than in the passing run` if both have
/// such a block. A local variable of another function than the one that wrote it is named with its
/// function.
pub fn change(link: &LinkRecord) -> String {
    let mut variable = shown_name(link);
    if let (Some(local_of), Some(function)) = (&link.local_of, &link.function)
        && local_of != function
        && !matches!(link.writer, None | Some(WriterRecord::Input))
    {
        variable += &format!(" (of {})", short_function(local_of));
    }
    let block = ["a ", "an "]
        .iter()
        .find_map(|it| link.failing.strip_prefix(it));
    match block.filter(|_| link.failing == link.passing) {
        Some(block) => format!("{variable} = another {block} than in the passing run"),
        None => {
            let [failing, passing] = [&link.failing, &link.passing].map(|it| plain(it));
            format!("{variable} = {failing} instead of {passing}")
        }
    }
}

/// Returns the name by which the text shows the variable of `link`, a link of the cause–effect
/// chain: the variable's name without the inner fields of standard containers or, for a byte of the
/// input in a buffer of the C library or in a variable with a long name, the byte's offset (`byte 7
/// (0x7) of the input`). The name of a part of a text says where the part begins: `line[3…]`.
pub(crate) fn shown_name(link: &LinkRecord) -> String {
    match (&link.writer, link.input_offset) {
        (Some(WriterRecord::Input), Some(offset)) if is_told_by_offset(link) => {
            format!("byte {offset} ({offset:#x}) of the input")
        }
        _ => {
            let name = shortened(&plain(&link.variable));
            let is_text = link.failing.starts_with('"') || link.passing.starts_with('"');
            match name.strip_suffix(']').filter(|_| is_text) {
                Some(begins) => format!("{begins}…]"),
                None => name,
            }
        }
    }
}

/// Longest name of a variable, in characters, that the text shows as a whole.
const NAME: usize = 48;

/// Returns true if the text names the variable of `link`, a byte of the input, by the byte's
/// offset: it is in a buffer of the C library, or its name is long.
pub(crate) fn is_told_by_offset(link: &LinkRecord) -> bool {
    let is_long = || plain(&link.variable).chars().count() > NAME;
    link.input_offset.is_some() && (is_in_buffer(link) || is_long())
}

/// Longest end of a shortened name, in characters.
const END: usize = 24;

/// Returns `name`, of more than [`NAME`] characters only the variable with which it begins and the
/// last fields, or the last one if its name is long.
fn shortened(name: &str) -> String {
    let begins = name.find(['.', '-']).map(|at| &name[..at]);
    let fields = name.match_indices(['.', '>']);
    let fields: Vec<&str> = fields.map(|(at, _)| &name[at + 1..]).collect();
    let is_short = |it: &&&str| it.chars().count() <= END;
    let ends = fields.iter().find(is_short).or(fields.last());
    match (begins, ends) {
        (Some(begins), Some(ends)) if name.chars().count() > NAME => format!("{begins}…{ends}"),
        _ => name.to_owned(),
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

/// Ends of names of fields in which string types keep their length, each with the call that returns
/// the length.
const LENGTHS: [(&str, &str); 2] = [("._M_string_length", ".size()"), (".vec.len", ".len()")];

/// Returns the name of a variable without the fields of standard containers and smart pointers.
pub(crate) fn plain(name: &str) -> String {
    let mut plain = name.to_owned();
    for inner in INNER {
        plain = plain.replace(inner, "");
    }
    for (field, method) in LENGTHS {
        if let Some(of) = plain.strip_suffix(field) {
            plain = format!("{of}{method}");
        }
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
    // An allocator that finds its heap damaged fails by no value of the program.
    let is_of_allocator = damaged_block(it).is_some() && it.crash.ended == "SIGABRT";
    let found = it.origin.as_ref().filter(|_| !is_of_allocator)?;
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

    fn link(variable: &str, failing: &str, passing: &str) -> LinkRecord {
        LinkRecord {
            variable: variable.to_owned(),
            failing: failing.to_owned(),
            passing: passing.to_owned(),
            ..LinkRecord::default()
        }
    }

    #[test]
    fn a_change_is_told_in_names_of_the_program() {
        let told = |link: &LinkRecord| change(link);
        let text = link("line[0]", "\"stop fo\"", "\"top fox\"");
        let words = "line[0…] = \"stop fo\" instead of \"top fox\"";
        assert_eq!(told(&text), words);
        let block = link("n->next", "a struct node", "a struct node");
        let words = "n->next = another struct node than in the passing run";
        assert_eq!(told(&block), words);
        let pointer = link("u", "&units._M_impl._M_start[0]", "NULL");
        assert_eq!(told(&pointer), "u = &units[0] instead of NULL");
        let length = link("unit._M_string_length", "4", "1");
        assert_eq!(told(&length), "unit.size() = 4 instead of 1");
        let mut part = link("h.v[3]", "720", "975");
        (part.local_of, part.function) = (Some("main".to_owned()), Some("move".to_owned()));
        part.writer = Some(WriterRecord::Kernel);
        assert_eq!(told(&part), "h.v[3] (of main) = 720 instead of 975");
        part.function = part.local_of.clone();
        assert_eq!(told(&part), "h.v[3] = 720 instead of 975");
    }

    #[test]
    fn long_names_are_shortened() {
        let name = "iter.iter.buf.inner.lock->data.value.buf.buf.data_ptr[81]";
        let mut long = link(name, "'e'", "'f'");
        assert_eq!(shown_name(&long), "iter…buf.buf.data_ptr[81]");
        (long.writer, long.input_offset) = (Some(WriterRecord::Input), Some(81));
        assert_eq!(shown_name(&long), "byte 81 (0x51) of the input");
        assert_eq!(from_input(&long), "read from the input");
        long.variable = "line[3]".to_owned();
        assert_eq!(from_input(&long), "read from the input, byte 81 (0x51)");
    }
}
