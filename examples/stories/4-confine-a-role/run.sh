#!/bin/sh
# Story 4: controlling the access of a privileged role.
. "$(dirname "$0")/../story.sh"

webhook confine-contractors confine-role
configure "$story/authorization.yaml"
server --authorization-config "$work/authorization.yaml"
quietly kubectl create clusterrolebinding all --clusterrole=cluster-admin \
    --group=contractors --group=staff
quietly kubectl create namespace sandbox-1

echo "# eve is a contractor: her role applies only in the namespaces sandbox-*."
try kubectl --as eve --as-group contractors -n sandbox-1 create configmap a
try kubectl --as eve --as-group contractors -n default create configmap a
try kubectl --as eve --as-group contractors get namespaces

echo "# jane is an employee and has the same role without this limit."
try kubectl --as jane --as-group staff -n default create configmap a
calls confine-contractors
