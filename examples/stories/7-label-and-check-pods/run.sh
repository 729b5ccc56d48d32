#!/bin/sh
# Story 7: webhooks that change and check pods.
. "$(dirname "$0")/../admission.sh"

certificate webhook IP:127.0.0.1
hook webhook 0 admission-webhook
server
fill webhooks.yaml

echo "# One program is registered twice: to change new pods, and to check them."
try kubectl apply -f webhooks.yaml

echo "# The configuration applies to the next request. The pod gets a label, and its author gets a warning."
try kubectl run web --image registry.example.com/web:latest
try kubectl get pod web -o custom-columns=NAME:.metadata.name,TEAM:.metadata.labels.team
try kubectl run api --image registry.example.com/api:1 --labels team=red
try kubectl get pod api -o custom-columns=NAME:.metadata.name,TEAM:.metadata.labels.team
asked webhook

echo "# The webhook refuses images from other registries, in new pods and in updates."
try kubectl run guest --image docker.io/library/nginx:1
try kubectl get pod guest -o name
try kubectl set image pod/web web=docker.io/library/nginx:1
asked webhook

echo "# The webhooks also check a dry run, and the server stores nothing."
try kubectl run dry --image registry.example.com/web:1 --dry-run=server
try kubectl get pod dry -o name
asked webhook

echo "# The server calls no webhook for a deletion, because no rule matches it, and none after the configurations are deleted."
try kubectl delete pod web --now -o name
try kubectl delete -f webhooks.yaml
try kubectl run guest --image docker.io/library/nginx:1
asked webhook
