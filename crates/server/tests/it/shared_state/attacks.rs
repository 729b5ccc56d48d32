//! How an attacker exhausts each thing that is shared.

use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use http::Method;
use https_server::Limits;
use serde_json::{Value, json};
use server::ServerOptions;
use tokio::task::JoinSet;

use super::scene::{Attack, MAPS, OWN, SECRETS, Scene, usual};
use crate::client::Client;

/// One row of the table.
pub(super) struct Row {
    /// The name of the shared state in `docs/security.md`.
    pub(super) name: &'static str,
    /// Changes the options, to make limits small.
    pub(super) change: fn(&mut ServerOptions, &Path),
    pub(super) attack: for<'a> fn(&'a Scene) -> Attacking<'a>,
    /// Status codes that the victim may get while the resource is exhausted.
    pub(super) when_full: &'static [u16],
}

/// How long an attacker waits for an answer, which is never looked at.
const ATTACK_PATIENCE: Duration = Duration::from_secs(10);

type Attacking<'a> = Pin<Box<dyn Future<Output = Attack> + Send + 'a>>;

impl Row {
    const fn new(name: &'static str, attack: for<'a> fn(&'a Scene) -> Attacking<'a>) -> Self {
        Self { name, change: usual, attack, when_full: &[] }
    }

    /// Whether the victim's answers are those of an idle server.
    #[track_caller]
    pub(super) fn compare(&self, round: &str, idle: &[(String, u16)], now: &[(String, u16)]) {
        for (idle, now) in idle.iter().zip(now) {
            let is_full = self.when_full.contains(&now.1);
            assert!(idle == now || is_full, "{}, {round}: {now:?}, idle {idle:?}", self.name);
        }
    }
}

pub(super) const ROWS: &[Row] = &[
    Row::new("calls in flight of an authorization webhook", |scene| {
        Box::pin(async {
            let path = |n: usize| match n % 2 {
                0 => format!("{SECRETS}/slow-{n}"),
                _ => format!("{SECRETS}?watch=1&fieldSelector=metadata.name%3Dslow-{n}"),
            };
            many(&scene.mallory, 1_100, move |n| (Method::GET, path(n), Value::Null)).await
        })
    }),
    Row::new("answers of authorization webhooks that are kept", |scene| {
        Box::pin(async {
            let path = |n: usize| format!("{SECRETS}/name-{n}");
            one_by_one(&scene.mallory, 3_000, |n| (Method::GET, path(n), Value::Null)).await
        })
    }),
    Row::new("connections to an authorization webhook", |scene| {
        Box::pin(async {
            let path = |n: usize| format!("{SECRETS}/broken-{n}?timeout={}ms", n % 20 + 1);
            one_by_one(&scene.mallory, 200, |n| (Method::GET, path(n), Value::Null)).await
        })
    }),
    Row::new("calls in flight of an admission webhook", |scene| {
        Box::pin(async {
            many(&scene.mallory, 150, |n| (Method::POST, MAPS.to_owned(), map("slow", n))).await
        })
    }),
    Row::new("connections to an admission webhook", |scene| {
        Box::pin(async {
            let path = |n: usize| format!("{MAPS}?dryRun=All&timeout={}ms", n % 20 + 1);
            one_by_one(&scene.mallory, 200, |n| (Method::POST, path(n), map("broken", n))).await
        })
    }),
    Row::new("users that impersonation remembers", |scene| {
        Box::pin(async {
            let mut session = scene.admin.session().await;
            for n in 0..5_500 {
                let user = format!("user-{n}");
                let headers = [("impersonate-user", user.as_str())];
                session.first_frame(Method::GET, "/version", &headers, "").await;
            }
            Attack::default()
        })
    }),
    Row {
        change: |options, folder| {
            usual(options, folder);
            options.request_limits.seats_max = 116;
        },
        when_full: &[429],
        ..Row::new("seats of a priority level", |scene| {
            Box::pin(async {
                // A read of a state that does not exist yet waits three seconds for it.
                let path = |n: usize| format!("{MAPS}?resourceVersion={}", 99_999_999 + n);
                many(&scene.mallory, 60, move |n| (Method::GET, path(n), Value::Null)).await
            })
        })
    },
    Row {
        change: |options, folder| {
            usual(options, folder);
            options.request_limits.total_body_bytes_max = 256 << 10;
            options.request_limits.body_bytes_per_user_max = 128 << 10;
        },
        ..Row::new(
            "bytes of request bodies, and of objects of writes that wait for webhooks",
            |scene| {
                Box::pin(async {
                    let mut attack = Attack::default();
                    for n_bytes in [100_000, 100_000, 20_000, 20_000, 20_000, 1, 1, 1] {
                        let stream = scene.mallory.announce_body(Method::POST, MAPS, n_bytes).await;
                        attack.requests.spawn(async move {
                            std::future::pending::<()>().await;
                            drop(stream);
                        });
                    }
                    // The test waits for a real process: the requests of the attack reach the server.
                    tokio::time::sleep(Duration::from_millis(300)).await;
                    attack
                })
            },
        )
    },
    Row {
        change: |options, folder| {
            usual(options, folder);
            options.request_limits.webhook_waits_max = 8;
            options.request_limits.webhook_waits_per_user_max = 4;
        },
        ..Row::new("requests that wait for webhooks", |scene| {
            Box::pin(async {
                many(&scene.mallory, 20, |n| (Method::POST, MAPS.to_owned(), map("slow", n))).await
            })
        })
    },
    Row {
        change: |options, folder| {
            usual(options, folder);
            options.connection_limits = Limits {
                connections_max: 100,
                unauthenticated_per_address_max: 60,
                connections_per_user_max: 50,
                handshakes_max: 50,
                ..Limits::default()
            };
        },
        ..Row::new("open connections", |scene| {
            Box::pin(async {
                let mut attack = Attack::default();
                for n in 0..300 {
                    let mut session = scene.mallory.session().await;
                    if n % 2 == 0 {
                        session.send(Method::GET, MAPS, "").await;
                    }
                    attack.requests.spawn(async move {
                        std::future::pending::<()>().await;
                        drop(session);
                    });
                }
                attack
            })
        })
    },
    Row::new("watches", |scene| {
        Box::pin(async {
            let path = |_| format!("{MAPS}?watch=1");
            many(&scene.mallory, 1_000, move |n| (Method::GET, path(n), Value::Null)).await
        })
    }),
    Row {
        change: |options, folder| {
            usual(options, folder);
            options.response_bytes_max = 4 << 20;
        },
        ..Row::new("bytes of responses that wait for their clients", |scene| {
            Box::pin(async {
                let own = format!("/api/v1/namespaces/{OWN}/secrets");
                for n in 0..3 {
                    let secret = json!({"metadata": {"name": format!("big-{n}")},
                        "stringData": {"x": "x".repeat(200_000)}});
                    scene.mallory.post(&own, &secret).await.expect(201);
                }
                let mut attack = Attack::default();
                // Nobody reads these lists, because their streams have no window.
                let mut session = scene.mallory.http2_session(0).await;
                let mut n_refused = 0;
                for _ in 0..20 {
                    let (parts, body) = session.begin(&own).await;
                    n_refused += usize::from(parts.status == 429);
                    attack.requests.spawn(async move {
                        std::future::pending::<()>().await;
                        drop(body);
                    });
                }
                assert!(n_refused >= 15, "{n_refused} refused");
                attack
            })
        })
    },
    Row::new("the queue of writes to the store", |scene| {
        Box::pin(async {
            let own = format!("/api/v1/namespaces/{OWN}/secrets");
            let text = "x".repeat(500_000);
            many(&scene.mallory, 200, move |n| {
                let object = json!({"metadata": {"name": format!("big-{n}")},
                    "stringData": {"x": text}});
                (Method::POST, own.clone(), object)
            })
            .await
        })
    }),
    Row::new("the snapshot of roles and bindings", |scene| {
        Box::pin(async {
            let group = "rbac.authorization.k8s.io";
            let path = format!("/apis/{group}/v1/namespaces/{OWN}/rolebindings");
            one_by_one(&scene.mallory, 500, |n| {
                let binding = json!({
                    "metadata": {"name": format!("b{n}")},
                    "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "view"},
                    "subjects": [{"apiGroup": group, "kind": "User", "name": "ana"},
                        {"apiGroup": group, "kind": "Group", "name": "system:authenticated"}],
                });
                (Method::POST, path.clone(), binding)
            })
            .await
        })
    }),
    Row::new("turns of requests that keep a processor for long", |scene| {
        Box::pin(async {
            let path = format!("/api/v1/namespaces/{OWN}/configmaps?dryRun=All");
            let data: serde_json::Map<String, Value> =
                (0..50_000).map(|n| (format!("k{n}"), Value::from("v"))).collect();
            many(&scene.mallory, 20, move |n| {
                let object = json!({"metadata": {"name": format!("wide-{n}")}, "data": data});
                (Method::POST, path.clone(), object)
            })
            .await
        })
    }),
    Row::new("checks of what a role grants", |scene| {
        Box::pin(async {
            let path = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{OWN}/roles");
            let words = |letter: &str| -> Value {
                (0..40).map(|n| Value::from(format!("{letter}{n}"))).collect()
            };
            let rule =
                json!({"verbs": words("v"), "apiGroups": words("g"), "resources": words("r")});
            many(&scene.mallory, 40, move |n| {
                let role = json!({"metadata": {"name": format!("r{n}")}, "rules": [rule]});
                (Method::POST, path.clone(), role)
            })
            .await
        })
    }),
    Row::new("reviews that list rules or subjects", |scene| {
        Box::pin(async {
            let path = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews";
            many(&scene.mallory, 200, move |n| {
                let namespace = if n % 2 == 0 { OWN } else { "shared" };
                (Method::POST, path.to_owned(), json!({"spec": {"namespace": namespace}}))
            })
            .await
        })
    }),
    Row {
        change: |options, folder| {
            usual(options, folder);
            options.api_settings.service_ip_range = Some("10.9.0.0/28".parse().expect("a range"));
        },
        ..Row::new("addresses of services", |scene| {
            Box::pin(async {
                let path = format!("/api/v1/namespaces/{OWN}/services");
                one_by_one(&scene.mallory, 30, |n| {
                    let service = json!({"metadata": {"name": format!("s{n}")},
                        "spec": {"ports": [{"port": 80}]}});
                    (Method::POST, path.clone(), service)
                })
                .await
            })
        })
    },
];

fn map(kind: &str, n: usize) -> Value {
    json!({"metadata": {"name": format!("{kind}-{n}")}})
}

/// Begins many requests on connections of their own, and waits a moment until they are under way.
async fn many(
    client: &Client,
    n_requests: usize,
    request: impl Fn(usize) -> (Method, String, Value),
) -> Attack {
    let mut requests = JoinSet::new();
    for n in 0..n_requests {
        let client = client.clone();
        let (method, path, body) = request(n);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        requests.spawn(async move {
            let answer = client.begin(method, &path, &[], body);
            let answer = tokio::time::timeout(ATTACK_PATIENCE, answer).await;
            std::future::pending::<()>().await;
            drop(answer);
        });
    }
    // The test waits for a real process: the requests of the attack reach the server.
    tokio::time::sleep(Duration::from_millis(300)).await;
    Attack { requests }
}

/// Sends requests one after the other on one connection.
async fn one_by_one(
    client: &Client,
    n_requests: usize,
    request: impl Fn(usize) -> (Method, String, Value),
) -> Attack {
    let mut session = client.session().await;
    for n in 0..n_requests {
        let (method, path, body) = request(n);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        session.send(method, &path, body).await;
    }
    Attack::default()
}
