//! Findings as JUnit XML, which CI servers show as a list of tests.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{Finding, Findings};
use crate::report::Extent;

/// Formats the findings as JUnit XML: one test suite with a test case for each group, failed, or
/// skipped if the group is known. Without groups it has one passing test case.
pub fn junit(findings: &Findings) -> String {
    let mut suite = TestSuite::new(findings.target.as_str());
    if findings.groups.is_empty() {
        let mut case = TestCase::new("nothing was found", TestCaseStatus::success());
        case.set_classname("ddfuzz");
        suite.add_test_case(case);
    }
    for group in &findings.groups {
        suite.add_test_case(case(group));
    }
    suite.set_system_out(findings.summary.as_str());
    let mut report = Report::new("ddfuzz");
    report.add_test_suite(suite);
    // quick-junit removes characters invalid in XML, and writing to a string never fails.
    report.to_string().unwrap_or_default()
}

fn case(group: &Finding) -> TestCase {
    let (mut status, known) = match group.is_new {
        Some(false) => (TestCaseStatus::skipped(), "known: "),
        _ => (TestCaseStatus::non_success(NonSuccessKind::Failure), ""),
    };
    let script = match &group.script {
        Some(script) if group.has_gdb => {
            let script = script.display();
            format!("reproduce: sh {script}\nin gdb: sh {script} gdb\n")
        }
        Some(script) => format!("reproduce: sh {}\n", script.display()),
        None => String::new(),
    };
    let message = match &group.trace.message {
        Some(message) => format!("{message}\n"),
        None => String::new(),
    };
    status
        .set_message(format!("{known}{}", group.titled_message()))
        .set_type(group.class.as_str())
        .set_description(format!(
            "{message}{}\n{}input: {}, {}\n{script}",
            group.severity_reason,
            group.trace.text(Extent::WHOLE),
            group.file.display(),
            group.reduction(),
        ));
    let name = format!("{} {}", group.major, group.title());
    let mut case = TestCase::new(name, status);
    case.set_classname(format!("ddfuzz.{}", group.kind.folder()));
    case
}
