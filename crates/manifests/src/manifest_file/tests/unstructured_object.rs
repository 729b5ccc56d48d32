//! Objects that the reader keeps as JSON.

use document::{Diagnostic, Source};
use field_errors::FieldPath;

use super::super::*;
use super::faults;

fn read_all(text: &str) -> Manifests {
    let kind_handler = |_: &str, kind: &str| match kind {
        "Widget" => KindHandling::KeepUnstructured,
        "Wigdet" => {
            KindHandling::Refuse { field: "kind", hint: "did you mean `Widget`?".to_owned() }
        }
        _ => KindHandling::Standard,
    };
    let options =
        ManifestReadOptions { kind_handler: &kind_handler, ..ManifestReadOptions::default() };
    read_manifests_with_options(&Source { name: "F", file_bytes: text.as_bytes() }, options)
}

fn only(text: &str) -> UnstructuredObject {
    let mut manifests = read_all(text);
    assert_eq!(faults(&manifests), [""; 0], "{text}");
    assert_eq!(manifests.unstructured_objects.len(), 1, "{text}");
    manifests.unstructured_objects.remove(0)
}

/// Formats a diagnostic as `line:column message [hint]`.
fn shown(fault: &Diagnostic) -> String {
    let hint = fault.hint.as_ref().map(|hint| format!(" [{hint}]")).unwrap_or_default();
    format!("{}:{} {}{hint}", fault.position.line, fault.position.column, fault.fault)
}

const WIDGET: &str = "apiVersion: example.com/v1
kind: Widget
metadata:
  name: cog
  labls: {a: b}
  labels: {a: [b]}
spec:
  parts:
  - name: rim
    siez: 3
  when: '  object.size >
    gone'
";

#[test]
fn kept_objects_do_not_change_the_other_objects() {
    let text = format!("{WIDGET}---\napiVersion: v1\nkind: ConfigMap\n---\nkind: Role\n");
    let manifests = read_all(&text);
    assert_eq!((manifests.unstructured_objects.len(), manifests.n_unused_objects), (1, 1));
    assert_eq!(manifests.errors.len(), 1, "a role is what it was");
    let kept = &manifests.unstructured_objects[0];
    assert_eq!((kept.kind_name(), kept.api_version()), ("Widget", "example.com/v1"));
    assert_eq!((kept.namespace(), kept.name(), &*kept.file_name), ("", "cog", "F"));
    assert_eq!(kept.value["spec"]["parts"][0]["siez"], 3);
    assert_eq!(format!("{kept:?}"), "[at F:1:1]", "the object may hold a secret");
    assert!(
        read(&Source { name: "F", file_bytes: WIDGET.as_bytes() }).unstructured_objects.is_empty()
    );
}

#[test]
fn faults_have_positions() {
    let kept = only(WIDGET);
    let spec = FieldPath::root("spec");
    let parts = spec.child("parts");
    let part = parts.index(0);
    for (fault, want) in [
        (
            kept.field_diagnostic(part.child("name").not_supported("rim", &["hub", "rims"])),
            "9:11 spec.parts[0].name: Unsupported value: \"rim\": supported values: \"hub\", \
             \"rims\" [did you mean `rims`?]",
        ),
        (
            kept.field_diagnostic(part.child("size").required("")),
            "9:5 spec.parts[0].size: Required value",
        ),
        (
            kept.unknown_field_diagnostic("spec.parts[0].siez", &["name", "size"]),
            "10:5 unknown field \"spec.parts[0].siez\" [did you mean `size`?]",
        ),
        (kept.unknown_field_diagnostic("spec.x", &[]), "8:3 unknown field \"spec.x\""),
        (kept.wrong_type_diagnostic("spec.parts", "no".to_owned()), "9:3 no"),
    ] {
        assert_eq!(shown(&fault), want);
    }
    let metadata: Vec<String> = kept.check_metadata().iter().map(shown).collect();
    let want = [
        "5:3 unknown field \"metadata.labls\" [did you mean `labels`?]",
        "6:15 json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type \
         string",
    ];
    assert_eq!(metadata, want);
}

/// The compiler counts from the start of the expression, after leading white space.
#[test]
fn expression_issues_have_positions() {
    let kept = only(WIDGET);
    let at = FieldPath::root("spec");
    let detail = "compilation failed: ERROR: <input>:1:1: no object\n | object.size > gone\n | \
                  ^\nERROR: <input>:1:15: no gone\n | object.size > gone\n | ..............^";
    let fault = kept.field_diagnostic(at.child("when").invalid("object.size > gone", detail));
    let notes: Vec<_> = fault
        .expression_issues
        .iter()
        .map(|note| {
            (
                note.position.line,
                note.position.column,
                note.column_in_expression,
                note.message.as_str(),
            )
        })
        .collect();
    assert_eq!(notes, [(11, 12, 1, "no object"), (12, 5, 15, "no gone")]);
    assert_eq!((fault.position.line, fault.position.column), (11, 12));
    let fault =
        kept.field_diagnostic(at.child("when").invalid("x", "must evaluate to bool but got int"));
    assert_eq!(fault.expression_issues.len(), 1);
    assert_eq!(fault.expression_issues[0].position.column, 12);
}

#[test]
fn list_items_have_paths_in_the_file() {
    let items = [
        r#"{"metadata": {"name": "a"}, "spec": {}}"#,
        r#"{"metadata": {"name": "b"}, "metadata": {"name": "c"}, "spec": {"x": {"y": 1, "y": 2}}}"#,
    ];
    let head = r#""apiVersion": "example.com/v1", "kind": "WidgetList""#;
    let text = format!("{{{head}, \"items\": [\n{}]}}", items.join(",\n"));
    let manifests = read_all(&text);
    let want = [
        "3:29 duplicate field \"items[1].metadata\"",
        "3:79 duplicate field \"items[1].spec.x.y\"",
    ];
    assert_eq!(faults(&manifests), want);
    let kept = &manifests.unstructured_objects[1];
    assert_eq!((kept.kind_name(), kept.name()), ("Widget", "c"));
    let fault = kept.field_diagnostic(FieldPath::root("spec").required(""));
    assert_eq!(shown(&fault), "3:64 items[1].spec: Required value");
    assert_eq!(kept.field_path_in_file(""), "items[1]");
    let yaml = "apiVersion: v1\nkind: List\nitems:\n- apiVersion: example.com/v1\n  kind: Widget\n  \
                spec: {a: 1, a: 2}\n";
    let want = ["6:16 line 6: key \"a\" already set in map"];
    assert_eq!(faults(&read_all(yaml)), want);
}

#[test]
fn likely_mistaken_kinds_are_refused() {
    let text = "apiVersion: example.com/v1\nkind: Wigdet\n";
    let want = "2:7 no kind \"Wigdet\" is registered for version \"example.com/v1\" [did you mean \
                `Widget`?]";
    assert_eq!(faults(&read_all(text)), [want]);
}

#[test]
fn duplicate_objects_are_reported() {
    let kept = read_all(&format!("{WIDGET}---\n{WIDGET}")).unstructured_objects;
    let found = find_duplicate_unstructured_objects(&kept.iter().collect::<Vec<_>>());
    assert_eq!((found.errors.len(), found.warnings.len()), (0, 1));
    let other = WIDGET.replace("siez: 3", "siez: 4");
    let kept = read_all(&format!("{WIDGET}---\n{other}")).unstructured_objects;
    let found = find_duplicate_unstructured_objects(&kept.iter().collect::<Vec<_>>());
    let want = "14:1 metadata.name: Duplicate value: \"cog\": this Widget is first defined at F:1:1 \
                [remove one of the two, or rename it]";
    assert_eq!(found.errors.iter().map(shown).collect::<Vec<_>>(), [want]);
}
