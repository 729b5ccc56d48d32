# What the scripts of the stories share; they read it with `.`.
#
# Wanted in PATH: portcullis, kubectl and the webhook programs. `cargo build --workspace` puts all
# but kubectl into target/debug, which is looked at first; BIN names another folder. A story ends at
# once if one of them is missing, and says which command builds it.

set -eu
story=$(cd "$(dirname "$0")" && pwd)
PATH=${BIN:-$story/../../../target/debug}:$PATH

# need PROGRAM HINT: ends the story if a program is missing.
need() {
    if ! command -v "$1" >/dev/null; then
        echo "$1 is missing; $2" >&2
        exit 1
    fi
}

need portcullis "build it with: cargo build --package cli"
need kubectl "install it: https://kubernetes.io/docs/tasks/tools/"
work=$(mktemp -d)
pids=

cleanup() {
    for pid in $pids; do
        kill "$pid" 2>/dev/null || :
    done
    wait
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 1' INT TERM

# until_ok WHAT COMMAND...: waits until the command succeeds, at most 20 seconds.
until_ok() {
    what=$1
    shift
    tries=0
    until "$@" 2>/dev/null; do
        tries=$((tries + 1))
        if [ "$tries" -gt 400 ]; then
            echo "gave up waiting for $what" >&2
            cat "$work"/*.log >&2
            exit 1
        fi
        sleep 0.05
    done
}

# webhook NAME PROGRAM: starts a webhook; its kubeconfig is $work/NAME.kubeconfig then.
webhook() {
    need "$2" "build it with: cargo build --package stories"
    "$2" "$1" "$work" >>"$work/$1.log" 2>&1 &
    pids="$pids $!"
    until_ok "webhook $1" test -e "$work/$1.kubeconfig"
}

# configure FILE: puts a configuration where the server looks for it, in one step.
configure() {
    sed "s|/etc/portcullis|$work|" "$1" >"$work/authorization.new"
    mv "$work/authorization.new" "$work/authorization.yaml"
}

# server FLAGS...: starts the server on a free port, in a data directory of its own; $program is another
# program with the same commands.
server() {
    "${program:-portcullis}" serve --data-dir "$work/data" --secure-port 0 "$@" \
        >"$work/server.out" 2>"$work/server.log" &
    server_pid=$!
    pids="$pids $server_pid"
    until_ok "the server" grep -q '^serving' "$work/server.out"
    # What kubectl has to know of the server is asked once, by the administrator.
    quietly kubectl api-resources
}

# kubectl as the administrator, whose files and cache are those of this story.
kubectl() {
    command kubectl --kubeconfig "$work/data/admin.kubeconfig" --cache-dir "$work/cache" "$@"
}

quietly() {
    "$@" >/dev/null
}

# try COMMAND...: shows a command and what it prints, whether it succeeds or not.
try() {
    echo "\$ $*"
    "$@" 2>&1 || :
}

# calls NAME: shows the reviews about resources that a webhook received so far. Reviews about paths are
# left out, because they depend on the version of kubectl.
calls() {
    echo "# $1 received these reviews:"
    sed -n '/: a path: /!s/^/#   /p' "$work/$1.log"
}

# metric NAME: shows the series of a metric that are above zero. Their values depend on kubectl.
metric() {
    kubectl get --raw /metrics | sed -n "s/^\($1{.*}\) [1-9].*/# \1 > 0/p"
}
