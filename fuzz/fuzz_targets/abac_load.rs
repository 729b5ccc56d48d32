//! Any bytes load as a policy file or are refused with a position inside of them. Whatever loads strictly
//! also loads leniently.

#![no_main]

use config::FileKind;
use document::{Source, SourcePosition};
use libfuzzer_sys::fuzz_target;
use manifests::abac::{
    AbacPolicyLoadError, AbacPolicyLoadOptions, LoadedAbacPolicies, load_abac_policies,
};

fuzz_target!(|bytes: &[u8]| {
    let source = Source { name: "file", file_bytes: bytes };
    FileKind::detect_file_kind(&source);
    let lenient = load_bytes(&source, false);
    let strict = load_bytes(&source, true);
    match (&lenient, &strict) {
        (Ok(lenient), Ok(strict)) => {
            assert_eq!(
                lenient.abac_policy_snapshot.policies().len(),
                strict.abac_policy_snapshot.policies().len()
            );
        }
        (Ok(lenient), Err(_)) => assert!(!lenient.warnings.is_empty()),
        (Err(lenient), Err(_)) => assert!(!lenient.to_string().is_empty()),
        (Err(error), Ok(_)) => panic!("{error}"),
    }
    // The text of a file with the mark of UTF-16 is not that of its lines.
    if !matches!(bytes, [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..]) {
        let text = source.text();
        let check = |position: &SourcePosition| {
            assert!(position.line >= 1 && position.column >= 1, "{position:?}");
            assert!(text.get(position.start..position.end_offset).is_some(), "{position:?}");
        };
        for loaded in [&lenient, &strict] {
            match loaded {
                Ok(loaded) => loaded.warnings.iter().for_each(|warning| check(&warning.position)),
                Err(error) => check(&error.diagnostic.position),
            }
        }
    }
});

fn load_bytes(
    source: &Source<'_>,
    refuses_unknown_fields: bool,
) -> Result<LoadedAbacPolicies, AbacPolicyLoadError> {
    load_abac_policies(
        source,
        &AbacPolicyLoadOptions { refuses_unknown_fields, ..AbacPolicyLoadOptions::default() },
    )
}
