//! The campaign file, its checkpoint and its course.

use std::fs;

use ddfuzz::exec::{Program, Target, TargetRecord, Way};
use ddfuzz::files::OsText;
use ddfuzz::store::{Campaign, Store};
use serde_json::{Value, json};

use crate::sample::campaign;

#[test]
fn the_campaign_file_has_the_keys_of_the_contract() {
    let root = tempfile::tempdir().unwrap();
    let campaign = Campaign {
        command_line: vec![OsText("ddfuzz".into()), OsText("run".into())],
        target: Some(TargetRecord::new(
            &Target::new(Program::Path("/bin/cat".into())),
            Way::Inject,
        )),
        ways: vec![Way::Inject],
        ..campaign("c1")
    };
    let store = Store::create_or_resume(root.path(), campaign.clone()).unwrap();
    let text = fs::read(root.path().join("ddfuzz.json")).unwrap();
    let value: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(value["version"], 1);
    assert_eq!(value["campaign"], "c1");
    assert_eq!(value["command_line"], json!(["ddfuzz", "run"]));
    assert_eq!(value["target"]["program"], "/bin/cat");
    assert_eq!(value["ways"], json!(["inject"]));
    assert_eq!(value["seed"], 1);
    assert_eq!(value["started"], "2026-01-02T03:04:05Z");
    assert_eq!(value["host"], "host");
    assert_eq!(store.reader().campaigns().unwrap().current, Some(campaign));
}

#[test]
fn a_new_campaign_keeps_the_earlier_one_on_record_and_not_its_checkpoint() {
    let root = tempfile::tempdir().unwrap();
    let mut store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    store.save_state(&json!({"runs": 7})).unwrap();
    assert_eq!(
        store.reader().load_state::<Value>().unwrap(),
        Some(json!({"runs": 7}))
    );
    store.begin(campaign("c2")).unwrap();
    assert_eq!(store.reader().load_state::<Value>().unwrap(), None);
    let file = store.reader().campaigns().unwrap();
    let ids: Vec<&str> = file.all().map(|campaign| campaign.id.as_str()).collect();
    assert_eq!(ids, ["c2", "c1"]);
    assert_eq!(&file, store.campaigns());
}

#[test]
fn a_checkpoint_of_another_form_is_an_error_and_none_is_none() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    assert_eq!(store.reader().load_state::<u64>().unwrap(), None);
    store.save_state(&"text").unwrap();
    assert_eq!(
        store.reader().load_state::<u64>().unwrap_err().kind(),
        "damaged"
    );
}

#[test]
fn statistics_are_lines_and_go_on_after_a_torn_one() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("stats.jsonl");
    let mut store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    store.append_stats(&json!({"runs": 1})).unwrap();
    store.append_stats(&json!({"runs": 2})).unwrap();
    drop(store);
    fs::write(
        &path,
        [fs::read(&path).unwrap(), b"{\"ru".to_vec()].concat(),
    )
    .unwrap();
    let mut store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    store.append_stats(&json!({"runs": 3})).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text, "{\"runs\":1}\n{\"runs\":2}\n{\"runs\":3}\n");
}

#[test]
fn the_corpus_keeps_each_content_once() {
    let root = tempfile::tempdir().unwrap();
    let mut store = Store::create_or_resume(root.path(), campaign("c1")).unwrap();
    let path = store.add_to_corpus(b"input").unwrap();
    assert_eq!(store.add_to_corpus(b"input").unwrap(), path);
    store.add_to_corpus(b"").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"input");
    // A file that a power cut has damaged is written again.
    assert!(!store.add_to_corpus_unsynced(b"input").unwrap());
    fs::write(&path, b"").unwrap();
    assert!(store.add_to_corpus_unsynced(b"input").unwrap());
    assert_eq!(fs::read(&path).unwrap(), b"input");
    let corpus = store.reader().corpus().unwrap();
    assert_eq!(corpus.len(), 2);
    assert!(corpus.contains(&path));
}
