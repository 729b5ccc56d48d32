#!/bin/sh
# A server with one more authorizer: frozen, thawed, explained, counted, reloaded.
program=freeze-authorizer
BIN=${BIN:-$(cd "$(dirname "$0")" && pwd)/../../target/debug}
. "$(dirname "$0")/../stories/story.sh"

export FREEZE_FILE="$work/frozen"
configure "$story/authorization.yaml"
server --authorization-config "$work/authorization.yaml"
quietly kubectl create clusterrolebinding ana --clusterrole cluster-admin --user ana

may_write() {
    quietly kubectl --as ana auth can-i create configmaps
}
may_not_write() {
    ! may_write
}

echo "# ana is a cluster-admin."
try kubectl --as ana create configmap before

echo "# Frozen: she reads, and does not write. Members of system:masters still do."
touch "$FREEZE_FILE"
until_ok "the freeze" may_not_write
try kubectl --as ana create configmap during
try kubectl --as ana get configmap before -o name
try kubectl create configmap by-the-administrator

echo "# The server explains the decision, and lists who may write."
cp "$story/explain.yaml" "$story/who-can.yaml" "$work"
cd "$work"
try kubectl create -f explain.yaml -o 'jsonpath={.status.decidedBy}: {.status.reason}'
echo
try kubectl create -f who-can.yaml -o 'jsonpath={.status.groups}'
echo

echo "# The authorizer has series of its own."
kubectl get --raw /metrics | sed -n 's/^\(apiserver_authorization_decisions_total{.*type="Freeze"}\) [1-9].*/# \1 > 0/p'

echo "# Thawed."
rm "$FREEZE_FILE"
until_ok "the thaw" may_write
try kubectl --as ana create configmap after

echo "# A reload takes the authorizer out of the chain, and a freeze has no effect then."
generation() {
    kubectl get --raw /portcullis/authorization/status | grep -q "\"generation\":$1"
}
sed '/Freeze/,/change-freeze/d' "$story/authorization.yaml" >"$work/thawed.yaml"
configure "$work/thawed.yaml"
until_ok "the reload" generation 2
touch "$FREEZE_FILE"
try kubectl --as ana create configmap unfrozen

echo "# Another one puts it back, in the state that it is in."
configure "$story/authorization.yaml"
until_ok "the reload" generation 3
try kubectl --as ana create configmap frozen

echo "# The other commands know the type, too: here nobody else may write."
$program who-can create configmaps --authorization-config "$story/authorization.yaml" | grep -o 'system:.*'
