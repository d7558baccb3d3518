//! Combines a sanitizer's report with the unwound stack: which frames belong to the reporting
//! itself, and which frames of the report replace a stack that could not be unwound.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Entry;
use crate::messages::{ObjectKind, Report, ReportFrame};
use crate::module::Module;
use crate::modules::parsed_file;
use crate::runtime_modules::{is_runtime_module, is_runtime_symbol};
use crate::snapshot::{Control, End, Event, Owner, RawFrame, Snapshot, Trust};
use ddfuzz_exec::Ended;

/// Maximum number of frames that are converted of a stack in a sanitizer's report that tells where
/// memory was allocated or freed.
const SITE: usize = 32;

/// Maximum size in bytes of a program or library that is read to convert the frames of a
/// sanitizer's report.
const LARGEST: u64 = 1 << 30;

/// Converts the stack frames in sanitizers' reports to the form in which stack walks find them:
/// module, offset, start of the function.
pub(crate) struct ReportFrames {
    /// Path of the target's own executable; `None` if it is unknown.
    program: Option<PathBuf>,
    dropped: Vec<String>,
    modules: HashMap<PathBuf, Option<Arc<Module>>>,
}

impl ReportFrames {
    /// Creates a converter for the reports of the target whose executable is `program`. Functions
    /// named in `dropped` count as runtime functions, so that keys ignore them.
    pub(crate) fn new(program: Option<&Path>, dropped: Vec<String>) -> ReportFrames {
        ReportFrames {
            program: program.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned())),
            dropped,
            modules: HashMap::new(),
        }
    }

    /// Checks whether `base` is the base name of the target's own executable. Base names are
    /// compared because ThreadSanitizer prints nothing else.
    fn is_own(&self, base: &str) -> bool {
        let name = self.program.as_deref().and_then(Path::file_name);
        name.is_some_and(|name| name.to_string_lossy() == base)
    }

    /// Returns the parsed ELF file of the target's own executable; `None` where it cannot be read.
    fn own_module(&mut self) -> Option<Arc<Module>> {
        let program = self.program.clone()?;
        self.module(&program, false)
    }

    /// Combines the snapshot of a process with the sanitizer's `report` that the process wrote.
    /// Returns the snapshot with the stack frames that identify the bug, and true if they are those
    /// of the report, false if they come from the stack walk. The walked frames are taken if they
    /// contain the innermost user frame of the report (frames inside of that one then count as
    /// runtime), if the report has no user frame, or if the walk began at the deadly signal itself.
    pub(crate) fn join(
        &mut self,
        snapshot: Option<Box<Snapshot>>,
        ended: Ended,
        report: &Report,
    ) -> (Option<Box<Snapshot>>, bool) {
        if let Some(snapshot) = &snapshot
            && report.signal_class().is_some()
            && snapshot.signal() != Some(libc::SIGABRT)
            && snapshot.frames.iter().any(|frame| !frame.runtime)
        {
            // Read at the signal itself, before the sanitizer's handler ran.
            return (Some(snapshot.clone()), false);
        }
        let reported: Vec<RawFrame> = self.frames(report);
        let first = reported.iter().find(|frame| !frame.runtime);
        let Some(first) = first else {
            return (snapshot, false);
        };
        let mut snapshot = snapshot.unwrap_or_else(|| Box::new(Snapshot::bare(event(ended))));
        let same = |frame: &RawFrame| frame.module == first.module && frame.offset == first.offset;
        if let Some(at) = snapshot.frames.iter().position(same) {
            for frame in &mut snapshot.frames[..at] {
                frame.runtime = true;
            }
            if let Some(outermost) = snapshot.frames[..at].last_mut() {
                self.find_name(outermost);
            }
            return (Some(snapshot), false);
        }
        snapshot.frames = reported;
        snapshot.control = Control::Sound;
        snapshot.end = End::Clean;
        (Some(snapshot), true)
    }

    /// Returns two converted stacks of a sanitizer's report, at most 32 frames each: that of the
    /// allocation, and that of the `free`, of the memory that it is about. A stack that the report
    /// lacks is empty.
    pub(crate) fn sites(&mut self, report: &Report) -> (Vec<RawFrame>, Vec<RawFrame>) {
        let mut site = |reported: &[ReportFrame]| {
            let reported = reported.iter().take(SITE);
            reported.map(|it| self.frame(it)).collect()
        };
        (site(&report.allocated), site(&report.freed))
    }

    /// Returns the owner of the object that `report` is about (the function of a variable, the
    /// allocation stack of a heap block); `None` where the report does not tell it.
    pub(crate) fn owner(&mut self, report: &Report) -> Option<Owner> {
        let object = report.object.as_ref()?;
        let (frames, variable) = match object.kind {
            ObjectKind::Stack => (object.frame.as_slice(), object.begin?.to_string()),
            ObjectKind::Heap => (&report.allocated[..], String::new()),
            ObjectKind::Global => {
                let name = object.variable.as_deref().unwrap_or_default();
                let file = object.file.as_deref().unwrap_or_default();
                (&[][..], format!("{name} of {file}"))
            }
        };
        Some(Owner {
            kind: object.kind,
            frames: frames.iter().map(|frame| self.frame(frame)).collect(),
            variable,
            near: object.is_near(),
        })
    }

    /// Looks up the exported name of the function of `frame`, a frame that was found to belong to a
    /// sanitizer or the C library, and stores it in the frame.
    fn find_name(&mut self, frame: &mut RawFrame) {
        if frame.exported.is_some() {
            return;
        }
        let module = match &frame.path {
            _ if &*frame.module == "exe" && self.program.is_some() => self.own_module(),
            Some(path) => self.module(path, true),
            None => None,
        };
        frame.exported = module.and_then(|module| module.runtime_name(frame.offset));
    }

    fn frames(&mut self, report: &Report) -> Vec<RawFrame> {
        let mut frames: Vec<RawFrame> = report.stack.iter().map(|it| self.frame(it)).collect();
        if frames.is_empty()
            && let Some(location) = &report.location
        {
            frames.push(RawFrame {
                module: location.as_str().into(),
                ..RawFrame::default()
            });
        }
        if let Some(first) = frames.first_mut() {
            first.trust = Trust::Pc;
        }
        frames
    }

    fn frame(&mut self, reported: &ReportFrame) -> RawFrame {
        let (Some(path), Some(base), Some(offset)) =
            (&reported.module, reported.base_name(), reported.offset)
        else {
            return symbolized(reported);
        };
        let own = self.is_own(base);
        let offset = offset.0;
        let runtime = !own && is_runtime_module(base);
        let module = match own {
            true => self.own_module(),
            false => self.module(Path::new(path), runtime),
        };
        let facts = module.as_deref();
        let function_start = facts.and_then(|module| module.function_start(offset));
        let starts =
            facts.is_some_and(|module| function_start.is_some() && module.start == function_start);
        let linked = facts.is_some_and(|module| module.linked.contains(offset));
        RawFrame {
            module: if own { "exe" } else { base }.into(),
            offset,
            function_start,
            trust: Trust::Call,
            runtime: runtime || starts || linked,
            entry: function_start.and_then(|start| facts?.entry(start)),
            gives_up: false,
            exported: facts.and_then(|module| module.runtime_name(offset)),
            build_id: facts.and_then(|module| module.build_id.clone()),
            path: match &self.program {
                Some(program) if own => Some(program.as_path().into()),
                _ => path.starts_with('/').then(|| Path::new(path).into()),
            },
        }
    }

    fn module(&mut self, path: &Path, runtime: bool) -> Option<Arc<Module>> {
        if let Some(known) = self.modules.get(path) {
            return known.clone();
        }
        let module = self.parse(path, runtime);
        self.modules.insert(path.to_owned(), module.clone());
        module
    }

    /// Parses the ELF file at `path`, which a sanitizer's report names; `runtime`: whether it is a
    /// runtime module (C library …). `None` if the path is relative, or leads to no file of usual
    /// size, since reports are hostile text; an empty module if the file is not an ELF file.
    fn parse(&self, path: &Path, runtime: bool) -> Option<Arc<Module>> {
        let facts = std::fs::metadata(path).ok()?;
        if !path.is_absolute() || !facts.is_file() || facts.len() > LARGEST {
            return None;
        }
        parsed_file(path, runtime, &self.dropped)
    }
}

/// Converts a stack frame of a sanitizer's report that has names but no module and offset, because
/// the user chose the sanitizer's options. The source line, else the function, takes the place of
/// the module name.
fn symbolized(reported: &ReportFrame) -> RawFrame {
    let function = reported.function.as_deref().unwrap_or_default();
    let name = function.split('(').next().unwrap_or(function);
    let place = reported.line.as_deref().unwrap_or(function);
    RawFrame {
        module: place.into(),
        trust: Trust::Call,
        runtime: is_runtime_symbol(name) || (reported.line.is_none() && function.is_empty()),
        entry: match name {
            "main" => Some(Entry::Main),
            "LLVMFuzzerTestOneInput" | "target_main" => Some(Entry::Harness),
            _ => None,
        },
        exported: Some(name.into()),
        ..RawFrame::default()
    }
}

fn event(ended: Ended) -> Event {
    match ended {
        Ended::Signal(number) => Event::Signal { number, code: 0 },
        Ended::Exit(status) => Event::Exit(status),
        Ended::Timeout | Ended::OutOfMemory => Event::Exit(0),
    }
}
