//! Comma-separated values.

use ddfuzz::report::study::{CSV_HEADER, csv, rows};

use super::{HOSTILE, small, study, tally, utility};

/// The cells of a text by RFC 4180.
fn parsed(text: &str) -> Vec<Vec<String>> {
    let (mut lines, mut line, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut characters) = (false, text.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => line.push(std::mem::take(&mut cell)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                line.push(std::mem::take(&mut cell));
                lines.push(std::mem::take(&mut line));
            }
            _ => cell.push(character),
        }
    }
    assert!(!quoted && cell.is_empty() && line.is_empty());
    lines
}

#[test]
fn a_line_has_bare_numbers_marks_and_the_smallest_reproducer() {
    let (studies, groups) = small();
    let text = csv(&rows(&studies, &groups));
    let lines: Vec<&str> = text.split("\r\n").collect();
    assert_eq!(
        lines,
        [
            CSV_HEADER,
            "boxes,boxes-package,1.0,host,\"stdin, cp a.txt\",1000,3,1,0,0,1,1,0,2,1,segv,\
             /out/crash/minimized,10,10,,,sh /out/crash/reproduce.sh",
            "cat,cat-package,1.0,host,stdin,600,0,0,0,0,0,0,0,0,,,,,,,,",
            "su,su-package,1.0,host,,0,0,0,0,0,,,,0,,,,,,setuid,,",
            "",
        ]
    );
}

#[test]
fn every_line_has_the_cells_of_the_header_whatever_names_hold() {
    let studies = [study(
        "c1",
        HOSTILE,
        vec![utility(HOSTILE, 0, vec![tally(HOSTILE, "all", 5, 1, 0)])],
    )];
    let lines = parsed(&csv(&rows(&studies, &[])));
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].len(), 22);
    assert_eq!(lines[1].len(), 22);
    let name = &lines[1][0];
    assert!(name.starts_with("'=x\\u{1b}[2J|<script>\"alert"), "{name}");
    assert!(!name.contains(char::is_control), "{name}");
}

#[test]
fn an_empty_study_is_a_header() {
    assert_eq!(csv(&[]), format!("{CSV_HEADER}\r\n"));
}
