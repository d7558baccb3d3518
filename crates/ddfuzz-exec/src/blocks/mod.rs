//! Coverage of unmodified programs: which basic blocks a run reaches, by breakpoints that are hit
//! once (x86-64).
//!
//! ddfuzz shares a copy of the program's code with the target's server (`runtime/blocks.h`), and
//! writes breakpoints into it between runs. To learn what a run reaches that no earlier run has
//! reached, breakpoints are set only at blocks that no run has reached, so that a run without new
//! blocks costs nothing more. To learn all blocks of a run, all breakpoints are set before it.

mod code;
mod starts;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

pub(crate) use code::libraries_in;
pub use code::mapped_path;
pub use code::{CodeFunction, CoveredCode};

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::{fs::File, io, ops::Range, os::unix::fs::FileExt, sync::Arc};

use crate::observations::{CoverageReporting, RunCoverage};
use crate::shared_page::keep_length;
use crate::{Ended, Run};
use code::CodeModule;

/// Size of a page of memory in bytes, to which code segments are aligned.
const PAGE: u64 = 4096;
/// Offset, in bytes, of the number of breakpoint hits in `struct block_table` of
/// `runtime/blocks.h`.
const HIT_COUNT: u64 = 8;
/// Offset, in bytes, of the first code segment's entry in `struct block_table`
/// (`runtime/blocks.h`).
const SEGMENTS: usize = 40;
/// Size, in bytes, of a code segment's entry in `struct block_table` (`runtime/blocks.h`).
const SEGMENT: usize = 88;
/// Offset in a segment's entry of `struct block_table`, in bytes, of the word that says whether the
/// server runs the shared code of the segment.
const PLACED: usize = 24;
/// Size in bytes of an entry in the table of breakpoint hits (number of the run, and address of the
/// block).
const HIT: usize = 16;
/// Size, in bytes, of `struct block_table` at the beginning of the shared memory file
/// (`runtime/blocks.h`).
const TABLE: u64 = (SEGMENTS + SEGMENT * MOST_SEGMENTS) as u64;
/// Maximum number of code segments whose blocks are covered (`MOST_CODE_SEGMENTS` of
/// `runtime/blocks.h`).
const MOST_SEGMENTS: usize = 64;
/// Number of successive runs that end differently with breakpoints than without, after which no
/// more breakpoints are set in the program.
const MOST_CONFLICTS: u32 = 16;

/// A segment of the program's code: where it lies in the program and in the shared memory file, and
/// its bytes with and without breakpoints.
struct CodeSegment {
    /// Index, among the covered files, of the program or library to which the segment belongs.
    module: usize,
    /// Device and inode of the library to which the segment belongs; zeros for the program.
    file: (u64, u64),
    /// Address of the code segment before loading, a multiple of the page size.
    address: u64,
    /// Length of the code segment in bytes, a multiple of the page size.
    length: u64,
    /// Range of the segment's bytes that the file of the program or library contains; the other
    /// bytes are zeros.
    filled: Range<u64>,
    /// Offset, in the shared memory file, of the copy of the segment's code that has breakpoints.
    code: u64,
    /// Offset, in the shared memory file, of the copy of the segment's code that has no
    /// breakpoints.
    original: u64,
    /// Offset in the shared memory file of a bitmap: one bit for each byte of the code, whether the
    /// byte may have a breakpoint.
    sites: u64,
    /// The bytes of the code segment without breakpoints.
    bytes: Vec<u8>,
    /// The bytes of the code segment with a breakpoint at each block that no run has reached.
    unreached: Vec<u8>,
    /// The bytes of the code segment with a breakpoint at each block.
    armed: Vec<u8>,
}

/// Which blocks have breakpoints now, in the code that all processes of the program share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Armed {
    Nothing,
    Unreached,
    /// All blocks have breakpoints, except those in `hit`: a run that hits a breakpoint removes it.
    All,
    /// It is unknown which blocks have breakpoints: runs, or a starting server, may have hit some,
    /// which removes them.
    Unknown,
}

/// The code of a program in a memory file shared with its processes, with breakpoints by which runs
/// report the blocks that they reach.
pub(crate) struct BlockCoverage {
    file: File,
    modules: Vec<Arc<CodeModule>>,
    segments: Vec<CodeSegment>,
    /// Addresses of the blocks of all files before loading, in ascending order. To each address,
    /// the key of its file is added (a number by which no two files have equal addresses). A block
    /// is identified by its index in this list.
    starts: Vec<u64>,
    reached: Vec<bool>,
    /// For each basic block, whether a server passes it before the point where its runs begin.
    at_start: Vec<bool>,
    armed: Armed,
    /// Indices of the blocks whose breakpoints have been hit, and so removed, by runs since
    /// breakpoints were last set at all blocks.
    hit: Vec<usize>,
    hits_at: u64,
    /// Breakpoint hits by runs of the present call of the executor, each as the index of the run
    /// within the call and the index of the block.
    pending: Vec<(usize, usize)>,
    /// Index, within the present call of the executor, of the first run of the next request to the
    /// server.
    pub(crate) first_run: usize,
    /// Whether the next runs are made without breakpoints, to compare how they end.
    pub(crate) is_paused: bool,
    conflicts: u32,
    /// Index, within the present call of the executor, of the last run that was made again because
    /// breakpoints may have changed how it ended; `None` if no run was.
    doubted: Option<usize>,
}

impl BlockCoverage {
    /// Finds the blocks of the program at `path` and of its libraries among the files `loaded`, and
    /// creates the memory file with their code. `None` if the program has no blocks that can be
    /// covered. Fails when no memory file can be created.
    pub(crate) fn of(path: &Path, loaded: &[PathBuf]) -> io::Result<Option<BlockCoverage>> {
        BlockCoverage::of_modules(code::modules(path, loaded))
    }

    fn of_modules(modules: Vec<Arc<CodeModule>>) -> io::Result<Option<BlockCoverage>> {
        let mut starts = code::starts_of(&modules);
        let hits_at = TABLE.next_multiple_of(PAGE);
        let mut at = hits_at + (starts.len() * HIT) as u64;
        let mut segments = Vec::new();
        for (number, module) in modules.iter().enumerate() {
            for segment in &module.segments {
                let begin = code::key(number) + segment.address;
                let here = within(&starts, &(begin..begin + segment.bytes.len() as u64));
                if !here.is_empty() {
                    let file = match number {
                        0 => (0, 0),
                        _ => (module.device, module.inode),
                    };
                    let of = (number, file);
                    let shared = CodeSegment::new(of, segment.address, &segment.bytes, here, at);
                    at = shared.sites + shared.length / 8;
                    segments.push(shared);
                }
            }
        }
        // Blocks of further segments are unknown, since no run can reach them.
        if let Some(segment) = segments.get(MOST_SEGMENTS) {
            let end = code::key(segment.module) + segment.address;
            starts.truncate(starts.partition_point(|start| *start < end));
            segments.truncate(MOST_SEGMENTS);
        }
        if segments.first().is_none_or(|first| first.module != 0) {
            return Ok(None);
        }
        let file = File::from(crate::input::memory_file(c"ddfuzz-code")?);
        file.set_len(at.next_multiple_of(PAGE))?;
        keep_length(&file)?;
        let mut blocks = BlockCoverage {
            file,
            modules,
            segments,
            reached: vec![false; starts.len()],
            at_start: vec![false; starts.len()],
            starts,
            armed: Armed::Unknown,
            hit: Vec::new(),
            hits_at,
            pending: Vec::new(),
            first_run: 0,
            is_paused: false,
            conflicts: 0,
            doubted: None,
        };
        blocks.write_table()?;
        // So that what the server passes before its fork point is known.
        blocks.arm(Armed::All)?;
        Ok(Some(blocks))
    }

    /// Records which blocks the first server of the target has passed before its fork point, where
    /// its runs begin. To be called after that server has started. Returns `Ok(true)` if this has
    /// worked. Returns `Ok(false)` if coverage is impossible, since the server does not run the
    /// code with breakpoints. Returns `Err` if it runs such code for only some of the program's
    /// files: the error is a new coverage of these files, for which another server must be started.
    pub(crate) fn after_first_start(&mut self) -> io::Result<Result<bool, BlockCoverage>> {
        if self.word(0)? != 1 {
            return Ok(Ok(false));
        }
        let mut placed = vec![false; self.modules.len()];
        for (number, segment) in self.segments.iter().enumerate() {
            placed[segment.module] |=
                self.word((SEGMENTS + SEGMENT * number + PLACED) as u64)? == 1;
        }
        if placed.contains(&false) {
            let mut placed = placed.into_iter();
            self.modules.retain(|_| placed.next() == Some(true));
            let modules = std::mem::take(&mut self.modules);
            if let Some(other) = BlockCoverage::of_modules(modules)? {
                return Ok(Err(other));
            }
            return Ok(Ok(false));
        }
        for (run, block) in self.take_hits()? {
            if run == 0 {
                self.at_start[block] = true;
                self.reach(block);
            }
        }
        Ok(Ok(true))
    }

    /// Returns the covered files with their blocks, and which blocks the program passes before its
    /// runs begin.
    pub(crate) fn code(&self) -> CoveredCode {
        CoveredCode {
            modules: self.modules.clone(),
            at_start: self.at_start.clone(),
        }
    }

    /// Records that another server has started, so that the next request sets all breakpoints
    /// again: before its fork point, the server may have hit some.
    pub(crate) fn server_started(&mut self) {
        self.armed = Armed::Unknown;
    }

    fn write_table(&self) -> io::Result<()> {
        let words = [
            0,
            0,
            self.hits_at,
            self.starts.len() as u64,
            self.segments.len() as u64,
        ];
        let mut header: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        debug_assert_eq!(header.len(), SEGMENTS);
        for segment in &self.segments {
            header.extend(segment.words().iter().flat_map(|word| word.to_ne_bytes()));
            self.file.write_all_at(&segment.bytes, segment.original)?;
            self.file.write_all_at(&segment.sites(), segment.sites)?;
        }
        debug_assert_eq!(header.len(), SEGMENTS + SEGMENT * self.segments.len());
        self.file.write_all_at(&header, 0)
    }

    /// Returns a duplicate of the shared memory file with the code, which a server of the target
    /// inherits.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Returns the number of basic blocks that are covered.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    fn word(&self, at: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.file.read_exact_at(&mut word, at)?;
        Ok(u64::from_ne_bytes(word))
    }

    /// Whether breakpoints are given up for this target, because too many runs have ended
    /// differently with breakpoints than without.
    fn is_given_up(&self) -> bool {
        self.conflicts >= MOST_CONFLICTS
    }

    /// Forgets the breakpoint hits of the previous call of the executor; called at the beginning of
    /// each call that makes runs.
    pub(crate) fn begin_call(&mut self) {
        self.pending.clear();
        self.first_run = 0;
        self.doubted = None;
    }

    /// Sets the breakpoints that the runs of the next request need to report basic blocks as
    /// `reporting` says (at all blocks, at those that no run has reached yet, or none), and removes
    /// all others. Sets none while coverage is paused or has been given up.
    pub(crate) fn begin_request(&mut self, reporting: CoverageReporting) -> io::Result<()> {
        let wanted = match reporting {
            _ if self.is_paused || self.is_given_up() => Armed::Nothing,
            CoverageReporting::Nothing => Armed::Nothing,
            CoverageReporting::Novel => Armed::Unreached,
            CoverageReporting::Every => Armed::All,
        };
        self.arm(wanted)
    }

    /// Writes into the shared code exactly the breakpoints that `wanted` asks for (none, all, or
    /// those of unreached blocks). If the code was in this state already, writes only those again
    /// that runs have hit, because a breakpoint is removed when it is hit.
    fn arm(&mut self, wanted: Armed) -> io::Result<()> {
        let hit = std::mem::take(&mut self.hit);
        if wanted == self.armed {
            for block in hit {
                if let Some((segment, at)) = self.place(block) {
                    let at = self.segments[segment].code + at as u64;
                    self.file.write_all_at(&[starts::BREAKPOINT], at)?;
                }
            }
            return Ok(());
        }
        for segment in &self.segments {
            let code = match wanted {
                Armed::Nothing => &segment.bytes,
                Armed::Unreached => &segment.unreached,
                Armed::All | Armed::Unknown => &segment.armed,
            };
            self.file.write_all_at(code, segment.code)?;
        }
        self.armed = wanted;
        Ok(())
    }

    /// Returns the index of the code segment that contains `block`, and the block's offset in it in
    /// bytes; `None` if the block is in a segment beyond [`MOST_SEGMENTS`].
    fn place(&self, block: usize) -> Option<(usize, usize)> {
        let start = self.starts[block];
        self.segments
            .iter()
            .enumerate()
            .find_map(|(number, segment)| {
                let begin = code::key(segment.module) + segment.address;
                let offset = usize::try_from(start.checked_sub(begin)?).ok()?;
                (offset < segment.bytes.len()).then_some((number, offset))
            })
    }

    /// Collects the breakpoint hits of a request after its runs have ended; `first` is the number
    /// of the request's first run.
    pub(crate) fn end_request(&mut self, first: u64) -> io::Result<()> {
        for (run, block) in self.take_hits()? {
            let run = run.checked_sub(first);
            if let Some(run) = run.and_then(|run| usize::try_from(run).ok()) {
                self.pending.push((self.first_run + run, block));
            }
        }
        Ok(())
    }

    /// Returns the breakpoint hits that processes have written to the shared memory, each as the
    /// number of the run and the index of the block, and clears them there.
    fn take_hits(&mut self) -> io::Result<Vec<(u64, usize)>> {
        let count = self.word(HIT_COUNT)?;
        if count == 0 {
            return Ok(Vec::new());
        }
        self.file.write_all_at(&[0; 8], HIT_COUNT)?;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut hits = vec![0; count.min(self.starts.len()) * HIT];
        self.file.read_exact_at(&mut hits, self.hits_at)?;
        let known = hits.chunks_exact(HIT).filter_map(|hit| {
            let (run, address) = hit.split_at(8);
            let block = self.starts.binary_search(&word_of(address)).ok()?;
            Some((word_of(run), block))
        });
        let known: Vec<(u64, usize)> = known.collect();
        // A target can write nonsense here.
        match self.armed == Armed::All && known.len() == count {
            true => self.hit.extend(known.iter().map(|(_, block)| *block)),
            false => self.armed = Armed::Unknown,
        }
        Ok(known)
    }

    /// Whether the run with index `run` in the present call of the executor must be made again
    /// without breakpoints, because they may have changed how it ended: true if it died of a signal
    /// (`ended`) while breakpoints were set, since a program that reads its own code sees
    /// breakpoints. False for a run that was made again already.
    pub(crate) fn is_in_doubt(&self, run: usize, ended: Ended) -> bool {
        let is_signal = matches!(ended, Ended::Signal(_));
        is_signal && self.doubted != Some(run) && self.armed != Armed::Nothing
    }

    /// Forgets which run of the executor's present call was repeated without breakpoints. Called
    /// before that run is made once more, since breakpoints may change how that new run ends, too.
    pub(crate) fn forget_doubt(&mut self) {
        self.doubted = None;
    }

    /// Records how a run that was made twice ended with and without breakpoints; `run` is its index
    /// in the present call of the executor. After [`MOST_CONFLICTS`] successive runs that ended
    /// differently, no more breakpoints are set.
    pub(crate) fn compare(&mut self, run: usize, with: Ended, without: Ended) {
        self.doubted = Some(run);
        self.conflicts = match with != without {
            true => self.conflicts + 1,
            false => 0,
        };
    }

    /// Ends a call of the executor, which has made `runs`, and returns their coverage. A run that
    /// did not exit is not reported, and the blocks that it hit still count as not reached. If
    /// `reporting` is `Every`, all other runs are reported except one that was made again without
    /// breakpoints, since not all of its blocks are known. For any other `reporting`, only runs
    /// that hit a breakpoint are reported.
    pub(crate) fn end_call(
        &mut self,
        runs: &[Run],
        reporting: CoverageReporting,
    ) -> Vec<RunCoverage> {
        let pending = std::mem::take(&mut self.pending);
        let mut covered = Vec::new();
        let all_claimed = pending
            .iter()
            .all(|(run, _)| runs.get(*run).is_some_and(|run| run.ended.is_exit()));
        let ended = runs.iter().enumerate();
        let exited = ended.filter(|(_, run)| run.ended.is_exit());
        for (number, _) in exited {
            let hit = pending.iter().filter(|(of, _)| *of == number);
            let hit: HashSet<usize> = hit.map(|(_, block)| *block).collect();
            let is_complete = !self.is_given_up() && self.doubted != Some(number);
            let is_reported = match reporting {
                CoverageReporting::Every => is_complete,
                _ => !hit.is_empty(),
            };
            if !is_reported {
                continue;
            }
            let mut counters = vec![0; self.starts.len()];
            for block in &hit {
                counters[*block] = 1;
                self.reach(*block);
            }
            if is_complete {
                self.conflicts = 0;
            }
            covered.push(RunCoverage {
                run: number,
                counters,
                stack_depth: None,
            });
        }
        if reporting == CoverageReporting::Novel && all_claimed && self.armed == Armed::Unknown {
            self.armed = Armed::Unreached; // each hit has taken its own breakpoint out
        }
        covered
    }

    fn reach(&mut self, block: usize) {
        if std::mem::replace(&mut self.reached[block], true) {
            return;
        }
        if let Some((segment, at)) = self.place(block) {
            let segment = &mut self.segments[segment];
            segment.unreached[at] = segment.bytes[at];
        }
    }
}

impl CodeSegment {
    /// Makes the code segment at `address` of the module with index `module`, whose code is
    /// `content`, and assigns it a place in the shared memory file from offset `at` on. `file`:
    /// device and inode of a library, zeros for the program; `starts`: the addresses of the blocks
    /// in the segment, to each of which the module's key is added (a number by which no two modules
    /// have equal addresses).
    fn new(
        (module, file): (usize, (u64, u64)),
        address: u64,
        content: &[u8],
        starts: &[u64],
        at: u64,
    ) -> CodeSegment {
        let begin = address / PAGE * PAGE;
        let before = usize::try_from(address - begin).unwrap_or(0);
        let length = (before as u64 + content.len() as u64).next_multiple_of(PAGE);
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(content);
        let mut armed = bytes.clone();
        for start in starts {
            let offset = start - code::key(module) - begin;
            armed[usize::try_from(offset).unwrap_or(0)] = starts::BREAKPOINT;
        }
        let code = at.next_multiple_of(PAGE);
        CodeSegment {
            module,
            file,
            address: begin,
            length,
            filled: before as u64..bytes.len() as u64,
            code,
            original: code + length,
            sites: code + 2 * length,
            bytes,
            unreached: armed.clone(),
            armed,
        }
    }

    fn words(&self) -> [u64; SEGMENT / 8] {
        [
            self.file.0,
            self.file.1,
            code::key(self.module),
            0,
            self.address,
            self.length,
            self.filled.start,
            self.filled.end,
            self.code,
            self.original,
            self.sites,
        ]
    }

    fn sites(&self) -> Vec<u8> {
        let mut sites = vec![0; usize::try_from(self.length / 8).unwrap_or(0)];
        for (at, (armed, byte)) in self.armed.iter().zip(&self.bytes).enumerate() {
            sites[at / 8] |= u8::from(armed != byte) << (at % 8);
        }
        sites
    }
}

fn word_of(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_ne_bytes)
}

/// Returns the part of `starts`, ascending addresses, that lies in the address range `range`.
fn within<'a>(starts: &'a [u64], range: &Range<u64>) -> &'a [u64] {
    let begin = starts.partition_point(|start| *start < range.start);
    let end = starts.partition_point(|start| *start < range.end);
    &starts[begin..end]
}
