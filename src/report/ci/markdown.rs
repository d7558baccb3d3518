//! A summary in Markdown, as CI servers show it beside a job.

use super::{Finding, Findings};
use crate::report::block::severity;
use crate::report::size;
use crate::report::text::{escaped_markdown as escaped, markdown_code as code, shell_word};

/// A heading, what was found in a line, a table of the groups, and how to reproduce each. The first
/// line is a comment by which a later call knows the file for one of ddfuzz's.
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
    text.push_str("\n<details><summary>How to reproduce</summary>\n\n");
    for group in &findings.groups {
        let how = match &group.script {
            Some(script) => format!("sh {}", shell_word(script)),
            None => shell_word(&group.file),
        };
        text.push_str(&format!("- {}: {}\n", group.major, code(&how)));
    }
    text.push_str("\n</details>\n");
    text
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
        escaped(&format!("{} {}", group.what(), group.class)),
        or_none(&group.place),
        severity(group.severity),
        escaped(&group.severity_reason),
        size::grouped(group.count),
        group.reduction(),
        or_none(&group.claim),
    )
}
