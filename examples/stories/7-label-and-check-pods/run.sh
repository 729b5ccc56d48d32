#!/bin/sh
# Story 7: webhooks that change and check pods.
. "$(dirname "$0")/../admission.sh"

certificate webhook IP:127.0.0.1
hook webhook 0 admission-webhook
server
fill webhooks.yaml

echo "# One program is registered twice: to change new pods, and to check them."
try kubectl apply -f webhooks.yaml

echo "# It holds for the very next request. A pod gets a label, and its author a warning."
try kubectl run web --image registry.example.com/web:latest
try kubectl get pod web -o custom-columns=NAME:.metadata.name,TEAM:.metadata.labels.team
try kubectl run api --image registry.example.com/api:1 --labels team=red
try kubectl get pod api -o custom-columns=NAME:.metadata.name,TEAM:.metadata.labels.team
asked webhook

echo "# Images from elsewhere are not wanted, neither in new pods nor by a change."
try kubectl run guest --image docker.io/library/nginx:1
try kubectl get pod guest -o name
try kubectl set image pod/web web=docker.io/library/nginx:1
asked webhook

echo "# A dry run is checked as well, and nothing is kept."
try kubectl run dry --image registry.example.com/web:1 --dry-run=server
try kubectl get pod dry -o name
asked webhook

echo "# Nobody is asked about a deletion: the rules do not mention it. Nor after the configurations."
try kubectl delete pod web --now -o name
try kubectl delete -f webhooks.yaml
try kubectl run guest --image docker.io/library/nginx:1
asked webhook
