//! The journal of `triage`.

use ddfuzz::exec::Ended;
use ddfuzz::minimize::log::ContentHash;
use ddfuzz::store::{Store, Triaged};

use crate::sample::campaign;

fn line(text: &[u8]) -> Triaged {
    Triaged {
        leaks: false,
        v: 1,
        campaign: "c".to_owned(),
        target: ContentHash::of(b"target"),
        input: ContentHash::of(text),
        size: text.len() as u64,
        ended: Ended::Exit(0),
        hits: 0,
        tries: 3,
        examined: true,
        crash: None,
    }
}

#[test]
fn lines_are_read_in_their_order_and_what_is_torn_or_damaged_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("out");
    let store = Store::create_or_resume(&root, campaign("c")).unwrap();
    let (mut journal, lines) = store.triage_journal().unwrap();
    assert_eq!(lines, []);
    for text in [b"1", b"2"] {
        journal.add(&line(text)).unwrap();
    }
    journal.sync().unwrap();
    drop(journal);
    let path = root.join("triage.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{{\"v\":1}}\n{text}{}", &text[..20])).unwrap();
    let (mut journal, lines) = store.triage_journal().unwrap();
    assert_eq!(lines, [line(b"1"), line(b"2")]);
    journal.add(&line(b"3")).unwrap();
    let (_, lines) = store.triage_journal().unwrap();
    assert_eq!(lines.len(), 3);
}
