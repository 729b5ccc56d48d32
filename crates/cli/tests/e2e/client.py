"""Lists, watches and writes with the official client. The argument is a kubeconfig."""

import json
import sys
import threading

from kubernetes import client, config, watch
from kubernetes.client.rest import ApiException

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
rbac = client.RbacAuthorizationV1Api()
authorization = client.AuthorizationV1Api()


def refused(call, *arguments, **named):
    """The code and the body of an answer that is no success."""
    try:
        call(*arguments, **named)
    except ApiException as error:
        return error.status, json.loads(error.body)
    raise AssertionError("the server accepts it")


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data=data)


assert client.VersionApi().get_code().git_version.startswith("v1.")
names = [namespace.metadata.name for namespace in core.list_namespace().items]
assert names == ["default", "kube-node-lease", "kube-public", "kube-system"], names

# A watch follows from the revision of a list, through every kind of change.
listed = core.list_namespaced_config_map("default")
assert listed.items == []
events = []


def follow():
    stream = watch.Watch()
    since = listed.metadata.resource_version
    call = core.list_namespaced_config_map
    for event in stream.stream(call, "default", resource_version=since, timeout_seconds=30):
        held = event["object"]
        events.append((event["type"], held.metadata.name, held.metadata.resource_version))
        if event["type"] == "DELETED":
            stream.stop()


follower = threading.Thread(target=follow)
follower.start()
made = core.create_namespaced_config_map("default", config_map("a", k="v"))
assert made.metadata.uid and made.data == {"k": "v"}
merged = core.patch_namespaced_config_map("a", "default", {"data": {"x": "1"}})
assert merged.data == {"k": "v", "x": "1"}, merged.data
merged.data = {"y": "2"}
replaced = core.replace_namespaced_config_map("a", "default", merged)
assert replaced.data == {"y": "2"}, replaced.data
assert core.read_namespaced_config_map("a", "default").data == {"y": "2"}
core.delete_namespaced_config_map("a", "default")
code, body = refused(core.read_namespaced_config_map, "a", "default")
assert (code, body["message"]) == (404, 'configmaps "a" not found'), body
follower.join()
told = [(kind, name) for kind, name, _ in events]
assert told == [("ADDED", "a"), ("MODIFIED", "a"), ("MODIFIED", "a"), ("DELETED", "a")], events
revisions = [revision for _, _, revision in events]
written = [object.metadata.resource_version for object in (made, merged, replaced)]
assert revisions[:3] == written, (revisions, written)

# Pages.
for number in range(5):
    core.create_namespaced_config_map("default", config_map("page-%d" % number))
first = core.list_namespaced_config_map("default", limit=2)
assert len(first.items) == 2 and first.metadata.remaining_item_count == 3
rest = core.list_namespaced_config_map("default", limit=5, _continue=first.metadata._continue)
names = [item.metadata.name for item in first.items + rest.items]
assert names == ["page-%d" % number for number in range(5)], names

# Refusals.
code, body = refused(core.create_namespaced_config_map, "default", config_map("page-0"))
assert (code, body["reason"]) == (409, "AlreadyExists"), body
code, body = refused(core.replace_namespaced_config_map, "a", "default", merged)
assert code in (404, 409), body

# Rights.
rules = [client.V1PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["get"])]
role = client.V1Role(metadata=client.V1ObjectMeta(name="reader"), rules=rules)
rbac.create_namespaced_role("default", role)
group = "rbac.authorization.k8s.io"
rbac.create_namespaced_role_binding(
    "default",
    {
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": group, "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": "alice"}],
    },
)


def is_allowed(verb):
    attributes = {"verb": verb, "resource": "configmaps", "namespace": "default"}
    spec = {"user": "alice", "resourceAttributes": attributes}
    return authorization.create_subject_access_review({"spec": spec}).status.allowed


assert is_allowed("get")
assert not is_allowed("list")

# Objects without a class of their own.
core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name="more")))
core.delete_namespace("more")
print("all is as expected")
