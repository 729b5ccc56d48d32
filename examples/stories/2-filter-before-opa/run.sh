#!/bin/sh
# Story 2: match conditions choose the requests for which the server calls a policy engine.
. "$(dirname "$0")/../story.sh"

webhook system-crd-protector protect-crds
webhook opa opa-style
configure "$story/authorization.yaml"
server --authorization-config "$work/authorization.yaml"

echo "# In kube-system the policy engine can allow requests that RBAC does not allow."
try kubectl --as jane -n kube-system create configmap notes --from-literal=a=b
try kubectl --as jane -n kube-system get configmap notes -o name
try kubectl --as jane -n kube-system delete configmap notes

echo "# In other namespaces the server does not call the policy engine."
try kubectl --as jane -n default get configmaps
calls opa
calls system-crd-protector
