//! The object (stack variable, heap block or global) that an AddressSanitizer report is about: how
//! it is parsed from the report, and how records describe it.

use serde::{Deserialize, Serialize};

use crate::fault::Address;
use crate::messages::{Report, ReportFrame, cut, number};
use crate::site::site_of_frames;
use crate::snapshot::{Owner, RawFrame};
use crate::{Symbolizer, short_function};

/// The object (stack variable, heap block or global variable) that a sanitizer's report is about,
/// as crash records contain it, with names for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Kind of the object that the sanitizer's report is about: stack variable, heap block or
    /// global variable.
    pub kind: ObjectKind,
    /// Size in bytes of the object (variable or heap block) that the sanitizer's report is about.
    pub size: u64,
    /// Start of the faulty access, in bytes from the start of the accessed object; negative if it
    /// is before the object.
    pub offset: i64,
    /// Name, in the source, of the variable that was accessed; `None` for a heap block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// Function that declares the variable or allocates the heap block; without symbols, module and
    /// offset; `None` where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Source file that declares the variable or allocates the heap block, as in the debug
    /// information; `None` where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Source line that declares the variable or allocates the heap block; `None` where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// Base name of the program or library that contains the code at `address` (the function that
    /// declares the variable, or the call that allocates the heap block); `exe` for the main
    /// executable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Start of the function that declares the variable, or the call that allocates the heap block,
    /// in bytes from the module's load bias.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
}

/// Describes the object and where it was accessed for people, such as ``32 bytes into the 32-byte
/// buffer `name` of set_name``.
impl std::fmt::Display for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let far = self.offset.unsigned_abs();
        let unit = match far {
            1 => "byte",
            _ => "bytes",
        };
        let direction = match self.offset < 0 {
            true => "before",
            false => "into",
        };
        write!(f, "{far} {unit} {direction} the {}-byte ", self.size)?;
        let variable = self.variable.as_deref().unwrap_or("?");
        let function = self.function.as_deref().map(short_function);
        match (self.kind, function) {
            (ObjectKind::Stack, Some(function)) => write!(f, "buffer `{variable}` of {function}"),
            (ObjectKind::Stack, None) => write!(f, "buffer `{variable}`"),
            (ObjectKind::Global, _) => write!(f, "global buffer `{variable}`"),
            (ObjectKind::Heap, Some(function)) => write!(f, "heap block allocated by {function}"),
            (ObjectKind::Heap, None) => write!(f, "heap block"),
        }
    }
}

/// Builds the record of the object (variable or heap block) that `report` is about, with names
/// looked up by the frames of `owner`; `None` where the report names no object.
pub(crate) fn object(
    report: Option<&Report>,
    owner: Option<&Owner>,
    symbolizer: &mut Symbolizer,
) -> Option<Object> {
    let reported = report?.object.as_ref()?;
    let mut object = Object {
        kind: reported.kind,
        size: reported.size,
        offset: reported.offset,
        variable: reported.variable.as_deref().map(plain),
        function: None,
        file: reported.file.clone(),
        line: reported.line,
        module: None,
        address: None,
    };
    match (reported.kind, owner) {
        (ObjectKind::Stack, Some(owner)) => object.of_function(reported, owner, symbolizer),
        (ObjectKind::Heap, Some(owner)) => object.of_allocation(owner, symbolizer),
        (ObjectKind::Global, _) | (_, None) => {}
    }
    Some(object)
}

impl Object {
    fn of_function(&mut self, reported: &ReportObject, owner: &Owner, symbolizer: &mut Symbolizer) {
        let Some(frame) = owner.frames.first() else {
            return;
        };
        self.is_at(frame, frame.function_start.unwrap_or(frame.offset));
        if let (Some(path), Some(start)) = (&frame.path, frame.function_start) {
            let declaring = symbolizer.declaring(path, start, reported.line);
            self.function = declaring.name.or(self.function.take());
            self.file = declaring.file;
        } else if let Some(name) = &frame.exported {
            self.function = Some(name.to_string());
        }
    }

    fn of_allocation(&mut self, owner: &Owner, symbolizer: &mut Symbolizer) {
        let Some(call) = owner.frames.iter().find(|frame| !frame.runtime) else {
            return;
        };
        self.is_at(call, call.offset);
        let frames = symbolizer.frames(&owner.frames);
        let Some(site) = site_of_frames(&frames) else {
            return;
        };
        self.function = site.function.or(self.function.take());
        let place = site.source.as_deref().and_then(|it| it.rsplit_once(':'));
        if let Some((file, line)) = place {
            (self.file, self.line) = (Some(file.to_owned()), line.parse().ok());
        }
    }

    fn is_at(&mut self, frame: &RawFrame, address: u64) {
        self.module = Some(frame.module.to_string());
        self.address = Some(Address(address));
        self.function = Some(format!("{}+{address:#x}", frame.module));
    }
}

/// Returns the name of a variable as in the source, without the suffixes that clang adds to names
/// in inlined functions (`name.i1.i`).
fn plain(variable: &str) -> String {
    let plain = variable.split('.').next().unwrap_or_default();
    let known = if plain.is_empty() { variable } else { plain };
    known.to_owned()
}

/// Kind of the object that a sanitizer's report is about: stack variable, heap block or global
/// variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ObjectKind {
    /// The accessed object is a local variable in the stack frame of a function.
    Stack,
    /// The accessed object is an allocated block of the heap.
    Heap,
    /// The accessed object is a global variable.
    Global,
}

/// The object (variable or heap block) that a faulty access was meant for, as a sanitizer's report
/// describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportObject {
    /// Kind of the accessed object: stack variable, heap block or global variable.
    pub kind: ObjectKind,
    /// Size in bytes of the accessed object (variable or heap block).
    pub size: u64,
    /// Start of the faulty access, in bytes from the start of the accessed object; negative if it
    /// is before the object.
    pub offset: i64,
    /// Name of the accessed variable in the report; `None` for a heap block.
    pub variable: Option<String>,
    /// Position of the accessed stack variable in the stack frame of its function, in bytes; `None`
    /// for other objects.
    pub begin: Option<u64>,
    /// Source line that declares the accessed variable; `None` where the report has none.
    pub line: Option<u64>,
    /// Source file that declares the accessed global variable, as the compiler was given it; `None`
    /// for other objects.
    pub file: Option<String>,
    /// Stack frame, in the sanitizer's report, of the function that declares the accessed stack
    /// variable; `None` for other objects.
    pub frame: Option<ReportFrame>,
}

/// Maximum distance in bytes between an access and the object that it overflows or underflows. A
/// farther access comes from a wild index and may meet any object.
const NEAR: u64 = 32;

impl ReportObject {
    /// Checks whether the faulty access begins in the object or at most 32 bytes away from it.
    pub fn is_near(&self) -> bool {
        self.distance() <= NEAR
    }

    /// Returns the distance of the faulty access from the object, in bytes; 0 inside and directly
    /// after it.
    pub(crate) fn distance(&self) -> u64 {
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

/// Maximum length in bytes of the name of a variable or file that is parsed from a sanitizer's
/// report.
const LONGEST: usize = 256;

/// A parsed line of a sanitizer's report that tells which object was accessed: it describes the
/// object, or names the stack frame that has it as a variable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ObjectLine {
    /// The line says that the accessed object is a variable of the function in the next stack frame
    /// of the report.
    InFrame,
    /// The line describes the object (variable or heap block) that was accessed: size, name, and
    /// distance of the access.
    Object(Box<ReportObject>),
}

/// Parses a line of a sanitizer's report that tells which object was accessed. Returns the object,
/// or that it is a variable of the function in the next stack frame; `None` for other lines.
pub(crate) fn parse_object_line(line: &str) -> Option<ObjectLine> {
    if line.starts_with("Address ") && line.contains(" is located in stack of ") {
        return line.contains(" in frame").then_some(ObjectLine::InFrame);
    }
    if line.starts_with('[') {
        return variable(line).map(Box::new).map(ObjectLine::Object);
    }
    let (_, rest) = line.split_once(" is located ")?;
    let object = match rest.split_once(" global variable '") {
        Some((where_to, rest)) => global(where_to, rest),
        None => block(rest),
    };
    object.map(Box::new).map(ObjectLine::Object)
}

/// Parses a line of a sanitizer's report that says which stack variable was accessed,
/// `[32, 64) 'name' (line 26) <== Memory access at offset 64 overflows this variable`: returns its
/// name, source line, size and place in the stack frame, and the distance of the access. `None` for
/// any other line, also for one without `<==`: that variable was not accessed.
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

/// Reads from a line of a sanitizer's report which global variable an access has missed. `where_to`
/// is the distance, such as `0 bytes to the right of`; `rest` names the variable, such as `table'
/// defined in 'obj.c:7:5' (0x55d0) of size 16`. `None` if `rest` does not have this form.
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

/// Parses a line of a sanitizer's report about a heap block: `0 bytes to the right of 10-byte
/// region [0x602000000010,0x60200000001a)`. `None` for any other line.
fn block(text: &str) -> Option<ReportObject> {
    let (before, _) = text.split_once("-byte region [")?;
    let (where_to, size) = before.rsplit_once(' ')?;
    let size = number(size)?;
    let offset = offset(where_to, size)?;
    Some(ReportObject::new(ObjectKind::Heap, size, offset))
}

/// Parses text of a sanitizer's report that says how far an access was from an object:
/// `0 bytes to the right of` (LLVM up to 16) or `0 bytes after` (later versions). Returns the start
/// of the access, in bytes from the start of the object; `size` is the size of the object in bytes.
/// `None` for other texts.
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
