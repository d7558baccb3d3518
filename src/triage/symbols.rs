//! Names and lines of frames, for records only: keys never depend on them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use addr2line::Loader;
use addr2line::gimli::DwLang;

/// What symbols and debug information say of one frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Demangled name of the function.
    pub name: Option<String>,
    /// `file:line` of the innermost inlined function.
    pub line: Option<String>,
    /// Demangled names of the functions that were inlined there, innermost first.
    pub inlined: Vec<String>,
}

/// Reads symbols and debug information of the modules of one crash, each file once.
#[derive(Default)]
pub(crate) struct Symbolizer {
    loaders: HashMap<Arc<Path>, Option<Loader>>,
}

impl Symbolizer {
    /// What is known of the code at `offset` of the module in the file `path`.
    pub(crate) fn place(&mut self, path: &Arc<Path>, offset: u64) -> Place {
        let loader = self
            .loaders
            .entry(path.clone())
            .or_insert_with(|| Loader::new(path).ok())
            .as_ref();
        loader
            .map(|loader| look_up(loader, offset))
            .unwrap_or_default()
    }
}

fn look_up(loader: &Loader, offset: u64) -> Place {
    let mut place = Place::default();
    let mut names = Vec::new();
    if let Ok(mut frames) = loader.find_frames(offset) {
        while let Ok(Some(frame)) = frames.next() {
            if place.line.is_none() {
                place.line = frame
                    .location
                    .as_ref()
                    .and_then(|location| Some(format!("{}:{}", location.file?, location.line?)));
            }
            let name = frame.function.as_ref();
            names.extend(name.and_then(|it| Some(it.demangle().ok()?.into_owned())));
        }
    }
    place.name = names
        .pop()
        .or_else(|| loader.find_symbol(offset).map(demangle));
    place.inlined = names;
    place
}

/// The name as its language writes it.
fn demangle(symbol: &str) -> String {
    addr2line::demangle_auto(symbol.into(), None::<DwLang>).into_owned()
}
