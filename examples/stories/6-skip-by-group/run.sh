#!/bin/sh
# Story 6: skipping a webhook for some requests.
. "$(dirname "$0")/../story.sh"

webhook allow-jane allow-jane
configure "$story/authorization.yaml"
server --authorization-config "$work/authorization.yaml" \
    --audit-policy-file "$story/audit-policy.yaml" --audit-log-path "$work/audit.txt"

try kubectl --as jane -n default get configmaps
echo "# For members of the group rbac-only the server does not call the webhook, and RBAC allows nothing."
try kubectl --as jane --as-group rbac-only -n default get configmaps
calls allow-jane

echo "# The audit log shows why."
grep -o '"authorization.k8s.io/[^,}]*' "$work/audit.txt"
metric apiserver_authorization_match_condition_exclusions_total
