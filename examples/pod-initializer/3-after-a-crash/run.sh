#!/bin/sh
# Initializers 3: the server dies while a pod waits. Nobody follows the pod any more; who reads it
# repairs it, when it is older than any that is still followed. That is one second here, not 10 minutes.
. "$(dirname "$0")/../initializers.sh"

server --admission-initializers-step-timeout=30s
quietly kubectl apply -f initializers.yaml
creating web
pending web

echo "# The server is killed, and another one takes over its data. Its clock says that it is late."
kill -9 $server_pid
wait $server_pid 2>/dev/null || :
wait $creator || :
sleep 1
server --admission-initializers-step-timeout=1s --admission-initializers-global-timeout=1s

echo "# Lists repair nothing; a pod in the list would not be complete."
try kubectl get pods -o name
try kubectl get pods -o name
echo "# Each time that the pod itself is read, one initializer is given up."
pending web
pending web
try kubectl get pods -o name
metric portcullis_initializer_read_repairs_total
