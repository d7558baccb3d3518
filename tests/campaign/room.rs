//! Waiting for room on a full disk.

use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ddfuzz::campaign::{CampaignError, DiskFullError, DiskWait, PauseGate};
use ddfuzz::files::FileError;
use ddfuzz::minimize::MinimizeError;
use ddfuzz::store::StoreError;

fn error(kind: ErrorKind) -> FileError {
    FileError::at("write", Path::new("/dev/shm/file"))(Error::from(kind))
}

#[test]
fn what_is_refused_for_want_of_room_is_done_again_and_said_once() {
    let (stop, gate) = (AtomicBool::new(false), PauseGate::default());
    let mut room = DiskWait::new(&stop, &gate);
    let mut said = Vec::new();
    let mut tries = 0;
    let done = room.with_space(&mut |text| said.push(text.to_owned()), || {
        tries += 1;
        match tries {
            1 => Err(error(ErrorKind::StorageFull)),
            2 => Err(error(ErrorKind::QuotaExceeded)),
            tries => Ok(tries),
        }
    });
    assert_eq!(done.unwrap(), 3);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains("/dev/shm/file") && said[0].contains(" free"),
        "{said:?}"
    );
    assert!(
        said[1].contains("there is space again for /dev/shm/file"),
        "{said:?}"
    );
    assert!(gate.paused() >= Duration::from_millis(600));
    gate.pass(|| panic!("it is open"));
}

#[test]
fn other_errors_are_not_waited_for_and_the_user_may_stop() {
    let (stop, gate) = (AtomicBool::new(false), PauseGate::default());
    let mut room = DiskWait::new(&stop, &gate);
    let silent = &mut |text: &str| panic!("{text}");
    let denied = room.with_space(silent, || Err::<(), _>(error(ErrorKind::PermissionDenied)));
    assert!(denied.unwrap_err().full_at().is_none());
    let stopped = room.with_space(&mut |_| (), || {
        stop.store(true, Ordering::Relaxed);
        Err::<(), _>(error(ErrorKind::StorageFull))
    });
    assert!(stopped.unwrap_err().is_full());
}

#[test]
fn room_is_waited_for_until_the_time_is_over() {
    let (stop, gate) = (AtomicBool::new(false), PauseGate::default());
    let end = Instant::now() + Duration::from_millis(300);
    let mut room = DiskWait::new(&stop, &gate).until(Some(end));
    let mut said = Vec::new();
    let full = room.with_space(&mut |text| said.push(text.to_owned()), || {
        Err::<(), _>(error(ErrorKind::StorageFull))
    });
    assert!(full.unwrap_err().is_full());
    assert!(Instant::now() >= end && room.is_given_up());
    assert_eq!(said.len(), 1, "{said:?}");
    // Nobody waits from here on, and it is not said again.
    let silent = &mut |text: &str| panic!("{text}");
    let again = room.with_space(silent, || Err::<(), _>(error(ErrorKind::StorageFull)));
    assert!(again.unwrap_err().is_full());
}

#[test]
fn a_stop_while_the_disk_is_full_gives_up_what_is_not_stored() {
    let (stop, gate) = (AtomicBool::new(false), PauseGate::default());
    // The deadline of the whole call may stop it a moment before the time for fuzzing is over.
    let end = Instant::now() + Duration::from_secs(600);
    let mut room = DiskWait::new(&stop, &gate).until(Some(end));
    let full = room.with_space(&mut |_| (), || {
        stop.store(true, Ordering::Relaxed);
        Err::<(), _>(error(ErrorKind::StorageFull))
    });
    assert!(full.unwrap_err().is_full() && room.is_given_up());
}

#[test]
fn a_disk_that_is_full_when_the_time_is_over_is_told_of_and_not_waited_for() {
    let (stop, gate) = (AtomicBool::new(false), PauseGate::default());
    let mut room = DiskWait::new(&stop, &gate).until(Some(Instant::now()));
    let mut said = Vec::new();
    let mut tries = 0;
    let full = room.with_space(&mut |text| said.push(text.to_owned()), || {
        tries += 1;
        Err::<(), _>(error(ErrorKind::StorageFull))
    });
    assert!(full.unwrap_err().is_full());
    assert_eq!((tries, said.len()), (1, 1), "{said:?}");
    assert!(said[0].contains("ends with what is stored"), "{said:?}");
    assert!(!said[0].contains("continues"), "{said:?}");
    gate.pass(|| panic!("it is open"));
}

#[test]
fn what_needed_no_room_does_not_say_that_there_is_room_again() {
    let (stop, gate) = (AtomicBool::new(false), PauseGate::default());
    let mut room = DiskWait::new(&stop, &gate);
    let mut said = Vec::new();
    // A file system without any room.
    let full =
        FileError::at("write", Path::new("/proc/version"))(Error::from(ErrorKind::StorageFull));
    assert!(room.wait_after(&full, &mut |text| said.push(text.to_owned())));
    room.note_written(false, &mut |text| said.push(text.to_owned()));
    assert_eq!(said.len(), 1, "{said:?}");
    room.note_written(true, &mut |text| said.push(text.to_owned()));
    assert_eq!(said.len(), 2, "{said:?}");
}

#[test]
fn a_full_disk_is_recognised_in_every_error_of_a_campaign() {
    let full = || error(ErrorKind::StorageFull);
    let callback = |source| MinimizeError::Callback { what: "it", source };
    for error in [
        CampaignError::from(StoreError::from(full())),
        CampaignError::from(callback(Box::new(full()))),
        CampaignError::from(callback(Box::new(StoreError::from(full())))),
    ] {
        assert_eq!(error.full_at(), Some(Path::new("/dev/shm/file")), "{error}");
    }
    let other = callback(Box::new(error(ErrorKind::NotFound)));
    assert_eq!(CampaignError::from(other).full_at(), None);
}

#[test]
fn who_does_not_wait_is_told_at_once() {
    let (stop, gate) = (AtomicBool::new(false), PauseGate::default());
    let mut room = DiskWait::new(&stop, &gate).patient(false);
    let silent = &mut |text: &str| panic!("{text}");
    let full = room.with_space(silent, || Err::<(), _>(error(ErrorKind::StorageFull)));
    assert!(full.unwrap_err().is_full());
    gate.pass(|| panic!("it is open"));
}
