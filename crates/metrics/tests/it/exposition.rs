//! The text that is scraped, whole: names, help, types, labels, buckets.

use prometheus::Registry;

use crate::{admission, authorization};

fn check(registry: &Registry, file: &str) {
    let text = monitoring_lint::text(registry).unwrap();
    let path = format!("{}/tests/it/{file}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let want = std::fs::read_to_string(&path).unwrap();
    for (at, (line, want)) in text.lines().zip(want.lines()).enumerate() {
        assert_eq!(line, want, "{file}, line {}", at + 1);
    }
    assert_eq!(text.lines().count(), want.lines().count());
}

#[test]
fn authorization_is_exposed_as_documented() {
    let (registry, _metrics, _kept) = authorization::everything::happened();
    check(&registry, "authorization/exposition.txt");
}

#[test]
fn admission_is_exposed_as_documented() {
    let (registry, _metrics) = admission::everything::happened();
    check(&registry, "admission/exposition.txt");
}
