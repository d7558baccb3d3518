//! Certificates.

use ddfuzz::minimize::{Certificate, Claim, ProofRef, Proved};

#[test]
fn equal_neighbours_are_one_removal() {
    let certificate = Certificate::without_proof(b"aaabccb");
    assert_eq!(certificate.proved(), Proved { done: 0, of: 4 });
    assert_eq!(certificate.claim(), Claim::BestSoFar);
}

#[test]
fn the_claim_is_made_only_where_every_removal_is_proven() {
    let all = Certificate::new([0, 1, 2].map(|test| Some(ProofRef::Test(test))));
    assert_eq!(
        (all.claim(), all.proved()),
        (Claim::OneMinimal, Proved { done: 3, of: 3 })
    );
    assert_eq!(all.proof(), [0, 1, 2].map(ProofRef::Test));
    let but_one =
        Certificate::new([7, 8, 9].map(|test| (test != 8).then_some(ProofRef::Test(test))));
    assert_eq!(
        (but_one.claim(), but_one.proved()),
        (Claim::BestSoFar, Proved { done: 2, of: 3 })
    );
}

#[test]
fn nothing_can_be_removed_from_nothing() {
    let certificate = Certificate::without_proof(b"");
    assert_eq!(
        (certificate.claim(), certificate.proved()),
        (Claim::OneMinimal, Proved::default())
    );
}
