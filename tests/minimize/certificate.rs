//! Certificates.

use ddfuzz::minimize::{Certificate, Claim, ProofRef, Proved};

#[test]
fn equal_neighbours_are_one_removal() {
    let certificate = Certificate::new(b"aaabccb", |_| None);
    let ranges: Vec<_> = certificate
        .removals()
        .iter()
        .map(|removal| removal.at.clone())
        .collect();
    assert_eq!(ranges, [0..3, 3..4, 4..6, 6..7]);
}

#[test]
fn the_claim_is_made_only_where_every_removal_is_proven() {
    let all = Certificate::new(b"abc", |at| Some(ProofRef::Test(at.start as u64)));
    assert_eq!(
        (all.claim(), all.proved()),
        (Claim::OneMinimal, Proved { done: 3, of: 3 })
    );
    assert_eq!(all.proof(), [0, 1, 2].map(ProofRef::Test));
    let but_one = Certificate::new(b"abc", |at| (at.start != 1).then_some(ProofRef::Test(9)));
    assert_eq!(
        (but_one.claim(), but_one.proved()),
        (Claim::BestSoFar, Proved { done: 2, of: 3 })
    );
}

#[test]
fn nothing_can_be_removed_from_nothing() {
    let certificate = Certificate::new(b"", |_| None);
    assert_eq!(
        (certificate.claim(), certificate.proved()),
        (Claim::OneMinimal, Proved::default())
    );
}
