//! Compares our verdicts with those of Go's `crypto/x509`, which `peers/x509` recorded.

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use serde_json::Value;
use x509_verify::{Certificate, CertificateUsage, Roots};

/// 2030-06-01T00:00:00Z, the moment of all cases.
const NOW: i64 = 1_906_502_400;

pub(crate) fn certificates(case: &Value, field: &str) -> Vec<CertificateDer<'static>> {
    let pem = case[field].as_str().unwrap().as_bytes();
    CertificateDer::pem_slice_iter(pem).map(|own| own.unwrap()).collect()
}

/// The cases of the record, or of another one that the environment names.
pub(crate) fn cases() -> Vec<Value> {
    let text = match std::env::var("PORTCULLIS_X509_RECORD") {
        Ok(file) => std::fs::read_to_string(file).unwrap(),
        Err(_) => include_str!("../../testdata/go.jsonl").to_owned(),
    };
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn verdicts_match_go() {
    let cases = cases();
    assert!(cases.len() >= 48, "{}", cases.len());
    let mut differ = Vec::new();
    for case in &cases {
        let name = case["name"].as_str().unwrap();
        assert_eq!(case["now"], "2030-06-01T00:00:00Z", "{name}");
        let usage = match case["usage"].as_str().unwrap() {
            "client" => CertificateUsage::ClientAuth,
            "server" => CertificateUsage::ServerAuth,
            other => panic!("{other}"),
        };
        let roots = certificates(case, "roots");
        let roots = Roots::new(roots.iter().map(|der| Certificate::parse(der).unwrap()));
        let verified = roots.verify_chain(&certificates(case, "presented"), usage, NOW);
        if verified.is_ok() != case["ok"].as_bool().unwrap() {
            differ.push(format!("{name}: {verified:?}, Go: {}", case["error"]));
        }
        // The reasons are in Go's words, except for the details. If several candidates are at fault, Go
        // and we may name different ones.
        if let Err(error) = verified
            && name != "random"
        {
            let kind = |text: &str| text.split([':', '(']).nth(1).unwrap().trim().to_owned();
            let words = (kind(&error.to_string()), kind(case["error"].as_str().unwrap()));
            if words.0 != words.1 {
                differ.push(format!("{name}: {words:?}"));
            }
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}
