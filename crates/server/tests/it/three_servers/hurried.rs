//! A caller's deadline, and a collection that takes long, are no way around a configuration that was
//! acknowledged (attack A5).

use super::*;
use crate::admission_hooks::{VALIDATING, allow};
use crate::cluster::Cluster;

/// One server hears of changes late. A hook that denies is acknowledged by another one; from then on no
/// write gets past it, however little time its caller gives.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_short_timeout_chooses_no_older_configuration() {
    let members = [Member::alone()];
    members.iter().for_each(Member::wait_until_healthy);
    let quick = Station::start(&members, |_| {}).await;
    let slow = Station::start(&members, |_| {}).await;
    let authority = HookAuthority::new();
    let hook = authority.hook(deny("not here"));
    slow.admin().send(Method::POST, MAPS, &[], map("before")).await.expect(201);
    let other = authority.hook(allow());
    let webhook = authority.webhook("other.x.y", &other, json!({}));
    // The server knows some hook for these objects, so that it has to ask before it calls.
    let known = webhook_configuration(VALIDATING, "known", &[webhook]);
    register_with(&quick.admin(), VALIDATING, &known).await;
    slow.lag(Duration::from_millis(50));
    for round in 0..3 {
        let webhook = authority.webhook("v.x.y", &hook, json!({}));
        let configuration = webhook_configuration(VALIDATING, "v", &[webhook]);
        register_with(&quick.admin(), VALIDATING, &configuration).await;
        for (n, timeout) in ["1ms", "5ms", "15ms", "40ms", "1ms", "15ms"].iter().enumerate() {
            for query in ["", "&dryRun=All"] {
                let name = format!("hurried-{round}-{n}");
                let path = format!("{MAPS}?timeout={timeout}{query}");
                let answer = slow.admin().send(Method::POST, &path, &[], map(&name)).await;
                assert!(matches!(answer.code, 403 | 504), "{timeout}: {}", answer.text());
                let stored = quick.admin().get(&format!("{MAPS}/{name}")).await;
                assert_eq!(stored.code, 404, "{timeout}: {}", stored.text());
            }
        }
        quick.admin().delete(&format!("{VALIDATING}/v")).await.expect(200);
    }
    for station in [quick, slow] {
        station.stop().await;
    }
}

/// Objects of a collection are deleted one after the other. A hook that denies and is acknowledged
/// meanwhile is asked about those that are left.
#[tokio::test(flavor = "multi_thread")]
async fn each_object_of_a_collection_is_admitted_by_its_own_configuration() {
    let cluster = Cluster::start().await;
    let admin = cluster.admin();
    for n in 0..4 {
        admin.send(Method::POST, MAPS, &[], map(&format!("m{n}"))).await.expect(201);
    }
    let authority = HookAuthority::new();
    let slow = authority.hook(Script::rule(|request| {
        answer(request, &json!({"allowed": true})).delay(Duration::from_millis(500))
    }));
    let rules = json!({"rules": [rule(&["DELETE"], "", "configmaps")]});
    let webhook = authority.webhook("slow.x.y", &slow, rules.clone());
    let configuration = webhook_configuration(VALIDATING, "slow", &[webhook]);
    register_with(&admin, VALIDATING, &configuration).await;
    let deleting = tokio::spawn({
        let admin = cluster.admin();
        async move { admin.delete(MAPS).await }
    });
    while slow.n_requests() == 0 {
        crate::polling::pause().await;
    }
    let denying = authority.hook(deny("keep the rest"));
    let webhook = authority.webhook("deny.x.y", &denying, rules);
    let configuration = webhook_configuration(VALIDATING, "deny", &[webhook]);
    register_with(&admin, VALIDATING, &configuration).await;
    let refused = deleting.await.expect("an answer").expect(403);
    assert!(refused["message"].as_str().is_some_and(|text| text.contains("keep the rest")));
    let left = admin.get(MAPS).await.expect(200)["items"].as_array().map_or(0, Vec::len);
    assert_eq!(left, 3, "only the object that was under way is gone");
}
