//! The object that a sanitizer's report is about, as records have it: what it is, whose, and where
//! in it the access begins.

use serde::{Deserialize, Serialize};

use super::address::Address;
use super::said::{ObjectKind, Report, ReportObject};
use super::site::site_of_frames;
use super::snapshot::{Owner, RawFrame};
use super::{Symbolizer, short_function};

/// The object that a sanitizer's report is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// What kind.
    pub kind: ObjectKind,
    /// Its size, in bytes.
    pub size: u64,
    /// Where the access begins, in bytes from the begin of the object.
    pub offset: i64,
    /// Name of the variable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variable: Option<String>,
    /// The function whose variable it is, or that allocated it; without symbols module and offset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// The file that declares the variable, or in which the block is allocated, as the program has
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The module that `address` counts in; `exe` for the main executable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Of a variable where its function starts, of a block where the call is that allocated it;
    /// from the module's load bias, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
}

/// ``32 bytes into the 32-byte buffer `name` of set_name``
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

/// The record of the object of `report`, whose owner is known by its frames.
pub(crate) fn object(
    report: Option<&Report>,
    owner: Option<&Owner>,
    symbolizer: &mut Symbolizer,
) -> Option<Object> {
    let told = report?.object.as_ref()?;
    let mut object = Object {
        kind: told.kind,
        size: told.size,
        offset: told.offset,
        variable: told.variable.as_deref().map(plain),
        function: None,
        file: told.file.clone(),
        line: told.line,
        module: None,
        address: None,
    };
    match (told.kind, owner) {
        (ObjectKind::Stack, Some(owner)) => object.of_function(told, owner, symbolizer),
        (ObjectKind::Heap, Some(owner)) => object.of_allocation(owner, symbolizer),
        (ObjectKind::Global, _) | (_, None) => {}
    }
    Some(object)
}

impl Object {
    fn of_function(&mut self, told: &ReportObject, owner: &Owner, symbolizer: &mut Symbolizer) {
        let Some(frame) = owner.frames.first() else {
            return;
        };
        self.is_at(frame, frame.function_start.unwrap_or(frame.offset));
        if let (Some(path), Some(start)) = (&frame.path, frame.function_start) {
            let declaring = symbolizer.declaring(path, start, told.line);
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

/// The name as the source has it: clang adds to those of inlined functions (`name.i1.i`).
fn plain(variable: &str) -> String {
    let plain = variable.split('.').next().unwrap_or_default();
    let known = if plain.is_empty() { variable } else { plain };
    known.to_owned()
}
