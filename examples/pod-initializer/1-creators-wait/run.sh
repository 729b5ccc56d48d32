#!/bin/sh
# Initializers 1: initializers complete a pod before other clients see it.
. "$(dirname "$0")/../initializers.sh"

# events QUERY: shows the events since the beginning, as somebody who asks for them gets them.
pods=/api/v1/namespaces/default/pods
events() {
    kubectl get --raw "$pods?watch=true&timeoutSeconds=1&resourceVersion=$since$1" \
        | sed -n 's/^{"type":"\([A-Z]*\)".*"name":"\(web\)".*/#   \1 \2/p'
}

server --admission-initializers-step-timeout=30s
quietly kubectl run first --image registry.example.com/first:1
kubectl get pods --watch --output-watch-events >watched.log 2>&1 &
pids="$pids $!"
until_ok "the watch" grep -q first watched.log
since=$(kubectl get --raw "$pods" | sed 's/.*"metadata":{"resourceVersion":"\([0-9]*\)".*/\1/')

echo "# From now on pods wait for an initializer."
try kubectl apply -f initializers.yaml
creating web
pending web
echo "# Lists do not show the pod, but its name is in use."
try kubectl get pods -o name
try kubectl run web --image registry.example.com/web:1
kill -0 $creator && echo "# The create request has no response yet."

echo "# The initializer starts, and changes the pod."
initializer proxy
created web
containers web
did proxy web

echo "# A watch of pods gets one event. A watch with includeUninitialized=true gets every change."
try kubectl run last --image registry.example.com/last:1
until_ok "the event" grep -q last watched.log
awk '{ print "#   " $1, $2 }' watched.log
echo "# includeUninitialized=true:"
events '&includeUninitialized=true'
echo "# Without includeUninitialized, from the same revision:"
events ''

echo "# An initializer can refuse a pod: the create request fails with the reason, and the server deletes the pod."
try kubectl run proxy --image registry.example.com/other:1
try kubectl get pod proxy -o name
