//! SelfSubjectRulesReview: the rules of the caller in a namespace.

use authz::{Namespace, Rules, User};
use serde_json::{Map, Value, json};

use crate::prepare_review::ReviewRequest;
use crate::read_body::{ObjectFields, read_spec_fields};
use crate::review_error::ReviewError;
use crate::review_kind::ReviewKind;
use crate::review_response::ResponseWithoutStatus;

const KIND: ReviewKind = ReviewKind::SelfSubjectRulesReview;

/// A review that lists the rules of a user in a namespace.
#[derive(Debug)]
pub struct RulesReview {
    response_without_status: ResponseWithoutStatus,
    user: User,
    namespace: String,
}

impl RulesReview {
    /// The user that it is about.
    pub fn user(&self) -> &User {
        &self.user
    }

    /// The namespace whose rules are listed.
    pub fn namespace(&self) -> Namespace<'_> {
        Namespace::new(&self.namespace)
    }

    /// Builds the body of the response. Empty lists are included.
    pub fn into_response(self, rules: &Rules) -> Value {
        let resource_rules = rules.resource_rules.iter().map(|rule| {
            let mut shown = rule_json_with_verbs(&rule.verbs);
            add_non_empty_list(&mut shown, "apiGroups", &rule.api_groups);
            add_non_empty_list(&mut shown, "resources", &rule.resources);
            add_non_empty_list(&mut shown, "resourceNames", &rule.resource_names);
            Value::Object(shown)
        });
        let non_resource_rules = rules.non_resource_rules.iter().map(|rule| {
            let mut shown = rule_json_with_verbs(&rule.verbs);
            add_non_empty_list(&mut shown, "nonResourceURLs", &rule.non_resource_urls);
            Value::Object(shown)
        });
        let mut status = Map::new();
        status.insert("resourceRules".to_owned(), resource_rules.collect());
        status.insert("nonResourceRules".to_owned(), non_resource_rules.collect());
        status.insert("incomplete".to_owned(), rules.is_incomplete.into());
        if let Some(error) = &rules.error {
            status.insert("evaluationError".to_owned(), error.to_string().into());
        }
        self.response_without_status.with_status(status)
    }
}

fn rule_json_with_verbs(verbs: &[String]) -> Map<String, Value> {
    Map::from_iter([("verbs".to_owned(), verbs.into())])
}

fn add_non_empty_list(rule: &mut Map<String, Value>, name: &str, list: &[String]) {
    if !list.is_empty() {
        rule.insert(name.to_owned(), list.into());
    }
}

/// Reads the body. Kubernetes validates only the namespace, and does not echo the spec.
pub(crate) fn prepare_rules_review(
    body: &Value,
    request: &ReviewRequest<'_>,
) -> Result<RulesReview, ReviewError> {
    let fields = ObjectFields::from_body(body, KIND);
    let namespace =
        || match read_spec_fields(&fields, request.version, "SelfSubjectRulesReviewSpec")? {
            Some(spec) => spec.read_string("namespace"),
            None => Ok(""),
        };
    let namespace =
        namespace().map_err(|malformed| malformed.into_review_error(KIND, request.version))?;
    let user = request.user.ok_or(ReviewError::NoUser)?.clone();
    if namespace.is_empty() {
        return Err(ReviewError::NoNamespace);
    }
    let response = ResponseWithoutStatus::new(KIND, request, json!({}), Some(json!({})));
    Ok(RulesReview { response_without_status: response, user, namespace: namespace.to_owned() })
}
