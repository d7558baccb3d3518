//! Names and source lines of frames, for records only: keys do not depend on them.
//!
//! They come from the module's file, from a separate debug file of the same build, and from the
//! small symbol table that some distributions leave in stripped programs.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use addr2line::Loader;

use crate::Frame;
use crate::snapshot::RawFrame;
use crate::symbols::debug_files::{DebugFiles, Facts, MiniSymbols};
use crate::symbols::demangled::demangle;

mod debug_files;
pub(crate) mod demangled;

/// The names of the functions at one code address, inlined ones included, and their source lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Demangled name of the function that contains the address; `None` where it is unknown.
    pub name: Option<String>,
    /// Source line `file:line` of the innermost function at the address: of the first inlined
    /// function, else of the function `name`; `None` where it is unknown.
    pub line: Option<String>,
    /// Demangled names of the functions inlined at the address, innermost first; empty if there are
    /// none.
    pub inlined: Vec<String>,
    /// If functions are inlined at the address: source line `file:line` of each, innermost first,
    /// and then that of the function `name`. Empty if none is inlined.
    pub lines: Vec<Option<String>>,
}

/// Maximum number of modules whose symbols are kept in memory.
const MODULES: usize = 64;
/// Maximum number of code addresses whose function names and source lines are cached.
const PLACES: usize = 64 << 10;

/// Path and modification time of a program or library, which identify its version: it may be
/// rebuilt between two crashes.
type Version = (Arc<Path>, Option<SystemTime>);

/// Looks up function names and source lines in the symbols and debug information of programs and
/// libraries. Each file is read once, when it is needed first.
pub struct Symbolizer {
    debug_files: DebugFiles,
    modules: HashMap<Version, Sources>,
    /// Cache of looked up code addresses: by module, offset, and whether separate debug files were
    /// looked at.
    places: HashMap<(Version, u64, bool), Place>,
    /// Whether look-ups are turned off, so that all names and lines are unknown.
    is_off: bool,
}

/// Returns the path of the separately installed debug file of the program at `path`, of the same
/// build as far as build ids tell. `None` if the program's own file has debug information, if there
/// is no such file, or if the debug file refers to a further one that several programs share.
pub fn separate_debug_file(path: &Path) -> Option<PathBuf> {
    let facts = debug_files::facts(path).filter(|it| !it.has_lines)?;
    let found = DebugFiles::installed().of(path, &facts)?;
    let is_complete = debug_files::facts(&found).is_some_and(|it| !it.is_shared());
    is_complete.then_some(found)
}

impl Default for Symbolizer {
    /// Creates a symbolizer that searches for debug files where distributions install them.
    fn default() -> Symbolizer {
        Symbolizer::with_debug_files(DebugFiles::installed())
    }
}

impl Symbolizer {
    /// Creates a symbolizer that searches for debug files only in the folders `roots`, which are
    /// structured like `/usr/lib/debug`.
    pub fn looking_in(roots: Vec<PathBuf>) -> Symbolizer {
        Symbolizer::with_debug_files(DebugFiles::in_folders(roots))
    }

    fn with_debug_files(debug_files: DebugFiles) -> Symbolizer {
        Symbolizer {
            debug_files,
            modules: HashMap::new(),
            places: HashMap::new(),
            is_off: false,
        }
    }

    /// Turns look-ups off: all later names and lines are unknown, and no debug information is read.
    pub(crate) fn turn_off(&mut self) {
        self.is_off = true;
    }

    /// Returns the names and source lines of the functions (inlined ones included) at one code
    /// address of the program or library at `path`; `offset` is the address in bytes from the load
    /// bias.
    pub fn place(&mut self, path: &Arc<Path>, offset: u64) -> Place {
        self.look_up(path, offset, true)
    }

    /// Converts the frames of a stack walk to frames with function names and source lines.
    pub(crate) fn frames(&mut self, frames: &[RawFrame]) -> Vec<Frame> {
        frames.iter().map(|frame| self.frame(frame)).collect()
    }

    fn frame(&mut self, raw: &RawFrame) -> Frame {
        let place = raw.path.as_ref().map(|path| match raw.runtime {
            true => self.look_up(path, raw.offset, false),
            false => self.place(path, raw.offset),
        });
        let place = place.unwrap_or_default();
        let exported = raw.exported.as_deref();
        Frame {
            module: raw.module.to_string(),
            offset: raw.offset,
            function_start: raw.function_start,
            name: place.name.or_else(|| exported.map(str::to_owned)),
            line: place.line,
            own: !raw.runtime,
            gives_up: false,
            inlined: place.inlined,
            lines: place.lines,
            build_id: raw.build_id.as_deref().map(str::to_owned),
            trust: raw.trust,
        }
    }

    /// Changes names and source lines of the stack frame `frame` of a hang to those of its endless
    /// loop: to the innermost function that contains all basic blocks of the loop (which start at
    /// the offsets `pieces`), and that function's first source line in the loop. Without debug
    /// information, the frame stays as it is.
    pub(crate) fn stand_in(&mut self, frame: &mut Frame, raw: &RawFrame, pieces: &[u64]) {
        let Some(path) = raw.path.as_ref().filter(|_| !self.is_off) else {
            return;
        };
        let version = version(path);
        let sources = self.sources(&version, true);
        let loaders = [&sources.apart, &sources.own].into_iter().flatten();
        let common = loaders.filter_map(|loader| common_levels(loader, pieces));
        if let Some(place) = common.map(Place::of_levels).next() {
            frame.name = place.name.or(frame.name.take());
            (frame.line, frame.lines, frame.inlined) = (place.line, place.lines, place.inlined);
        }
    }

    /// Returns the function that declares a variable in the source line `line` of the program or
    /// library at `path`: the function that starts at the offset `start`, or one inlined into it.
    /// Without a line, returns the function at `start`.
    pub(crate) fn declaring(
        &mut self,
        path: &Arc<Path>,
        start: u64,
        line: Option<u64>,
    ) -> Declaring {
        if self.is_off {
            return Declaring::default();
        }
        let version = version(path);
        let sources = self.sources(&version, true);
        let loaders = [&sources.apart, &sources.own].into_iter().flatten();
        let found = loaders.filter_map(|loader| declaring(loader, start, line));
        let found = found.max_by_key(|it| it.file.is_some());
        found.unwrap_or_else(|| Declaring {
            name: self.place(path, start).name,
            file: None,
        })
    }

    /// Returns the function names and source lines of the code at `offset` in the program or
    /// library at `path`, also in a separately installed debug file if `apart` is set. `apart` is
    /// not set for runtimes (C library …), because their debug files are large.
    fn look_up(&mut self, path: &Arc<Path>, offset: u64, apart: bool) -> Place {
        // No code is there, and sums with such an offset would overflow.
        if self.is_off || offset > u64::MAX / 2 {
            return Place::default();
        }
        let at = (version(path), offset, apart);
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
        let sources = self.modules.entry(version.clone());
        let sources = sources.or_insert_with(|| Sources::of(&version.0));
        if apart && !sources.sought_apart {
            sources.seek_apart(&version.0, &self.debug_files);
        }
        sources
    }
}

fn version(path: &Arc<Path>) -> Version {
    let modified = std::fs::metadata(path).and_then(|facts| facts.modified());
    (path.clone(), modified.ok())
}

/// The name and the source file of a function in which a variable is declared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Declaring {
    /// Demangled name of the function that declares the variable; `None` where it is unknown.
    pub name: Option<String>,
    /// Source file of the function that declares the variable; `None` where it is unknown.
    pub file: Option<String>,
}

/// The parsed files in which function names and source lines of one program or library are looked
/// up.
struct Sources {
    facts: Option<Facts>,
    /// The separately installed debug file of the program or library; `None` if none was found.
    apart: Option<Loader>,
    /// Whether a separately installed debug file of the program or library was searched for.
    sought_apart: bool,
    /// Debug information and symbols in the file of the program or library itself; `None` if it
    /// cannot be read.
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
            mini: (facts.as_ref()).and_then(|it| MiniSymbols::read(it.mini.as_ref()?)),
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
        let loaders = || [&self.apart, &self.own].into_iter().flatten();
        // Names and lines of one file belong together; a symbol table has names alone.
        let levels = loaders().find_map(|loader| levels(loader, offset));
        let mut place = levels.map(Place::of_levels).unwrap_or_default();
        let symbol = || {
            let found = loaders().find_map(|loader| loader.find_symbol(offset).map(demangle));
            found.or_else(|| self.mini.as_ref()?.name(offset).map(demangle))
        };
        place.name = place.name.or_else(symbol);
        place
    }
}

/// A function at a code address (an inlined one, or the one that contains it), as debug information
/// describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Level {
    name: Option<String>,
    file: Option<String>,
    line: Option<u32>,
}

impl Place {
    /// Builds the names and lines of a code address from the functions `levels` at it: inlined ones
    /// innermost first, the containing function last.
    fn of_levels(levels: Vec<Level>) -> Place {
        let mut lines: Vec<Option<String>> = levels.iter().map(Level::place).collect();
        let mut names: Vec<Option<String>> = levels.into_iter().map(|level| level.name).collect();
        let name = names.pop().flatten();
        let line = lines.first().cloned().flatten();
        if names.is_empty() {
            lines.clear();
        }
        Place {
            name,
            line,
            inlined: names.into_iter().flatten().collect(),
            lines,
        }
    }
}

impl Level {
    /// Returns the source line of the function as `file:line`; `None` if file or line is unknown.
    fn place(&self) -> Option<String> {
        Some(format!("{}:{}", self.file.as_ref()?, self.line?))
    }
}

/// Returns the functions at the code address `offset` (inlined ones, then the containing one),
/// innermost first; `None` where the file has no debug information there.
fn levels(loader: &Loader, offset: u64) -> Option<Vec<Level>> {
    let mut levels = levels_as_told(loader, offset);
    if levels.first()?.line.is_none()
        && let Some(nearest) = nearest(loader, offset, &levels)
    {
        levels[0] = nearest;
    }
    Some(levels)
}

fn levels_as_told(loader: &Loader, offset: u64) -> Vec<Level> {
    let mut levels = Vec::new();
    if let Ok(mut frames) = loader.find_frames(offset) {
        while let Ok(Some(frame)) = frames.next() {
            let name = frame.function.as_ref();
            let location = frame.location.as_ref();
            levels.push(Level {
                name: name.and_then(|it| Some(demangle(&it.raw_name().ok()?))),
                file: location.and_then(|it| Some(it.file?.to_owned())),
                line: location.and_then(|it| it.line),
            });
        }
    }
    // What is inlined without a name is left out with its line.
    let outermost = levels.pop();
    levels.retain(|level| level.name.is_some());
    levels.extend(outermost);
    levels
}

/// Maximum distance in bytes from an instruction without a source line at which another
/// instruction's line is used for it.
const NEAR: u64 = 1024;

/// Finds a source line for the code address `offset`, to which the compiler gave the line 0.
/// Returns the innermost of the functions `levels` at the address, with the line of the nearest
/// instruction of the same call of that function; instructions before the address have precedence.
/// `None` if there is no such instruction within [`NEAR`] bytes.
fn nearest(loader: &Loader, offset: u64, levels: &[Level]) -> Option<Level> {
    let rows = loader.find_location_range(offset.saturating_sub(NEAR), offset + NEAR);
    let known = rows.ok()?.filter(|(.., location)| location.line.is_some());
    let (before, behind): (Vec<u64>, Vec<u64>) =
        known.map(|(at, ..)| at).partition(|at| *at <= offset);
    let (innermost, outer) = levels.split_first()?;
    before.into_iter().rev().chain(behind).find_map(|at| {
        let mut there = levels_as_told(loader, at);
        let same = there.get(1..) == Some(outer) && there[0].name == innermost.name;
        same.then(|| there.swap_remove(0))
    })
}

/// Returns the functions that contain all basic blocks of a loop (start offsets `pieces`),
/// innermost first. The source line of the innermost function is its first line in the loop. `None`
/// where debug information names no such function.
fn common_levels(loader: &Loader, pieces: &[u64]) -> Option<Vec<Level>> {
    let all = pieces.iter().map(|piece| levels_as_told(loader, *piece));
    // What the compiler makes up has no line, and may be counted to any of the functions.
    let has_line = |levels: &Vec<Level>| levels.first().is_some_and(|it| it.line.is_some());
    let mut all = all.filter(has_line);
    let mut common = all.next()?;
    for mut levels in all {
        // From the outermost on, which all have; each is inlined by the same call of the next.
        let same = common.iter().rev().zip(levels.iter().rev());
        let inlined_alike = |(a, b): &(&Level, &Level)| a.name == b.name;
        let mut count = same.clone().take_while(inlined_alike).count();
        let split = same.take(count).position(|(a, b)| a.line != b.line);
        // Below another call there is another function.
        count = split.map_or(count, |split| (split + 1).min(count));
        if count == 0 {
            return None;
        }
        common.drain(..common.len() - count);
        levels.drain(..levels.len() - count);
        let line = |level: &Level| level.line.unwrap_or(u32::MAX);
        if line(&levels[0]) < line(&common[0]) {
            common[0] = levels.swap_remove(0);
        }
    }
    Some(common)
}

/// Maximum number of bytes of a function's machine code whose lines are compared with the line that
/// declares a variable; the rest of a longer function is not looked at.
const LONGEST_FUNCTION: u64 = 64 << 10;

/// Returns the function that declares a variable in the source line `line`, among the function at
/// `start` and those inlined into it: a declaration precedes the code that uses it. `None` if no
/// debug information describes the function.
fn declaring(loader: &Loader, start: u64, line: Option<u64>) -> Option<Declaring> {
    let of = |level: &Level| Declaring {
        name: level.name.clone(),
        file: level.file.clone(),
    };
    let holder = levels_as_told(loader, start).pop()?;
    let line = line.and_then(|line| u32::try_from(line).ok());
    let Some(line) = line.filter(|line| *line > 0) else {
        return Some(of(&holder));
    };
    let rows = loader.find_location_range(start, start.saturating_add(LONGEST_FUNCTION));
    let (mut first, mut last) = (u32::MAX, 0);
    let mut nearest: Option<(u32, Level)> = None;
    for (at, ..) in rows.ok()? {
        let levels = levels_as_told(loader, at);
        if levels.last().map(|level| &level.name) != Some(&holder.name) {
            break;
        }
        let inlined = levels.len().saturating_sub(1);
        let innermost = levels.into_iter().next();
        let Some(level) = innermost.filter(|level| level.line.is_some()) else {
            continue;
        };
        let here = level.line.unwrap_or_default();
        if inlined == 0 {
            (first, last) = (first.min(here), last.max(here));
        } else if here >= line && nearest.as_ref().is_none_or(|(best, _)| here < *best) {
            nearest = Some((here, level));
        }
    }
    match nearest {
        Some((_, level)) if !(first..=last).contains(&line) => Some(of(&level)),
        _ => Some(of(&holder)),
    }
}
