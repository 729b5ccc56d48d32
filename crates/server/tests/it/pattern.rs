//! How an answer is compared with what a row says about it.
//!
//! An object matches if its named members do; others may be there. An array matches item by item,
//! unless its pattern begins with `"…"`: then each pattern must match some item. A text matches
//! itself; `…` in it stands for anything. These texts are special:
//!
//! | Pattern | Matches |
//! |---|---|
//! | `<any>` | whatever is there |
//! | `<none>` | what is not there |
//! | `<string>`, `<number>` | a text that is not empty, a number |
//! | `<empty>` | an object or array without members |
//! | `<not x>` | a text other than `x` |
//! | `<generated x>` | the prefix `x` and five characters of those that names are generated from |

use serde_json::Value;

/// Compares JSON with a pattern.
pub(crate) fn check(want: &Value, found: Option<&Value>, path: &str, faults: &mut Vec<String>) {
    let fault = |why: &str| format!("{path}: {why}, want {want}, got {}", shown(found));
    match (want, found) {
        (Value::String(want), found) => match (want.as_str(), found) {
            ("<any>", Some(_)) | ("<number>", Some(Value::Number(_))) => {}
            ("<empty>", Some(Value::Object(own))) if own.is_empty() => {}
            ("<empty>", Some(Value::Array(own))) if own.is_empty() => {}
            ("<any>" | "<number>" | "<empty>", _) => faults.push(fault("is something else")),
            (want, None) => check_text(want, None, path, faults),
            (want, Some(Value::String(found))) => check_text(want, Some(found), path, faults),
            (_, Some(_)) => faults.push(fault("is no text")),
        },
        (Value::Object(want), Some(Value::Object(found))) => {
            for (name, own) in want {
                check(own, found.get(name), &format!("{path}/{name}"), faults);
            }
        }
        (Value::Array(want), Some(Value::Array(found))) => check_items(want, found, path, faults),
        (want, Some(found)) if want == found => {}
        _ => faults.push(fault("differs")),
    }
}

fn check_items(want: &[Value], found: &[Value], path: &str, faults: &mut Vec<String>) {
    if let Some((first, want)) = want.split_first()
        && first == "…"
    {
        for (idx, own) in want.iter().enumerate() {
            let matches = |item: &Value| {
                let mut faults = Vec::new();
                check(own, Some(item), "", &mut faults);
                faults.is_empty()
            };
            if !found.iter().any(matches) {
                faults.push(format!("{path}: nothing matches pattern {idx}: {own}"));
            }
        }
        return;
    }
    if want.len() != found.len() {
        faults.push(format!("{path}: want {} items, got {}", want.len(), found.len()));
        return;
    }
    for (idx, (own, item)) in want.iter().zip(found).enumerate() {
        check(own, Some(item), &format!("{path}/{idx}"), faults);
    }
}

/// Compares a text with a pattern.
pub(crate) fn check_text(want: &str, found: Option<&str>, path: &str, faults: &mut Vec<String>) {
    let is_match = match (want, found) {
        ("<none>", found) => found.is_none(),
        (_, None) => false,
        ("<any>", Some(_)) => true,
        ("<string>", Some(found)) => !found.is_empty(),
        (want, Some(found)) => match special(want) {
            Some(("not", other)) => found != other,
            Some(("generated", prefix)) => is_generated(prefix, found),
            _ => matches(want, found),
        },
    };
    if !is_match {
        let found = found.map_or("nothing".to_owned(), |found| format!("{found:?}"));
        faults.push(format!("{path}: want {want:?}, got {found}"));
    }
}

fn special(want: &str) -> Option<(&str, &str)> {
    want.strip_prefix('<')?.strip_suffix('>')?.split_once(' ')
}

fn is_generated(prefix: &str, found: &str) -> bool {
    found.strip_prefix(prefix).is_some_and(|rest| {
        rest.len() == 5 && rest.chars().all(|c| "bcdfghjklmnpqrstvwxz2456789".contains(c))
    })
}

/// Whether the text contains the pieces between `…` in their order.
fn matches(want: &str, found: &str) -> bool {
    let mut pieces: Vec<&str> = want.split('…').collect();
    let Some(last) = pieces.pop().filter(|_| !pieces.is_empty()) else { return want == found };
    let Some(mut rest) = found.strip_prefix(pieces[0]) else { return false };
    for piece in &pieces[1..] {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

fn shown(found: Option<&Value>) -> String {
    found.map_or("nothing".to_owned(), Value::to_string)
}

#[test]
fn patterns_match_what_they_say_and_nothing_else() {
    use serde_json::json;
    let is_match = |want: Value, found: Value| {
        let mut faults = Vec::new();
        check(&want, Some(&found), "", &mut faults);
        faults.is_empty()
    };
    for (want, found, expected) in [
        (json!("a…"), json!("ab"), true),
        (json!("a…c"), json!("abd"), false),
        (json!("…b…"), json!("abc"), true),
        (json!("ab"), json!("abc"), false),
        (json!({"a": "<none>"}), json!({"b": 1}), true),
        (json!({"a": "<none>"}), json!({"a": null}), false),
        (json!({"a": "<empty>"}), json!({"a": {}}), true),
        (json!({"a": "<empty>"}), json!({"a": {"b": 1}}), false),
        (json!([1]), json!([1, 2]), false),
        (json!(["…", 2]), json!([1, 2]), true),
        (json!(["…", 3]), json!([1, 2]), false),
        (json!("<generated gen->"), json!("gen-bcd24"), true),
        (json!("<generated gen->"), json!("gen-abcde"), false),
        (json!("<not 1>"), json!("1"), false),
        (json!("<not 1>"), json!("2"), true),
    ] {
        assert_eq!(is_match(want.clone(), found.clone()), expected, "{want} {found}");
    }
}
