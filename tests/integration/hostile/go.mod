module plimsoll.dev/tests/integration/hostile

go 1.24
