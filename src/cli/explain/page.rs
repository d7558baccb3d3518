//! Generates the HTML page of an explanation: one file that loads nothing and needs no script.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use crate::exec::{Channel, Program, Target};
use crate::explain::chain::Confidence;
use crate::explain::plan::ByHand;
use crate::explain::report::{Explanation, FrameRecord, LinkRecord, RecursionRecord, WriterRecord};
use crate::explain::source_text;
use crate::explain::story;
use crate::files::shell::quoted;
use crate::files::{escaped_lines, escaped_markup as escaped};
use crate::report::page_without_script;
use crate::triage::short_function;

/// CSS of the HTML page of an explanation, in addition to the CSS of all pages of ddfuzz.
const STYLE: &str = "\
pre.story { white-space: pre-wrap; }
td.failing { color: var(--high); } td.passing { color: var(--blue); }
svg .failing { fill: var(--high); } svg .passing { fill: var(--blue); }
.unsure td { color: var(--faint); }
";

/// Generates the HTML page of an explanation: which variables carried a failure from the input to
/// the crash. `run` is how gdb makes the passing run.
pub fn html(it: &Explanation, run: &ByGdb) -> String {
    let title = format!("why {} fails", it.crash.program);
    let mut page = format!(
        "<h1>{}</h1>\n{}\n",
        escaped(&title),
        whole_text(&story::text(it))
    );
    if !it.chain.is_empty() {
        page += "<h2>The chain</h2>\n";
        page += &table(it);
    }
    if !it.chain.is_empty() || it.recursion.is_some() {
        page += "<h2>Source</h2>\n";
        page += &sources(it);
    }
    if !it.chain.is_empty() {
        page += &it.drawing;
        page += "<h2>By hand, in gdb</h2>\n";
        page += &commands(it, run);
    }
    page += "<h2>Points and tests</h2>\n";
    let (points, mut numbers) = (&it.points, String::new());
    for (name, number) in [
        ("points of the failing run", points.failing),
        ("points of the passing run", points.passing),
        ("points of both", points.matching),
        (
            "points at which a variable was found to matter",
            points.used,
        ),
        ("points of no use for tests", points.skipped),
        ("tests", it.tests as usize),
    ] {
        let _ = write!(numbers, "<dt>{name}</dt><dd>{number}</dd>");
    }
    let _ = writeln!(page, "<dl>{numbers}</dl>");
    page += &examined(it);
    page_without_script(&title, STYLE, &page)
}

/// Returns the HTML markup of `text`, the explanation as plain text.
fn whole_text(text: &str) -> String {
    let text = escaped_lines(text);
    format!("<pre class=\"story\" tabindex=\"0\">{text}</pre>")
}

/// Returns true if the explanation on the HTML page `page`, as plain text, is exactly `text`; else
/// false.
pub fn shows(page: &[u8], text: &[u8]) -> bool {
    let (page, text) = (str::from_utf8(page), str::from_utf8(text));
    page.is_ok_and(|page| text.is_ok_and(|text| page.contains(&whole_text(text))))
}

fn writer(link: &LinkRecord) -> String {
    match &link.writer {
        Some(WriterRecord::Statement(place)) if link.in_both => {
            format!("both runs: {}", frame(place))
        }
        Some(WriterRecord::Statement(place)) => frame(place),
        Some(WriterRecord::Missed(place)) => format!("the passing run only: {}", frame(place)),
        Some(WriterRecord::Input) => match link.input_offset {
            Some(offset) => format!("read from the input, byte {offset} ({offset:#x})"),
            None => "read from the input".to_owned(),
        },
        Some(WriterRecord::Kernel) => "the kernel".to_owned(),
        None => match (
            link.allocated.first().or(link.freed.first()),
            story::block(link),
        ) {
            (Some(place), Some(block)) => format!("{}: {block}", frame(place)),
            _ => "not known".to_owned(),
        },
    }
}

fn frame(place: &FrameRecord) -> String {
    let function = short_function(&place.function);
    match (&place.file, place.line) {
        (Some(file), Some(line)) => format!("{function} ({}:{line})", story::base(file)),
        _ => function,
    }
}

fn table(it: &Explanation) -> String {
    let mut text = "<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th></th><th>variable</th>\
                    <th>type</th><th>failing run</th><th>passing run</th><th>written by</th>\
                    <th>tested at</th><th></th></tr>\n"
        .to_owned();
    for (index, link) in it.chain.iter().enumerate() {
        let point = &link.point;
        let at = match (&point.file, point.line) {
            (Some(file), Some(line)) => format!("{}:{line}, time {}", story::base(file), point.nth),
            _ => String::new(),
        };
        let class = if link.confidence == Confidence::Confirmed {
            "sure"
        } else {
            "unsure"
        };
        let _ = writeln!(
            text,
            "<tr class=\"{class}\"><td>{}</td><td><code>{}</code></td><td><code>{}</code></td>\
             <td class=\"failing\">{}</td><td class=\"passing\">{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            index + 1,
            escaped(&link.variable),
            escaped(&link.type_name),
            escaped(&link.failing),
            escaped(&link.passing),
            escaped(&(writer(link) + &story::origin(link))),
            escaped(&at),
            link.confidence.word(),
        );
    }
    text + "</table></div>\n"
}

/// Returns an HTML table of the points (executions of statements) at which the states of the
/// passing and the failing run were compared; empty if there are none.
fn examined(it: &Explanation) -> String {
    if it.examined.is_empty() {
        return String::new();
    }
    let mut text =
        "<details><summary>The points at which states were compared</summary>\n<div class=\"scroll\" \
         tabindex=\"0\"><table>\n<tr><th>point</th><th>function</th><th>time</th><th>variables \
         that differ</th><th>tests</th><th>what matters there</th></tr>\n"
            .to_owned();
    for one in &it.examined {
        let at = &one.point;
        let place = match (&at.file, at.line) {
            (Some(file), Some(line)) => format!("{}:{line}", story::base(file)),
            _ => format!("{:#x}", at.address),
        };
        let cause = match &one.cause {
            Some(name) => format!("<code>{}</code>", escaped(name)),
            None => "none found".to_owned(),
        };
        let _ = writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td>\
             <td class=\"n\">{}</td><td>{cause}</td></tr>",
            escaped(&place),
            escaped(&short_function(at.function.as_deref().unwrap_or(""))),
            at.nth,
            one.differences,
            one.tests,
        );
    }
    text + "</table></div></details>\n"
}

/// Returns the places in the source that an explanation names beside the statements of its
/// cause–effect chain, each with a note. At these places a value is returned, the two runs take
/// different paths, a heap block is allocated, overflowed or freed, or a recursion goes on.
fn beside(it: &Explanation) -> Vec<(&FrameRecord, String)> {
    let mut found = Vec::new();
    for (index, link) in it.chain.iter().enumerate() {
        let returned = link.returned.iter();
        found.extend(returned.map(|place| (place, format!("{}: returned here", index + 1))));
        let parted = link.parted.iter();
        found.extend(parted.map(|place| (place, format!("{}: the runs part", index + 1))));
        let decided = link.decided.iter().filter_map(|it| it.written.first());
        found.extend(decided.map(|place| (place, format!("{}: decides that", index + 1))));
        let selected = link.selected.iter().filter_map(|it| it.written.first());
        found.extend(
            selected.map(|place| (place, format!("{}: the value that is read", index + 1))),
        );
        let kept = link.kept.iter();
        found.extend(kept.map(|place| (place, format!("{}: the value that stays", index + 1))));
    }
    let parted = it.parted.iter();
    let end = it.chain.len() + 1;
    found.extend(parted.map(|place| (place, format!("{end}: the runs part"))));
    let decided = it.decided.iter().filter_map(|it| it.written.first());
    found.extend(decided.map(|place| (place, format!("{end}: decides that"))));
    let value = match it.origin.as_ref().is_some_and(|it| it.selects) {
        true => "where the value is read by which it crashes",
        false => "the value by which it crashes",
    };
    let origin = it.origin.iter().flat_map(|it| it.written.iter().take(2));
    found.extend(origin.map(|place| (place, value.to_owned())));
    let earlier = it.origin.iter().flat_map(|it| &it.earlier);
    let earlier = earlier.filter_map(|it| it.written.first());
    found.extend(earlier.map(|place| (place, "of what that value was made".to_owned())));
    for switched in &it.switched {
        let otherwise = "decided otherwise, the run does not fail";
        found.push((&switched.condition, otherwise.to_owned()));
        let by = switched.by.iter().filter_map(|it| it.written.first());
        found.extend(by.map(|place| (place, "by this value that is decided".to_owned())));
    }
    if let Some(block) = &it.overflow {
        let allocated = block.allocated.first().into_iter();
        found.extend(allocated.map(|place| (place, "a heap block is allocated".to_owned())));
        let size = block.size.iter().filter_map(|it| it.written.first());
        found.extend(size.map(|place| (place, "its size is made here".to_owned())));
        let how = if block.reads { "read" } else { "written" };
        found.push((&block.writer, format!("{how} behind its end")));
    }
    let access = it.access.iter().filter_map(|it| it.place.first());
    found.extend(access.map(|place| (place, "the access that is reported".to_owned())));
    found.extend(it.recursion.iter().flat_map(of_recursion));
    let overrun = it.overrun.iter().filter_map(|it| it.place.first());
    found.extend(overrun.map(|place| (place, "written into another variable".to_owned())));
    found.extend(of_reads(it));
    found.extend(of_freed(it));
    found
}

/// Returns the places at which a heap block is freed or moved too early, and at which it is used
/// after that, each with a note for the page.
fn of_freed(it: &Explanation) -> Vec<(&FrameRecord, String)> {
    let mut found = Vec::new();
    let moved = it.moved_early.first().into_iter();
    let without = match (&it.access, it.freed_together) {
        (None, _) => "without this move of a block, the run does not fail",
        (_, 0) => "with the old block kept here, the access is not reported",
        _ => "with the old block kept here, the run does not fail",
    };
    found.extend(moved.map(|place| (place, without.to_owned())));
    let freed = it.freed_early.first().into_iter();
    let without = match it.freed_together {
        0 => "without this free, the access is not reported",
        1 => "without this free, the run does not fail",
        _ => "without this free and those beside it, the run does not fail",
    };
    found.extend(freed.map(|place| (place, without.to_owned())));
    let used = it.used_late.first().into_iter();
    found.extend(used.map(|place| (place, "the block is used after that".to_owned())));
    found
}

/// Returns the place of a read outside of an array, that of the statement which filled the array,
/// and the place at which a variable should have been set that is read before anything sets it,
/// each with a note for the page.
fn of_reads(it: &Explanation) -> Vec<(&FrameRecord, String)> {
    let read = it.overread.iter().filter_map(|it| it.access.place.first());
    let read = read.map(|it| (it, "read outside of an array"));
    let filled = it.overread.iter().filter_map(|it| it.filled.first());
    let filled = filled.map(|it| (it, "no room is left for the end of the text"));
    let unset = it.unset.iter().filter_map(|it| it.place().first());
    let unset = unset.map(|it| (it, "a variable is left as it was, and read later"));
    let all = read.chain(filled).chain(unset);
    all.map(|(place, note)| (place, note.to_owned())).collect()
}

/// Returns the places that make a recursion go on, each with a note.
fn of_recursion(it: &RecursionRecord) -> Vec<(&FrameRecord, String)> {
    let round = it.round.iter().map(|it| (it, "the recursion goes on here"));
    let closed = it.closed.iter().filter_map(|it| it.place.first());
    let closed = closed.map(|it| (it, "this closes the cycle"));
    let otherwise = "decided otherwise, the run does not fail";
    let decided = it.decided.iter().map(|it| (it, otherwise));
    let all = round.chain(closed).chain(decided);
    all.map(|(place, note)| (place, note.to_owned())).collect()
}

/// Number of source lines that are shown before and after each line that the cause–effect chain
/// names, or at which the program crashed.
const AROUND: u64 = 3;

/// Returns as HTML the source lines around each statement of the cause–effect chain and around the
/// crash, with notes on what happens there.
fn sources(it: &Explanation) -> String {
    let mut marked: BTreeMap<&str, BTreeMap<u64, String>> = BTreeMap::new();
    for (index, link) in it.chain.iter().enumerate() {
        if let (Some(file), Some(line)) = (&link.file, link.line) {
            let notes = marked.entry(file).or_default().entry(line).or_default();
            let _ = write!(notes, "  {}: {}", index + 1, story::change(link));
        }
    }
    if let (Some(file), Some(line)) = (&it.crash.file, it.crash.line) {
        let notes = marked.entry(file).or_default().entry(line).or_default();
        let _ = write!(notes, "  {}: {}", it.chain.len() + 1, it.crash.ended);
    }
    for (place, note) in beside(it) {
        if let (Some(file), Some(line)) = (&place.file, place.line) {
            let notes = marked.entry(file).or_default().entry(line).or_default();
            let _ = write!(notes, "  {note}");
        }
    }
    let mut text = String::new();
    for (file, lines) in marked {
        if it.newer_sources.iter().any(|newer| newer == file) {
            let _ = writeln!(text, "<p>{} is newer than the program.</p>", escaped(file));
            continue;
        }
        let Some(source) = source_text(file) else {
            let _ = writeln!(text, "<p>{} cannot be read.</p>", escaped(file));
            continue;
        };
        let _ = write!(text, "<h3>{}</h3>\n<pre tabindex=\"0\">", escaped(file));
        let mut last = 0;
        for (number, line) in (1..).zip(source.lines()) {
            let close = lines
                .range(number.max(AROUND + 1) - AROUND..=number + AROUND)
                .next()
                .is_some();
            if !close {
                continue;
            }
            if last != 0 && last + 1 != number {
                text += "…\n";
            }
            last = number;
            let line = format!("{number:5}  {}", escaped_lines(line));
            match lines.get(&number) {
                Some(note) => {
                    let _ = writeln!(text, "<span class=\"at\">{line}{}</span>", escaped(note));
                }
                None => {
                    let _ = writeln!(text, "{line}");
                }
            }
        }
        text += "</pre>\n";
    }
    text
}

/// Returns as HTML the gdb commands that set the variable of `link`, a link of the cause–effect
/// chain, to its value in the failing run: by its name or, where gdb has no name for it or no such
/// value, by the addresses that the test has written. Returns comments if neither is possible.
fn setting(link: &LinkRecord) -> String {
    let register = link.variable.strip_prefix("register ");
    let (set, name) = match register {
        Some(register) => ("set", format!("${register}")),
        None => ("set variable", link.variable.clone()),
    };
    if name.contains(' ') {
        return by_address(link);
    }
    let name = escaped(&name);
    let frame = match &link.local_of {
        Some(function) if register.is_none() && link.point.function.as_ref() != Some(function) => {
            format!("frame function {}\n", escaped(function))
        }
        _ => String::new(),
    };
    // Fields of derived classes behind pointers to their bases.
    let frame = match name.contains("-&gt;") {
        true => format!("set print object on\n{frame}"),
        false => frame,
    };
    let text = link.failing.as_str();
    let is_character = text.len() > 2 && text.starts_with('\'') && text.ends_with('\'');
    let digits = text.trim_start_matches('-');
    let is_number = digits.starts_with(|it: char| it.is_ascii_digit())
        && digits
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || it == '.');
    let is_word = text.starts_with(|it: char| it.is_ascii_alphabetic() || it == '_')
        && text
            .chars()
            .all(|it| it.is_ascii_alphanumeric() || it == '_');
    match text {
        "NULL" => format!("{frame}{set} {name} = 0\n"),
        value if is_character || is_number || is_word => {
            format!("{frame}{set} {name} = {}\n", escaped(value))
        }
        value => {
            let set = match &link.by_hand {
                ByHand::Pointer(to) => format!("{set} {name} = {to:#x}\n"),
                _ => by_address(link),
            };
            format!(
                "# {} in the failing run; here it is\n{frame}print {name}\n{set}",
                escaped(value)
            )
        }
    }
}

/// Returns the gdb commands that make the writes of a link's test at their addresses, or a comment
/// that says why they cannot be made by hand.
fn by_address(link: &LinkRecord) -> String {
    let all = match &link.by_hand {
        ByHand::Writes(all) => all,
        ByHand::NewBlock => {
            return "# no command of gdb sets it: a block is needed that only the failing run has\n"
                .to_owned();
        }
        ByHand::OnStack => {
            return "# no command sets it: it is on the stack, which is elsewhere in gdb\n"
                .to_owned();
        }
        ByHand::Pointer(_) | ByHand::Unknown => return "# no command of gdb sets it\n".to_owned(),
    };
    let mut text = "set language c\n".to_owned();
    for (start, bytes) in all {
        let mut at = *start;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (size, name) = match rest.len() {
                8.. => (8, "long"),
                4.. => (4, "int"),
                2.. => (2, "short"),
                _ => (1, "char"),
            };
            let (word, others) = rest.split_at(size);
            let digits: String = word.iter().rev().map(|it| format!("{it:02x}")).collect();
            let _ = writeln!(text, "set {{unsigned {name}}}{at:#x} = 0x{digits}");
            at += size as u64;
            rest = others;
        }
    }
    text + "set language auto\n"
}

/// How gdb makes the passing run of an explanation.
pub struct ByGdb {
    /// Commands that are needed once, before all others: which program, in which directory, with
    /// which environment.
    once: String,
    /// What follows `starti`: the arguments, and where stdin comes from.
    args: String,
}

impl ByGdb {
    /// Makes the commands that start a target in gdb. `input` is the file with its input; `None` if
    /// the runs differ in their arguments, so that no file has what makes the difference.
    pub fn new(target: &Target, input: Option<&Path>) -> ByGdb {
        let quote = |bytes: &[u8]| String::from_utf8_lossy(&quoted(bytes)).into_owned();
        let program = match &target.program {
            Program::Path(path) if path.components().count() > 1 => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                path.display().to_string()
            }
            Program::Path(name) => name.display().to_string(),
            Program::Bundled(name) => name.clone(),
        };
        let mut once = format!("set confirm off\nfile {program}\n");
        if let Some(folder) = &target.cwd {
            let _ = writeln!(once, "set cwd {}", folder.display());
        }
        for (name, value) in &target.env {
            let _ = writeln!(
                once,
                "set environment {} {}",
                name.display(),
                value.display()
            );
        }
        let path = input.map(|it| std::path::absolute(it).unwrap_or_else(|_| it.to_owned()));
        let file = path.as_ref().map(|it| it.as_os_str().as_encoded_bytes());
        let mut is_in_file = false;
        let mut args = String::new();
        for word in &target.args {
            let word = String::from_utf8_lossy(word.as_encoded_bytes());
            is_in_file |= word.contains("@@");
            let file = String::from_utf8_lossy(file.unwrap_or(b"INPUT"));
            args += &format!(" {}", quote(word.replace("@@", &file).as_bytes()));
        }
        match (file, &target.channel) {
            (Some(file), Channel::Plain) if !is_in_file => args += &format!(" < {}", quote(file)),
            (None, Channel::Plain) => args += " < /dev/null",
            (_, Channel::Plain) => {}
            (_, Channel::Named(name)) => {
                let _ = writeln!(once, "# the file needs the name {}", name.0.display());
            }
            (_, Channel::TwoFiles) => once += "# give each file its part of the input\n",
            (_, Channel::Terminal(_)) => once += "# type the input at the terminal\n",
        }
        ByGdb { once, args }
    }
}

/// Returns as HTML the gdb commands with which a user can set, in the passing run, each variable of
/// the cause–effect chain to its value in the failing run. `run` is how gdb makes the passing run.
fn commands(it: &Explanation, run: &ByGdb) -> String {
    let mut text = format!(
        "<p>Start <code>gdb</code>, paste the first lines, and one of the blocks behind them: where \
         it sets the variable to the value of the failing run, the program fails. With what is not \
         confirmed it need not fail.</p>\n<pre tabindex=\"0\">{}\n",
        escaped_lines(&run.once)
    );
    for (index, link) in it.chain.iter().enumerate() {
        let point = &link.point;
        let place = match (&point.file, point.line) {
            (Some(file), Some(line)) => format!(", at {}:{line}", story::base(file)),
            _ => String::new(),
        };
        let certainty = match link.confidence {
            Confidence::NotConfirmed => "  [not confirmed]",
            Confidence::OneWayOnly => "  [one way only]",
            Confidence::Confirmed => "",
        };
        let told = format!("# {}. {}{place}{certainty}", index + 1, story::change(link));
        let _ = writeln!(text, "{}", escaped_lines(&told));
        let starti = format!("starti{}", run.args);
        let _ = writeln!(text, "{}\ntbreak *{:#x}", escaped(&starti), point.address);
        if point.nth > 1 {
            let _ = writeln!(text, "ignore $bpnum {}", point.nth - 1);
        }
        text += "continue\n";
        text += &setting(link);
        text += "continue\n\n";
    }
    text + "</pre>\n"
}
