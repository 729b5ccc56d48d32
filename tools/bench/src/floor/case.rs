//! The requests that are sent to every server.

use std::sync::Arc;

use crate::floor::column::Column;
use crate::numbers::thousands;
use crate::server::case::{request_as, review_as};
use crate::server::load::Requests;
use crate::server::populate::{LISTED_NAMESPACE, N_LISTED};

/// The namespace of many config maps.
pub(crate) const LARGE_NAMESPACE: &str = "large";
/// The number of different reviews that take turns.
const N_REVIEWS: u64 = 1_000;

/// One kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Case {
    /// A SubjectAccessReview that a binding of the default policy allows.
    Review,
    /// A GET of a namespace by a user of the token file.
    Get,
    /// The same by a service account, whose token is a signed one.
    GetAsServiceAccount,
    List,
    ListLarge,
    /// The delivery of an event to one watcher.
    Watch,
}

impl Case {
    /// All cases in the order of the table.
    pub(crate) const ALL: &[Self] = &[
        Self::Review,
        Self::Get,
        Self::GetAsServiceAccount,
        Self::List,
        Self::ListLarge,
        Self::Watch,
    ];

    /// The name of the case in the table.
    pub(crate) fn name(self, n_large: u64) -> String {
        match self {
            Self::Review => "SubjectAccessReview".to_owned(),
            Self::Get => "GET a Namespace".to_owned(),
            Self::GetAsServiceAccount => "GET a Namespace, service account".to_owned(),
            Self::List => format!("LIST {N_LISTED} ConfigMaps"),
            Self::ListLarge => format!("LIST {} ConfigMaps", thousands(n_large)),
            Self::Watch => "WATCH, one delivery".to_owned(),
        }
    }

    /// Whether the answers are so large that few connections are enough.
    pub(crate) fn is_list(self) -> bool {
        matches!(self, Self::List | Self::ListLarge)
    }

    /// The method and the path of the request.
    pub(crate) fn target(self) -> (&'static str, String) {
        match self {
            Self::Review => ("POST", crate::server::case::REVIEWS.to_owned()),
            Self::Get | Self::GetAsServiceAccount => {
                ("GET", format!("/api/v1/namespaces/{LISTED_NAMESPACE}"))
            }
            Self::List => ("GET", format!("/api/v1/namespaces/{LISTED_NAMESPACE}/configmaps")),
            Self::ListLarge | Self::Watch => {
                ("GET", format!("/api/v1/namespaces/{LARGE_NAMESPACE}/configmaps"))
            }
        }
    }

    /// The requests to one server.
    pub(crate) fn requests(self, column: &Column) -> Requests {
        let token = match self {
            Self::GetAsServiceAccount => &column.service_account_token,
            _ => &column.token,
        };
        let (method, path) = self.target();
        let repeated = match self {
            Self::Review => (0..N_REVIEWS)
                .map(|number| review_as(token, "system:kube-scheduler", "pods", "list", number))
                .collect(),
            _ => vec![request_as(token, method, &path, None)],
        };
        Requests {
            repeated: Arc::new(repeated),
            numbered: |_| Vec::new(),
            is_right: match self {
                Self::Review => |answer| answer.code == 201 && answer.contains(b"\"allowed\":true"),
                _ => |answer| answer.code == 200 && answer.ends_with(b"}"),
            },
        }
    }
}
