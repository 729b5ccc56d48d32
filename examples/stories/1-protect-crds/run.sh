#!/bin/sh
# Story 1: protecting installed CustomResourceDefinitions.
. "$(dirname "$0")/../story.sh"

webhook system-crd-protector protect-crds
protector=$!
configure "$story/authorization.yaml"
server --authorization-config "$work/authorization.yaml"
quietly kubectl apply -f "$story/objects.yaml"

echo "# jane has the role cluster-admin. She may change and delete her own definition."
try kubectl --as jane label crd toys.example.com owner=jane
try kubectl --as jane delete crd toys.example.com --wait=false

echo "# She may read a definition of the system, but not change it."
try kubectl --as jane get crd clusters.system.example.com -o name
try kubectl --as jane delete crd clusters.system.example.com --wait=false
try kubectl --as jane delete crd --all --wait=false

echo "# The owners of the definition may change it."
keeper=system:serviceaccount:kube-superuser:keeper
try kubectl --as $keeper label crd clusters.system.example.com kept=true
calls system-crd-protector

echo "# While the webhook is stopped, nobody can change a definition. Other requests succeed."
kill $protector
wait $protector 2>/dev/null || :
try kubectl --as jane label crd clusters.system.example.com owner=jane 2>&1 | sed 's/: Post .*/: .../'
try kubectl --as jane get crd clusters.system.example.com -o name
