//! Names and lines of frames, for records only: keys never depend on them.
//!
//! They are looked for in the module's own file, in a debug file of its build that is installed
//! apart from it, and in the small symbol table that some distributions leave in stripped
//! programs.

mod debug_files;
mod mini;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use addr2line::Loader;
use addr2line::gimli::DwLang;

use debug_files::{DebugFiles, Facts};
use mini::MiniSymbols;

/// What symbols and debug information say of one frame.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Demangled name of the function.
    pub name: Option<String>,
    /// `file:line` of the innermost inlined function.
    pub line: Option<String>,
    /// Demangled names of the functions that were inlined there, innermost first.
    pub inlined: Vec<String>,
}

/// Modules whose symbols are kept in memory at a time.
const MODULES: usize = 64;
/// Places that are kept of them.
const PLACES: usize = 64 << 10;

/// What tells one version of a file from another: a program may be built anew between two crashes.
type Version = (Arc<Path>, Option<SystemTime>);

/// Reads symbols and debug information of modules, each file once, and only when one of its frames
/// is asked for.
pub struct Symbolizer {
    debug_files: DebugFiles,
    modules: HashMap<Version, Sources>,
    /// By module, offset, and whether debug files apart were looked into.
    places: HashMap<(Version, u64, bool), Place>,
}

impl Default for Symbolizer {
    /// One that looks for debug files where distributions install them.
    fn default() -> Symbolizer {
        Symbolizer::with_debug_files(DebugFiles::installed())
    }
}

impl Symbolizer {
    /// One that looks for debug files in the folders `roots`, laid out as `/usr/lib/debug` is.
    pub fn looking_in(roots: Vec<PathBuf>) -> Symbolizer {
        Symbolizer::with_debug_files(DebugFiles::in_folders(roots))
    }

    fn with_debug_files(debug_files: DebugFiles) -> Symbolizer {
        Symbolizer {
            debug_files,
            modules: HashMap::new(),
            places: HashMap::new(),
        }
    }

    /// What is known of the code at `offset` (from the load bias, in bytes) of the module in the
    /// file `path`.
    pub fn place(&mut self, path: &Arc<Path>, offset: u64) -> Place {
        self.look_up(path, offset, true)
    }

    /// The same from the module's own file alone: enough for a runtime, whose debug files are large.
    pub(crate) fn place_in_file(&mut self, path: &Arc<Path>, offset: u64) -> Place {
        self.look_up(path, offset, false)
    }

    fn look_up(&mut self, path: &Arc<Path>, offset: u64, apart: bool) -> Place {
        // No code is there, and sums with such an offset would overflow.
        if offset > u64::MAX / 2 {
            return Place::default();
        }
        let modified = std::fs::metadata(path).and_then(|facts| facts.modified());
        let version = (path.clone(), modified.ok());
        let at = (version, offset, apart);
        if let Some(place) = self.places.get(&at) {
            return place.clone();
        }
        if self.places.len() >= PLACES {
            self.places.clear();
        }
        let place = self.sources(&at.0, apart).place(offset);
        self.places.insert(at, place.clone());
        place
    }

    fn sources(&mut self, version: &Version, apart: bool) -> &Sources {
        if self.modules.len() >= MODULES && !self.modules.contains_key(version) {
            self.modules.clear();
        }
        let sources = self
            .modules
            .entry(version.clone())
            .or_insert_with(|| Sources::of(&version.0));
        if apart && !sources.sought_apart {
            sources.seek_apart(&version.0, &self.debug_files);
        }
        sources
    }
}

/// Where the names of one module stand, the richest first.
struct Sources {
    facts: Option<Facts>,
    /// Its debug file, if that is one apart.
    apart: Option<Loader>,
    /// Whether that has been looked for.
    sought_apart: bool,
    /// Its own file.
    own: Option<Loader>,
    mini: Option<MiniSymbols>,
}

impl Sources {
    fn of(path: &Path) -> Sources {
        let facts = debug_files::facts(path);
        Sources {
            apart: None,
            sought_apart: false,
            own: Loader::new(path).ok(),
            mini: facts
                .as_ref()
                .and_then(|facts| MiniSymbols::read(facts.mini.as_ref()?)),
            facts,
        }
    }

    fn seek_apart(&mut self, path: &Path, debug_files: &DebugFiles) {
        self.sought_apart = true;
        let Some(facts) = &self.facts else {
            return;
        };
        if facts.has_lines {
            // Debug information may be in part that of several programs, in a file of its own.
            if let Some(shared) = debug_files.shared_part_of(path) {
                self.own = Loader::new_with_sup(path, Some(shared)).ok();
            }
        } else if let Some(found) = debug_files.of(path, facts) {
            let shared = debug_files.shared_part_of(&found);
            self.apart = Loader::new_with_sup(&found, shared.as_ref()).ok();
        }
    }

    fn place(&self, offset: u64) -> Place {
        let mut place = Place::default();
        for loader in [&self.apart, &self.own].into_iter().flatten() {
            let found = look_up(loader, offset);
            if found.name.is_some() && place.name.is_none() {
                place.name = found.name;
                place.inlined = found.inlined;
            }
            place.line = place.line.or(found.line);
        }
        let mini = || self.mini.as_ref()?.name(offset);
        place.name = place.name.or_else(|| mini().map(demangle));
        place
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
