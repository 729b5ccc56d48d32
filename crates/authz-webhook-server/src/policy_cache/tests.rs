//! Objects of the cluster and of files, and the decisions that they lead to.

use authz::{Attributes, Resource, Target, TraceRecorder, User, Verb, Verdict};
use authz_rbac::{Metadata, PolicyRule, Role, RoleRef, Subject};

use super::*;

fn slots(authorizer: SlotAuthorizer) -> Arc<[AuthorizerSlot]> {
    Arc::from([AuthorizerSlot::without_observer(authorizer)])
}

fn metadata(name: &str) -> Metadata {
    Metadata { name: name.to_owned(), ..Metadata::default() }
}

/// A ClusterRole that allows to get a resource.
fn role(name: &str, resource: &str) -> RbacObject {
    let rule = PolicyRule {
        verbs: vec!["get".to_owned()],
        api_groups: vec![String::new()],
        resources: vec![resource.to_owned()],
        ..PolicyRule::default()
    };
    RbacObject::Role(Role { metadata: metadata(name), rules: vec![rule], aggregation_rule: None })
}

/// A ClusterRoleBinding of the role `reader` to a user.
fn binding(name: &str, user: &str) -> RbacObject {
    let role_ref =
        RoleRef { kind: "ClusterRole".to_owned(), name: "reader".to_owned(), ..RoleRef::default() };
    let subjects = vec![Subject::user(user)];
    RbacObject::Binding(authz_rbac::Binding { metadata: metadata(name), role_ref, subjects })
}

fn watched(object: RbacObject) -> WatchedObject<RbacObject> {
    let (_, namespace, name) = key_of(&object);
    WatchedObject { namespace, name, object: Some(object) }
}

fn put(cache: &PolicyCache, resource: ClusterResource, object: RbacObject) {
    let (_, namespace, name) = key_of(&object);
    cache.put_cluster_object(resource, namespace, name, ClusterObjectState::Exists(Some(object)));
}

/// Whether a user may get a resource.
fn is_allowed(cache: &PolicyCache, user: &str, resource: &str) -> bool {
    let user = User { name: user.to_owned(), ..User::default() };
    let target = Target::Resource(Resource { resource, ..Resource::default() });
    let attributes = Attributes { user: Some(&user), verb: Verb::GET, target };
    let chain = Arc::clone(&cache.snapshot().chain);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let outcome =
        runtime.block_on(chain.authorize(&attributes, TraceRecorder::disabled_recorder()));
    outcome.decision.verdict == Verdict::Allow
}

fn cache(origin: PolicyOrigin) -> PolicyCache {
    PolicyCache::new(origin, slots(SlotAuthorizer::Rbac)).unwrap()
}

#[test]
fn events_and_lists_change_the_policy() {
    let cache = cache(PolicyOrigin::Cluster);
    assert!(!is_allowed(&cache, "ana", "pods"));
    put(&cache, ClusterResource::ClusterRoles, role("reader", "pods"));
    put(&cache, ClusterResource::ClusterRoleBindings, binding("readers", "ana"));
    assert!(is_allowed(&cache, "ana", "pods"));
    // A list without the binding revokes it; a list of another resource does not.
    cache.replace_cluster_objects(
        ClusterResource::ClusterRoles,
        vec![watched(role("reader", "secrets"))],
    );
    assert!(is_allowed(&cache, "ana", "secrets") && !is_allowed(&cache, "ana", "pods"));
    cache.replace_cluster_objects(ClusterResource::ClusterRoleBindings, Vec::new());
    assert!(!is_allowed(&cache, "ana", "secrets"));
    // An object that cannot be decoded is absent.
    put(&cache, ClusterResource::ClusterRoleBindings, binding("readers", "ana"));
    let (namespace, name) = (String::new(), "readers".to_owned());
    let unreadable = ClusterObjectState::Exists(None);
    cache.put_cluster_object(ClusterResource::ClusterRoleBindings, namespace, name, unreadable);
    assert!(!is_allowed(&cache, "ana", "secrets"));
}

#[test]
fn files_replace_objects_of_the_cluster_until_they_are_gone() {
    let cache = cache(PolicyOrigin::ClusterAndFiles);
    put(&cache, ClusterResource::ClusterRoles, role("reader", "pods"));
    put(&cache, ClusterResource::ClusterRoleBindings, binding("readers", "ana"));
    cache.replace_file_objects(vec![binding("readers", "bob"), binding("more", "cid")]);
    let allowed =
        |cache: &PolicyCache| ["ana", "bob", "cid"].map(|user| is_allowed(cache, user, "pods"));
    assert_eq!(allowed(&cache), [false, true, true]);
    // The file still hides the object of the cluster after an event.
    put(&cache, ClusterResource::ClusterRoleBindings, binding("readers", "cid"));
    cache.replace_file_objects(vec![binding("readers", "bob")]);
    assert_eq!(allowed(&cache), [false, true, false]);
    cache.replace_file_objects(Vec::new());
    assert_eq!(allowed(&cache), [false, false, true]);
}

/// Requests that have begun keep their snapshot: a caller never sees a part of a change.
#[test]
fn a_snapshot_does_not_change() {
    let cache = cache(PolicyOrigin::Cluster);
    put(&cache, ClusterResource::ClusterRoles, role("reader", "pods"));
    let before = cache.snapshot();
    put(&cache, ClusterResource::ClusterRoles, role("reader", "secrets"));
    assert!(!Arc::ptr_eq(&before.chain, &cache.snapshot().chain));
    let namespaces = |cache: &PolicyCache| cache.snapshot().namespaces.as_ref().unwrap().len();
    let exists = ClusterObjectState::Exists(None);
    let name = "prod".to_owned();
    cache.put_cluster_object(ClusterResource::Namespaces, String::new(), name.clone(), exists);
    assert_eq!(namespaces(&cache), 1);
    let deleted = ClusterObjectState::Deleted;
    cache.put_cluster_object(ClusterResource::Namespaces, String::new(), name, deleted);
    assert_eq!(namespaces(&cache), 0);
}

#[test]
fn the_node_authorizer_is_refused_at_start_and_at_reload() {
    let node = slots(SlotAuthorizer::Node);
    let started = PolicyCache::new(PolicyOrigin::Cluster, Arc::clone(&node));
    assert!(matches!(started.err(), Some(AuthorizersError::Node)));
    let cache = cache(PolicyOrigin::Cluster);
    assert!(matches!(cache.replace_authorizers(&node), Err(AuthorizersError::Node)));
    let allow = slots(SlotAuthorizer::Fixed(ChainMember::AlwaysAllow));
    cache.replace_authorizers(&allow).unwrap();
    assert!(is_allowed(&cache, "ana", "pods"));
}
