#!/bin/sh
# Story 5: defaults that differ between versions, and a file that states them.
. "$(dirname "$0")/../story.sh"

webhook default allow-jane

echo "# With the old flags the server sends reviews of version v1beta1, which is their default."
flags="--authorization-mode=Node,RBAC,Webhook --authorization-webhook-config-file=$work/default.kubeconfig"
server $flags
try kubectl --as jane -n default get configmaps
calls default
kill $server_pid
wait $server_pid 2>/dev/null || :
: >"$work/default.log"

echo "# The same flags as a file: the file states every default, so the behaviour stays the same."
portcullis convert $flags >"$work/authorization.yaml" 2>"$work/differs.txt"
sed "s|$work|/etc/portcullis|" "$work/authorization.yaml"
server --authorization-config "$work/authorization.yaml"
try kubectl --as jane -n default get configmaps
calls default
: >"$work/default.log"

echo "# An edit of the file selects the newer version while the server runs."
generation() {
    kubectl get --raw /portcullis/authorization/status | grep -q '"generation":2'
}
sed 's/\(subjectAccessReviewVersion:\).*/\1 v1/' "$work/authorization.yaml" >"$work/edited"
mv "$work/edited" "$work/authorization.yaml"
until_ok "the new configuration" generation
try kubectl --as jane -n default get configmaps
calls default
