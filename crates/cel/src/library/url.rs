//! Kubernetes' URL library: `url`, `isURL` and the parts of a URL.

use std::collections::HashMap;

use go_compat::Url;

use crate::function::{CostFormula, EvalError, EvalResult, FunctionRegistry, Overload};
use crate::static_type::Type;
use crate::value::{Map, OpaqueValue, OwnedMap, Value};

/// Declares the functions of Kubernetes' URL library.
pub(crate) fn declare_functions(functions: &mut FunctionRegistry) {
    let url = || Type::Opaque(OpaqueValue::URL);
    let text = || vec![Type::String];
    let read = Overload::new_global_overload("string_to_url", text(), url(), string_to_url);
    functions.add_overloads("url", vec![read.with_cost_formula(CostFormula::Scan(0))]);
    let test = Overload::new_global_overload("is_url_string", text(), Type::Bool, is_url);
    functions.add_overloads("isURL", vec![test]);
    let mut part = |name, id, result, implementation| {
        let overload = Overload::new_member_overload(id, vec![url()], result, implementation);
        functions.add_overloads(name, vec![overload]);
    };
    part("getScheme", "url_get_scheme", Type::String, url_scheme);
    part("getHost", "url_get_host", Type::String, url_host);
    part("getHostname", "url_get_hostname", Type::String, url_hostname);
    part("getPort", "url_get_port", Type::String, url_port);
    part("getEscapedPath", "url_get_escaped_path", Type::String, url_escaped_path);
    let values_by_key = Type::map_type_of(Type::String, Type::list_type_of(Type::String));
    part("getQuery", "url_get_query", values_by_key, url_query);
}

fn string_to_url<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let [Value::String(text)] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    // `parse_request_uri` requires an absolute URL, but treats a fragment as a part of the path.
    // `parse` reads fragments.
    let url = Url::parse_request_uri(text.as_str()).and_then(|_| Url::parse(text.as_str()));
    match url {
        Ok(url) => Ok(Value::opaque_value(OpaqueValue::Url(url))),
        Err(error) => {
            Err(EvalError::new(format!("URL parse error during conversion from string: {error}")))
        }
    }
}

fn is_url<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    match arguments {
        [Value::String(text)] => Ok(Value::Bool(Url::parse_request_uri(text.as_str()).is_ok())),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn url_scheme<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::owned_string(url_argument(arguments)?.scheme()))
}

fn url_host<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(decode_utf8_lossy(url_argument(arguments)?.host()))
}

fn url_hostname<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(decode_utf8_lossy(url_argument(arguments)?.hostname()))
}

fn url_port<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::owned_string(url_argument(arguments)?.port()))
}

fn url_escaped_path<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    Ok(Value::owned_string(url_argument(arguments)?.escaped_path()))
}

/// Returns all values of each key of the query, in the order of the URL.
fn url_query<'a>(arguments: &[Value<'a>]) -> EvalResult<'a> {
    let mut entries: Vec<(Value<'a>, Vec<Value<'a>>)> = Vec::new();
    let mut position_by_key = HashMap::new();
    for (key, value) in url_argument(arguments)?.query() {
        let position = *position_by_key.entry(key.clone()).or_insert_with(|| {
            entries.push((Value::owned_string(key), Vec::new()));
            entries.len() - 1
        });
        if let Some((_, values)) = entries.get_mut(position) {
            values.push(Value::owned_string(value));
        }
    }
    let mut map = OwnedMap::new();
    for (key, values) in entries {
        map.insert(key, Value::owned_list_value(values));
    }
    Ok(Value::Map(Map::from_owned_map(map)))
}

fn url_argument<'v>(arguments: &'v [Value<'_>]) -> Result<&'v Url, EvalError> {
    if let [Value::Opaque(value)] = arguments
        && let OpaqueValue::Url(url) = &**value
    {
        return Ok(url);
    }
    Err(EvalError::no_such_overload())
}

/// Converts unescaped bytes to text. Each byte that is not UTF-8 becomes U+FFFD, so that the text
/// has the same size as in Go.
fn decode_utf8_lossy<'a>(bytes: &[u8]) -> Value<'a> {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Value::owned_string(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::operators::tests::{assert_outcome, implementation};

    fn url(text: &str) -> EvalResult<'_> {
        implementation("url", "string_to_url")(&[Value::borrowed_string(text)])
    }

    #[test]
    fn url_parts_match_go() {
        let full = "https://user:pass@example.com:80/a%20b/c d?q=1#f";
        for (text, function, want) in [
            (full, "getScheme", "https"),
            (full, "getHost", "example.com:80"),
            (full, "getHostname", "example.com"),
            (full, "getPort", "80"),
            (full, "getEscapedPath", "/a%20b/c%20d"),
            ("/path", "getScheme", ""),
            ("/path", "getHost", ""),
            ("/path", "getPort", ""),
            ("/path#f", "getEscapedPath", "/path"),
            ("https://[::1]:80/", "getHost", "[::1]:80"),
            ("https://[::1]:80/", "getHostname", "::1"),
            ("https://example.com", "getEscapedPath", ""),
            ("https://%ff%fe.com/", "getHost", "\u{fffd}\u{fffd}.com"),
        ] {
            let arguments = [url(text).unwrap()];
            let got = implementation(function, "url_")(&arguments);
            assert_outcome(&arguments, &got, &Ok(Value::borrowed_string(want)));
        }
    }

    #[test]
    fn queries_keep_all_values_of_a_key() {
        let strings = |items: &[&'static str]| {
            Value::owned_list_value(items.iter().copied().map(Value::borrowed_string).collect())
        };
        let arguments = [url("/?b=1&a=x+y&b=%32&c&b=%zz").unwrap()];
        let got = implementation("getQuery", "url_")(&arguments).unwrap();
        let Value::Map(map) = got else { panic!("{got:?}") };
        let entries: Vec<_> = map.iter().collect();
        let want = [("b", strings(&["1", "2"])), ("a", strings(&["x y"])), ("c", strings(&[""]))];
        assert_eq!(entries.len(), want.len());
        for ((key, values), (want_key, want_values)) in entries.iter().zip(&want) {
            assert!(key.equals(&Value::borrowed_string(want_key)), "{key:?}");
            assert!(values.equals(want_values), "{key:?}: {values:?}");
        }
    }

    #[test]
    fn relative_urls_are_refused() {
        for (text, want) in [
            ("", Some(r#"parse "": empty url"#)),
            ("../relative-path", Some(r#"parse "../relative-path": invalid URI for request"#)),
            ("https://a:b:c/", Some(r#"parse "https://a:b:c/": invalid port ":b:c" after host"#)),
            // Only `parse` reads the fragment.
            ("/?#%zz", Some(r#"parse "/?#%zz": invalid URL escape "%zz""#)),
            ("/absolute-path", None),
            ("mailto:a@b.c", None),
        ] {
            let message = match url(text) {
                Ok(_) => None,
                Err(error) => Some(error.to_string()),
            };
            let prefix = "URL parse error during conversion from string: ";
            assert_eq!(message, want.map(|want| format!("{prefix}{want}")), "{text}");
        }
        for (text, want) in [("/a", true), ("a", false), ("", false), ("/?#%zz", true)] {
            let arguments = [Value::borrowed_string(text)];
            let got = implementation("isURL", "is_url_string")(&arguments);
            assert_outcome(&arguments, &got, &Ok(Value::Bool(want)));
        }
    }
}
