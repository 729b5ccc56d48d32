#!/bin/sh
# Story 3: denying requests of everybody but system:masters.
. "$(dirname "$0")/../story.sh"

webhook maintenance deny-everyone
configure "$story/authorization.yaml"
server --authorization-config "$work/authorization.yaml"
quietly kubectl create clusterrolebinding jane --clusterrole=cluster-admin --user=jane

echo "# jane has the role cluster-admin, but the webhook denies all her requests."
try kubectl --as jane get namespace default
try kubectl --as jane auth can-i '*' '*'

echo "# A member of system:masters may do everything."
try kubectl get namespace default -o name
try kubectl --as jane --as-group system:masters get namespace default -o name
calls maintenance
