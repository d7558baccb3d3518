//! How the memory of the process is kept small.

/// Blocks of this size on are given back to the system as soon as they are free, in bytes.
#[cfg(target_env = "gnu")]
const LARGE: i32 = 1 << 20;
/// So much may be free behind all small blocks before that is given back, too, in bytes.
#[cfg(target_env = "gnu")]
const SPARE: i32 = 4 << 20;

/// Has the C library give large blocks back that are free. Else it keeps those of up to 32 MiB once
/// one was freed: a program's file, which is read for its functions, in each worker and for each
/// thread that reads it.
pub(super) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes numbers, and changes how the C library allocates from here on.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
        libc::mallopt(libc::M_TRIM_THRESHOLD, SPARE);
    }
}

#[cfg(all(test, target_env = "gnu", target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// Whether a block has a mapping of its own, which ends with it: glibc notes that before it.
    fn is_mapped(block: &[u8]) -> bool {
        const IS_MMAPPED: usize = 2;
        // SAFETY: glibc keeps the size of a block and its flags in the word before it.
        let size = unsafe { block.as_ptr().cast::<usize>().sub(1).read() };
        size & IS_MMAPPED != 0
    }

    #[test]
    fn a_large_block_is_given_back_though_one_like_it_was_freed_before() {
        give_back();
        for _ in 0..3 {
            let block = vec![1; 20 << 20];
            assert!(is_mapped(&block));
            drop(block);
        }
        assert!(!is_mapped(&vec![1; 64 << 10]));
    }
}
