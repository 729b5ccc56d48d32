//! Selectors parse or are refused. A parsed selector can be written and parsed again.

#![no_main]

use authz::{SELECTOR_TERMS_MAX, parse_field_selector, parse_label_selector};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse_field_selector(text) {
        Ok(requirements) => {
            assert!(requirements.len() <= SELECTOR_TERMS_MAX);
            // The order is that of the terms as they were written, so it may change once.
            let again = parse_field_selector(&joined(&requirements)).expect("its own text parses");
            let mut expected = requirements;
            expected.sort_by_key(ToString::to_string);
            assert_eq!(again, expected, "{text}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match parse_label_selector(text) {
        Ok(requirements) => {
            let n_terms = requirements.iter().map(|requirement| requirement.values.len().max(1));
            assert!(n_terms.sum::<usize>() <= 2 * SELECTOR_TERMS_MAX);
            assert!(requirements.is_sorted_by_key(|requirement| requirement.key.clone()));
            let again = parse_label_selector(&joined(&requirements)).expect("its own text parses");
            assert_eq!(again, requirements, "{text}");
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

fn joined(requirements: &[impl ToString]) -> String {
    let texts: Vec<String> = requirements.iter().map(ToString::to_string).collect();
    texts.join(",")
}
