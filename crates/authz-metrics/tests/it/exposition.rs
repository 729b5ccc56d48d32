//! The text that is scraped, whole: names, help, types, labels, classes of durations.

use crate::everything;

#[test]
fn everything_is_exposed_as_documented() {
    let (registry, _metrics, _kept) = everything::happened();
    let text = monitoring_lint::text(&registry).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/exposition.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let want = std::fs::read_to_string(path).unwrap();
    for (at, (line, want)) in text.lines().zip(want.lines()).enumerate() {
        assert_eq!(line, want, "line {}", at + 1);
    }
    assert_eq!(text.lines().count(), want.lines().count());
}
