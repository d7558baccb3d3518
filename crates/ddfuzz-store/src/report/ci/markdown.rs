//! Findings as Markdown, which CI servers show as a job summary.

use ddfuzz_model::files::escaped_markup;

use super::{Finding, Findings};
use crate::report::groups::severity;
use crate::report::text::{escaped_markdown as escaped, markdown_code as code, shell_word};
use crate::report::{Extent, size};

/// Maximum number of groups that the Markdown report shows with message and stacks, because CI
/// servers refuse summaries above a megabyte.
const IN_FULL: usize = 50;

/// Formats the findings as Markdown: a heading, a summary line, a table of the groups, and for each
/// of the first 50 groups its message, stacks, source lines and reproduction command. The first
/// line is a comment that marks the file as written by ddfuzz, so that a later call may overwrite
/// it.
pub fn markdown(findings: &Findings) -> String {
    let mut text = format!(
        "<!-- ddfuzz -->\n## ddfuzz: {}\n\n{}\n",
        escaped(&findings.target),
        escaped(&findings.summary)
    );
    if findings.groups.is_empty() {
        return text + "\nNothing was found.\n";
    }
    text.push_str(
        "\n| | group | class | where | severity | seen | size | claim |\n\
         |---|---|---|---|---|---:|---|---|\n",
    );
    for group in &findings.groups {
        text.push_str(&row(group));
    }
    for group in findings.groups.iter().take(IN_FULL) {
        text.push_str(&in_full(group));
    }
    if findings.groups.len() > IN_FULL {
        let more = size::counted((findings.groups.len() - IN_FULL) as u64, "more group");
        text.push_str(&format!("\nAnd {more}, in the table alone.\n"));
    }
    text
}

/// Formats a group as a folded Markdown section: message, stacks, source lines, and reproduction
/// command.
fn in_full(group: &Finding) -> String {
    // Markdown is not interpreted in a line of HTML.
    let title = escaped_markup(&format!("{} {}", group.major, group.title()));
    let message = group.trace.message.as_deref().unwrap_or_default();
    let message = fenced(message);
    let trace = fenced(&group.trace.text(Extent::WHOLE));
    let why = match &group.explanation {
        Some(explanation) => format!("Why it fails:\n\n{}", fenced(explanation)),
        None => String::new(),
    };
    let how = match &group.script {
        Some(script) => format!("sh {}", shell_word(script)),
        None => shell_word(&group.file),
    };
    let in_gdb = match group.has_gdb {
        true => format!(", in gdb: {}", code(&format!("{how} gdb"))),
        false => String::new(),
    };
    format!(
        "\n<details><summary>{title}</summary>\n\n{message}{trace}{why}To reproduce: {}{in_gdb}\n\n\
         </details>\n",
        code(&how),
    )
}

/// Formats lines as a Markdown code block whose fence is longer than any in the lines; empty if
/// they are blank.
pub(crate) fn fenced(lines: &str) -> String {
    if lines.trim().is_empty() {
        return String::new();
    }
    let longest = lines
        .split(|character| character != '`')
        .map(str::len)
        .max();
    let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n\n", lines.trim_end())
}

fn row(group: &Finding) -> String {
    let news = match group.is_new {
        Some(true) => "new",
        Some(false) => "known",
        None => "",
    };
    let or_none = |text: &Option<String>| escaped(text.as_deref().unwrap_or("–"));
    format!(
        "| {news} | {} | {} | {} | {}: {} | {} | {} | {} |\n",
        code(&group.major),
        escaped(&format!("{} {}", group.kind.noun(), group.class)),
        or_none(&group.place),
        severity(group.severity),
        escaped(&group.severity_reason),
        size::grouped(group.count),
        group.reduction(),
        or_none(&group.claim),
    )
}
