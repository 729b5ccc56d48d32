//! Measures our engine, called as the webhook authorizer calls it.

use std::collections::BTreeMap;
use std::error::Error;
use std::hint::black_box;

use authz_webhook::{
    MatchCondition, MatchConditions, MatchResult, ResourceAttributes, ReviewSpec, UserExtra,
};
use config::authorization_config::{self, LoadOptions, ServerRole, assume_regular_file};
use document::Source;
use serde_json::Value;

use crate::cases::{self, Case};
use crate::measure::{Effort, Measured, measure};

/// Measures one evaluation of all conditions. The specification is made beforehand, like the values of the
/// peers.
pub fn run(case: &Case, effort: Effort) -> Result<Measured, Box<dyn Error>> {
    let compiled = case
        .expressions
        .iter()
        .map(|expression| MatchCondition::compile(expression))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| format!("{error:?}"))?;
    let conditions = MatchConditions::V1(compiled);
    let request = cases::request();
    let groups = strings(&request["groups"]);
    let extra: BTreeMap<String, Vec<String>> = request["extra"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, values)| (key.clone(), strings(values)))
        .collect();
    let view = view(&request, &groups, &extra);
    let evaluate = || conditions.evaluate(black_box(&view));
    match evaluate() {
        MatchResult::Matched => Ok(measure(effort, evaluate)),
        other => Err(format!("our engine says {other:?}").into()),
    }
}

fn view<'a>(
    request: &'a Value,
    groups: &'a [String],
    extra: &'a BTreeMap<String, Vec<String>>,
) -> ReviewSpec<'a> {
    let text = |value: &'a Value| value.as_str().unwrap_or_default();
    let resource = &request["resourceAttributes"];
    ReviewSpec {
        resource: Some(ResourceAttributes {
            namespace: text(&resource["namespace"]),
            verb: text(&resource["verb"]),
            version: text(&resource["version"]),
            resource: text(&resource["resource"]),
            name: text(&resource["name"]),
            ..ResourceAttributes::default()
        }),
        non_resource_attributes: None,
        user: text(&request["user"]),
        groups,
        extra: UserExtra(Some(extra)),
        uid: text(&request["uid"]),
    }
}

fn strings(list: &Value) -> Vec<String> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Measures loading, checking and compiling a configuration with 64 conditions.
pub fn load_configuration(effort: Effort) -> Result<Measured, Box<dyn Error>> {
    let text = cases::largest_configuration();
    let options = LoadOptions {
        role: ServerRole::Main,
        stat_file: &assume_regular_file,
        ..LoadOptions::default()
    };
    let source = Source { name: "bench.yaml", file_bytes: text.as_bytes() };
    if let Err(error) =
        authorization_config::load_authorization_configuration(&source, &options).configuration
    {
        return Err(format!("the configuration does not load: {error}").into());
    }
    Ok(measure(effort, || {
        authorization_config::load_authorization_configuration(&source, &options)
    }))
}
