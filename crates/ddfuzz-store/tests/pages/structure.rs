//! What is in a page, without a browser.

use std::path::Path;
use std::sync::OnceLock;

use ddfuzz_store::Reader;
use ddfuzz_store::report::page::{NoKnowledge, campaign_page, campaign_report, issue, schema};
use ddfuzz_store::report::study::{html, rows, study_groups};

use crate::sample::{Group, HOSTILE, Sample};

pub fn page(sample: &Sample) -> String {
    let reader = Reader::open(sample.root()).expect("an output directory");
    campaign_page(&reader, sample.root(), &NoKnowledge).expect("a page")
}

/// The page of the study in an output directory.
pub fn study_page(sample: &Sample) -> String {
    let reader = Reader::open(sample.root()).expect("an output directory");
    let groups = study_groups(&reader).expect("the groups");
    html(
        &rows(&reader.studies().expect("the study"), &groups),
        sample.root(),
    )
}

/// The names of the elements in a page that have no end, or whose end comes too early.
fn unbalanced(page: &str) -> Vec<String> {
    const EMPTY: [&str; 6] = ["meta", "input", "br", "path", "circle", "!DOCTYPE"];
    let (head, rest) = page.split_once("<script>").expect("the script");
    let (_, rest) = rest.split_once("</script>").expect("its end");
    let mut open = Vec::new();
    let mut wrong = Vec::new();
    let text = format!("{head}{rest}");
    for tag in text.split('<').skip(1) {
        let name: String = tag.chars().take_while(|it| !" >".contains(*it)).collect();
        match name.strip_prefix('/') {
            _ if name.starts_with("!--") => {}
            Some(end) if open.last().is_some_and(|open| open == end) => drop(open.pop()),
            Some(end) => wrong.push(format!("</{end}> in {open:?}")),
            None if EMPTY.contains(&name.as_str()) || tag.contains("/>") => {}
            None => open.push(name),
        }
    }
    wrong.extend(open);
    wrong
}

#[test]
fn a_page_has_all_parts_and_loads_nothing() {
    let page = page(&Sample::usual());
    assert_eq!(unbalanced(&page), Vec::<String>::new());
    for part in [
        "<!-- ddfuzz -->",
        "2 groups of crashes, 1 group of hangs",
        "free(): invalid pointer",
        "parse_list at list.c:4",
        "it-&gt;tail",
        "edges reached",
        "seed 42",
        "12.5 % of the workers",
        "minimizer&#39;s share",
        "<dt>reproduce</dt>",
        "1-minimal, proved by",
        "reproduce.sh gdb",
        "blocks",
        "0xdeadbeef",
        "rip",
        "id=\"crash-000000000001\"",
        "href=\"#crash-000000000001\"",
        "kept in the minimized input",
    ] {
        assert!(page.contains(part), "{part} is missing");
    }
    for loads in [
        "src=", "@import", "url(", "<link", "<iframe", "<img", "http://", "https://",
    ] {
        assert!(!page.contains(loads), "{loads}");
    }
}

#[test]
fn the_page_of_a_study_and_that_of_its_directory_have_the_same_tables() {
    let sample = Sample::study("ul");
    for page in [page(&sample), study_page(&sample)] {
        assert_eq!(unbalanced(&page), Vec::<String>::new());
        for part in [
            "id=\"utilities\"",
            "<td>●○</td>",
            "x86_64-linux-gnu-objcopy",
            "12 % (9 of 74)",
        ] {
            assert!(page.contains(part), "{part} is missing");
        }
    }
    let study = study_page(&sample);
    assert!(
        study.contains("A study of 3 utilities: 1 of them fails"),
        "{study}"
    );
}

#[test]
fn the_kept_bytes_are_those_of_the_log() {
    let sample = Sample::usual();
    let reader = Reader::open(sample.root()).expect("an output directory");
    let report = campaign_report(&reader, &NoKnowledge).expect("a report");
    let [text, binary, hang] = &report.groups[..] else {
        panic!("three groups")
    };
    assert_eq!(binary.kept, Some(vec![[490, 500], [1990, 2000]]));
    assert_eq!(binary.replaced, Some(vec![]));
    assert_eq!(text.replaced, Some(vec![[0, 1]]));
    for (group, wanted) in [(text, true), (binary, true), (hang, false)] {
        let Some(kept) = &group.kept else {
            assert!(!wanted);
            continue;
        };
        let original = std::fs::read(&group.original).expect("the input");
        let minimized = std::fs::read(&group.file).expect("the reproducer");
        let of = |bytes: &[u8], [from, to]: [u64; 2]| bytes[from as usize..to as usize].to_vec();
        let from_original: Vec<u8> = kept
            .iter()
            .flat_map(|range| of(&original, *range))
            .collect();
        let mut at = 0;
        let mut rest = Vec::new();
        for [from, to] in group.replaced.clone().unwrap_or_default() {
            rest.extend(of(&minimized, [at, from]));
            at = to;
        }
        rest.extend(of(&minimized, [at, minimized.len() as u64]));
        assert_eq!(from_original, rest);
    }
    assert_eq!(hang.summary.kind, "hang");
    let course = binary.course.as_ref().expect("a course");
    assert_eq!((course.size_before, course.executed), (3000, 6));
    assert_eq!(course.phases.len(), 2);
}

#[test]
fn a_log_that_does_not_lead_to_the_reproducer_marks_nothing() {
    let mut sample = Sample::new("/bin/t", "x");
    let entry = sample.group(&Group::PLAIN);
    sample.minimize(&entry, Group::PLAIN.input, &[(4, 20, b"")]);
    std::fs::write(sample.root().join(&entry).join("minimized"), "other").expect("a file");
    let reader = Reader::open(sample.root()).expect("an output directory");
    let report = campaign_report(&reader, &NoKnowledge).expect("a report");
    assert_eq!(
        (&report.groups[0].kept, &report.groups[0].replaced),
        (&None, &None)
    );
    assert!(page(&sample).contains("does not tell which bytes are kept"));
}

#[test]
fn hostile_text_is_text() {
    let mut sample = Sample::new(HOSTILE, HOSTILE);
    sample.group(&Group {
        class: HOSTILE,
        message: HOSTILE,
        function: HOSTILE,
        input: HOSTILE.as_bytes(),
        ..Group::PLAIN
    });
    let page = page(&sample);
    assert_eq!(unbalanced(&page), Vec::<String>::new());
    assert_eq!(page.matches("<script").count(), 1);
    let controls =
        |it: char| it.is_control() && it != '\n' || ('\u{202a}'..='\u{2069}').contains(&it);
    assert!(!page.contains(controls));
    let reader = Reader::open(sample.root()).expect("an output directory");
    let report = campaign_report(&reader, &NoKnowledge).expect("a report");
    let text = issue(&report.groups[0], HOSTILE.as_bytes());
    assert!(!text.contains(controls), "{text}");
    // Markup in code is text: in blocks, and in a line between backquotes.
    let blocks: String = text.split("```").step_by(2).collect();
    let outside: String = blocks.split('`').step_by(2).collect();
    let outside = outside.replace("<!-- ddfuzz -->", "");
    assert!(!outside.contains('<'), "{outside}");
}

#[test]
fn ten_thousand_groups_and_a_huge_input_make_a_page_of_less_than_20_megabytes() {
    let page = many();
    assert!(page.len() < 20_000_000, "{}", page.len());
    assert_eq!(page.matches("<tr").count(), page.matches("</tr>").count());
    assert!(page.contains("10,000 groups of crashes"));
}

/// The page of 10,000 groups with hostile texts, the worst of 10 MB; made once for all tests.
pub fn many() -> &'static str {
    static PAGE: OnceLock<String> = OnceLock::new();
    PAGE.get_or_init(|| page(&many_groups()))
}

fn many_groups() -> Sample {
    let mut sample = Sample::new("/bin/many", "@@");
    let huge: Vec<u8> = HOSTILE.bytes().cycle().take(10 << 20).collect();
    for at in 0..10_000 {
        let entry = sample.group(&Group {
            severity: if at == 0 { "high" } else { "medium" },
            message: HOSTILE,
            function: HOSTILE,
            input: if at == 0 { &huge } else { b"x" },
            ..Group::PLAIN
        });
        if at == 0 {
            sample.minimize(&entry, &huge, &[(100, 10 << 20, b""), (0, 60, b"")]);
        }
    }
    sample
}

#[test]
fn an_empty_directory_has_a_page() {
    let page = page(&Sample::new("/bin/t", "x"));
    assert!(page.contains("nothing that fails") && page.contains("Nothing was found"));
}

#[test]
fn the_schema_in_the_documentation_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
    if std::env::var_os("DDFUZZ_WRITE_SCHEMAS").is_some() {
        let text = serde_json::to_string_pretty(&schema()).expect("JSON");
        std::fs::write(&path, text + "\n").expect("the schema is written");
    }
    let text = std::fs::read_to_string(&path).expect("the schema");
    let written: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        written,
        schema(),
        "write it again: DDFUZZ_WRITE_SCHEMAS=1 cargo test -p ddfuzz-store --test pages schema"
    );
}
