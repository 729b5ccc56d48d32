#!/bin/sh
# Story 2: no webhook has to be nested in another one.
. "$(dirname "$0")/../story.sh"

webhook system-crd-protector protect-crds
webhook opa opa-style
configure "$story/authorization.yaml"
server --authorization-config "$work/authorization.yaml"

echo "# What RBAC does not grant in kube-system the policy engine may."
try kubectl --as jane -n kube-system create configmap notes --from-literal=a=b
try kubectl --as jane -n kube-system get configmap notes -o name
try kubectl --as jane -n kube-system delete configmap notes

echo "# Elsewhere it is not asked."
try kubectl --as jane -n default get configmaps
calls opa
calls system-crd-protector
