#!/bin/sh
# Story 10: an authorizer that runs in the cluster that it authorizes.
. "$(dirname "$0")/../story.sh"
cd "$work"

webhook guard allow-jane
port=$(sed -n 's|.*https://127.0.0.1:\([0-9]*\)/.*|\1|p' guard.kubeconfig)
cp "$story/hooks.yaml" .
sed "s|PORT|$port|" "$story/endpoints.yaml" >endpoints.yaml
sed 's/addresses:/notReadyAddresses:/' endpoints.yaml >unready.yaml

echo "# The file names a Service of the cluster. The Service does not exist yet, and the server starts without it."
try portcullis check hooks.yaml
server --authorization-mode Webhook,RBAC --authorization-webhook-config-file hooks.yaml \
    --authorization-webhook-cache-authorized-ttl 0s --authorization-webhook-cache-unauthorized-ttl 0s
try kubectl --as jane -n default get configmaps

echo "# kubectl creates the Service and its endpoints, as Endpoints or EndpointSlices."
cp "$story/service.yaml" .
try kubectl apply -f service.yaml
try kubectl apply -f endpoints.yaml
try kubectl --as jane -n default get configmaps
calls guard
: >guard.log

echo "# The server does not call an endpoint that is not ready, even if a connection to it is open."
try kubectl apply -f unready.yaml
try kubectl --as jane -n default get configmaps
calls guard
