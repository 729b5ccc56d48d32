# What the stories about admission share; they read it with `.`, and everything happens in $work.

. "$(dirname "$0")/../story.sh"
need openssl "install it"
cd "$work"

# certificate NAME PLACE: makes NAME.crt and NAME.key for a webhook that is called at a place, which is
# IP:ADDRESS or DNS:NAME. $bundle is what a configuration says of it.
certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
        -subj "/CN=$1" -addext "subjectAltName=$2" -addext basicConstraints=critical,CA:FALSE \
        -keyout "$1.key" -out "$1.crt" 2>openssl.log
    bundle=$(base64 <"$1.crt" | tr -d '\n')
}

# hook NAME PORT PROGRAM...: starts an admission webhook that has the certificate NAME; $port is where
# it serves then, and $hook_pid its process.
hook() {
    name=$1
    port=$2
    shift 2
    case $1 in
        admission-webhook) need "$1" "build it with: cargo build --package admission-webhook" ;;
        *) need "$1" "install it" ;;
    esac
    "$@" "$name.crt" "$name.key" "127.0.0.1:$port" registry.example.com >>"$name.log" 2>&1 &
    hook_pid=$!
    pids="$pids $hook_pid"
    until_ok "webhook $name" grep -q '^serving' "$name.log"
    port=$(sed -n 's/^serving .*://p' "$name.log")
    : >"$name.log"
}

# stop PID: ends a process and waits for that.
stop() {
    kill "$1"
    wait "$1" 2>/dev/null || :
}

# fill FILE: puts a manifest of the story into $work, with the port and the certificate of the webhook.
fill() {
    sed "s|PORT|$port|; s|BUNDLE|$bundle|" "$story/$1" >"$1"
}

# asked NAME: shows the reviews that a webhook received since the last call of this function.
asked() {
    echo "# The webhook received these reviews:"
    sed 's/^/#   /' "$1.log"
    : >"$1.log"
}

# without_address COMMAND...: hides the port of a failed webhook call, which differs in each run.
without_address() {
    "$@" | sed 's/: Post .*/: .../'
}
