#!/usr/bin/env python3
"""What the program prints, to the byte: golden_test.py PLIMSOLL

Each case is a command line; its stdout, stderr and exit code are in cli/NAME.txt. UPDATE_GOLDEN=1
rewrites those files (and drops the ones no case has): look at the diff before you commit it.
Afterwards the options of every command are compared between --help, man page and completion, and
what README.md and docs/ say a command prints with what it prints.
"""
import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GOLDEN = HERE / "cli"

# name: [VARIABLE=value...] plimsoll ARGUMENTS [< FILE]. In the paths IN is tests/golden/inputs, EX is
# examples, and TMP a directory that prepare() fills. 80 columns unless COLUMNS says otherwise.
CASES = """
eval-healthy: plimsoll eval -f EX/healthy.yaml
eval-alarm: plimsoll eval -f EX/alarm.yaml
eval-quorum-at-risk: plimsoll eval -f EX/quorum-at-risk.yaml
eval-quorum-at-risk-60-columns: COLUMNS=60 plimsoll eval -f EX/quorum-at-risk.yaml
eval-quorum-at-risk-120-columns: COLUMNS=120 plimsoll eval -f EX/quorum-at-risk.yaml
eval-wide: plimsoll eval -o wide -f EX/orphan-node.yaml
eval-json: plimsoll eval -o json -f EX/quorum-at-risk.yaml
eval-yaml: plimsoll eval -o yaml -f EX/learner.yaml
eval-name: plimsoll eval -o name -f EX/alarm.yaml
eval-explain: plimsoll eval --explain -f EX/learner.yaml
eval-explain-json: plimsoll eval --explain -o json -f EX/connection-down.yaml
eval-diff: plimsoll eval --diff --profile cluster-api-1.12 -f EX/connection-down.yaml
eval-diff-long-message: plimsoll eval --diff --profile cluster-api-1.12 -f EX/alarm.yaml
eval-diff-none: plimsoll eval --diff --profile cluster-api-1.12 -f EX/healthy.yaml
eval-diff-json: plimsoll eval --diff -o json -f EX/alarm.yaml
eval-diff-yaml: plimsoll eval --diff -o yaml -f EX/alarm.yaml
eval-diff-name: plimsoll eval --diff -o name -f EX/alarm.yaml
eval-profile-cluster-api: plimsoll eval --profile cluster-api-1.12 -f EX/alarm.yaml
eval-deleting: plimsoll eval -f EX/deleting.yaml
eval-deleting-cluster-api: plimsoll eval --profile cluster-api-1.12 -f EX/deleting.yaml
eval-external-etcd: plimsoll eval -f EX/external-etcd.yaml
eval-now: plimsoll eval --now 2026-11-15T02:30:00Z -o name -f EX/healthy.yaml
eval-stdin: plimsoll eval -o name -f - < EX/healthy.yaml
eval-directory: plimsoll eval -o name -f EX
eval-several-files: plimsoll eval -f EX/healthy.yaml EX/external-etcd.yaml
eval-several-documents: plimsoll eval -o name -f IN/two-snapshots.yaml
eval-ndjson: plimsoll eval -f IN/two-lines.ndjson
eval-list: plimsoll eval --now 2026-11-15T02:00:00Z -f IN/list.yaml
eval-manifests: plimsoll eval --now 2026-11-15T02:00:00Z -f IN/manifests
eval-v1beta1: plimsoll eval -f IN/v1beta1.yaml
eval-nothing-owned: plimsoll eval --now 2026-11-15T02:00:00Z -f IN/only-a-cluster.yaml
eval-control-characters: plimsoll eval -f IN/control-characters.yaml
eval-missing: plimsoll eval -f IN/missing-workload.yaml
eval-missing-wide: plimsoll eval -o wide -f IN/missing-etcd.yaml
eval-missing-json: plimsoll eval -o json -f IN/missing-workload.yaml
eval-missing-name: plimsoll eval -o name -f IN/missing-workload.yaml

explain-healthy: plimsoll explain -f EX/healthy.yaml
explain-alarm: plimsoll explain -f EX/alarm.yaml
explain-learner: plimsoll explain -f EX/learner.yaml
explain-orphan-node: plimsoll explain -f EX/orphan-node.yaml
explain-quorum-at-risk: plimsoll explain -f EX/quorum-at-risk.yaml
explain-quorum-at-risk-60-columns: COLUMNS=60 plimsoll explain -f EX/quorum-at-risk.yaml
explain-quorum-at-risk-120-columns: COLUMNS=120 plimsoll explain -f EX/quorum-at-risk.yaml
explain-connection-down: plimsoll explain -f EX/connection-down.yaml
explain-deleting: plimsoll explain -f EX/deleting.yaml
explain-external-etcd: plimsoll explain -f EX/external-etcd.yaml
explain-kcp: plimsoll explain kcp/prod-control-plane -f EX/orphan-node.yaml
explain-machine: plimsoll explain machine/prod-control-plane-x7k2p -f EX/quorum-at-risk.yaml
explain-machine-healthy: plimsoll explain machine/default/prod-control-plane-4n8wd -f EX/quorum-at-risk.yaml
explain-machinedeployment: plimsoll explain md/prod-md-0 -f EX/healthy.yaml
explain-condition: plimsoll explain kcp/prod-control-plane EtcdClusterHealthy -f EX/alarm.yaml
explain-condition-true: plimsoll explain kcp/prod-control-plane EtcdClusterHealthy -f EX/healthy.yaml
explain-wide: plimsoll explain -o wide -f EX/connection-down.yaml
explain-json: plimsoll explain -o json -f EX/alarm.yaml
explain-yaml: plimsoll explain -o yaml kcp/prod-control-plane Remediating -f EX/quorum-at-risk.yaml
explain-name: plimsoll explain -o name -f EX/alarm.yaml
explain-ascii: LANG=C plimsoll explain -f EX/alarm.yaml
explain-missing: plimsoll explain -f IN/missing-workload.yaml
explain-vectors: plimsoll explain -f IN/vectors.ndjson

etcd-healthy: plimsoll etcd prod -f EX/healthy.yaml
etcd-quorum-at-risk: plimsoll etcd prod -f EX/quorum-at-risk.yaml
etcd-alarm: plimsoll etcd -f EX/alarm.yaml
etcd-learner: plimsoll etcd -f EX/learner.yaml
etcd-orphan-node: plimsoll etcd -f EX/orphan-node.yaml
etcd-external: plimsoll etcd -f EX/external-etcd.yaml
etcd-connection-down: plimsoll etcd -f EX/connection-down.yaml
etcd-missing: plimsoll etcd -f IN/missing-etcd.yaml
etcd-strange: plimsoll etcd -f IN/etcd-strange.yaml
etcd-no-quorum: plimsoll etcd -f IN/etcd-no-quorum.yaml
etcd-unreachable: plimsoll etcd -f IN/etcd-unreachable.yaml
etcd-wide: plimsoll etcd -o wide -f EX/orphan-node.yaml
etcd-json: plimsoll etcd -o json -f EX/orphan-node.yaml
etcd-yaml: plimsoll etcd -o yaml -f EX/learner.yaml
etcd-name: plimsoll etcd -o name -f EX/learner.yaml
etcd-60-columns: COLUMNS=60 plimsoll etcd -f EX/orphan-node.yaml
etcd-color: plimsoll etcd --color always -f EX/alarm.yaml
etcd-no-cluster: plimsoll etcd
etcd-unknown-cluster: plimsoll etcd other -f EX/healthy.yaml
etcd-trace-with-files: plimsoll etcd prod --trace -f EX/healthy.yaml
what-if-allowed: plimsoll what-if remove prod-control-plane-jq5zr -f EX/quorum-at-risk.yaml
what-if-allowed-leader: plimsoll what-if remove prod-control-plane-4n8wd -f EX/healthy.yaml
what-if-refused: plimsoll what-if remove prod-control-plane-x7k2p -f EX/quorum-at-risk.yaml
what-if-learners-count: plimsoll what-if remove prod-control-plane-4n8wd -f EX/learner.yaml
what-if-external-etcd: plimsoll what-if remove prod-control-plane-x7k2p -f EX/external-etcd.yaml
what-if-deleting: plimsoll what-if remove prod-control-plane-jq5zr -f EX/deleting.yaml
what-if-connection-down: plimsoll what-if remove prod-control-plane-x7k2p -f EX/connection-down.yaml
what-if-missing: plimsoll what-if remove cp-0 -f IN/missing-etcd.yaml
what-if-missing-name: plimsoll what-if remove cp-0 -o name -f IN/missing-etcd.yaml
what-if-json: plimsoll what-if remove default/prod-control-plane-x7k2p -o json -f EX/quorum-at-risk.yaml
what-if-yaml: plimsoll what-if remove prod-control-plane-x7k2p -o yaml -f EX/quorum-at-risk.yaml
what-if-name: plimsoll what-if remove -n default prod-control-plane-x7k2p -o name -f EX/quorum-at-risk.yaml
what-if-unknown-machine: plimsoll what-if remove nobody -f EX/quorum-at-risk.yaml
what-if-exit-zero: plimsoll what-if remove prod-control-plane-x7k2p --exit-zero -o name -f EX/quorum-at-risk.yaml

describe-healthy: plimsoll describe -f EX/healthy.yaml
describe-quorum-at-risk: plimsoll describe -f EX/quorum-at-risk.yaml
describe-quorum-at-risk-60-columns: COLUMNS=60 plimsoll describe -f EX/quorum-at-risk.yaml
describe-quorum-at-risk-100-columns: COLUMNS=100 plimsoll describe -f EX/quorum-at-risk.yaml
describe-quorum-at-risk-140-columns: COLUMNS=140 plimsoll describe -f EX/quorum-at-risk.yaml
describe-quorum-at-risk-200-columns: COLUMNS=200 plimsoll describe -f EX/quorum-at-risk.yaml
describe-stored-conditions: COLUMNS=200 plimsoll describe -f IN/describe.yaml
describe-stored-conditions-80-columns: plimsoll describe -f IN/describe.yaml
describe-deleting: plimsoll describe -f EX/deleting.yaml
describe-connection-down: plimsoll describe -f EX/connection-down.yaml
describe-learner: plimsoll describe -f EX/learner.yaml
describe-wide: plimsoll describe -o wide -f EX/alarm.yaml
describe-show-conditions: plimsoll describe --show-conditions -f EX/external-etcd.yaml
describe-json: plimsoll describe -o json -f EX/alarm.yaml
describe-yaml: plimsoll describe -o yaml -f IN/describe.yaml
describe-name: plimsoll describe -o name -f EX/healthy.yaml
describe-cluster: plimsoll describe default/prod -o name -f EX/healthy.yaml
describe-cluster-and-files: plimsoll describe prod -f EX/healthy.yaml EX/learner.yaml
describe-unknown-cluster: plimsoll describe team/prod -f EX/healthy.yaml
describe-list: plimsoll describe --now 2026-11-15T02:00:00Z -f IN/list.yaml
describe-missing: plimsoll describe -f IN/missing-workload.yaml
describe-control-characters: plimsoll describe -f IN/control-characters.yaml
describe-ascii: LANG=C plimsoll describe -f EX/learner.yaml
describe-color: plimsoll describe --color always -f EX/alarm.yaml

snapshot-yaml: plimsoll snapshot -f IN/v1beta1.yaml
snapshot-json: plimsoll snapshot -o json -f EX/learner.yaml
snapshot-list: plimsoll snapshot -f IN/list.yaml --now 2026-11-15T02:00:00Z
snapshot-several: plimsoll snapshot -f IN/two-snapshots.yaml
snapshot-of-describe-input: plimsoll snapshot -f IN/describe.yaml

tables: plimsoll tables EtcdClusterHealthy
tables-wide: plimsoll tables -o wide Remediating
tables-md: plimsoll tables -o md Remediating
tables-json: plimsoll tables -o json Remediating
tables-yaml: plimsoll tables -o yaml Remediating
tables-name: plimsoll tables -o name
tables-row: plimsoll tables EtcdClusterHealthy/5
tables-profile: plimsoll tables EtcdClusterHealthy/5 --profile cluster-api-1.12
tables-unknown: plimsoll tables EtcdClusterHealth

version: plimsoll version
version-json: plimsoll version -o json
version-option: plimsoll --version
help: plimsoll
help-eval: plimsoll eval --help
help-explain: plimsoll help explain
help-what-if: plimsoll what-if -h
help-run: plimsoll run --help
help-up: plimsoll up --help
help-fault: plimsoll fault --help
help-describe: plimsoll describe --help
help-snapshot: plimsoll snapshot --help
help-tables: plimsoll help tables
help-completion: plimsoll help completion
help-version: plimsoll help version
help-help: plimsoll help help
completion-bash: plimsoll completion bash
completion-zsh: plimsoll completion zsh
completion-fish: plimsoll completion fish
completion-unknown: plimsoll completion tcsh

color-always: plimsoll eval --color always -f EX/quorum-at-risk.yaml
color-always-explain: plimsoll explain --color always -f EX/alarm.yaml
color-always-what-if: plimsoll what-if remove prod-control-plane-x7k2p --color always -f EX/quorum-at-risk.yaml
color-no-color-wins: NO_COLOR=1 plimsoll eval --color always -f EX/alarm.yaml
color-auto-is-off-in-a-pipe: plimsoll eval -f EX/alarm.yaml

exit-0: plimsoll eval -o name -f EX/external-etcd.yaml
exit-3-beats-0: plimsoll eval -f EX/external-etcd.yaml IN/missing-etcd.yaml
exit-1-beats-3: plimsoll eval -f IN/missing-etcd.yaml EX/deleting.yaml
exit-2-beats-1: plimsoll eval -o name -f EX/deleting.yaml IN/bad-syntax.json
exit-zero-forgives-1: plimsoll eval --exit-zero -o name -f EX/deleting.yaml
exit-zero-forgives-3: plimsoll eval --exit-zero -o name -f IN/missing-etcd.yaml
exit-zero-does-not-forgive-2: plimsoll eval --exit-zero -f IN/bad-syntax.json

error-json-syntax: plimsoll eval -f IN/bad-syntax.json
error-yaml-syntax: plimsoll eval -f IN/bad-syntax.yaml
error-json-type: plimsoll eval -f IN/bad-type.json
error-yaml-type: plimsoll eval -f IN/bad-type.yaml
error-json-duplicate-key: plimsoll eval -f IN/duplicate-key.json
error-yaml-duplicate-key: plimsoll eval -f IN/duplicate-key.yaml
error-json-depth: plimsoll eval -f TMP/deep.json
error-yaml-depth: plimsoll eval -f TMP/deep.yaml
error-size: plimsoll eval -f TMP/large.json
error-json-truncated: plimsoll eval -f IN/truncated.json
error-not-text: plimsoll eval -f TMP/binary
error-time: plimsoll eval -f IN/bad-time.yaml
error-connection-state: plimsoll eval -f IN/bad-state.yaml
error-grace-period: plimsoll eval -f IN/grace-period.yaml
error-snapshot-version: plimsoll eval -f IN/snapshot-v2.yaml
error-object-version: plimsoll eval -f IN/machine-v1alpha4.yaml
error-no-kind: plimsoll eval -f IN/no-kind.yaml
error-two-clusters-with-nodes: plimsoll eval -f IN/two-clusters.yaml
error-same-object-twice: plimsoll eval -f IN/twice.yaml
error-second-line-of-stdin: plimsoll eval -o name -f - < IN/second-line-bad.ndjson
error-empty-file: plimsoll eval -f TMP/empty.yaml
error-empty-directory: plimsoll eval -f TMP/empty
error-no-such-file: plimsoll eval -f no-such-file.yaml
error-no-input: plimsoll eval
error-no-kubeconfig: HOME=TMP KUBECONFIG= plimsoll describe
error-unreachable: plimsoll describe --kubeconfig IN/kubeconfig-refused.yaml
error-unknown-context: plimsoll explain --kubeconfig IN/kubeconfig-refused.yaml --context other
error-live-and-files: plimsoll eval --live -f EX/healthy.yaml
error-context-and-files: plimsoll explain --context prod -f EX/healthy.yaml
error-watch-files: plimsoll describe -w -f EX/healthy.yaml
error-timeout: plimsoll describe --timeout soon
error-two-namespaces: plimsoll describe -A -n x --kubeconfig IN/kubeconfig-refused.yaml
error-snapshot-two-clusters: plimsoll snapshot a b
error-unknown-command: plimsoll evl
error-unknown-command-no-idea: plimsoll frobnicate
error-unknown-option: plimsoll eval --profil tables -f EX/healthy.yaml
error-unknown-option-no-idea: plimsoll eval --frobnicate -f EX/healthy.yaml
error-unknown-letter: plimsoll eval -x
error-unknown-format: plimsoll eval -o xml -f EX/healthy.yaml
error-option-without-value: plimsoll eval -f
error-flag-with-value: plimsoll eval --diff=yes -f EX/healthy.yaml
error-flag-false: plimsoll run --mode status --all --all=false
error-bad-now: plimsoll eval --now yesterday -f EX/healthy.yaml
error-explain-unknown-kind: plimsoll explain pod/etcd -f EX/healthy.yaml
error-explain-unknown-name: plimsoll explain kcp/dev -f EX/healthy.yaml
error-explain-unknown-condition: plimsoll explain Ready -f EX/healthy.yaml
error-what-if-no-machine: plimsoll what-if remove -f EX/healthy.yaml
error-what-if-other-action: plimsoll what-if delete prod-control-plane-x7k2p -f EX/healthy.yaml
error-help-unknown: plimsoll help frobnicate
error-up-clusters: plimsoll up --clusters 100000
error-up-tour-one-cluster: plimsoll up --tour --clusters 1
error-up-listen-without-token: plimsoll up --listen 0.0.0.0
error-fault-nothing: plimsoll fault
error-fault-unknown: plimsoll fault pod-crsh machine/demo-1-cp-1
error-fault-place: plimsoll fault etcd-ghost machine/demo-1-cp-1
error-fault-target: plimsoll fault pod-crash demo-1-cp-1
error-fault-no-kubeconfig: plimsoll fault pod-crash machine/demo-1-cp-1 --kubeconfig /nonexistent/kubeconfig
"""


def prepare(tmp):
    """Inputs that are better made than kept."""
    (tmp / "empty").mkdir()
    (tmp / "empty.yaml").write_text("")
    (tmp / "binary").write_bytes(b"\x7fELF\x02\x01\x01\x00\x00")
    head = '{"apiVersion":"plimsoll.dev/v1","kind":"Snapshot","extra":'
    (tmp / "deep.json").write_text(head + "[" * 100 + "]" * 100 + "}\n")
    (tmp / "deep.yaml").write_text("apiVersion: plimsoll.dev/v1\nkind: Snapshot\nextra: " + "[" * 100 + "]" * 100 + "\n")
    with open(tmp / "large.json", "wb") as large:
        large.truncate((1 << 30) + 1)  # a hole: it takes no room on the disk


def cases():
    for line in CASES.splitlines():
        if line.strip():
            name, command = line.split(": ", 1)
            yield name, command


def environment(own):
    """Nothing of the caller's, but for what sanitizers and coverage need."""
    kept = {k: v for k, v in os.environ.items() if k == "PATH" or k.split("_")[0] in ("ASAN", "UBSAN", "LSAN", "GCOV", "LD")}
    return {**kept, "LANG": "C.UTF-8", "TERM": "xterm-256color", "COLUMNS": "80", **own}


def run(plimsoll, command, tmp):
    """What the golden file should hold."""
    words = shlex.split(command)
    own = {}
    while "=" in words[0]:
        key, value = words.pop(0).split("=", 1)
        own[key] = value
    places = {"IN": "tests/golden/inputs", "EX": "examples", "TMP": str(tmp)}
    words = [re.sub(r"^(IN|EX|TMP)\b", lambda m: places[m[1]], w) for w in words[1:]]
    stdin = subprocess.DEVNULL
    if "<" in words:
        stdin = open(ROOT / words[words.index("<") + 1], "rb")
        words = words[:words.index("<")]
    done = subprocess.run([plimsoll, *words], stdin=stdin, capture_output=True, timeout=120,
                          env=environment(own), cwd=ROOT)
    if stdin is not subprocess.DEVNULL:
        stdin.close()
    text = f"$ {command}\n"
    for title, stream in (("stdout", done.stdout), ("stderr", done.stderr)):
        shown = stream.decode("utf-8", "backslashreplace").replace("\x1b", "\\e").replace(str(tmp), "TMP")
        if shown:
            text += f"--- {title}\n{shown}"
            if not shown.endswith("\n"):
                text += "\n(no newline at the end)\n"
    return f"{text}--- exit {done.returncode}\n", done


def rules(done):
    """What holds for every case, whatever its golden file says."""
    error = done.stderr.decode("utf-8", "replace")
    if done.returncode == 2 and not re.fullmatch(r"plimsoll: [^\n]+\n", error):
        yield "an error is one line on stderr that starts with plimsoll:"
    if done.returncode != 2 and error:
        yield "stderr is empty when nothing went wrong"
    if done.returncode not in (0, 1, 2, 3):
        yield "exit codes are 0 to 3"


class Count:
    passed = failed = 0

    def check(self, name, faults):
        for fault in faults:
            print(f"FAILED {name}: {fault}")
        self.failed += bool(faults)
        self.passed += not faults


def difference(want, got):
    lines = list(difflib.unified_diff(want.splitlines(), got.splitlines(), "golden", "now", lineterm="", n=2))
    return "\n    ".join(["not what the golden file says (UPDATE_GOLDEN=1 rewrites it)", *lines[:40]])


def golden(plimsoll, count):
    update = os.environ.get("UPDATE_GOLDEN")
    GOLDEN.mkdir(exist_ok=True)
    known = set()
    with tempfile.TemporaryDirectory(prefix="plimsoll-golden.") as tmp:
        prepare(pathlib.Path(tmp))
        for name, command in cases():
            path = GOLDEN / f"{name}.txt"
            known.add(path.name)
            got, done = run(plimsoll, command, pathlib.Path(tmp))
            faults = list(rules(done))
            if update:
                path.write_text(got, encoding="utf-8")
            want = path.read_text(encoding="utf-8") if path.exists() else ""
            if got != want:
                faults.append(difference(want, got))
            count.check(name, faults)
    stale = sorted(p.name for p in GOLDEN.glob("*.txt") if p.name not in known)
    for name in stale if update else []:
        (GOLDEN / name).unlink()
    count.check("no golden file without a case", [] if update else stale)


# --- help, man page and completion say the same ----------------------------------------------------

def output(plimsoll, *words):
    return subprocess.run([plimsoll, *words], capture_output=True, text=True, check=True, env=environment({})).stdout


def in_help(text):
    """{"--output": "-o", "--diff": None}"""
    return {long: short for short, long in re.findall(r"^  (?:(-\w), |    )(--[\w-]+)", text, re.M)}


def in_man(text):
    text = text.replace("\\-", "-")
    found = re.findall(r"^\.TP\n(?:\\fB(-\w)\\fR, )?\\fB(--[\w-]+)\\fR", text, re.M)
    return {long: short for short, long in found}


def in_bash(script, command):
    block = re.search(rf"^    {re.escape(command)}\)\n(.*?)^        ;;", script, re.M | re.S)[1]
    return set(re.search(r"cur == -\* \]\]; then\n\s+_plimsoll_words '([^']*)'", block)[1].split())


def in_zsh(script, command):
    block = re.search(rf"^  {re.escape(command)}\)\n(.*?)^    ;;", script, re.M | re.S)[1]
    block = block.replace("_arguments -s -S", "")
    block = re.sub(r"\[(?:[^\]\\]|\\.)*\].*", "", block)  # descriptions may name other options
    return set(re.findall(r"(?<![\w-])(--?[A-Za-z][\w-]*)", block))


def in_fish(script, command):
    lines = [l for l in script.splitlines() if f"__fish_seen_subcommand_from {command}'" in l]
    text = "\n".join(l.split(" -d '")[0] for l in lines)
    return {f"--{l}" for l in re.findall(r" -l ([\w-]+)", text)} | {f"-{s}" for s in re.findall(r" -s (\w)", text)}


def agreement(plimsoll, count):
    overview = output(plimsoll, "help")
    commands = re.findall(r"^  ([\w-]+) ", overview.split("Commands:\n")[1].split("\n\n")[0], re.M)
    shells = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}
    scripts = {shell: output(plimsoll, "completion", shell) for shell in shells}
    pages = output(plimsoll, "help", "--man").replace("\\-", "-")
    for command in commands:
        options = in_help(output(plimsoll, command, "--help"))
        every = set(options) | {s for s in options.values() if s}
        faults = []
        if not options:
            faults.append("--help lists no option")
        man = {l: s or None for l, s in in_man(output(plimsoll, "help", "--man", command)).items()}
        if man != {l: s or None for l, s in options.items()}:
            faults.append(f"the man page has {man}, --help has {options}")
        if f"plimsoll-{command}" not in pages:
            faults.append("plimsoll(1) does not name its page")
        for shell, reader in shells.items():
            try:
                found = reader(scripts[shell], command)
            except TypeError:
                found = set()
            if found != every:
                faults.append(f"{shell} completes {sorted(found ^ every)} otherwise than --help")
        count.check(f"help, man page and completion of {command}", faults)


# --- the documents show what the program prints ----------------------------------------------------

def documents(plimsoll, count):
    """In a ```console block each "$ build/plimsoll ..." is followed by its whole output."""
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        for block in re.findall(r"^```console\n(.*?)^```$", path.read_text(encoding="utf-8"), re.M | re.S):
            for command, shown in re.findall(r"^\$ build/(plimsoll .*)\n((?:(?!\$ ).*\n)*)", block, re.M):
                done = subprocess.run([plimsoll, *shlex.split(command)[1:]], capture_output=True, text=True,
                                      timeout=120, env=environment({}), cwd=ROOT)
                got = done.stdout + done.stderr
                count.check(f"{path.relative_to(ROOT)}: {command}", [difference(shown, got)] if got != shown else [])
    for path in sorted((ROOT / "examples").glob("*.yaml")):
        faults = []
        comment = path.read_text(encoding="utf-8").split("apiVersion:")[0]
        commands = re.findall(r"^#(?: Try:)? +plimsoll (.*)$", comment, re.M)
        for command in commands:
            done = subprocess.run([plimsoll, *shlex.split(command)], capture_output=True, timeout=120,
                                  env=environment({}), cwd=ROOT)
            if done.returncode not in (0, 1):
                faults.append(f"plimsoll {command}: exit code {done.returncode}")
        count.check(f"what {path.name} says to try", faults if commands else ["it has no line with Try:"])


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: golden_test.py PLIMSOLL")
    plimsoll = os.path.abspath(sys.argv[1])
    count = Count()
    golden(plimsoll, count)
    agreement(plimsoll, count)
    documents(plimsoll, count)
    print(f"golden: {count.passed} passed, {count.failed} failed")
    sys.exit(1 if count.failed else 0)


main()
