use proptest::prelude::*;

use super::*;

/// All parts of a URL, for comparison with Go's.
fn describe(url: &Url) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let parts = [
        ("scheme", url.scheme().to_owned()),
        ("opaque", url.opaque().to_owned()),
        ("user", url.user().map(UserInfo::to_string).unwrap_or_default()),
        ("host", text(url.host())),
        ("path", text(url.path())),
        ("raw_path", url.raw_path().unwrap_or_default().to_owned()),
        ("query", url.raw_query().to_owned()),
        ("fragment", text(url.fragment())),
    ];
    let said: Vec<_> =
        parts.iter().filter(|(_, v)| !v.is_empty()).map(|(k, v)| format!("{k}={v}")).collect();
    said.join(" ")
}

#[test]
fn parses_like_go() {
    for (text, want) in [
        ("", ""),
        ("*", "path=*"),
        ("http://www.example.com", "scheme=http host=www.example.com"),
        ("HTTP://h/a?q=1#f", "scheme=http host=h path=/a query=q=1 fragment=f"),
        ("http://h/a%20b", "scheme=http host=h path=/a b"),
        ("http://h/a%2Fb", "scheme=http host=h path=/a/b raw_path=/a%2Fb"),
        ("http://h/a b", "scheme=http host=h path=/a b raw_path=/a b"),
        ("//h/a", "host=h path=/a"),
        ("///h/a", "path=///h/a"),
        ("mailto:joe@example.com", "scheme=mailto opaque=joe@example.com"),
        ("mailto:/a", "scheme=mailto path=/a"),
        ("http:a?b", "scheme=http opaque=a query=b"),
        ("a/b:c", "path=a/b:c"),
        ("http://j@ne:p@h", "scheme=http user=j%40ne:p host=h"),
        ("http://u:p%3ax@h:80/", "scheme=http user=u:p%3Ax host=h:80 path=/"),
        ("http://u:@h", "scheme=http user=u: host=h"),
        ("http://[fe80::1%25eth0]:80/", "scheme=http host=[fe80::1%eth0]:80 path=/"),
        ("http://[::1]", "scheme=http host=[::1]"),
        ("http://h:", "scheme=http host=h:"),
        ("http://%e6%97%a5/", "scheme=http host=日 path=/"),
        ("pg://a:1,b:2/", "scheme=pg host=a:1,b:2 path=/"),
        ("x#%41", "path=x fragment=A"),
    ] {
        let url = Url::parse(text).unwrap();
        assert_eq!(describe(&url), want, "{text}");
    }
}

#[test]
fn parse_errors_match_go() {
    for (text, want) in [
        ("a\tb", r#"parse "a\tb": net/url: invalid control character in URL"#),
        (":x", r#"parse ":x": missing protocol scheme"#),
        ("1a:x", r#"parse "1a:x": first path segment in URL cannot contain colon"#),
        ("a_b:c/d", r#"parse "a_b:c/d": first path segment in URL cannot contain colon"#),
        ("/%", r#"parse "/%": invalid URL escape "%""#),
        ("/%4", r#"parse "/%4": invalid URL escape "%4""#),
        ("/%zzz", r#"parse "/%zzz": invalid URL escape "%zz""#),
        ("/%日#f", "parse \"/%日\": invalid URL escape \"%\\xe6\\x97\""),
        ("x#%zz", r##"parse "x#%zz": invalid URL escape "%zz""##),
        ("http://h h/", r#"parse "http://h h/": invalid character " " in host name"#),
        ("http://h%41/", r#"parse "http://h%41/": invalid URL escape "%41""#),
        ("http://h:80x", r#"parse "http://h:80x": invalid port ":80x" after host"#),
        ("http://a:1:2/", r#"parse "http://a:1:2/": invalid port ":1:2" after host"#),
        ("http://a[::1]/", r#"parse "http://a[::1]/": invalid IP-literal"#),
        ("http://[::1/", r#"parse "http://[::1/": missing ']' in host"#),
        ("http://[::1]x/", r#"parse "http://[::1]x/": invalid port "x" after host"#),
        ("http://[1.2.3.4]/", r#"parse "http://[1.2.3.4]/": invalid IP-literal"#),
        ("http://[a]/", r#"parse "http://[a]/": invalid host: ParseAddr("a"): unable to parse IP"#),
        ("http://[::1%25%41]/", ""),
        ("http://[::1%25%0a]/", r#"parse "http://[::1%25%0a]/": invalid URL escape "%0a""#),
        ("http://us er@h/", r#"parse "http://us er@h/": net/url: invalid userinfo"#),
        ("http://u%zz@h/", r#"parse "http://u%zz@h/": invalid URL escape "%zz""#),
    ] {
        let message = Url::parse(text).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(message, want);
    }
}

#[test]
fn request_targets_are_absolute() {
    for (method, target, want) in [
        ("GET", "/a?b", "path=/a query=b"),
        ("GET", "//h/a", "path=//h/a"),
        ("GET", "///", "path=///"),
        ("GET", "/a#b", "path=/a#b raw_path=/a#b"),
        ("GET", "*", "path=*"),
        ("GET", "http://h/a", "scheme=http host=h path=/a"),
        ("GET", "evil.test:443", "scheme=evil.test opaque=443"),
        ("CONNECT", "evil.test:443", "host=evil.test:443"),
        ("CONNECT", "/a", "path=/a"),
        ("GET", "a", r#"error parse "a": invalid URI for request"#),
        ("GET", "?x", r#"error parse "?x": invalid URI for request"#),
        ("GET", "", r#"error parse "": empty url"#),
        ("GET", "/%2", r#"error parse "/%2": invalid URL escape "%2""#),
        ("CONNECT", "a b:1", r#"error parse "http://a b:1": invalid character " " in host name"#),
    ] {
        let got = match Url::parse_request_target(method, target) {
            Ok(url) => describe(&url),
            Err(error) => format!("error {error}"),
        };
        assert_eq!(got, want, "{method} {target}");
    }
}

#[test]
fn accessors_split_hosts() {
    for (text, hostname, port) in [
        ("http://h:80/", "h", "80"),
        ("http://h/", "h", ""),
        ("http://h:/", "h", ""),
        ("http://[::1]/", "::1", ""),
        ("http://[fe80::1%25e]:8/", "fe80::1%e", "8"),
        ("/a", "", ""),
    ] {
        let url = Url::parse(text).unwrap();
        assert_eq!(url.hostname(), hostname.as_bytes(), "{text}");
        assert_eq!(url.port(), port, "{text}");
    }
}

#[test]
fn formats_like_go() {
    for (text, want) in [
        ("HTTP://u:p@h:80/a%2fb?q#f", "http://u:p@h:80/a%2fb?q#f"),
        ("http://h/a b\"", "http://h/a%20b%22"),
        ("http://h/[a]'", "http://h/[a]'"),
        ("http://日/日", "http://%E6%97%A5/%E6%97%A5"),
        ("/a?", "/a?"),
        ("/a??", "/a??"),
        ("*", "*"),
        ("%2A", "*"),
        ("%2a", "%2a"),
        ("mailto:a?b#c d", "mailto:a?b#c%20d"),
        ("http:/a", "http:/a"),
        ("http:///a", "http:///a"),
        ("http://", "http:"),
        ("./a:b", "./a:b"),
        ("a%3Ab", "a%3Ab"),
        ("//h", "//h"),
        ("http://h/#", "http://h/"),
    ] {
        assert_eq!(Url::parse(text).unwrap().to_string(), want);
    }
    assert_eq!(Url::parse_request_uri("//api/v1/watch").unwrap().to_string(), "//api/v1/watch");
}

#[test]
fn queries_drop_malformed_pairs() {
    for (raw, want) in [
        ("", ""),
        ("&&a", "a="),
        ("a=1&a=2&b", "a=1 a=2 b="),
        ("a=1;b=2&c=3", "c=3"),
        ("%zz=1&a=%zz&b=%41+%2B", "b=A +"),
        ("a%3=1&=x", "=x"),
        ("a=b=c", "a=b=c"),
        ("a=%ff%fe日", "a=\u{fffd}\u{fffd}日"),
    ] {
        let pairs: Vec<_> = parse_query(raw).iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(pairs.join(" "), want, "{raw}");
    }
}

#[test]
fn the_number_of_query_pairs_is_limited() {
    let at_limit = vec!["a"; QUERY_PAIRS_MAX].join("&");
    assert_eq!(parse_query(&at_limit).len(), QUERY_PAIRS_MAX);
    assert!(parse_query(&(at_limit + "&a")).is_empty());
}

const PARTS: [UrlPart; 7] = [
    UrlPart::Path,
    UrlPart::PathSegment,
    UrlPart::Host,
    UrlPart::Zone,
    UrlPart::UserInfo,
    UrlPart::QueryComponent,
    UrlPart::Fragment,
];

proptest! {
    #[test]
    fn no_text_panics_and_text_forms_are_stable(text in "([a-z]{0,3}:)?(//)?[ -~é%\\[\\]@:/?#]{0,24}") {
        if let Ok(url) = Url::parse(&text) {
            let written = url.to_string();
            let again = Url::parse(&written).expect("a written URL reads back");
            prop_assert_eq!(again.to_string(), written);
            let _ = (url.hostname(), url.port(), url.query());
        }
        let _ = Url::parse_request_target("CONNECT", &text);
    }

    #[test]
    fn escaped_texts_unescape_to_the_original(bytes: Vec<u8>) {
        for part in PARTS.into_iter().filter(|part| !matches!(part, UrlPart::Host | UrlPart::Zone)) {
            let escaped = url_escape(&bytes, part);
            let decoded = url_unescape(&escaped, part).unwrap();
            prop_assert_eq!(decoded.as_ref(), &bytes[..]);
        }
    }

    #[test]
    fn no_escape_panics(text in "[%0-9a-fz+日 /:]{0,16}") {
        for part in PARTS {
            let _ = url_unescape(&text, part);
        }
    }
}
