//! Results for CI servers.

use ddfuzz::report::Trace;
use ddfuzz::report::ci::{Finding, Findings, junit, markdown, sarif};
use ddfuzz::store::Kind;
use serde_json::{Value, json};

use crate::sample::{crash, frame, view};

fn findings(change: impl FnOnce(&mut Finding)) -> Findings {
    let mut group = Finding::from(&view());
    change(&mut group);
    Findings {
        target: "ul -i @@".to_owned(),
        summary: "300 runs".to_owned(),
        groups: vec![group],
    }
}

#[test]
fn a_summary_has_a_row_for_each_group() {
    let text = markdown(&findings(|group| group.is_new = Some(true)));
    assert!(
        text.starts_with("<!-- ddfuzz -->\n## ddfuzz: ul -i \\@\\@\n"),
        "{text}"
    );
    let row = "crash segv | parse\\_line at ul.c:40 | high: write to a wild address | 1,234 | \
               40 → 6 bytes | 1-minimal, proved by 6 tests |";
    assert!(text.contains(row), "{text}");
    assert!(text.contains("`sh '/my out/reproduce.sh'`"), "{text}");
}

#[test]
fn a_group_of_a_study_names_its_utility() {
    let of_boxes = findings(|group| group.utility = Some("boxes".to_owned()));
    let title = "crash segv of boxes in parse_line at ul.c:40";
    assert!(junit(&of_boxes).contains(title));
    assert!(sarif(&of_boxes).contains(title));
}

#[test]
fn hostile_names_stay_in_their_cells() {
    let place = "f<script>|`x`\n# a\u{202e} at \x1b[2J\0&.c:1";
    let hostile = findings(|group| {
        group.place = Some(place.to_owned());
        group.source = place
            .rsplit_once(" at ")
            .map(|(_, source)| source.to_owned());
    });
    let text = markdown(&hostile);
    let row = text.lines().find(|line| line.contains("segv")).unwrap();
    assert_eq!(row.replace("\\|", "").matches('|').count(), 9, "{row}");
    assert!(
        !text.contains("<script>") && !text.contains('\x1b'),
        "{text}"
    );
    let xml = junit(&hostile);
    assert!(
        !xml.contains("<script>") && !xml.contains(['\x1b', '\0']),
        "{xml}"
    );
    let value: Value = serde_json::from_str(&sarif(&hostile)).unwrap();
    let location = &value["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(location["artifactLocation"]["uri"], "%1B%5B2J%00%26.c");
}

#[test]
fn sarif_has_the_fields_that_its_readers_require() {
    let log = sarif(&findings(|group| group.is_new = Some(true)));
    let value: Value = serde_json::from_str(&log).unwrap();
    assert_eq!(value["version"], "2.1.0");
    let run = &value["runs"][0];
    assert_eq!(run["tool"]["driver"]["rules"][0]["id"], "segv");
    let result = &run["results"][0];
    assert_eq!(result["ruleId"], "segv");
    assert_eq!(result["level"], "error");
    assert_eq!(result["baselineState"], "new");
    let major = view().major.short();
    assert_eq!(result["partialFingerprints"]["ddfuzzMajor/v1"], major);
    assert!(
        result["message"]["text"]
            .as_str()
            .unwrap()
            .contains("40 → 6 bytes")
    );
    let location = &result["locations"][0];
    assert_eq!(
        location["logicalLocations"][0]["fullyQualifiedName"],
        "parse_line"
    );
    let physical = &location["physicalLocation"];
    assert_eq!(physical["artifactLocation"]["uri"], "ul.c");
    assert_eq!(physical["region"]["startLine"], 40);
}

#[test]
fn a_place_is_a_line_a_column_or_the_input_itself() {
    let physical = |source: Option<&str>| {
        let log = sarif(&findings(|group| group.source = source.map(str::to_owned)));
        let value: Value = serde_json::from_str(&log).unwrap();
        value["runs"][0]["results"][0]["locations"][0]["physicalLocation"].clone()
    };
    let column = physical(Some("/src/a b.rs:7:9"));
    assert_eq!(column["artifactLocation"]["uri"], "file:///src/a%20b.rs");
    assert_eq!(column["region"]["startLine"], 7);
    for nowhere in [None, Some("a.c"), Some("a:0")] {
        let input = physical(nowhere);
        assert_eq!(input["artifactLocation"]["uri"], "file:///out/minimized");
        assert_eq!(input["region"], Value::Null);
    }
}

#[test]
fn a_known_group_is_skipped_and_nothing_found_passes() {
    let known = junit(&findings(|group| {
        group.is_new = Some(false);
        group.kind = Kind::Hang;
    }));
    assert!(known.contains("skipped=\"1\" failures=\"0\""), "{known}");
    assert!(
        known.contains("message=\"known: hang segv in parse_line"),
        "{known}"
    );
    let nothing = junit(&Findings::default());
    assert!(
        nothing.contains("tests=\"1\" skipped=\"0\" failures=\"0\""),
        "{nothing}"
    );
    assert!(markdown(&Findings::default()).contains("Nothing was found"));
    let value: Value = serde_json::from_str(&sarif(&Findings::default())).unwrap();
    assert_eq!(value["runs"][0]["results"], Value::Array(Vec::new()));
}

/// The sample, with what its crash said and its stacks.
fn told(message: &str, function: &str) -> Findings {
    let mut record = crash(json!([
        frame(false, Some("abort"), None),
        frame(true, Some(function), Some("/src/ul.c:40")),
    ]));
    record.details.message = Some(message.to_owned());
    let site = json!([frame(true, Some("make"), Some("/src/ul.c:7"))]);
    record.details.allocated = serde_json::from_value(site).unwrap();
    findings(|group| {
        group.trace = Trace::of(&record, None);
        group.has_gdb = true;
    })
}

#[test]
fn the_message_and_the_stacks_stand_in_every_format() {
    let told = told("too many\nitems", "parse_line");
    let text = markdown(&told);
    for part in [
        "```text\ntoo many\nitems\n```",
        "  stack   #1   parse_line at /src/ul.c:40\n",
        "  alloc   #0   make at /src/ul.c:7\n",
        "in gdb: `sh '/my out/reproduce.sh' gdb`",
        "<summary>9d9ee0b40cf3 crash segv in parse_line at ul.c:40</summary>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let xml = junit(&told);
    assert!(
        xml.contains("message=\"crash segv in parse_line at ul.c:40: too many\""),
        "{xml}"
    );
    assert!(
        xml.contains("  stack   #1   parse_line at /src/ul.c:40"),
        "{xml}"
    );
    let script = "&#39;/my out/reproduce.sh&#39;";
    for command in [
        format!("reproduce: sh {script}\n"),
        format!("in gdb: sh {script} gdb\n"),
    ] {
        assert!(xml.contains(&command), "{xml}");
    }
    let value: Value = serde_json::from_str(&sarif(&told)).unwrap();
    let result = &value["runs"][0]["results"][0];
    let text = result["message"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("crash segv in parse_line at ul.c:40: too many\nitems ("),
        "{text}"
    );
    let stacks = result["stacks"].as_array().unwrap();
    let titles: Vec<&Value> = stacks.iter().map(|one| &one["message"]["text"]).collect();
    assert_eq!(titles, ["stack", "alloc"]);
    let location = &stacks[0]["frames"][1]["location"];
    assert_eq!(
        location["logicalLocations"][0]["fullyQualifiedName"],
        "parse_line"
    );
    assert_eq!(location["physicalLocation"]["region"]["startLine"], 40);
    assert_eq!(
        location["physicalLocation"]["artifactLocation"]["uri"],
        "file:///src/ul.c"
    );
}

#[test]
fn sarif_quotes_the_source_around_the_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ul.c");
    let text: String = (1..=9).map(|line| format!("line {line}\n")).collect();
    std::fs::write(&file, text).unwrap();
    let line = format!("{}:5", file.display());
    let record = crash(json!([frame(true, Some("f"), Some(&line))]));
    let findings = findings(|group| {
        group.place = Some(format!("f at {line}"));
        group.source = Some(line.clone());
        group.trace = Trace::of(&record, None);
    });
    let value: Value = serde_json::from_str(&sarif(&findings)).unwrap();
    let physical = &value["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
    assert_eq!(physical["region"]["startLine"], 5);
    let around = &physical["contextRegion"];
    assert_eq!(
        (&around["startLine"], &around["endLine"]),
        (&json!(2), &json!(8))
    );
    assert!(
        around["snippet"]["text"]
            .as_str()
            .unwrap()
            .starts_with("line 2\nline 3\n")
    );
}

#[test]
fn hostile_messages_and_names_stay_in_their_block() {
    let hostile = told(
        "a```\n</details>\n````b",
        "f`x`\n</details>\u{202e}<script>",
    );
    let text = markdown(&hostile);
    let fences: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("```"))
        .collect();
    assert_eq!(
        fences,
        ["`````text", "````b", "`````", "```text", "```"],
        "{text}"
    );
    assert!(!text.contains('\u{202e}'), "{text}");
    let xml = junit(&hostile);
    assert!(
        !xml.contains("<script>") && !xml.contains('\u{202e}'),
        "{xml}"
    );
    let sarif = sarif(&hostile);
    assert!(!sarif.contains('\u{202e}'), "{sarif}");
}
