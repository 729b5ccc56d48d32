//! The parser refuses malformed certificates, and no bytes make it panic.

use proptest::prelude::*;
use rustls_pki_types::CertificateDer;
use x509_verify::{Certificate, CertificateUsage, Roots, VerifyError};

use crate::recorded::{cases, certificates};

/// A certificate with many kinds of extensions, and the others that were recorded.
fn samples() -> Vec<CertificateDer<'static>> {
    cases().iter().flat_map(|case| certificates(case, "presented")).collect()
}

#[test]
fn trailing_bytes_are_refused() {
    for der in samples().into_iter().take(8) {
        assert!(Certificate::parse(&der).is_ok());
        for len in 0..der.len() {
            assert!(Certificate::parse(&der[..len].into()).is_err());
        }
        assert!(Certificate::parse(&[der.as_ref(), &[0]].concat().into()).is_err());
    }
}

#[test]
fn a_malformed_certificate_fails_the_whole_chain() {
    let case = &cases()[0];
    let roots = certificates(case, "roots");
    let roots = Roots::new(roots.iter().map(|der| Certificate::parse(der).unwrap()));
    let mut presented = certificates(case, "presented");
    let verify = |presented: &[CertificateDer<'_>]| {
        roots.verify_chain(presented, CertificateUsage::ClientAuth, 1_906_502_400).map(drop)
    };
    assert_eq!(verify(&presented), Ok(()));
    presented.push(vec![0x30, 0x00].into());
    assert_eq!(verify(&presented), Err(VerifyError::Malformed));
    assert_eq!(verify(&[]), Err(VerifyError::Malformed));
}

proptest! {
    #[test]
    fn changed_certificates_are_refused(
        sample in 0_usize..100,
        place in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let cases = cases();
        let case = &cases[sample % cases.len()];
        let mut presented = certificates(case, "presented");
        let roots = certificates(case, "roots");
        // A certificate that is trusted itself may have any signature.
        prop_assume!(!roots.contains(&presented[0]));
        let mut leaf = presented[0].to_vec();
        let idx = place.index(leaf.len());
        leaf[idx] ^= 1 << bit;
        presented[0] = leaf.into();
        let roots = Roots::new(roots.iter().map(|der| Certificate::parse(der).unwrap()));
        let verified = roots.verify_chain(&presented, CertificateUsage::ClientAuth, 1_906_502_400);
        prop_assert!(verified.is_err() || roots_hold(&roots, &presented), "{verified:?}");
    }
}

/// A changed leaf is trusted only if it is one of the trusted certificates by now.
fn roots_hold(roots: &Roots, presented: &[CertificateDer<'_>]) -> bool {
    Certificate::parse(&presented[0]).is_ok_and(|leaf| roots.contains(&leaf))
}
