//! Which system calls take bytes of a file.

/// The descriptor from which this call takes bytes, or which it maps; `None` for any other call.
pub(super) fn source(number: u64, args: [u64; 6]) -> Option<i32> {
    let first = args[0];
    let descriptor = match i64::try_from(number).ok()? {
        libc::SYS_read
        | libc::SYS_pread64
        | libc::SYS_readv
        | libc::SYS_preadv
        | libc::SYS_preadv2
        | libc::SYS_splice
        | libc::SYS_copy_file_range => first,
        libc::SYS_sendfile => args[1],
        libc::SYS_mmap if args[3] & libc::MAP_ANONYMOUS as u64 == 0 => args[4],
        _ => return None,
    };
    // The kernel looks at its lower half only.
    let descriptor = descriptor as u32 as i32;
    (descriptor >= 0).then_some(descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_that_take_bytes_name_where_from() {
        let anonymous = libc::MAP_ANONYMOUS as u64;
        let read = |number: i64, args| source(number as u64, args);
        assert_eq!(read(libc::SYS_read, [0, 1, 2, 3, 4, 5]), Some(0));
        assert_eq!(read(libc::SYS_sendfile, [1, 7, 0, 9, 0, 0]), Some(7));
        assert_eq!(read(libc::SYS_mmap, [0, 9, 1, 2, 5, 0]), Some(5));
        assert_eq!(read(libc::SYS_mmap, [0, 9, 1, anonymous, 5, 0]), None);
        assert_eq!(read(libc::SYS_write, [1, 0, 0, 0, 0, 0]), None);
        assert_eq!(read(libc::SYS_read, [0xffff_ffff, 0, 0, 0, 0, 0]), None);
    }
}
