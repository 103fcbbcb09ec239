#!/usr/bin/env bash
# plimsoll fault on a live playground: fault_test.sh PLIMSOLL
#
# Every fault of the table is put somewhere, shows in the conditions that are stored, and is taken off; what is wrong
# on the command line changes nothing; an API server that is no playground's is left alone. Three lanes work at the
# same time, a Cluster each: what they wait for is mostly etcd.
#
# What happened is read from the lines that plimsoll up prints. etcd is asked when a Machine changes: a neighbour that
# is slow by a millisecond (nudge) is such a change.
set -uo pipefail

program=$1
work=$(mktemp -d)
log=$work/up.log
up_pid='' server_pid=''
# The processes are ours; the playground takes its own down.
leave() {
    local pid
    for pid in $up_pid $server_pid; do kill "$pid" 2>/dev/null; done
    wait
    rm -rf "$work"
}
trap leave EXIT

passed=0 failed=0
count() { # NAME RESULT
    if [ "$2" -eq 0 ]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        echo "FAILED $1"
    fi
}

# Waits for a line of the log that matches, behind line $1.
line_comes() { # FROM SECONDS REGEX
    for _ in $(seq $(($2 * 10))); do
        tail -n +"$(($1 + 1))" "$log" | grep -qE -- "$3" && return 0
        sleep 0.1
    done
    echo "no line: $3"
    return 1
}
here() { wc -l <"$log"; }

# --- a playground -------------------------------------------------------------------------------------------------

mkdir "$work/tmp"
TMPDIR=$work/tmp "$program" up --clusters 3 --workers 1 >"$log" 2>&1 &
up_pid=$!
for cluster in 1 2 3; do
    line_comes 0 60 "KubeadmControlPlane/demo-$cluster-cp EtcdClusterHealthy .*True EtcdClusterHealthy" || {
        cat "$log"
        exit 1
    }
done
KUBECONFIG=$(sed -n 's/^ *export KUBECONFIG=//p' "$log")
export KUBECONFIG
fault() { "$program" fault "$@"; }

# --- what is wrong is said, and nothing is changed -----------------------------------------------------------------

refused() { # WORDS-OF-THE-ERROR ARGS...
    local words=$1 said code
    shift
    said=$(fault "$@" 2>&1)
    code=$?
    [ "$code" -eq 2 ] && grep -qF -- "$words" <<<"$said"
    count "refused: $* ($said)" $?
}
refused 'did you mean "kubelet-down"' kubelet-dwn machine/demo-1-cp-1
refused 'kubelet-down cannot be put on a Cluster' kubelet-down cluster/demo-1
refused '"nobody" not found' kubelet-down machine/nobody
refused '"nobody" not found' clear machine/nobody
refused '"nobody" not found' kubelet-down node/demo-1/nobody
refused 'is there such a Cluster?' kubelet-down node/demo-9/demo-1-cp-1
refused 'expected cluster/NAME' kubelet-down node/demo-1-cp-1
refused 'expected behind pod-crash: etcd, kube-apiserver' pod-crash:kube-proxy machine/demo-1-cp-1
refused '60000 at most' network-slow:60001 cluster/demo-1
refused 'nothing can stand behind' kubelet-down:1 machine/demo-1-cp-1
refused 'no fault "nonsense"' pod-crash,nonsense machine/demo-1-cp-1
refused "is not a control plane's" etcd-kill machine/demo-1-md-1-4
refused 'expected its Pod, etcd-NODE' etcd-stop pod/demo-1/kube-scheduler-demo-1-cp-1
refused 'is another one' pod-crash:etcd pod/demo-1/kube-scheduler-demo-1-cp-1
refused 'list takes no target' list cluster/demo-1
refused 'one fault and one target' pod-crash machine/demo-1-cp-1 machine/demo-1-cp-2
refused 'expected the kubeconfig of a playground' list --kubeconfig <(printf 'apiVersion: v1\nkind: Config\n')
[ "$(fault list -o name)" = '' ] && [ "$(fault clear)" = 'nothing is broken' ]
count 'nothing was changed' $?

# A server that is somebody's cluster: asked for its version, and for nothing else.
cat >"$work/server.py" <<'PYTHON'
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        body = b'{"major": "1", "minor": "30", "gitVersion": "v1.30.2"}'
        with open(sys.argv[2], "a") as asked:
            asked.write(f"{self.command} {self.path}\n")
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_PATCH = do_POST = do_DELETE = do_PUT = answer

    def log_message(self, *_):
        pass

server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1], "w") as port:
    port.write(f"{server.server_port}\n")
server.serve_forever()
PYTHON
python3 "$work/server.py" "$work/port" "$work/asked" &
server_pid=$!
for _ in $(seq 100); do
    [ -s "$work/port" ] && break
    sleep 0.1
done
cat >"$work/real.yaml" <<YAML
apiVersion: v1
kind: Config
current-context: management
clusters: [{name: c, cluster: {server: "http://127.0.0.1:$(cat "$work/port")"}}]
users: [{name: u, user: {}}]
contexts: [{name: management, context: {cluster: c, user: u}}]
YAML
refused 'is no playground, and nothing was changed there' kubelet-down machine/demo-1-cp-1 --kubeconfig "$work/real.yaml"
refused 'is no playground' clear --kubeconfig "$work/real.yaml"
[ "$(sort -u "$work/asked")" = 'GET /version' ]
count 'a server that is no playground is asked for its version alone' $?

# --- every fault shows, is listed, and is taken off -------------------------------------------------------------------

# The neighbour changes, and changes back.
nudge() {
    fault network-slow:1 "machine/$1" >/dev/null && fault clear "machine/$1" >/dev/null
}

# etcd is asked when something changes: so something does, until the line is there. 20 s in all.
nudged_line_comes() { # FROM NEIGHBOUR REGEX
    local _
    for _ in 1 2 3 4; do
        [ -z "$2" ] || { sleep 1 && nudge "$2"; }
        line_comes "$1" 4 "$3" >/dev/null && return
    done
    line_comes "$1" 1 "$3"
}

# Puts it there, waits for what must be stored, takes it off, waits for what must be stored then. A lane has a file for
# what it finds: it is a process of its own.
broken() { # FAULT TARGET NEIGHBOUR REGEX REGEX-WHEN-MENDED
    local from result=0
    from=$(here)
    fault "$1" "$2" >/dev/null || result=1
    # A cluster that cannot be asked is another lane's; list says so, and the rest is there.
    grep -qF -- "$1" <<<"$(fault list -o name 2>/dev/null)" || { echo "not listed" && result=1; }
    nudged_line_comes "$from" "$3" "$4" || result=1
    from=$(here)
    # A Node or a Pod that is gone has handed its fault to the Machine.
    case $1 in *-gone) fault clear "machine/$6" ;; *) fault clear "$2" ;; esac >/dev/null || result=1
    nudged_line_comes "$from" "$3" "$5" || result=1
    echo "$result $1 on $2" >>"$work/results"
}

components() { echo "KubeadmControlPlane/demo-$1-cp ControlPlaneComponentsHealthy .*-> $2"; }
etcd() { echo "KubeadmControlPlane/demo-$1-cp EtcdClusterHealthy .*-> $2"; }

first() {
    broken pod-crash:kube-scheduler machine/demo-1-cp-1 '' 'Machine/demo-1-cp-1 SchedulerPodHealthy True -> False PodFailed \(PodHealthy/6' \
        "$(components 1 True)"
    broken pod-pending node/demo-1/demo-1-cp-1 '' 'Machine/demo-1-cp-1 APIServerPodHealthy True -> False' "$(components 1 True)"
    broken pod-gone pod/demo-1/kube-controller-manager-demo-1-cp-2 '' \
        'Machine/demo-1-cp-2 ControllerManagerPodHealthy True -> False PodDoesNotExist' "$(components 1 True)" demo-1-cp-2
    broken node-gone node/demo-1/demo-1-cp-3 '' 'Machine/demo-1-cp-3 EtcdPodHealthy True -> Unknown .*does not exist' \
        "$(components 1 True)" demo-1-cp-3
    # From here on Machines are replaced, and their faults go with them.
    local from result=0
    from=$(here)
    fault kubelet-down machine/demo-1-cp-1 >/dev/null || result=1
    line_comes "$from" 20 'Machine/demo-1-cp-1 EtcdPodHealthy True -> Unknown .*\(PodHealthy/[45]' || result=1
    line_comes "$from" 20 'KubeadmControlPlane/demo-1-cp Remediating .*-> True Remediating' || result=1
    echo "$result kubelet-down on machine/demo-1-cp-1" >>"$work/results"
}

second() {
    broken etcd-stop machine/demo-2-cp-1 '' 'Machine/demo-2-cp-1 EtcdPodHealthy True -> False PodProvisioning' "$(components 2 True)"
    broken etcd-kill pod/demo-2/etcd-demo-2-cp-1 '' 'Machine/demo-2-cp-1 EtcdPodHealthy True -> False PodFailed' "$(components 2 True)"
    broken etcd-nospace machine/demo-2-cp-1 demo-2-cp-2 "$(etcd 2 False) .*\(EtcdClusterHealthy/5" "$(etcd 2 True)"
    broken etcd-ghost cluster/demo-2 demo-2-cp-2 "$(etcd 2 False) .*\(EtcdClusterHealthy/7" "$(etcd 2 True)"
    local from result=0
    from=$(here)
    fault unhealthy machine/demo-2-md-1-4 >/dev/null || result=1
    line_comes "$from" 20 'MachineDeployment/demo-2-md Remediating .*-> True|Machine demo-2-md-1-4 is gone' || result=1
    echo "$result unhealthy on machine/demo-2-md-1-4" >>"$work/results"
}

third() {
    local result=0 start
    # The API server of the cluster: slow, and refusing.
    fault network-slow:700 cluster/demo-3 >/dev/null || result=1
    start=$(date +%s%N)
    fault clear node/demo-3/demo-3-cp-1 >/dev/null || result=1
    [ $((($(date +%s%N) - start) / 1000000)) -ge 700 ] || { echo "not slow" && result=1; }
    fault nodes-refused cluster/demo-3 | grep -qF 'in place of network-slow:700' || { echo "not in place" && result=1; }
    fault list 2>"$work/list.err" >/dev/null
    [ $? -eq 3 ] || { echo "not 3" && result=1; }
    grep -q 'Cluster demo-3 could not be asked: nodes is forbidden' "$work/list.err" || { echo "not refused" && result=1; }
    fault clear cluster/demo-3 >/dev/null || result=1
    fault clear node/demo-3/demo-3-cp-1 >/dev/null || result=1
    echo "$result network-slow, nodes-refused on cluster/demo-3" >>"$work/results"
    broken bad-certificate cluster/demo-3 demo-3-cp-2 "$(etcd 3 Unknown) .*\(EtcdClusterHealthy/3" "$(etcd 3 True)"
    broken etcd-learner machine/demo-3-cp-3 demo-3-cp-1 "$(etcd 3 '(False|Unknown)')" "$(etcd 3 True)"
    # Cut off, the cluster cannot be asked; the annotation that cuts it off is in the management cluster.
    broken network-cut cluster/demo-3 demo-3-cp-2 "$(etcd 3 Unknown) .*\(EtcdClusterHealthy/3" "$(etcd 3 True)"
}

lanes=()
for lane in first second third; do
    "$lane" &
    lanes+=($!)
done
wait "${lanes[@]}"
while read -r result name; do
    count "$name" "$result"
done <"$work/results"
[ "$(wc -l <"$work/results")" -eq 14 ]
count 'every lane came to its end' $?

# With kubectl it is the same.
if command -v kubectl >/dev/null; then
    from=$(here)
    kubectl annotate machine/demo-2-cp-2 sim.plimsoll.dev/fault=pod-crash:etcd >/dev/null &&
        line_comes "$from" 20 'Machine/demo-2-cp-2 EtcdPodHealthy True -> False PodFailed' &&
        kubectl --context demo-3 annotate node/demo-3-cp-2 sim.plimsoll.dev/fault=pod-pending >/dev/null &&
        line_comes "$from" 20 'Machine/demo-3-cp-2 APIServerPodHealthy True -> False' &&
        kubectl annotate cluster/demo-2 sim.plimsoll.dev/fault=nonsense >/dev/null &&
        line_comes "$from" 20 'nonsense' &&
        [ "$(fault list -o name | wc -l)" -ge 3 ]
    count 'kubectl annotate does the same' $?
fi
fault list -o json | python3 -c 'import json, sys; d = json.load(sys.stdin); sys.exit(not d["broken"] or len(d["faults"]) < 15)'
count 'list -o json' $?
fault clear >/dev/null && [ "$(fault list -o name)" = '' ]
count 'clear takes off all of them' $?

# --- the end ------------------------------------------------------------------------------------------------------------

kill -INT "$up_pid"
wait "$up_pid"
count 'the playground ends with 0' $?
up_pid=''
grep -q '^Stopped: controller, API server, 9 etcd processes. Nothing is left behind.$' "$log" && [ -z "$(ls -A "$work/tmp")" ]
count 'and leaves nothing' $?

echo "fault: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
