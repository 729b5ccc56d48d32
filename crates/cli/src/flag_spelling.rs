//! Replaces underscores in the names of flags, which early versions of kube-apiserver accepted.

use std::ffi::OsString;

/// Replaces `_` with `-` in the names of flags. Returns the arguments and a warning for each replaced
/// name. Values and arguments after `--` stay unchanged.
pub(crate) fn replace_underscores_in_flags(
    args: impl Iterator<Item = OsString>,
) -> (Vec<OsString>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut is_after_separator = false;
    let args = args.map(|arg| {
        is_after_separator = is_after_separator || arg == "--";
        let Some(text) = arg.to_str().filter(|text| !is_after_separator && text.starts_with("--"))
        else {
            return arg;
        };
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        if !name.contains('_') {
            return arg;
        }
        let dashed = name.replace('_', "-");
        let warning = format!("{name} is an old spelling; use {dashed}");
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
        match value {
            Some(value) => format!("{dashed}={value}").into(),
            None => dashed.into(),
        }
    });
    (args.collect(), warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_replaced(args: &[&str], want: &[&str], n_warnings: usize) {
        let (args, warnings) = replace_underscores_in_flags(args.iter().map(OsString::from));
        assert_eq!(args, want);
        assert_eq!(warnings.len(), n_warnings, "{warnings:?}");
    }

    #[test]
    fn only_names_of_flags_change() {
        assert_replaced(&["--authorization_mode=A_B"], &["--authorization-mode=A_B"], 1);
        assert_replaced(&["--authorization_mode", "a_b"], &["--authorization-mode", "a_b"], 1);
        assert_replaced(&["--a_b", "--a_b=1", "--c_d"], &["--a-b", "--a-b=1", "--c-d"], 2);
        assert_replaced(
            &["-n", "a_b", "--x", "--", "--a_b"],
            &["-n", "a_b", "--x", "--", "--a_b"],
            0,
        );
        assert_replaced(&["-a_b", "--ok=_"], &["-a_b", "--ok=_"], 0);
    }
}
