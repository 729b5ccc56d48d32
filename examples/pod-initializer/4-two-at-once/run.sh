#!/bin/sh
# Initializers 4: two independent initializers, and one that acts after both.
. "$(dirname "$0")/../initializers.sh"

order='{range .metadata.initializers.pending[*]}#   {.name} after {.after}{"\n"}{end}'

waits_for() {
    [ "$(kubectl get pod web -o 'jsonpath={.metadata.initializers.pending[*].name}')" = "$1" ]
}

server --admission-initializers-step-timeout=30s
try kubectl apply -f initializers.yaml
creating web
echo "# The pod shows which initializers wait for others:"
kubectl get pod web -o "jsonpath=$order"

echo "# seal starts first, but must wait for the others. proxy need not wait for logs."
initializer seal
initializer proxy
until_ok "proxy" waits_for "logs.example.com seal.example.com"
pending web

echo "# When logs starts, all initializers act."
initializer logs
created web
containers web
did proxy web
did logs web
did seal web

echo "# When all run, two of them change a pod at the same time, and neither change is lost."
creators=
for name in a b c d e; do
    kubectl run $name --image registry.example.com/$name:1 >$name.created 2>&1 &
    creators="$creators $!"
done
for creator in $creators; do
    wait "$creator" || :
done
for name in a b c d e; do
    cat $name.created
    names=$(kubectl get pod $name -o 'jsonpath={.spec.containers[*].name}')
    echo "# $(echo "$names" | tr ' ' '\n' | sort | tr '\n' ' ')and ${names##* } came last"
done

echo "# The server refuses an order with a cycle."
cycle='{"initializers":[{"name":"logs.example.com","after":["seal.example.com"]}]}'
try kubectl patch initializerconfiguration sidecars -p "$cycle"
