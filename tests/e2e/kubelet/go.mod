module plimsoll.dev/tests/e2e/kubelet

go 1.24
