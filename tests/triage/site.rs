//! Names of functions and files as tables show them.

use ddfuzz::triage::{short_function, short_source};

#[test]
fn generic_arguments_are_folded_and_types_that_begin_a_path_are_not() {
    for (name, shown) in [
        ("decode", "decode"),
        ("next_frame_info<&[u8]>", "next_frame_info<…>"),
        ("decode::<alloc::vec::Vec<u8>, fn(u8) -> u8>", "decode::<…>"),
        (
            "<gif::reader::ReadDecoder<&[u8]>>::decode_next",
            "<gif::reader::ReadDecoder<…>>::decode_next",
        ),
        ("<T<A> as Read<B<C>>>::read", "<T<…> as Read<…>>::read"),
        ("parse::{closure#0}<u8>", "parse::{closure#0}<…>"),
        (
            "std::vector<int, std::allocator<int> >::at(unsigned long)",
            "std::vector<…>::at(unsigned long)",
        ),
        ("bool less<int>(A<int> const&)", "bool less<…>(A<…> const&)"),
        ("operator<< <char>", "operator<< <char>"),
        (
            "list::operator<(list<int> const&)",
            "list::operator<(list<…> const&)",
        ),
        ("list::operator->", "list::operator->"),
        (
            "Box<int>::operator()<char>(char)",
            "Box<…>::operator()<…>(char)",
        ),
        ("my_operator<int>", "my_operator<…>"),
        // What does not end is shown as it is.
        ("broken<int", "broken<int"),
        ("target::_::__libfuzzer_sys_run", "fuzz_target!"),
    ] {
        assert_eq!(short_function(name), shown);
    }
}

#[test]
fn a_source_is_shown_from_its_crate_on_and_a_long_path_by_its_end() {
    for (source, shown) in [
        (
            "/home/u/.cargo/registry/src/index.crates.io-1949cf8c6b5b557f/gif-0.11.1/src/reader/mod.rs:212",
            "gif-0.11.1/src/reader/mod.rs:212",
        ),
        (
            "/home/u/.cargo/git/checkouts/goblin-9a1b/3f00aa1/src/pe/mod.rs:7:9",
            "goblin/src/pe/mod.rs:7:9",
        ),
        (
            "/rustc/e50aa6fba4e63ab34c72bf9acfd2c307c1155d1a/library/std/src/panicking.rs:544",
            "std/src/panicking.rs:544",
        ),
        (
            "/home/u/work/gif/src/reader/mod.rs:212",
            "/home/u/work/gif/src/reader/mod.rs:212",
        ),
        (
            "/home/build/agents/0123456789/workspace/parser-nightly/lib/tlv.c:19",
            "…/parser-nightly/lib/tlv.c:19",
        ),
        ("/tmp/tlv.c:19", "/tmp/tlv.c:19"),
        ("src/tlv.c:19", "src/tlv.c:19"),
    ] {
        assert_eq!(short_source(source), shown);
    }
}

#[test]
fn ways_up_in_paths_are_taken() {
    for (source, shown) in [
        ("build/../src/./parse.c:3", "src/parse.c:3"),
        (
            "/home/u/p/cmake/../lib/../parse.c:3:4",
            "/home/u/p/parse.c:3:4",
        ),
        ("../../src/parse.c:3", "../../src/parse.c:3"),
        ("/../parse.c:3", "/../parse.c:3"),
        ("./parse.c:3", "./parse.c:3"),
    ] {
        assert_eq!(short_source(source), shown);
    }
}
