//! Coverage of unmodified programs: which basic blocks a run reaches, by breakpoints that are hit
//! once (x86-64).
//!
//! ddfuzz shares a copy of the program's code with the target's server (`runtime/blocks.h`), and
//! writes breakpoints into it between runs. To learn what a run reaches that no run before has, the
//! breakpoints at known blocks stay out, so that such runs cost nothing more. To learn all blocks
//! of a run, all breakpoints are set before it.

mod starts;
#[cfg(all(test, target_arch = "x86_64"))]
mod tests;

use std::collections::HashSet;
use std::{fs::File, io, ops::Range, os::unix::fs::FileExt, path::Path};

use crate::observations::{CoverageReporting, RunCoverage};
use crate::observe::image::Image;
use crate::shared_page::keep_length;
use crate::{Ended, Run};

/// Size of a page of memory in bytes.
const PAGE: u64 = 4096;
/// Offsets and sizes of `struct block_table`, in bytes.
const HIT_COUNT: u64 = 8;
const SEGMENTS: usize = 40;
const SEGMENT: usize = 56;
const HIT: usize = 16;
/// Maximum number of segments of code, `MOST_CODE_SEGMENTS` of the same file.
const MOST_SEGMENTS: usize = 8;
/// Number of runs without an interruption that ended differently because of breakpoints, after
/// which none are set any more.
const MOST_CONFLICTS: u32 = 16;

/// A segment of the program's code: where it lies in the program and in the shared memory file, and
/// its bytes with and without breakpoints.
struct CodeSegment {
    /// Address before loading, a multiple of the page size.
    address: u64,
    /// Length in bytes, a multiple of the page size.
    length: u64,
    /// Which of its bytes are in the program's file.
    filled: Range<u64>,
    /// Offset in the memory file of the code with breakpoints.
    code: u64,
    /// Offset of the program's own code.
    original: u64,
    /// Offset of a bit for each byte: whether it may have a breakpoint.
    sites: u64,
    /// The program's own code.
    bytes: Vec<u8>,
    /// The code with a breakpoint at each block that no run has reached.
    unreached: Vec<u8>,
    /// The code with a breakpoint at each block.
    armed: Vec<u8>,
}

/// Which breakpoints the shared code has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Armed {
    Nothing,
    Unreached,
    /// Not known: runs may have hit some.
    Some,
}

/// The shared code of a program, and what its runs have reached.
pub(crate) struct BlockCoverage {
    file: File,
    segments: Vec<CodeSegment>,
    /// Addresses before loading of the blocks, ascending. A block is known by its index.
    starts: Vec<u64>,
    reached: Vec<bool>,
    armed: Armed,
    hits_at: u64,
    /// Blocks that runs of the current call have hit: index of the run within the call, and of the
    /// block.
    pending: Vec<(usize, usize)>,
    /// Index within the call of the first run of the next request.
    pub(crate) first_run: usize,
    /// Whether the next runs are made without breakpoints.
    pub(crate) is_paused: bool,
    conflicts: u32,
    /// Index within the call of the last run that was in doubt.
    doubted: Option<usize>,
}

impl BlockCoverage {
    /// Finds the blocks of the program at `path`; `None` if none is found, if they lie in more than
    /// 8 segments, or if the processor is not x86-64. Fails when memory cannot be had.
    pub(crate) fn of(path: &Path) -> io::Result<Option<BlockCoverage>> {
        let Some(image) = cfg!(target_arch = "x86_64")
            .then(|| Image::read(path))
            .flatten()
        else {
            return Ok(None);
        };
        let starts = starts::block_starts(&image);
        let mut at = PAGE;
        let hits_at = at;
        at += (starts.len() * HIT) as u64;
        let mut segments = Vec::new();
        for segment in image.segments.into_iter().filter(|it| it.executable) {
            let range = segment.address..segment.address + segment.bytes.len() as u64;
            let here = within(&starts, &range);
            if !here.is_empty() {
                let shared = CodeSegment::new(segment.address, &segment.bytes, here, at);
                at = shared.sites + shared.length / 8;
                segments.push(shared);
            }
        }
        if segments.is_empty() || segments.len() > MOST_SEGMENTS {
            return Ok(None);
        }
        let file = File::from(crate::input::memory_file(c"ddfuzz-code")?);
        file.set_len(at.next_multiple_of(PAGE))?;
        keep_length(&file)?;
        let blocks = BlockCoverage {
            file,
            segments,
            reached: vec![false; starts.len()],
            starts,
            armed: Armed::Nothing,
            hits_at,
            pending: Vec::new(),
            first_run: 0,
            is_paused: false,
            conflicts: 0,
            doubted: None,
        };
        blocks.write_table()?;
        Ok(Some(blocks))
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
            self.file.write_all_at(&segment.bytes, segment.code)?;
            self.file.write_all_at(&segment.sites(), segment.sites)?;
        }
        debug_assert_eq!(header.len(), SEGMENTS + SEGMENT * self.segments.len());
        self.file.write_all_at(&header, 0)
    }

    /// Returns the file that a server of the target inherits.
    pub(crate) fn file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Whether a server of the target runs the shared code.
    pub(crate) fn is_in_use(&self) -> io::Result<bool> {
        Ok(self.word(0)? == 1)
    }

    /// Returns the number of blocks.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    fn word(&self, at: u64) -> io::Result<u64> {
        let mut word = [0; 8];
        self.file.read_exact_at(&mut word, at)?;
        Ok(u64::from_ne_bytes(word))
    }

    /// Whether no breakpoints are set any more, because they have changed how runs end.
    fn is_given_up(&self) -> bool {
        self.conflicts >= MOST_CONFLICTS
    }

    /// Begins a call that makes runs.
    pub(crate) fn begin_call(&mut self) {
        self.pending.clear();
        self.first_run = 0;
        self.doubted = None;
    }

    /// Sets the breakpoints for the runs of the next request.
    pub(crate) fn begin_request(&mut self, reporting: CoverageReporting) -> io::Result<()> {
        let wanted = match reporting {
            _ if self.is_paused || self.is_given_up() => Armed::Nothing,
            CoverageReporting::Nothing => Armed::Nothing,
            CoverageReporting::Novel => Armed::Unreached,
            CoverageReporting::Every => Armed::Some,
        };
        if wanted != self.armed || wanted == Armed::Some {
            for segment in &self.segments {
                let code = match wanted {
                    Armed::Nothing => &segment.bytes,
                    Armed::Unreached => &segment.unreached,
                    Armed::Some => &segment.armed,
                };
                self.file.write_all_at(code, segment.code)?;
            }
            self.armed = wanted;
        }
        Ok(())
    }

    /// Reads which blocks the runs of a request have hit, whose first run has the number `first`.
    pub(crate) fn end_request(&mut self, first: u64) -> io::Result<()> {
        let count = self.word(HIT_COUNT)?;
        if count == 0 {
            return Ok(());
        }
        self.file.write_all_at(&[0; 8], HIT_COUNT)?;
        self.armed = Armed::Some;
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let mut hits = vec![0; count.min(self.starts.len()) * HIT];
        self.file.read_exact_at(&mut hits, self.hits_at)?;
        for hit in hits.chunks_exact(HIT) {
            let (run, address) = hit.split_at(8);
            let run = word_of(run).checked_sub(first);
            let run = run.and_then(|run| usize::try_from(run).ok());
            let block = self.starts.binary_search(&word_of(address));
            // A target can write nonsense here.
            if let (Some(run), Ok(block)) = (run, block) {
                self.pending.push((self.first_run + run, block));
            }
        }
        Ok(())
    }

    /// Whether breakpoints may have changed how the run number `run` of the call has ended, and it was
    /// not made again yet.
    pub(crate) fn is_in_doubt(&self, run: usize, ended: Ended) -> bool {
        let has_hit = || self.pending.iter().any(|(of, _)| *of == run);
        match ended {
            _ if self.doubted == Some(run) => false,
            Ended::Signal(libc::SIGTRAP) => self.armed != Armed::Nothing,
            Ended::Signal(_) => has_hit(),
            _ => false,
        }
    }

    /// Notes how the run number `run` of the call, which was in doubt, has ended with and without
    /// breakpoints.
    pub(crate) fn compare(&mut self, run: usize, with: Ended, without: Ended) {
        self.doubted = Some(run);
        self.conflicts = match with != without {
            true => self.conflicts + 1,
            false => 0,
        };
    }

    /// Ends a call: returns the coverage of its runs that ended by an exit and have hit something.
    /// What others have hit can be hit again. `reporting`: what the call has requested.
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
            let is_complete = reporting == CoverageReporting::Every && !self.is_given_up();
            if hit.is_empty() && !is_complete {
                continue;
            }
            let mut counters = vec![0; self.starts.len()];
            for block in &hit {
                counters[*block] = 1;
                self.reach(*block);
            }
            if !self.is_given_up() && self.doubted != Some(number) {
                self.conflicts = 0;
            }
            covered.push(RunCoverage {
                run: number,
                counters,
            });
        }
        if reporting == CoverageReporting::Novel && all_claimed && self.armed == Armed::Some {
            self.armed = Armed::Unreached; // each hit has taken its own breakpoint out
        }
        covered
    }

    fn reach(&mut self, block: usize) {
        if std::mem::replace(&mut self.reached[block], true) {
            return;
        }
        let start = self.starts[block];
        for segment in &mut self.segments {
            let offset = start.checked_sub(segment.address);
            let offset = offset.and_then(|offset| usize::try_from(offset).ok());
            if let Some(at) = offset.filter(|at| *at < segment.bytes.len()) {
                segment.unreached[at] = segment.bytes[at];
            }
        }
    }
}

impl CodeSegment {
    /// Lays out a segment from the offset `at` of the memory file. `starts`: the blocks in it.
    fn new(address: u64, content: &[u8], starts: &[u64], at: u64) -> CodeSegment {
        let begin = address / PAGE * PAGE;
        let before = usize::try_from(address - begin).unwrap_or(0);
        let length = (before as u64 + content.len() as u64).next_multiple_of(PAGE);
        let mut bytes = vec![0; before];
        bytes.extend_from_slice(content);
        let mut armed = bytes.clone();
        for start in starts {
            armed[usize::try_from(start - begin).unwrap_or(0)] = starts::BREAKPOINT;
        }
        let code = at.next_multiple_of(PAGE);
        CodeSegment {
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

/// Returns the part of `starts`, which ascend, that lies in a range of addresses.
fn within<'a>(starts: &'a [u64], range: &Range<u64>) -> &'a [u64] {
    let begin = starts.partition_point(|start| *start < range.start);
    let end = starts.partition_point(|start| *start < range.end);
    &starts[begin..end]
}
