//! Named string formats: `format.named`, one function per format, and `validate`.

mod date_syntax;

use std::borrow::Cow;

use field_errors::{
    dns1035_label_faults, dns1123_label_faults, dns1123_subdomain_faults, label_key_faults,
    label_value_faults,
};
use go_compat::Url;

use crate::cost;
use crate::function::{
    CostFormula, EvalError, EvalResult, FunctionImpl, FunctionRegistry, Overload,
};
use crate::static_type::Type;
use crate::value::NamedFormat::{
    self, Byte, Date, Datetime, Dns1035Label, Dns1035LabelPrefix, Dns1123Label, Dns1123LabelPrefix,
    Dns1123Subdomain, Dns1123SubdomainPrefix, LabelValue, QualifiedName, Uri, Uuid,
};
use crate::value::{OpaqueValue, Value};

/// The functions that return a format. `format.named` accepts the part of the name after the dot.
const FORMATS: [(&str, NamedFormat, FunctionImpl); 13] = [
    ("format.byte", Byte, |_| named_format_value(Byte)),
    ("format.date", Date, |_| named_format_value(Date)),
    ("format.datetime", Datetime, |_| named_format_value(Datetime)),
    ("format.dns1035Label", Dns1035Label, |_| named_format_value(Dns1035Label)),
    ("format.dns1035LabelPrefix", Dns1035LabelPrefix, |_| named_format_value(Dns1035LabelPrefix)),
    ("format.dns1123Label", Dns1123Label, |_| named_format_value(Dns1123Label)),
    ("format.dns1123LabelPrefix", Dns1123LabelPrefix, |_| named_format_value(Dns1123LabelPrefix)),
    ("format.dns1123Subdomain", Dns1123Subdomain, |_| named_format_value(Dns1123Subdomain)),
    ("format.dns1123SubdomainPrefix", Dns1123SubdomainPrefix, |_| {
        named_format_value(Dns1123SubdomainPrefix)
    }),
    ("format.labelValue", LabelValue, |_| named_format_value(LabelValue)),
    ("format.qualifiedName", QualifiedName, |_| named_format_value(QualifiedName)),
    ("format.uri", Uri, |_| named_format_value(Uri)),
    ("format.uuid", Uuid, |_| named_format_value(Uuid)),
];

/// Declares the functions of Kubernetes' format library.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let format = || Type::Opaque(OpaqueValue::FORMAT);
    for (name, _, implementation) in FORMATS {
        functions.add_overloads(
            name,
            vec![Overload::new_global_overload(name, vec![], format(), implementation)],
        );
    }
    let found = Type::optional_type_of(format());
    functions.add_overloads(
        "format.named",
        vec![Overload::new_global_overload(
            "format-named",
            vec![Type::String],
            found,
            find_named_format,
        )],
    );
    let faults = Type::optional_type_of(Type::list_type_of(Type::String));
    functions.add_overloads(
        "validate",
        vec![
            Overload::new_member_overload(
                "format-validate",
                vec![format(), Type::String],
                faults,
                validate_named_format,
            )
            .with_cost_formula(CostFormula::Custom(cost_of_validating_named_format)),
        ],
    );
}

fn named_format_value<'a>(format: NamedFormat) -> EvalResult<'a> {
    Ok(Value::opaque_value(OpaqueValue::Format(format)))
}

fn find_named_format<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [Value::String(name)] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    let is_named = |function: &str| {
        function.strip_prefix("format.").is_some_and(|known| known == name.as_str())
    };
    match FORMATS.iter().find(|(function, ..)| is_named(function)) {
        Some((_, format, _)) => {
            Ok(Value::optional_some(Value::opaque_value(OpaqueValue::Format(*format))))
        }
        None => Ok(Value::optional_none()),
    }
}

/// Returns the faults of a text, or `optional.none()` for a valid text.
fn validate_named_format<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [format, Value::String(text)] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    let faults = find_format_faults(
        as_named_format(format).ok_or_else(EvalError::no_such_overload)?,
        text.as_str(),
    );
    if faults.is_empty() {
        return Ok(Value::optional_none());
    }
    Ok(Value::optional_some(Value::owned_list_value(
        faults.into_iter().map(Value::owned_string).collect(),
    )))
}

fn as_named_format(value: &Value<'_>) -> Option<NamedFormat> {
    match value {
        Value::Opaque(value) => match **value {
            OpaqueValue::Format(format) => Some(format),
            _ => None,
        },
        _ => None,
    }
}

fn find_format_faults(format: NamedFormat, text: &str) -> Vec<String> {
    let check = |is_valid: bool, fault: &str| {
        if is_valid { Vec::new() } else { vec![fault.to_owned()] }
    };
    let bytes = text.as_bytes();
    match format {
        Byte => check(is_base64(bytes), "invalid base64"),
        Date => check(date_syntax::is_date(text), "invalid date"),
        Datetime => check(date_syntax::is_datetime(text), "invalid datetime"),
        Dns1035Label => dns1035_label_faults(text),
        Dns1035LabelPrefix => dns1035_label_faults(&mask_trailing_dash(text)),
        Dns1123Label => dns1123_label_faults(text),
        Dns1123LabelPrefix => dns1123_label_faults(&mask_trailing_dash(text)),
        Dns1123Subdomain => dns1123_subdomain_faults(text),
        Dns1123SubdomainPrefix => dns1123_subdomain_faults(&mask_trailing_dash(text)),
        LabelValue => label_value_faults(text),
        QualifiedName => label_key_faults(text),
        Uri => match Url::parse_request_uri(text) {
            Ok(_) => Vec::new(),
            Err(error) => vec![error.to_string()],
        },
        Uuid => check(is_uuid(bytes), "does not match the UUID format"),
    }
}

/// Replaces a trailing dash and the byte before it by a letter. Kubernetes validates this name
/// instead of the prefix.
fn mask_trailing_dash(name: &str) -> Cow<'_, str> {
    let Some(head) = name.strip_suffix('-').filter(|head| !head.is_empty()) else {
        return Cow::Borrowed(name);
    };
    // If that byte is the last one of a multi-byte character, each remaining byte of the character
    // becomes `?`. Both forms are invalid in any name.
    let kept = head.len() - 1;
    let boundary = head.floor_char_boundary(kept);
    let start = head.get(..boundary).unwrap_or_default();
    Cow::Owned(format!("{start}{}a", "?".repeat(kept - boundary)))
}

/// The cost of matching a regular expression. Kubernetes assigns a pattern size to each format.
fn cost_of_validating_named_format(arguments: &[Value<'_>]) -> u64 {
    let Some(format) = arguments.first().and_then(as_named_format) else {
        return 1;
    };
    let pattern_code_points = match format {
        Byte => 84,
        Date | Datetime => 71,
        Dns1035Label | Dns1035LabelPrefix | Dns1123Label | Dns1123LabelPrefix => 30,
        Dns1123Subdomain | Dns1123SubdomainPrefix | QualifiedName => 60,
        LabelValue => 40,
        Uri => 1103,
        Uuid => 70,
    };
    cost::regex_cost(cost::argument_size(arguments.get(1)), pattern_code_points)
}

/// Reports whether a text consists of groups of four base64 characters. Only the last group may be padded.
fn is_base64(text: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let without_padding = match text {
        [head @ .., b'=', b'='] | [head @ .., b'='] => head,
        _ => text,
    };
    !text.is_empty() && text.len().is_multiple_of(4) && without_padding.iter().all(is_letter)
}

/// Reports whether a text has 32 hexadecimal digits in five groups. Each dash between the groups is optional.
fn is_uuid(text: &[u8]) -> bool {
    let mut rest = text;
    for (idx, n_digits) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if idx > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        match rest.split_at_checked(n_digits) {
            Some((group, after)) if group.iter().all(u8::is_ascii_hexdigit) => rest = after,
            Some(_) | None => return false,
        }
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(name: &str, text: &str) -> Vec<String> {
        let (_, format, _) = FORMATS.iter().find(|(function, ..)| *function == name).unwrap();
        find_format_faults(*format, text)
    }

    #[test]
    fn prefixes() {
        for (name, want) in [
            ("", ""),
            ("-", "-"),
            ("a", "a"),
            ("a-", "a"),
            ("ab-", "aa"),
            ("a.-", "aa"),
            ("a--", "aa"),
            ("-a", "-a"),
            ("\u{e9}-", "?a"),
            ("a\u{65e5}-", "a??a"),
        ] {
            assert_eq!(mask_trailing_dash(name), want, "{name}");
        }
    }

    #[test]
    fn byte_date_uri_and_uuid_formats() {
        for (name, text, want) in [
            ("format.byte", "aGVsbG8=", ""),
            ("format.byte", "aGVsbA==", ""),
            ("format.byte", "+/09", ""),
            ("format.byte", "", "invalid base64"),
            ("format.byte", "====", "invalid base64"),
            ("format.byte", "a===", "invalid base64"),
            ("format.byte", "aGVsbG8", "invalid base64"),
            ("format.byte", "aa=a", "invalid base64"),
            ("format.byte", "aa==aaaa", "invalid base64"),
            ("format.byte", "-_aa", "invalid base64"),
            ("format.uuid", "123e4567-e89b-12d3-a456-426614174000", ""),
            ("format.uuid", "123E4567E89b12d3-a456426614174000", ""),
            (
                "format.uuid",
                "123e4567--e89b-12d3-a456-426614174000",
                "does not match the UUID format",
            ),
            (
                "format.uuid",
                "-23e4567-e89b-12d3-a456-426614174000",
                "does not match the UUID format",
            ),
            (
                "format.uuid",
                "123e4567-e89b-12d3-a456-42661417400",
                "does not match the UUID format",
            ),
            (
                "format.uuid",
                "123e4567-e89b-12d3-a456-4266141740000",
                "does not match the UUID format",
            ),
            (
                "format.uuid",
                "g23e4567-e89b-12d3-a456-426614174000",
                "does not match the UUID format",
            ),
            ("format.uri", "https://example.org/", ""),
            ("format.uri", "/a", ""),
            ("format.uri", "", r#"parse "": empty url"#),
            ("format.uri", "a", r#"parse "a": invalid URI for request"#),
            ("format.uri", ":", r#"parse ":": missing protocol scheme"#),
            ("format.date", "2021-02-30", "invalid date"),
            ("format.datetime", "2021-02-03", "invalid datetime"),
        ] {
            let want: Vec<_> = [want].into_iter().filter(|fault| !fault.is_empty()).collect();
            assert_eq!(faults(name, text), want, "{name} {text}");
        }
    }

    #[test]
    fn formats_are_found_by_name() {
        for (name, want) in [
            ("uri", Some(Uri)),
            ("dns1123SubdomainPrefix", Some(Dns1123SubdomainPrefix)),
            ("format.uri", None),
            ("", None),
        ] {
            let found = find_named_format(&[Value::borrowed_string(name)]).unwrap();
            let want = want.map_or(Value::optional_none(), |format| {
                Value::optional_some(Value::opaque_value(OpaqueValue::Format(format)))
            });
            assert!(found.equals(&want), "{name}: {found:?}");
        }
    }

    #[test]
    fn validate_returns_optional_faults_and_its_cost() {
        let long = "a".repeat(64);
        for (format, text, want, want_cost) in [
            (Dns1123Label, "a", None, 8),
            (Dns1123Label, long.as_str(), Some("must be no more than 63 characters"), 56),
            (Byte, "", Some("invalid base64"), 21),
            (Uri, "/", None, 276),
            (Uuid, "x", Some("does not match the UUID format"), 18),
        ] {
            let arguments =
                [Value::opaque_value(OpaqueValue::Format(format)), Value::borrowed_string(text)];
            let got = validate_named_format(&arguments).unwrap();
            let want = want.map_or(Value::optional_none(), |fault| {
                Value::optional_some(Value::owned_list_value(vec![Value::borrowed_string(fault)]))
            });
            assert!(got.equals(&want), "{format:?} {text}: {got:?}");
            assert_eq!(cost_of_validating_named_format(&arguments), want_cost, "{format:?} {text}");
        }
    }

    #[test]
    fn every_format_rejects_some_text() {
        for (name, format, _) in FORMATS {
            assert_ne!(find_format_faults(format, "~"), Vec::<String>::new(), "{name}");
        }
    }
}
