module plimsoll.dev/tests/e2e/proxy

go 1.21
