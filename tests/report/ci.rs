//! Results for CI servers.

use ddfuzz::report::ci::{Finding, Findings, junit, markdown, sarif};
use ddfuzz::store::Kind;
use serde_json::Value;

use crate::sample::view;

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
