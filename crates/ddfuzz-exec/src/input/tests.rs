//! Tests of the channels by which inputs reach a target.

use std::io::Read;

use super::*;
use crate::private_dir::PrivateDir;

#[test]
fn a_named_input_that_the_target_spoiled_is_whole_for_the_next_run() {
    let private = PrivateDir::get().unwrap();
    let (path, other) = (private.fresh("test"), private.fresh("test"));
    let mut input = Input::in_file(&path).unwrap();
    type Spoil<'a> = &'a dyn Fn();
    let spoils: [Spoil; 5] = [
        &|| std::fs::write(&path, "longer than it was").unwrap(),
        &|| std::fs::remove_file(&path).unwrap(),
        &|| std::fs::rename(&path, &other).unwrap(),
        &|| std::fs::set_permissions(&path, Permissions::from_mode(0o0)).unwrap(),
        &|| {
            std::fs::remove_file(&path).unwrap();
            std::fs::create_dir(&path).unwrap();
        },
    ];
    for spoil in spoils {
        input.write(b"four").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"four");
        spoil();
    }
    input.write(b"four").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"four");
    drop(input);
    assert!(!path.exists());
}

#[test]
fn who_holds_a_renewed_input_sees_nothing_of_the_next_one() {
    let private = PrivateDir::get().unwrap();
    let path = private.fresh("test");
    for mut input in [Input::on_stdin().unwrap(), Input::in_file(&path).unwrap()] {
        input.write(b"first").unwrap();
        let held = match input.files {
            NamedFiles::None => input.stdin.try_clone().unwrap(),
            _ => File::open(&path).unwrap(),
        };
        input.renew().unwrap();
        input.write(b"another").unwrap();
        assert_eq!(std::io::read_to_string(held).unwrap(), "first");
        assert_eq!(input.length, 7);
    }
}

#[test]
fn a_named_input_is_unread_until_the_target_reads_it() {
    let private = PrivateDir::get().unwrap();
    let path = private.fresh("test");
    let mut input = Input::in_file(&path).unwrap();
    assert!(!input.is_unread(), "not asked");
    for text in [&b"text"[..], b"another"] {
        input.write(text).unwrap();
        input.forget_accesses();
        let tells = NamedFile::create(&path.with_extension("probe"), None).unwrap();
        let tells = Accesses::Untried.forget(&tells.writer, &tells.path) == Accesses::Recorded;
        assert_eq!(input.is_unread(), tells);
        let opened = File::open(&path).unwrap();
        assert_eq!(input.is_unread(), tells, "opened, and not read");
        assert_eq!(std::io::read_to_string(opened).unwrap().as_bytes(), text);
        assert!(!input.is_unread());
    }
    let mut other = Input::on_stdin().unwrap();
    other.forget_accesses();
    assert!(!other.is_unread());
}

#[test]
fn what_is_read_of_stdin_is_unknown_behind_a_seek_back() {
    let mut input = Input::on_stdin().unwrap();
    input.write(b"text").unwrap();
    assert_eq!(input.read_so_far(), Some(0));
    let mut part = [0; 3];
    input.stdin.read_exact(&mut part).unwrap();
    assert_eq!(input.read_so_far(), Some(3));
    input.rewind().unwrap();
    assert_eq!(input.read_so_far(), None);
    input.write(b"more").unwrap();
    assert_eq!(
        input.read_so_far(),
        Some(0),
        "the next run has read nothing yet"
    );
    input.stdin.read_at(&mut part, 1).unwrap();
    assert_eq!(input.read_so_far(), None);
    input.write(b"").unwrap();
    assert_eq!(input.stdin.read(&mut part).unwrap(), 0);
    assert_eq!(input.read_so_far(), Some(0));
}

#[test]
fn two_files_hold_what_is_before_and_behind_the_separator() {
    let private = PrivateDir::get().unwrap();
    let (first, second) = (private.fresh("test"), private.fresh("test"));
    let mut input = Input::in_two_files(&first, &second).unwrap();
    for text in [&b"longer\x1cand more"[..], b"a\x1cb", b"alone"] {
        input.write(text).unwrap();
        let (up_to, behind) = two_files(text);
        assert_eq!(std::fs::read(&first).unwrap(), up_to);
        assert_eq!(std::fs::read(&second).unwrap(), behind);
        assert_eq!(input.read_so_far(), None);
        input.renew().unwrap();
    }
    drop(input);
    assert!(!first.exists() && !second.exists());
}

#[test]
fn the_input_on_stdin_cannot_be_opened_for_writing() {
    let input = Input::on_stdin().unwrap();
    let mode = input.stdin.metadata().unwrap().mode();
    assert_eq!(mode & 0o222, 0);
}

fn written(inputs: &InputBatch, number: usize) -> Vec<u8> {
    let (offset, length) = inputs.places[number];
    let mut bytes = vec![0; length as usize];
    inputs.reader.read_exact_at(&mut bytes, offset).unwrap();
    bytes
}

#[test]
fn as_many_inputs_as_fit_stand_one_behind_the_other() {
    let mut inputs = InputBatch::create().unwrap();
    inputs.write(&[b"one", b"", b"three"]).unwrap();
    assert_eq!(inputs.places, [(0, 3), (3, 0), (3, 5)]);
    assert_eq!(written(&inputs, 2), b"three");
    let half = vec![7; MAPPED / 2 + 1];
    inputs.write(&[&half, &half]).unwrap();
    assert_eq!(inputs.places.len(), 1);
    let many = vec![&b"x"[..]; MOST_INPUTS + 1];
    inputs.write(&many).unwrap();
    assert_eq!(inputs.places.len(), MOST_INPUTS);
}

#[test]
fn an_input_larger_than_the_mapping_stands_behind_it() {
    let mut inputs = InputBatch::create().unwrap();
    let large = vec![9; MAPPED + 1];
    inputs.write(&[&large, b"other"]).unwrap();
    assert_eq!(inputs.places, [(MAPPED as u64, MAPPED as u64 + 1)]);
    assert_eq!(written(&inputs, 0), large);
}
