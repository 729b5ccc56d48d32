//! Any bytes are a certificate or are refused. A presented certificate is accepted only if a trusted one
//! signed it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use rustls_pki_types::CertificateDer;
use x509_verify::{COMMON_NAME, Certificate, CertificateUsage, ORGANIZATION, Roots};

/// A moment at which the certificates of the corpus are valid: 2030-06-01T00:00:00Z.
const NOW: i64 = 1_906_502_400;

fuzz_target!(|bytes: &[u8]| {
    let der = CertificateDer::from(bytes);
    let Ok(certificate) = Certificate::parse(&der) else { return };
    assert_eq!(certificate.der(), &der);
    let _ = (certificate.subject_texts(COMMON_NAME), certificate.subject_texts(ORGANIZATION));
    assert!(!certificate.serial_number_text().is_empty());
    assert!(certificate.has_alternative_names() || certificate.ip_addresses().next().is_none());
    assert!(Certificate::parse(&[bytes, &[0]].concat().into()).is_err());
    for usage in [CertificateUsage::ClientAuth, CertificateUsage::ServerAuth] {
        let nobody = Roots::default();
        assert!(nobody.verify_chain(&[der.clone(), der.clone()], usage, NOW).is_err());
        let itself = Roots::new([certificate.clone()]);
        if let Ok(validity) = itself.verify_chain(&[der.clone()], usage, NOW) {
            assert!(validity.not_before <= NOW && NOW <= validity.not_after);
        }
    }
});
