//! The section of one group in the page of a campaign.

use std::path::Path;

use maud::{Markup, html};

use super::data::{
    CourseReport, GroupReport, InputReport, SourceReport, StackReport, VariantReport,
};
use super::input::Marked;
use super::load::LoadedGroup;
use crate::report::html::text;
use crate::report::size;
use crate::report::study::link;

/// Maximum number of lines that the page shows of a message or of an input as parsed by the
/// harness.
const MOST_LINES: usize = 60;
/// Maximum number of lines that the page shows of an exported regression test: enough to show usual
/// tests whole, because they are there to be copied.
const MOST_TEST_LINES: usize = 600;

/// Converts paths of files to links in an HTML page, which are relative to the page's folder.
pub(super) struct Links<'a> {
    /// Absolute path of the page's folder, at which relative links start.
    pub(super) folder: &'a Path,
}

impl Links<'_> {
    fn to(&self, file: &str, name: &str) -> Markup {
        html! { a href=(text(&link(self.folder, Path::new(file)))) { (text(name)) } }
    }
}

/// Makes the HTML section of a group: what failed and where, its inputs, how to reproduce it, how
/// it was minimized, and the group's other inputs.
pub(super) fn section(group: &LoadedGroup, links: &Links<'_>) -> Markup {
    let report = &group.report;
    let summary = &report.summary;
    html! {
        section class="group" id=(summary.anchor()) {
            h2 {
                @if let Some(utility) = &summary.utility { (text(utility)) ": " }
                (text(&summary.sentence))
            }
            p {
                (severity(&summary.severity)) " · " code { (text(&summary.class)) } " · "
                (text(&summary.severity_reason))
                @if let Some(place) = &summary.place { " · in " b { (text(place)) } }
            }
            p class="faint" {
                "Group " code { (summary.major) } ", " (kind_noun(&summary.kind)) ", seen in "
                (size::counted(summary.runs_seen, "run")) ", first on " (text(&summary.first_seen))
                ". Input: " (size::reduction(summary.size_before, summary.size_after)) "; "
                (text(&report.claim)) ". " a href="#groups" { "all groups" }
            }
            (where_it_crashed(report))
            (inputs_side_by_side(group))
            (how_to_reproduce(report, links))
            (reduction(group))
            (related(report, links))
        }
    }
}

pub(super) fn severity(severity: &str) -> Markup {
    html! { span class=(text(severity)) { (text(severity)) } }
}

pub(super) fn kind_noun(kind: &str) -> &'static str {
    match kind {
        "flaky" => "a crash that did not occur again",
        "hang" => "a hang",
        "oom" => "out of memory",
        _ => "a crash",
    }
}

/// Formats the first 60 lines of a text as HTML, with a note on how many further lines there are.
fn lines(all: &str) -> Markup {
    first_lines(all, MOST_LINES)
}

fn first_lines(all: &str, most: usize) -> Markup {
    let count = all.lines().count();
    html! {
        @for line in all.lines().take(most) { (text(line)) "\n" }
        @if count > most { s { "⋯ " (size::counted((count - most) as u64, "more line")) } }
    }
}

fn where_it_crashed(report: &GroupReport) -> Markup {
    let is_long = report
        .message
        .as_deref()
        .is_some_and(|message| message.lines().count() > 1);
    html! {
        @if let Some(message) = report.message.as_deref().filter(|_| is_long) {
            pre tabindex="0" { (lines(message)) }
        }
        @for source in &report.sources { (excerpt(source)) }
        @for one in &report.stacks { (stack(one)) }
        details {
            summary { "Registers, fault and output of the program" }
            (machine(report))
        }
    }
}

fn excerpt(source: &SourceReport) -> Markup {
    let last = source.first + source.lines.len().saturating_sub(1) as u64;
    let wide = last.to_string().len();
    html! {
        h3 {
            (text(&format!("{}:{}", source.file, source.line)))
            @if let Some(frame) = source.frame { " (#" (frame) ")" }
            @if source.is_newer { " (the file was changed after the crash)" }
        }
        pre tabindex="0" {
            @for (number, line) in (source.first..).zip(&source.lines) {
                @let number_text = format!("{number:>wide$}");
                @if number == source.line {
                    span class="at" { s { (number_text) " ▶ " } (text(line)) } "\n"
                } @else {
                    s { (number_text) " │ " } (text(line)) "\n"
                }
            }
        }
    }
}

fn stack(stack: &StackReport) -> Markup {
    let title = match stack.title.as_str() {
        "alloc" => "Where the memory was allocated",
        "origin" => "Where the value was created",
        "freed" => "Where the memory was freed",
        _ => "Stack",
    };
    html! {
        h3 { (title) }
        pre tabindex="0" {
            @for line in &stack.lines {
                @if line.own { span class="own" { (text(&line.text)) } } @else { s { (text(&line.text)) } }
                "\n"
            }
        }
    }
}

fn machine(report: &GroupReport) -> Markup {
    let fault = &report.fault;
    let unknown = |part: &Option<String>| part.clone().unwrap_or_else(|| "unknown".to_owned());
    html! {
        dl {
            dt { "ended by" } dd { (text(&report.ended)) }
            @if fault.address.is_some() || fault.class.is_some() {
                dt { "access" } dd { (text(&unknown(&fault.access))) }
                dt { "address" } dd {
                    code { (text(&unknown(&fault.address))) } " (" (text(&unknown(&fault.class))) ")"
                }
            }
        }
        @if !report.registers.is_empty() {
            pre tabindex="0" {
                @for (index, (name, value)) in report.registers.iter().enumerate() {
                    (text(&format!("{name:>8} {value:<20}")))
                    @if index % 3 == 2 { "\n" }
                }
            }
        }
        @if !report.stderr.is_empty() {
            h3 { "Last output on stderr" }
            pre tabindex="0" { (lines(&report.stderr)) }
        }
    }
}

fn inputs_side_by_side(group: &LoadedGroup) -> Markup {
    let report = &group.report;
    let original = Marked {
        bytes: &group.original,
        ranges: report.kept.as_deref(),
        class: "k",
    };
    let minimized = Marked {
        bytes: &group.reproducer,
        ranges: report.replaced.as_deref(),
        class: "r",
    };
    let is_smaller = report.proved.is_some() || report.original != report.file;
    html! {
        div class="pair" {
            @if is_smaller {
                div {
                    h3 { "Minimized input, " (size::bytes(group.reproducer.len() as u64)) }
                    (views(&minimized))
                    @if report.replaced.as_ref().is_some_and(|ranges| !ranges.is_empty()) {
                        p class="faint" { "Bytes " span class="r" { "marked" } " are written by the minimization, the others are from the input as found." }
                    }
                }
            }
            div {
                h3 { "Input as found, " (size::bytes(group.original.len() as u64)) }
                (views(&original))
                @if is_smaller {
                    p class="faint" {
                        @match &report.kept {
                            Some(_) => { "Bytes " span class="k" { "marked" } " are kept in the minimized input." }
                            None => "The log of the minimization does not tell which bytes are kept.",
                        }
                    }
                }
            }
        }
        @if let Some(debug) = &report.debug {
            details { summary { "As the harness parses it" } pre tabindex="0" { (lines(debug)) } }
        }
    }
}

/// Formats an input as HTML: as text, with its hex view folded below, or only as hex if it is not
/// text.
fn views(input: &Marked<'_>) -> Markup {
    html! {
        @if input.is_text() { (input.text()) details { summary { "as hex" } (input.hex()) } }
        @else { (input.hex()) }
    }
}

fn how_to_reproduce(report: &GroupReport, links: &Links<'_>) -> Markup {
    html! {
        h3 { "How to reproduce" }
        p class="faint" { "To be typed in the output directory." }
        dl {
            @for command in &report.commands {
                dt { (text(&command.name)) } dd { code { (text(&command.command)) } }
            }
            dt { "files" } dd {
                (links.to(&report.file, "reproducer"))
                @if report.file != report.original { " · " (links.to(&report.original, "input as found")) }
                @if let Some(log) = &report.log { " · " (links.to(log, "minimization log")) }
                @if let Some(script) = &report.script { " · " (links.to(script, "reproduce.sh")) }
            }
        }
        @if let Some(test) = &report.test {
            details {
                summary { "As a regression test (" (text(&test.form)) ")" }
                pre tabindex="0" { (first_lines(&test.text, MOST_TEST_LINES)) }
            }
        }
        @if let Some(explanation) = &report.explanation {
            h3 { "Why it fails" }
            pre tabindex="0" { (lines(&explanation.text)) }
            @if let Some(page) = &explanation.page { p { (links.to(page, "the whole explanation")) } }
        }
    }
}

fn reduction(group: &LoadedGroup) -> Markup {
    let Some(course) = &group.course else {
        return html! {};
    };
    let report = &group.report;
    html! {
        h3 { "How it was minimized" }
        p {
            (text(&report.claim)) ": "
            (size::reduction(course.report.size_before, group.reproducer.len() as u64)) " in "
            (size::counted(course.report.executed, "executed test")) " by the search "
            code { (text(&course.report.search)) } "."
            @if let Some(proved) = &report.proved {
                @if proved.of > 0 {
                    " The proof has to try " (size::counted(proved.of, "removal")) "; tested so far: "
                    (size::grouped(proved.done)) ", of which none fails."
                }
            }
        }
        (course.drawing())
        (phases(&course.report))
    }
}

fn phases(course: &CourseReport) -> Markup {
    html! {
        @if course.phases.len() > 1 {
            details {
                summary { "Phases" }
                div class="scroll" {
                    table {
                        tr { th { "phase" } th { "executed tests" } th { "bytes removed" } }
                        @for phase in &course.phases {
                            tr {
                                td { (text(&phase.name)) }
                                td class="n" { (size::grouped(phase.to - phase.from)) }
                                td class="n" { (size::grouped(phase.removed)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn related(report: &GroupReport, links: &Links<'_>) -> Markup {
    html! {
        @if report.variants.len() > 1 {
            details {
                summary { (size::counted(report.variants.len() as u64, "call path")) " to the bug" }
                (variants(&report.variants, &report.minor))
            }
        }
        @if report.inputs_of > 1 {
            details {
                summary { (size::counted(report.inputs_of, "stored input")) " of this group" }
                (stored(&report.inputs, links))
                @if report.inputs_of > report.inputs.len() as u64 {
                    p { "and " (size::grouped(report.inputs_of - report.inputs.len() as u64)) " more" }
                }
            }
        }
    }
}

fn variants(all: &[VariantReport], shown: &str) -> Markup {
    html! {
        div class="scroll" {
            table {
                tr { th { "variant" } th { "inputs" } th { "smallest" } th { "claim" } th { "called by" } }
                @for variant in all.iter().take(MOST_LINES) {
                    tr {
                        td { code { (text(&variant.minor)) } @if variant.minor == shown { " (shown)" } }
                        td class="n" { (size::grouped(variant.inputs)) }
                        td class="n" { (size::bytes(variant.size)) }
                        td { (text(variant.claim.as_deref().unwrap_or("not minimized"))) }
                        td { (text(variant.caller.as_deref().unwrap_or("unknown"))) }
                    }
                }
            }
        }
        @if all.len() > MOST_LINES { p { "and " (all.len() - MOST_LINES) " more" } }
    }
}

fn stored(all: &[InputReport], links: &Links<'_>) -> Markup {
    html! {
        div class="scroll" {
            table {
                tr { th { "input" } th { "size" } th { "variant" } th { "found" } }
                @for input in all {
                    tr {
                        td { code { (links.to(&input.file, &input.hash)) } }
                        td class="n" { (size::reduction(input.size_before, input.size_after)) }
                        td { code { (text(&input.minor)) } }
                        td { (text(input.found.as_deref().unwrap_or("-"))) }
                    }
                }
            }
        }
    }
}
