//! The two kinds of `flowcontrol.apiserver.k8s.io/v1`: defaults, validation, decoding and encoding.

mod auto_update;
mod bad_value_format;
mod decode_flow_control;
mod defaults;
mod encode_flow_control;
#[cfg(test)]
mod tests;
mod validate_flow_schema;
mod validate_priority_level;
mod wire;

pub use auto_update::{
    MandatoryOrSuggested, is_auto_updated, set_auto_update_annotation,
    update_default_flow_control_object,
};
pub use decode_flow_control::{FlowControlDecodeError, decode_flow_schema, decode_priority_level};
pub use defaults::set_flow_control_defaults;
pub use encode_flow_control::{encode_flow_schema, encode_priority_level};
pub use validate_flow_schema::{validate_flow_schema, validate_flow_schema_status};
pub use validate_priority_level::{validate_priority_level, validate_priority_level_status};

/// The API group of the two kinds.
pub const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// The version of the two kinds.
pub const API_VERSION: &str = "flowcontrol.apiserver.k8s.io/v1";

/// While this annotation of a default object is `true`, the server keeps its spec up to date.
pub const AUTO_UPDATE_ANNOTATION: &str = "apf.kubernetes.io/autoupdate-spec";

/// The condition of a flow schema whose priority level does not exist.
pub const DANGLING: &str = "Dangling";

/// The two kinds of the group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Assigns requests to a priority level.
    FlowSchema,
    /// The kind of objects that describe a priority level.
    PriorityLevelConfiguration,
}

impl Kind {
    /// The name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FlowSchema => "FlowSchema",
            Self::PriorityLevelConfiguration => "PriorityLevelConfiguration",
        }
    }

    /// The plural name in paths.
    pub const fn resource(self) -> &'static str {
        match self {
            Self::FlowSchema => "flowschemas",
            Self::PriorityLevelConfiguration => "prioritylevelconfigurations",
        }
    }
}
