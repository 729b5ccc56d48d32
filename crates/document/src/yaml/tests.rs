//! Trees and errors of YAML texts, checked against Kubernetes' own reader.

use super::{YamlDocument, YamlError, read_documents};
use crate::node::{DocumentLimits, NESTING_MAX, NODES_MAX, Node, Value};

fn read(text: &str) -> Result<YamlDocument, YamlError> {
    super::read_first_document(text, None)
}

/// Formats a value as compact JSON. Numbers show as `#`, because most cases are about which scalars are numbers.
fn show(node: &Node) -> String {
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(_) => "#".to_owned(),
        Value::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
        Value::List(items) => {
            let items: Vec<_> = items.iter().map(show).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|entry| format!("{}:{}", entry.key, show(&entry.value)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
    }
}

fn reads(text: &str, want: &str) {
    match read(text) {
        Ok(composed) => assert_eq!(show(&composed.root_node), want, "{text:?}"),
        Err(error) => panic!("{text:?}: {}", error.message),
    }
}

fn fails(text: &str, want: &str) {
    match read(text) {
        Ok(composed) => panic!("{text:?} reads as {}", show(&composed.root_node)),
        Err(error) => assert_eq!(error.message, format!("yaml: {want}"), "{text:?}"),
    }
}

#[test]
fn collections() {
    reads("", "null");
    reads("# nothing\n", "null");
    reads("---\n...\n", "null");
    reads("a: 1\nb:\n- x\n-\n- - p\n  - q\n", r#"{a:#,b:["x",null,["p","q"]]}"#);
    reads("b: 1\na: 2\n", "{a:#,b:#}");
    reads("- a: 1\n  b: {c: [d, e,], f}\n", r#"[{a:#,b:{c:["d","e"],f:null}}]"#);
    reads("[a: b, ? c, d]", r#"[{a:"b"},{c:null},"d"]"#);
    reads("? a\n: b\n? c\n", r#"{a:"b",c:null}"#);
    reads("a:\n- b\nc: d\n", r#"{a:["b"],c:"d"}"#);
    reads("{a: b}", r#"{a:"b"}"#);
    reads("{a:b, \"c\":d}", r#"{a:b:null,c:"d"}"#);
    reads("\u{feff}a: b", r#"{a:"b"}"#);
    reads("a: b\r\nc: d\r", r#"{a:"b",c:"d"}"#);
    reads("1: a\ntrue: b\n1.5: c\n0x10: d\n", r#"{1:"a",1.5:"c",16:"d",true:"b"}"#);
}

#[test]
fn scalars() {
    reads("a: b c  # d\n", r#"{a:"b c"}"#);
    reads("a: b#c\n", r#"{a:"b#c"}"#);
    reads("a: b\n  c\n\n  d\n", r#"{a:"b c\nd"}"#);
    reads("a: x:y\n", r#"{a:"x:y"}"#);
    reads("- -a\n- ?b\n- :c\n", r#"["-a","?b",":c"]"#);
    reads("'it''s\n  so'", r#""it's so""#);
    reads(r#""\x41\u00e4\U0001F600\t\\\"\e""#, "\"Aä😀\\t\\\\\\\"\\u001b\"");
    reads("\"a\\\n   b\n\n  c  \n d\"", r#""ab\nc d""#);
    reads("|\n a\n  b\n\n c\n\n", r#""a\n b\n\nc\n""#);
    reads("|-\n a\n\n", r#""a""#);
    reads("|+\n a\n\n", r#""a\n\n""#);
    reads(">\n a\n b\n\n c\n   d\n e\n", r#""a b\nc\n  d\ne\n""#);
    reads("a: |2\n    b\n", r#"{a:"  b\n"}"#);
    reads("a: >-1 # c\n  b\n", r#"{a:" b"}"#);
    reads(
        "[yes, no, ~, Null, 0777, 1e3, .5, 2001-01-01, 5s]",
        r##"[true,false,null,null,#,#,#,"2001-01-01","5s"]"##,
    );
    reads("[\"yes\", 'no', !!str 5, !!int \"5\", ! 5, !x 5]", r##"["yes","no","5",#,"5","5"]"##);
}

#[test]
fn anchors_aliases_and_merges() {
    reads("a: &x {b: 1}\nc: *x\n", "{a:{b:#},c:{b:#}}");
    reads("- &x a\n- &x b\n- *x\n", r#"["a","b","b"]"#);
    reads("a: &x {b: 1}\nc: {<<: *x, d: 2}\n", "{a:{b:#},c:{b:#,d:#}}");
    reads("a: &x {b: 1}\ne: &y {f: 1}\nc:\n  <<: [*x, *y]\n", "{a:{b:#},c:{b:#,f:#},e:{f:#}}");
    reads("&k a: *k\n", r#"{a:"a"}"#);
    fails("a: *x\n", "unknown anchor 'x' referenced");
    fails("&x [*x]", "anchor 'x' value contains itself");
    fails("a: &x 1\nb: {<<: *x}\n", "map merge requires map or sequence of maps as the value");
}

#[test]
fn duplicate_keys_are_reported_and_the_last_counts() {
    let composed = read("a: 1\nb: {c: x, c: v}\na: z\n").unwrap();
    assert_eq!(show(&composed.root_node), r#"{a:"z",b:{c:"v"}}"#);
    let found: Vec<_> =
        composed.duplicate_keys.iter().map(|d| (d.message.as_str(), d.path.as_str())).collect();
    assert_eq!(
        found,
        [
            ("line 2: key \"c\" already set in map", "b.c"),
            ("line 3: key \"a\" already set in map", "a"),
        ]
    );
    // A merged key counts, and so do different spellings of one number.
    let composed = read("x: &x {a: 1}\nv: {<<: *x, a: 2}\nz: [{1: a, 0x1: b}]\n").unwrap();
    let paths: Vec<_> = composed.duplicate_keys.iter().map(|d| d.path.as_str()).collect();
    assert_eq!(paths, ["v.a", "z[0].1"]);
}

#[test]
fn only_the_first_document_is_read() {
    let rest = |text: &str| read(text).unwrap().trailing_content_span.map(|span| span.start);
    assert_eq!(rest("a: 1\n"), None);
    assert_eq!(rest("a: 1\n...\n"), None);
    assert_eq!(rest("a: 1\n---\n...\n---\n"), None);
    assert_eq!(rest("a: 1\n---\nb\n"), Some(9));
    assert_eq!(rest("a: 1\n---\n'"), Some(10), "not even if it is broken");
    assert_eq!(rest("  a: 1\nb: 2\n"), Some(7), "less indented than the first line");
}

#[test]
fn bad_characters_beyond_the_read_chunk_are_ignored() {
    let text = |n: usize| format!("a: 1\n---\n{}\u{1}", " ".repeat(n));
    fails(&text(0), "control characters are not allowed");
    assert_eq!(read(&text(600)).unwrap().trailing_content_span.map(|span| span.start), Some(609));
    fails(&format!("a: 'b{}\u{1}'", " ".repeat(600)), "control characters are not allowed");
    fails(
        &format!("a: b: c\n{}\u{1}", " ".repeat(600)),
        "mapping values are not allowed in this context",
    );
    let error = super::read_first_document("a: \u{fffd}", Some(3)).unwrap_err();
    assert_eq!((error.message.as_str(), error.span.start), ("yaml: invalid UTF-8", 3));
    assert!(read("a: \u{fffd}").is_ok(), "a replacement character that is written is one");
}

#[test]
fn messages_match_kubernetes() {
    fails("a: b: c\n", "mapping values are not allowed in this context");
    fails("a:\n\tb: c\n", "line 2: found character that cannot start any token");
    fails("a: b\n\tc: d\n", "line 2: found a tab character that violates indentation");
    fails("a: 1\nb\nc: 2\n", "line 3: could not find expected ':'");
    fails("a: [1, 2\n", "line 1: did not find expected ',' or ']'");
    fails("a: {b: 1\n", "line 1: did not find expected ',' or '}'");
    fails("a: 'b\n", "line 2: found unexpected end of stream");
    fails("a: \"\\q\"\n", "found unknown escape character");
    fails("a:\n  - b\n c: d\n", "line 2: did not find expected key");
    fails("a: 1\n  b: 2\n", "line 2: mapping values are not allowed in this context");
    fails("- a\nb: 1\n", "line 1: did not find expected '-' indicator");
    fails("a: @b\n", "found character that cannot start any token");
    fails("a: &b&c\n", "did not find expected alphabetic or numeric character");
    fails("%YAML 1.2\n---\na: 1\n", "found incompatible YAML document");
    fails("a: !e!x 1\n", "found undefined tag handle");
    fails("a: \u{7}\n", "control characters are not allowed");
    fails("? [a]\n: b\n", "invalid map key");
    fails("a: !!int x\n", "cannot decode !!str `x` as a !!int");
    fails("a: |0\n  b\n", "found an indentation indicator equal to 0");
}

#[test]
fn keys_and_numbers_that_json_can_not_express() {
    for (text, message) in [
        ("~: a\n", "unsupported map key of type: null"),
        ("18446744073709551615: a\n", "unsupported map key of type: uint64"),
        ("a: .nan\n", "json: unsupported value: NaN"),
        ("a: -.inf\n", "json: unsupported value: -Inf"),
    ] {
        assert_eq!(read(text).unwrap_err().message, message);
    }
}

#[test]
fn nesting_is_limited() {
    let flow = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(read(&flow(NESTING_MAX - 1)).is_ok());
    for text in [
        flow(NESTING_MAX + 1),
        "[".repeat(1 << 20),
        "{a: ".repeat(1 << 18),
        "- ".repeat(1 << 19),
        "? ".repeat(1 << 19),
        (0..1000).map(|n| format!("{}a:\n", " ".repeat(n))).collect(),
    ] {
        let message = read(&text).unwrap_err().message;
        assert!(message.contains("exceeded max depth of 64"), "{message}");
    }
}

/// L15: aliases cannot multiply the size of a document without limit.
#[test]
fn aliases_are_limited() {
    // Nine lists, each with nine aliases of the previous one: nine to the ninth values.
    let mut bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for (from, to) in "abcdefgh".chars().zip("bcdefghi".chars()) {
        let items = vec![format!("*{from}"); 9].join(",");
        bomb.push_str(&format!("{to}: &{to} [{items}]\n"));
    }
    fails(&bomb, "document contains excessive aliasing");
    // Each merge in a chain is one level of nesting.
    let mut chain = "a0: &a0 {x: 1}\n".to_owned();
    for n in 1..10_000 {
        chain.push_str(&format!("a{n}: &a{n} {{<<: *a{}}}\n", n - 1));
    }
    let message = read(&chain).unwrap_err().message;
    assert!(message.contains("exceeded max depth of 64"), "{message}");
}

#[test]
fn repeated_texts_are_limited() {
    let repeated = |n: usize| {
        let long = "x".repeat(1 << 18);
        format!("a: &a {long}\nb: [{}]\n", vec!["*a"; n].join(","))
    };
    assert!(read(&repeated(14)).is_ok());
    fails(&repeated(16), "aliases make more than 4194304 bytes of text");
    let duplicates = "a: 1\n".repeat(500);
    assert_eq!(read(&duplicates).unwrap().duplicate_keys.len(), 100);
}

#[test]
fn the_number_of_values_is_limited() {
    let wide = |n: usize| format!("[{}]", "a,".repeat(n));
    assert!(read(&wide(NODES_MAX - 2)).is_ok());
    fails(&wide(NODES_MAX), "document holds more than 100000 values");
}

#[test]
fn values_have_spans() {
    let text = "a: b\nlist:\n- 'x y'\n- k: |\n    lit\n\n";
    let composed = read(text).unwrap();
    let Value::Object(entries) = &composed.root_node.value else { panic!("an object") };
    let part = |span: crate::source::Span| &text[span.start..span.end_offset];
    assert_eq!((part(entries[0].key_span), part(entries[0].value.span)), ("a", "b"));
    let Value::List(items) = &entries[1].value.value else { panic!("a list") };
    assert_eq!(part(items[0].span), "'x y'");
    let Value::Object(inner) = &items[1].value else { panic!("an object") };
    assert_eq!(part(inner[0].key_span), "k");
    assert_eq!(part(inner[0].value.span), "|\n    lit\n\n");
}

/// Formats each document as compact JSON, up to the first error.
fn documents_of(text: &str, limits: DocumentLimits) -> Vec<Result<String, YamlError>> {
    read_documents(text, None, limits)
        .map(|document| document.map(|document| show(&document.root_node)))
        .collect()
}

/// Returns the error message of each document, or `ok`.
fn error_messages(documents: &[Result<String, YamlError>]) -> Vec<&str> {
    documents
        .iter()
        .map(|document| document.as_ref().err().map_or("ok", |error| &error.message))
        .collect()
}

#[test]
fn documents_are_read_in_order() {
    for (text, want) in [
        ("", &["null"][..]),
        ("a", &["\"a\""]),
        ("--- a\n--- b\n...\n...\n--- c\n", &["\"a\"", "\"b\"", "\"c\""]),
        ("a\n---\n---\nb\n---\n", &["\"a\"", "null", "\"b\"", "null"]),
        ("# one\n---\n# two\n--- {a: b}\n", &["null", "{a:\"b\"}"]),
        ("%TAG !x! tag:a,\n--- !x!b c\n...\n%TAG !x! tag:d,\n--- !x!e f\n", &["\"c\"", "\"f\""]),
    ] {
        let want: Vec<_> = want.iter().map(|&root| Ok(root.to_owned())).collect();
        assert_eq!(documents_of(text, DocumentLimits::CONFIGURATION), want, "{text}");
    }
    for (text, n_read, message) in [
        ("--- &a x\n--- *a\n--- b\n", 1, "yaml: unknown anchor 'a' referenced"),
        ("a\n...\nb\n", 1, "yaml: line 2: did not find expected <document start>"),
        ("--- a\n--- [\n--- b\n", 1, "yaml: line 2: did not find expected node content"),
        ("--- a\n--- \u{1}\n", 0, "yaml: control characters are not allowed"),
    ] {
        let found = documents_of(text, DocumentLimits::CONFIGURATION);
        assert_eq!(found.len(), n_read + 1, "{text}: nothing follows an error");
        let error = found[n_read].as_ref().unwrap_err();
        assert_eq!(error.message, message, "{text}");
    }
}

#[test]
fn limits_apply_to_each_document() {
    let limits = |nodes_max, expanded_bytes_max| DocumentLimits {
        nodes_max,
        expanded_bytes_max,
        ..DocumentLimits::CONFIGURATION
    };
    // The first document has a root, a list and its items. The second document has only a root.
    let text = "--- [a, b, c]\n--- [d, e, f]\n";
    assert_eq!(documents_of(text, limits(5, 9)).len(), 2);
    let found = documents_of(text, limits(4, 9));
    assert_eq!(error_messages(&found), ["yaml: document holds more than 4 values"]);
    let found = documents_of("[&a 'xxx', *a, *a]", limits(9, 9));
    assert_eq!(found, [Ok("[\"xxx\",\"xxx\",\"xxx\"]".to_owned())]);
    let found = documents_of("[&a 'xxx', *a, *a]", limits(9, 8));
    assert_eq!(error_messages(&found), ["yaml: aliases make more than 8 bytes of text"]);
}
