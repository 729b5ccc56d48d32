//! Derives `kubernetes.txt` from the description of all types of Kubernetes in `conformance/kinds`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

const TYPES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/kinds/types.jsonl");
const TABLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/field_tables/kubernetes.txt");

/// The types with a form of their own in JSON or in protobuf, and the word for it in the table.
const CUSTOM_FORMS: [(&str, &str); 15] = [
    ("apiextensions/v1.JSON", "json"),
    ("apiextensions/v1.JSONSchemaPropsOrArray", "schema-or-list"),
    ("apiextensions/v1.JSONSchemaPropsOrBool", "schema-or-bool"),
    ("apiextensions/v1.JSONSchemaPropsOrStringArray", "schema-or-texts"),
    ("authentication/v1.AttestationValue", "texts"),
    ("authentication/v1.ExtraValue", "texts"),
    ("authorization/v1.ExtraValue", "texts"),
    ("certificates/v1.ExtraValue", "texts"),
    ("intstr.IntOrString", "int-or-string"),
    ("meta/v1.FieldsV1", "json"),
    ("meta/v1.MicroTime", "microtime"),
    ("meta/v1.Time", "time"),
    ("meta/v1.Verbs", "texts"),
    ("quantity.Quantity", "quantity"),
    ("runtime.RawExtension", "json"),
];
const SCALARS: [&str; 6] = ["string", "int32", "int64", "bool", "bytes", "double"];

/// `UPDATE_EXPECT=1 cargo test -p codec derive_table_test` rewrites the table after a change of the types.
#[test]
fn the_table_is_derived_from_the_types() {
    let derived = derive_table(&std::fs::read_to_string(TYPES).unwrap());
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(TABLE, &derived).unwrap();
    }
    let table = std::fs::read_to_string(TABLE).unwrap();
    let differs = "kubernetes.txt is outdated: UPDATE_EXPECT=1 cargo test -p codec";
    assert!(table == derived, "{differs}");
}

/// The types of all kinds in stable versions, and the types that these use.
fn derive_table(types: &str) -> String {
    let types = types.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let types: BTreeMap<String, Value> =
        types.map(|own| (own["type"].as_str().unwrap().to_owned(), own)).collect();
    let mut names = BTreeSet::new();
    let mut unvisited = vec!["meta/v1.DeleteOptions".to_owned()];
    let is_body = |own: &Value| own.get("unserved").is_none() && !is_list(own);
    let bodies =
        types.iter().filter(|(name, own)| is_body(own) && !stable_kinds(name, own).is_empty());
    unvisited.extend(bodies.map(|(name, _)| name.clone()));
    while let Some(name) = unvisited.pop() {
        let used = protobuf_fields(&types[&name]).map(|field| value_type(field).0);
        let used = used.map(|own| match own.starts_with("schema-or") {
            true => "apiextensions/v1.JSONSchemaProps".to_owned(),
            false => own,
        });
        unvisited.extend(used.filter(|used| used.contains('.') && !names.contains(used)));
        names.insert(name);
    }
    let mut table = String::new();
    for name in names {
        let own = &types[&name];
        let kinds = stable_kinds(&name, own);
        let equals = if kinds.is_empty() { "" } else { " = " };
        writeln!(table, "{name}{equals}{}", kinds.join(" ")).unwrap();
        for field in protobuf_fields(own) {
            writeln!(
                table,
                " {} {} {}",
                field["proto"],
                string_member(field, "name"),
                field_type(field)
            )
            .unwrap();
        }
    }
    table
}

fn string_member<'v>(value: &'v Value, member: &str) -> &'v str {
    value[member].as_str().unwrap_or_default()
}

/// The fields that protobuf has.
fn protobuf_fields(own: &Value) -> impl Iterator<Item = &Value> {
    own["fields"].as_array().unwrap().iter().filter(|field| field.get("proto").is_some())
}

fn is_list(own: &Value) -> bool {
    protobuf_fields(own).any(|field| string_member(field, "wire") == "message meta/v1.ListMeta")
}

/// The kinds of a type, in versions that are neither alpha nor beta. Options belong to every group and are left out.
fn stable_kinds(name: &str, own: &Value) -> Vec<String> {
    if name.starts_with("meta/v1.") {
        return Vec::new();
    }
    let mut kinds = Vec::new();
    for kind in own["gvk"].as_array().into_iter().flatten() {
        let [group, version, kind] = [0, 1, 2].map(|idx| kind[idx].as_str().unwrap());
        if version.trim_start_matches('v').bytes().all(|byte| byte.is_ascii_digit()) {
            let slash = if group.is_empty() { "" } else { "/" };
            kinds.push(format!("{group}{slash}{version}/{kind}"));
        }
    }
    kinds
}

/// The type of one value of a field, and whether the field is a map.
fn value_type(field: &Value) -> (String, bool) {
    let wire = string_member(field, "wire");
    let map = wire.strip_prefix("map<string,").and_then(|own| own.strip_suffix('>'));
    let name = map.unwrap_or_else(|| wire.strip_prefix("message ").unwrap_or(wire));
    let custom = CUSTOM_FORMS.iter().find(|(own, _)| *own == name).map(|(_, word)| *word);
    (custom.unwrap_or(name).to_owned(), map.is_some())
}

fn field_type(field: &Value) -> String {
    let (name, is_map) = value_type(field);
    let is = |member: &str| field.get(member).is_some();
    match () {
        () if is_map => format!("{{}}{name}"),
        () if is("inline") => format!("^{name}"),
        () if is("repeated") && name != "texts" => format!("[]{name}"),
        () if SCALARS.contains(&name.as_str()) && (is("ptr") || !is("omit")) => format!("{name}!"),
        () => name,
    }
}
