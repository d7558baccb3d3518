//! Computes the keys of a crash: hashes by which crashes are grouped (docs/src/keys.md).

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::messages::ObjectKind;
use crate::normalise::Normalised;
use crate::snapshot::{RawFrame, Snapshot};
use crate::{Class, Keys, Object};
use ddfuzz_exec::Sanitizer;

/// Version number of the rules by which crash keys (hashes that group crashes) are computed. Since
/// version 2, keys include the object of an AddressSanitizer report and the endless loop of a hang;
/// keys without these equal those of version 1.
pub const VERSION: u32 = 2;

/// Default number of stack frames that are hashed into the minor key of a crash.
pub const DEPTH: usize = 2;

/// Settings of a `Triager`: how crash keys are computed, and whether leaks are searched for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Number of stack frames that are hashed into the minor key (the key of the path into a bug),
    /// 1…5.
    pub depth: usize,
    /// Exact symbol names of functions whose stack frames are left out of the keys, like those of
    /// the C library.
    pub dropped: Vec<String>,
    /// Whether an input whose runs do not crash is run once more with LeakSanitizer's check at
    /// exit, to find memory leaks.
    pub leaks: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            depth: DEPTH,
            dropped: Vec::new(),
            leaks: false,
        }
    }
}

/// Minimum number of calls of a function on the stack for it to count as part of an endless
/// recursion.
const RECURRING: usize = 3;

/// Maximum number of function names that are hashed into the stable key, which matches crashes
/// across rebuilds.
const STABLE_DEPTH: usize = 3;

/// Computes the major and minor key of a crash, hashes of its class and of stack frames that were
/// selected by `normalised`. `depth` is the number of frames in the minor key (1…5); `text` is the
/// part of an abort message that belongs to the keys, such as a failed assertion.
pub fn keys(
    class: &Class,
    snapshot: &Snapshot,
    normalised: &Normalised,
    depth: usize,
    text: Option<&str>,
) -> Keys {
    let object = object_id(class, snapshot);
    let endless = endless_id(class, snapshot, normalised);
    let (major_tag, minor_tag) = match object.is_some() || endless.is_some() {
        true => ("ddfuzz-major-2", "ddfuzz-minor-2"),
        false => ("ddfuzz-major-1", "ddfuzz-minor-1"),
    };
    let mut major = Fields::new(major_tag, class);
    let mut minor = Fields::new(minor_tag, class);
    let first = normalised.own.first().map(|index| &snapshot.frames[*index]);
    if class.0 == "stackoverflow" {
        // At which call the stack is used up depends on the environment, so that neither the
        // innermost frames nor the runtime function among them identify the bug.
        let recursion = recurring(snapshot, normalised);
        minor.push(b"");
        for fields in [&mut major, &mut minor] {
            fields.push_ids(&recursion);
        }
    } else {
        let f0 = first.map(|frame| match class.is_by_function() {
            true => function_id(frame),
            false => frame_id(frame),
        });
        major.push_ids(f0.as_slice());
        // The runtime function in which a memory blow-up is interrupted, or gets no more memory, is
        // met by chance, so that it is left out.
        let via = normalised.via.as_deref().filter(|_| class.0 != "oom");
        minor.push(via.unwrap_or_default().as_bytes());
        minor.push_ids(f0.as_slice());
        let depth = depth.clamp(1, 5);
        let depth = depth.saturating_sub(given_up(snapshot, normalised));
        for index in normalised.own.iter().take(depth).skip(1) {
            minor.push_id(&frame_id(&snapshot.frames[*index]));
        }
    }
    for fields in [&mut major, &mut minor] {
        text.iter().for_each(|text| fields.push(text.as_bytes()));
        if let Some((id, variable)) = &object {
            fields.push_id(id);
            fields.push(variable.as_bytes());
        }
        endless.iter().for_each(|id| fields.push_id(id));
    }
    without_stable(&major, &minor)
}

/// Returns what identifies, in the keys of a crash, the object that an AddressSanitizer report is
/// about, as (module name and offset, text): for a stack variable its function and position, for a
/// heap block the call that allocated it, for a global variable name and file. `None` for other
/// crashes, and if the access was far from the object.
fn object_id<'a>(class: &Class, snapshot: &'a Snapshot) -> Option<(Id<'a>, &'a str)> {
    let reported = matches!(class.sanitizer(), Some(Sanitizer::Asan | Sanitizer::Hwasan));
    let owner = snapshot.owner.as_ref().filter(|it| reported && it.near)?;
    let mut own = owner.frames.iter().filter(|frame| !frame.runtime);
    let id = match owner.kind {
        ObjectKind::Stack => function_id(owner.frames.first()?),
        ObjectKind::Heap => frame_id(own.next()?),
        ObjectKind::Global => ("", 0),
    };
    Some((id, &owner.variable))
}

/// Returns what identifies, in the keys of a hang, its endless loop: module and offset of the loop.
/// `None` for other crashes, and if no such loop was found.
fn endless_id<'a>(
    class: &Class,
    snapshot: &'a Snapshot,
    normalised: &Normalised,
) -> Option<Id<'a>> {
    let endless = snapshot.endless.as_ref().filter(|_| class.0 == "hang")?;
    let first = normalised.own.first().filter(|first| **first == 0)?;
    Some((&snapshot.frames[*first].module, endless.head))
}

/// Checks whether the keys of a crash include the object (variable or heap block) of a sanitizer's
/// report.
pub(crate) fn keys_include_object(class: &Class, snapshot: &Snapshot) -> bool {
    object_id(class, snapshot).is_some()
}

/// Returns the number of frames by which the minor key of a crash is shortened: one for each
/// innermost frame that was left out because its function only ends the program (`die`). Always 0
/// for a static, stripped program, where such functions of the C library cannot be distinguished
/// from the user's.
fn given_up(snapshot: &Snapshot, normalised: &Normalised) -> usize {
    match snapshot.opaque_runtime {
        true => 0,
        false => normalised.given_up,
    }
}

/// Computes the keys of a Rust or Go panic from `place`, the text that identifies it (usually its
/// location). Where the stack was read, the minor key includes its `depth` (1…5) innermost user
/// frames whose function is known.
pub fn panic_keys(
    class: &Class,
    place: &str,
    stack: Option<(&Snapshot, &Normalised)>,
    depth: usize,
) -> Keys {
    let mut major = Fields::new("ddfuzz-major-1", class);
    let mut minor = Fields::new("ddfuzz-minor-1", class);
    major.push(place.as_bytes());
    let via = stack.and_then(|(_, normalised)| normalised.via.as_deref());
    minor.push(via.unwrap_or_default().as_bytes());
    minor.push(place.as_bytes());
    if let Some((snapshot, normalised)) = stack {
        let frames = normalised.own.iter().map(|index| &snapshot.frames[*index]);
        // `main` of a stripped Rust program belongs to no function that is known.
        let known = frames.filter(|frame| frame.function_start.is_some());
        for frame in known.take(depth.clamp(1, 5)) {
            minor.push_id(&frame_id(frame));
        }
    }
    without_stable(&major, &minor)
}

/// Computes the keys of a crash without known stack frames from its class alone; all such crashes
/// of one class have equal keys.
pub fn frameless_keys(class: &Class) -> Keys {
    let mut minor = Fields::new("ddfuzz-minor-1", class);
    minor.push(b"");
    without_stable(&Fields::new("ddfuzz-major-1", class), &minor)
}

fn without_stable(major: &Fields, minor: &Fields) -> Keys {
    Keys {
        major: major.key(),
        minor: minor.key(),
        stable: None,
        version: VERSION,
    }
}

/// Computes the stable key, which matches crashes across rebuilds of the program. It is made of the
/// first three of `names`, the demangled names of the user functions on the stack, innermost first;
/// also of `object`, the object of a sanitizer's report, if the major key includes it. `None`
/// without names.
pub fn stable_key(class: &Class, names: &[&str], object: Option<&Object>) -> Option<Key> {
    let tag = match object {
        Some(_) => "ddfuzz-stable-2",
        None => "ddfuzz-stable-1",
    };
    let mut fields = Fields::new(tag, class);
    if let Some(object) = object {
        for name in [&object.function, &object.variable] {
            fields.push(name.as_deref().unwrap_or_default().as_bytes());
        }
    }
    let first = names.iter().take(STABLE_DEPTH);
    first.for_each(|name| fields.push(name.as_bytes()));
    (!names.is_empty()).then(|| fields.key())
}

/// Module name, and offset in the module in bytes, that identify a stack frame or a function in
/// keys.
type Id<'a> = (&'a str, u64);

fn frame_id(frame: &RawFrame) -> Id<'_> {
    (&frame.module, frame.offset)
}

fn function_id(frame: &RawFrame) -> Id<'_> {
    (&frame.module, frame.function_start.unwrap_or(frame.offset))
}

/// Returns the functions of the endless recursion in a stack overflow, sorted; if there is none,
/// the innermost function. Let F be the innermost function with at least [`RECURRING`] calls on the
/// stack: the recursion consists of all functions with at least as many calls between the top of
/// the stack and the outermost call of F. A recursive function further out, such as a parser that
/// called F, does not count.
fn recurring<'a>(snapshot: &'a Snapshot, normalised: &Normalised) -> Vec<Id<'a>> {
    let frames = normalised.unfolded.iter();
    let function = |index: &usize| function_id(&snapshot.frames[*index]);
    let all: Vec<Id<'_>> = frames.map(function).collect();
    let innermost = recurring_in(&all);
    let innermost = all.iter().find(|id| innermost.contains(id));
    let endless = innermost.and_then(|id| all.iter().rposition(|other| other == id));
    let recurring = endless.map(|outermost| recurring_in(&all[..=outermost]));
    recurring.unwrap_or_else(|| normalised.own.first().map(function).into_iter().collect())
}

/// Returns the functions that occur at least `RECURRING` (3) times in `calls`, sorted.
fn recurring_in<'a>(calls: &[Id<'a>]) -> Vec<Id<'a>> {
    let mut seen: BTreeMap<Id<'a>, usize> = BTreeMap::new();
    for id in calls {
        *seen.entry(*id).or_default() += 1;
    }
    seen.retain(|_, count| *count >= RECURRING);
    seen.into_keys().collect()
}

/// The byte strings that are hashed together to one crash key.
struct Fields(Vec<Vec<u8>>);

impl Fields {
    fn new(tag: &str, class: &Class) -> Fields {
        Fields(vec![tag.as_bytes().to_vec(), class.0.as_bytes().to_vec()])
    }

    fn push(&mut self, field: &[u8]) {
        self.0.push(field.to_vec());
    }

    fn push_id(&mut self, (module, offset): &Id<'_>) {
        self.push(module.as_bytes());
        self.push(&offset.to_le_bytes());
    }

    fn push_ids(&mut self, ids: &[Id<'_>]) {
        ids.iter().for_each(|id| self.push_id(id));
    }

    fn key(&self) -> Key {
        Key::of(self.0.iter().map(Vec::as_slice))
    }
}

/// A crash key: a hash by which crashes are grouped, the first 16 bytes of a blake3 hash. Records
/// contain all 32 hex digits; people see the first 12.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key([u8; 16]);

impl Key {
    /// Computes a key by hashing byte strings, each prefixed by its length.
    pub fn of<'a>(fields: impl IntoIterator<Item = &'a [u8]>) -> Key {
        let mut hasher = blake3::Hasher::new();
        for field in fields {
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field);
        }
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Key(bytes)
    }

    /// Returns the first 12 hex digits of the key, which people see and which name folders.
    pub fn short(self) -> String {
        self.to_string()[..12].to_owned()
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({self})")
    }
}

/// The error for a text that is not a crash key, because it does not have 32 hex digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key has 32 hex digits, not {0:?}")]
pub struct NotAKey(String);

impl std::str::FromStr for Key {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Key, NotAKey> {
        let wrong = || NotAKey(text.to_owned());
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if text.len() != 32 || !text.bytes().all(is_digit) {
            return Err(wrong());
        }
        let mut bytes = [0; 16];
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| wrong())?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
        }
        Ok(Key(bytes))
    }
}

impl Serialize for Key {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Key {
    fn schema_name() -> Cow<'static, str> {
        "Key".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^[0-9a-f]{32}$" })
    }
}
