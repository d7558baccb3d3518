//! Findings as JUnit XML, which CI servers show as a list of tests.

use ddfuzz_model::files::{escaped_lines, escaped_markup};

use super::{Finding, Findings};
use crate::report::Extent;
use crate::report::text::shell_word;

/// Formats the findings as JUnit XML: one test suite with a test case for each group, which is
/// failed, or skipped if the group is known. If there are no groups, the suite has one passing test
/// case.
pub fn junit(findings: &Findings) -> String {
    let groups = &findings.groups;
    let known = groups.iter().filter(|group| is_known(group)).count();
    let counts = format!(
        "tests=\"{}\" skipped=\"{known}\" failures=\"{}\" errors=\"0\"",
        groups.len().max(1),
        groups.len() - known
    );
    let cases: String = match groups.as_slice() {
        [] => "        <testcase name=\"nothing was found\" classname=\"ddfuzz\"/>\n".to_owned(),
        groups => groups.iter().map(case).collect(),
    };
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"ddfuzz\" {counts}>\n    \
         <testsuite name=\"{}\" {counts}>\n\
         {cases}        \
         <system-out>{}</system-out>\n    \
         </testsuite>\n\
         </testsuites>\n",
        escaped_markup(&findings.target),
        escaped_lines(&findings.summary)
    )
}

fn is_known(group: &Finding) -> bool {
    group.is_new == Some(false)
}

fn case(group: &Finding) -> String {
    let (status, known) = match is_known(group) {
        true => ("skipped", "known: "),
        false => ("failure", ""),
    };
    let script = match group.script.as_deref().map(shell_word) {
        Some(script) if group.has_gdb => {
            format!("reproduce: sh {script}\nin gdb: sh {script} gdb\n")
        }
        Some(script) => format!("reproduce: sh {script}\n"),
        None => String::new(),
    };
    let message = match &group.trace.message {
        Some(message) => format!("{message}\n"),
        None => String::new(),
    };
    let description = format!(
        "{message}{}\n{}input: {}, {}\n{script}",
        group.severity_reason,
        group.trace.text(Extent::WHOLE),
        group.file.display(),
        group.reduction(),
    );
    format!(
        "        <testcase name=\"{}\" classname=\"ddfuzz.{}\">\n            \
         <{status} message=\"{}\" type=\"{}\">{}</{status}>\n        \
         </testcase>\n",
        escaped_markup(&format!("{} {}", group.major, group.title())),
        group.kind.folder(),
        escaped_markup(&format!("{known}{}", group.titled_message())),
        escaped_markup(group.class.as_str()),
        escaped_lines(&description)
    )
}
