module plimsoll.dev/tests/e2e/workloads

go 1.24
