//! The query parameters of a request.

use std::num::{IntErrorKind, ParseIntError};

use api_object::{DeleteOptions, GroupKind, Status};
use field_errors::{FieldErrors, FieldPath};

/// The parameters of a request, decoded, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    parameters: Vec<(String, String)>,
}

/// How a write treats fields that its kind does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl FieldValidation {
    /// Ignores the unknown and repeated fields of an object, warns about them, or refuses the object.
    ///
    /// # Errors
    /// 400 if the validation is strict and there are findings.
    pub(crate) fn apply_field_validation(
        self,
        expected: &codec::ExpectedKind<'_>,
        findings: &[codec::StrictFinding],
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        match self {
            Self::Ignore => Ok(()),
            Self::Warn => {
                warnings.extend(findings.iter().map(ToString::to_string));
                Ok(())
            }
            Self::Strict => {
                codec::check_no_strict_findings(expected.kind, expected.version, findings)
                    .map_err(crate::error_status::IntoStatus::into_status)
            }
        }
    }
}

/// The options of a create, an update or a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct WriteOptions {
    pub(crate) is_dry_run: bool,
    pub(crate) field_validation: FieldValidation,
}

/// The revision of a list that the client asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestedRevision {
    Newest,
    /// Any revision, even an old one.
    Any,
    NotOlderThan(u64),
    Exactly(u64),
}

/// The options of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListOptions {
    pub(crate) requested_revision: RequestedRevision,
    /// The page size; 0 for all objects.
    pub(crate) page_limit: usize,
    pub(crate) continue_token: String,
}

/// The options of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WatchOptions {
    pub(crate) start: WatchStart,
    pub(crate) allows_bookmarks: bool,
    /// The duration of the watch; 0 if the server chooses it. A watch with a negative duration ends at once.
    pub(crate) watch_timeout_seconds: i64,
}

/// The first events of a watch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchStart {
    /// All objects that exist, at a revision that is not older than this.
    Initial {
        not_older_than: u64,
        /// The client set `sendInitialEvents`.
        is_requested: bool,
    },
    /// The changes after a revision; 0 for the changes from now on.
    After(u64),
}

impl Query {
    pub(crate) fn parse(target: &str) -> Self {
        let raw = target.split_once('?').map_or("", |(_, query)| query);
        let parameters = go_compat::parse_query(raw).into_iter();
        Self {
            parameters: parameters
                .map(|(key, value)| (key.into_owned(), value.into_owned()))
                .collect(),
        }
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// All values of a parameter.
    pub(crate) fn all_parameter_values<'q>(&'q self, name: &str) -> impl Iterator<Item = &'q str> {
        self.parameters.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The text of a parameter; empty if it is absent.
    pub(crate) fn parameter_or_empty(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }

    /// Whether a boolean parameter is set. Present means true, unless its value is `0` or `false`.
    pub(crate) fn is_parameter_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    fn parse_optional_flag(&self, name: &str) -> Option<bool> {
        self.get(name).map(|_| self.is_parameter_true(name))
    }

    fn parse_integer(&self, name: &str) -> Result<Option<i64>, Status> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|error: ParseIntError| {
            let why = match error.kind() {
                IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            let quoted = go_compat::quote(text);
            Status::bad_request(format!("strconv.ParseInt: parsing {quoted}: {why}"))
        })
    }

    /// The options of a create, an update or a patch.
    pub(crate) fn parse_write_options(&self, kind: &str) -> Result<WriteOptions, Status> {
        let mut errors = FieldErrors::new();
        if kind == "PatchOptions" && self.get("force").is_some() {
            let detail = "may not be specified for non-apply patch";
            errors.push(FieldPath::root("force").forbidden(detail));
        }
        validate_field_manager(self.parameter_or_empty("fieldManager"), &mut errors);
        let dry_run: Vec<&str> = self.all_parameter_values("dryRun").collect();
        let is_dry_run = api_object::parse_dry_run(&dry_run, &mut errors);
        let field_validation = match self.parameter_or_empty("fieldValidation") {
            "Ignore" => FieldValidation::Ignore,
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            other => {
                let known = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldPath::root("fieldValidation").not_supported(other, &known));
                FieldValidation::default()
            }
        };
        match errors.is_empty() {
            true => Ok(WriteOptions { is_dry_run, field_validation }),
            false => Err(Status::invalid_object(&GroupKind::new("meta.k8s.io", kind), "", &errors)),
        }
    }

    /// The options of a deletion whose body is empty.
    pub(crate) fn parse_delete_options(&self) -> Result<DeleteOptions, Status> {
        let precondition =
            |name: &str| self.get(name).filter(|own| !own.is_empty()).map(str::to_owned);
        let dry_run: Vec<&str> = self.all_parameter_values("dryRun").collect();
        DeleteOptions {
            grace_period_seconds: self.parse_integer("gracePeriodSeconds")?,
            orphan_dependents: self.parse_optional_flag("orphanDependents"),
            uid: precondition("uid"),
            resource_version: precondition("resourceVersion"),
            ignores_read_error: self.is_parameter_true(api_object::IGNORE_READ_ERROR),
            ..DeleteOptions::default()
        }
        .with_propagation_policy_and_dry_run(self.get("propagationPolicy"), &dry_run)
    }

    /// The options of a list.
    pub(crate) fn parse_list_options(&self) -> Result<ListOptions, Status> {
        // Only watches use `timeoutSeconds`, but a list refuses a malformed value as well.
        self.parse_integer("timeoutSeconds")?;
        let limit =
            usize::try_from(self.parse_integer("limit")?.unwrap_or_default()).unwrap_or_default();
        self.check_selector_syntax()?;
        let continue_token = self.parameter_or_empty("continue").to_owned();
        let version = self.parameter_or_empty("resourceVersion");
        let mut errors = FieldErrors::new();
        let is_exact = self.check_list_options(&mut errors);
        if !errors.is_empty() {
            return Err(invalid_list_options_status(&errors));
        }
        if !continue_token.is_empty() && !matches!(version, "" | "0") {
            return Err(Status::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let state = match (version, is_exact) {
            ("", _) => RequestedRevision::Newest,
            ("0", _) => RequestedRevision::Any,
            (text, is_exact) => {
                let number = parse_resource_version(text)?;
                match is_exact {
                    Some(true) => RequestedRevision::Exactly(number),
                    None if limit > 0 => RequestedRevision::Exactly(number),
                    _ => RequestedRevision::NotOlderThan(number),
                }
            }
        };
        Ok(ListOptions { requested_revision: state, page_limit: limit, continue_token })
    }

    /// The options of the list of a deletecollection. A resourceVersion is that of the list, unless `resourceVersionMatch`
    /// allows a newer one, so that objects stay that are newer than the list that the client has read.
    pub(crate) fn delete_collection_list_options(&self) -> Result<ListOptions, Status> {
        let mut options = self.parse_list_options()?;
        if let RequestedRevision::NotOlderThan(revision) = options.requested_revision
            && self.parameter_or_empty("resourceVersionMatch").is_empty()
        {
            options.requested_revision = RequestedRevision::Exactly(revision);
        }
        Ok(options)
    }

    /// Kubernetes reports a selector that does not parse before options that contradict each other, and before a
    /// resourceVersion that is no number.
    fn check_selector_syntax(&self) -> Result<(), Status> {
        let bad = |error: authz::SelectorError| Status::bad_request(error.to_string());
        authz::parse_label_selector(self.parameter_or_empty("labelSelector")).map_err(bad)?;
        authz::parse_field_selector(self.parameter_or_empty("fieldSelector")).map_err(bad)?;
        Ok(())
    }

    /// Checks the options that contradict each other in a list. Returns whether `resourceVersionMatch` asks for the exact
    /// revision; `None` if it is absent.
    fn check_list_options(&self, errors: &mut FieldErrors) -> Option<bool> {
        let is_exact = self.check_resource_version_match(errors);
        if self.get("sendInitialEvents").is_some() {
            let detail = "sendInitialEvents is forbidden for list";
            errors.push(FieldPath::root("sendInitialEvents").forbidden(detail));
        }
        is_exact
    }

    fn check_resource_version_match(&self, errors: &mut FieldErrors) -> Option<bool> {
        let version = self.parameter_or_empty("resourceVersion");
        let token = self.parameter_or_empty("continue");
        let wanted = self.get("resourceVersionMatch").filter(|own| !own.is_empty())?;
        let path = FieldPath::root("resourceVersionMatch");
        if version.is_empty() {
            errors.push(
                path.forbidden(
                    "resourceVersionMatch is forbidden unless resourceVersion is provided",
                ),
            );
        }
        if !token.is_empty() {
            errors.push(
                path.forbidden("resourceVersionMatch is forbidden when continue is provided"),
            );
        }
        match wanted {
            "Exact" if version == "0" => errors.push(path.forbidden(
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            )),
            "Exact" | "NotOlderThan" => {}
            other => errors.push(path.not_supported(other, &["Exact", "NotOlderThan", ""])),
        }
        Some(wanted == "Exact")
    }

    /// The options of a watch.
    pub(crate) fn parse_watch_options(&self) -> Result<WatchOptions, Status> {
        let timeout = self.parse_integer("timeoutSeconds")?.unwrap_or_default();
        // A watch has no pages, but the limit has to be a number.
        self.parse_integer("limit")?;
        self.check_selector_syntax()?;
        let mut errors = FieldErrors::new();
        match self.is_parameter_true("watch") {
            true => self.check_watch_options(&mut errors),
            // The path says that this is a watch, and its options are those of a list.
            false => {
                self.check_list_options(&mut errors);
            }
        }
        if !errors.is_empty() {
            return Err(invalid_list_options_status(&errors));
        }
        let version = self.parameter_or_empty("resourceVersion");
        let initial = self.parse_optional_flag("sendInitialEvents");
        let number = match version {
            "" => 0,
            text => parse_resource_version(text)?,
        };
        let start = match initial {
            Some(true) => WatchStart::Initial { not_older_than: number, is_requested: true },
            None if number == 0 => WatchStart::Initial { not_older_than: 0, is_requested: false },
            _ => WatchStart::After(number),
        };
        Ok(WatchOptions {
            start,
            allows_bookmarks: self.is_parameter_true("allowWatchBookmarks"),
            watch_timeout_seconds: timeout,
        })
    }

    /// Checks the options that contradict each other in a watch.
    fn check_watch_options(&self, errors: &mut FieldErrors) {
        let mut wanted = self.parameter_or_empty("resourceVersionMatch");
        let mut is_initial_set = self.get("sendInitialEvents").is_some();
        // A watch that begins with the objects that exist has these options by default.
        if !is_initial_set
            && wanted.is_empty()
            && matches!(self.parameter_or_empty("resourceVersion"), "" | "0")
        {
            (wanted, is_initial_set) = ("NotOlderThan", true);
        }
        let path = FieldPath::root("resourceVersionMatch");
        if is_initial_set && wanted != "NotOlderThan" {
            errors.push(path.forbidden(
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        if wanted.is_empty() {
            return;
        }
        if !is_initial_set {
            errors.push(path.forbidden(
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        if wanted != "NotOlderThan" {
            errors.push(path.not_supported(wanted, &["NotOlderThan"]));
        }
        if !self.parameter_or_empty("continue").is_empty() {
            errors.push(
                path.forbidden("resourceVersionMatch is forbidden when continue is provided"),
            );
        }
    }
}

/// Parses a resourceVersion as a number.
pub(crate) fn parse_resource_version(text: &str) -> Result<u64, Status> {
    text.parse().map_err(|_| {
        let quoted = go_compat::quote(text);
        Status::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: {quoted}: strconv.ParseUint: \
             parsing {quoted}: invalid syntax"
        ))
    })
}

fn invalid_list_options_status(errors: &FieldErrors) -> Status {
    Status::invalid_object(&GroupKind::new("meta.k8s.io", "ListOptions"), "", errors)
}

/// The limit on the bytes of `fieldManager`.
const MANAGER_BYTES_MAX: usize = 128;

fn validate_field_manager(manager: &str, errors: &mut FieldErrors) {
    let path = FieldPath::root("fieldManager");
    // A text that is too long has one error, however many characters of it cannot be printed.
    if manager.len() > MANAGER_BYTES_MAX {
        errors.push(path.too_long(MANAGER_BYTES_MAX));
        return;
    }
    let is_printable = |c: char| !c.is_control() && (!c.is_whitespace() || c == ' ');
    for (position, c) in manager.char_indices().filter(|(_, c)| !is_printable(*c)) {
        let detail = format!("invalid character U+{:04X} (at position {position})", u32::from(c));
        errors.push(path.invalid(manager, &detail));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_about_the_state_of_a_list() {
        for (query, want) in [
            ("", RequestedRevision::Newest),
            ("resourceVersion=0", RequestedRevision::Any),
            ("resourceVersion=5", RequestedRevision::NotOlderThan(5)),
            ("resourceVersion=5&limit=1", RequestedRevision::Exactly(5)),
            (
                "resourceVersion=5&resourceVersionMatch=NotOlderThan&limit=1",
                RequestedRevision::NotOlderThan(5),
            ),
            ("resourceVersion=5&resourceVersionMatch=Exact", RequestedRevision::Exactly(5)),
        ] {
            let options = Query::parse(&format!("/x?{query}")).parse_list_options().unwrap();
            assert_eq!(options.requested_revision, want, "{query}");
        }
        for (query, want) in [
            ("", RequestedRevision::Newest),
            ("resourceVersion=0", RequestedRevision::Any),
            ("resourceVersion=5", RequestedRevision::Exactly(5)),
            (
                "resourceVersion=5&resourceVersionMatch=NotOlderThan",
                RequestedRevision::NotOlderThan(5),
            ),
        ] {
            let query = Query::parse(&format!("/x?{query}"));
            let options = query.delete_collection_list_options().unwrap();
            assert_eq!(options.requested_revision, want, "{query:?}");
        }
    }

    #[test]
    fn contradictions_are_refused() {
        for (query, code, text) in [
            ("resourceVersionMatch=Exact", 422, "is forbidden unless resourceVersion is provided"),
            (
                "resourceVersion=0&resourceVersionMatch=Exact",
                422,
                "is forbidden for resourceVersion \"0\"",
            ),
            (
                "resourceVersion=1&resourceVersionMatch=Bogus",
                422,
                "supported values: \"Exact\", \"NotOlderThan\", \"\"",
            ),
            (
                "continue=x&resourceVersion=1&resourceVersionMatch=Exact",
                422,
                "is forbidden when continue",
            ),
            ("sendInitialEvents=1", 422, "sendInitialEvents is forbidden for list"),
            ("continue=x&resourceVersion=5", 400, "specifying resource version is not allowed"),
            ("resourceVersion=abc", 400, "invalid resource version"),
            ("limit=x", 400, "parsing \"x\": invalid syntax"),
            ("limit=", 400, "parsing \"\": invalid syntax"),
            ("limit=99999999999999999999", 400, "value out of range"),
            ("timeoutSeconds=x", 400, "parsing \"x\": invalid syntax"),
        ] {
            let status = Query::parse(&format!("/x?{query}")).parse_list_options().unwrap_err();
            assert_eq!(status.code, code, "{query}");
            assert!(status.message.contains(text), "{query} {}", status.message);
        }
        for query in [
            "sendInitialEvents=true",
            "resourceVersionMatch=NotOlderThan&resourceVersion=1",
            "continue=x",
        ] {
            let query = Query::parse(&format!("/x?watch=1&{query}"));
            assert_eq!(query.parse_watch_options().unwrap_err().code, 422, "{query:?}");
        }
        // The options of a watch that only its path names are those of a list.
        let options = |query: &str| Query::parse(&format!("/x?{query}")).parse_watch_options();
        assert_eq!(options("sendInitialEvents=1").unwrap_err().code, 422);
        let start =
            options("resourceVersionMatch=NotOlderThan&resourceVersion=1").map(|own| own.start);
        assert_eq!(start, Ok(WatchStart::After(1)));
    }

    #[test]
    fn a_watch_begins_where_it_says() {
        for (query, want) in [
            ("", WatchStart::Initial { not_older_than: 0, is_requested: false }),
            ("resourceVersion=0", WatchStart::Initial { not_older_than: 0, is_requested: false }),
            ("resourceVersion=7", WatchStart::After(7)),
            (
                "resourceVersion=7&sendInitialEvents=1&resourceVersionMatch=NotOlderThan",
                WatchStart::Initial { not_older_than: 7, is_requested: true },
            ),
            ("sendInitialEvents=false&resourceVersionMatch=NotOlderThan", WatchStart::After(0)),
        ] {
            let query = Query::parse(&format!("/x?watch=1&{query}"));
            assert_eq!(query.parse_watch_options().unwrap().start, want, "{query:?}");
        }
    }

    #[test]
    fn write_options_have_closed_sets() {
        for (query, kind, text) in [
            (
                "dryRun=foo",
                "CreateOptions",
                "dryRun: Unsupported value: [\"foo\"]: supported values: \"All\"",
            ),
            (
                "fieldValidation=Bogus",
                "CreateOptions",
                "supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"",
            ),
            (
                "force=true",
                "PatchOptions",
                "force: Forbidden: may not be specified for non-apply patch",
            ),
        ] {
            let status =
                Query::parse(&format!("/x?{query}")).parse_write_options(kind).unwrap_err();
            assert_eq!(status.code, 422);
            assert!(status.message.contains(text), "{}", status.message);
            let details = status.details.unwrap();
            assert_eq!((details.group.as_str(), details.kind.as_str()), ("meta.k8s.io", kind));
        }
        let options = Query::parse("/x?dryRun=All&fieldValidation=Strict")
            .parse_write_options("CreateOptions");
        let want = WriteOptions { is_dry_run: true, field_validation: FieldValidation::Strict };
        assert_eq!(options, Ok(want));
    }
}
