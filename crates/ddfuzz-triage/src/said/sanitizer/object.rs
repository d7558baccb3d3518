//! The object that a report of AddressSanitizer is about: a variable, or a block of the heap.

use serde::{Deserialize, Serialize};

use super::super::lines::cut;
use super::ReportFrame;
use super::kinds::number;

/// What kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// A variable in the frame of a function.
    Stack,
    /// A block of the heap.
    Heap,
    /// A global variable.
    Global,
}

/// The object that an access is about, as a report tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportObject {
    /// What kind.
    pub kind: ObjectKind,
    /// Its size, in bytes.
    pub size: u64,
    /// Where the access begins, in bytes from the begin of the object.
    pub offset: i64,
    /// Name of the variable.
    pub variable: Option<String>,
    /// Of a variable in a function's frame where it begins there, in bytes.
    pub begin: Option<u64>,
    /// The line that declares it.
    pub line: Option<u64>,
    /// The file that declares a global variable, as the compiler was given it.
    pub file: Option<String>,
    /// A frame in the function whose variable it is.
    pub frame: Option<ReportFrame>,
}

/// How far from an object an access may begin and still be one that went over its end or begin,
/// in bytes. Whoever is farther away was led there by a wild index, and may meet any object.
const NEAR: u64 = 32;

impl ReportObject {
    /// Whether the access begins in the object or close to it.
    pub fn is_near(&self) -> bool {
        self.distance() <= NEAR
    }

    /// How far from the object the access begins, in bytes; 0 in it and right behind it.
    pub(super) fn distance(&self) -> u64 {
        match u64::try_from(self.offset) {
            Ok(offset) => offset.saturating_sub(self.size),
            Err(_) => self.offset.unsigned_abs(),
        }
    }

    fn new(kind: ObjectKind, size: u64, offset: i64) -> ReportObject {
        ReportObject {
            kind,
            size,
            offset,
            variable: None,
            begin: None,
            line: None,
            file: None,
            frame: None,
        }
    }
}

/// The longest name that is kept, in bytes.
const LONGEST: usize = 256;

/// What a line says of the object that an access is about.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Said {
    /// It is a variable; the frame that stands below is of its function.
    InFrame,
    /// This one.
    Object(Box<ReportObject>),
}

/// Reads a line that tells the object; `None` where it is another.
pub(super) fn said(line: &str) -> Option<Said> {
    if line.starts_with("Address ") && line.contains(" is located in stack of ") {
        return line.contains(" in frame").then_some(Said::InFrame);
    }
    if line.starts_with('[') {
        return variable(line).map(Box::new).map(Said::Object);
    }
    let (_, rest) = line.split_once(" is located ")?;
    let object = match rest.split_once(" global variable '") {
        Some((where_to, rest)) => global(where_to, rest),
        None => block(rest),
    };
    object.map(Box::new).map(Said::Object)
}

/// `[32, 64) 'name' (line 26) <== Memory access at offset 64 overflows this variable`
fn variable(line: &str) -> Option<ReportObject> {
    let (range, rest) = line.strip_prefix('[')?.split_once(") '")?;
    let (named, access) = rest.split_once(" <== Memory access at offset ")?;
    let (begin, end) = range.split_once(", ")?;
    let (begin, end) = (number(begin)?, number(end)?);
    let offset = i64::try_from(number(access)?).ok()?;
    let (name, behind) = named.rsplit_once('\'')?;
    let object = ReportObject::new(
        ObjectKind::Stack,
        end.checked_sub(begin)?,
        offset.checked_sub_unsigned(begin)?,
    );
    Some(ReportObject {
        variable: Some(cut(name, LONGEST).to_owned()),
        begin: Some(begin),
        line: behind.trim().strip_prefix("(line ").and_then(number),
        ..object
    })
}

/// `0 bytes to the right of` and, behind it, `table' defined in 'obj.c:7:5' (0x55d0) of size 16`
fn global(where_to: &str, rest: &str) -> Option<ReportObject> {
    let (name, rest) = rest.split_once("' defined in '")?;
    let (place, rest) = rest.split_once('\'')?;
    let size = number(rest.split_once(" of size ")?.1)?;
    let object = ReportObject::new(ObjectKind::Global, size, offset(where_to, size)?);
    let mut parts = place.splitn(2, ':');
    Some(ReportObject {
        variable: Some(cut(name, LONGEST).to_owned()),
        file: parts.next().map(|file| cut(file, LONGEST).to_owned()),
        line: parts.next().and_then(number),
        ..object
    })
}

/// `0 bytes to the right of 10-byte region [0x602000000010,0x60200000001a)`
fn block(text: &str) -> Option<ReportObject> {
    let (before, _) = text.split_once("-byte region [")?;
    let (where_to, size) = before.rsplit_once(' ')?;
    let size = number(size)?;
    let offset = offset(where_to, size)?;
    Some(ReportObject::new(ObjectKind::Heap, size, offset))
}

/// Where the access begins, in bytes from the begin of an object of this size. Until LLVM 16 an
/// object lies to the right, then after.
fn offset(where_to: &str, size: u64) -> Option<i64> {
    let (far, where_to) = where_to.split_once(" bytes ")?;
    let (far, size) = (i64::try_from(number(far)?).ok()?, i64::try_from(size).ok()?);
    match where_to.trim_end() {
        "to the right of" | "after" => size.checked_add(far),
        "to the left of" | "before" => Some(-far),
        "inside of" => Some(far),
        _ => None,
    }
}
