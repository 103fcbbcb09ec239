#!/usr/bin/env python3
"""Adds up the suites of a meson test run: sum-tests.py build/meson-logs/testlog.json

Each test program ends with "suite: N passed, N failed". One that crashed, timed out or printed no
such line counts as one failure, so that silence never passes. One that ended with 77 is left out, and its
last line says why. The last line of output is
"N passed, N failed"; the exit code is 1 when anything failed or nothing ran."""
import json
import re
import sys

LINE = re.compile(r"^(?:.*: )?(\d+) passed, (\d+) failed$")


def counts(test):
    """(passed, failed, what was wrong with the program itself or '')"""
    found = None
    for line in (test.get("stdout") or "").splitlines():
        found = LINE.match(line.strip()) or found
    passed, failed = (int(found[1]), int(found[2])) if found else (0, 0)
    if not found:
        return passed, 1, "no 'N passed, N failed' line; result " + test["result"]
    if test["result"] != "OK" and failed == 0:
        return passed, 1, "cases passed, but the program ended with " + test["result"]
    return passed, failed, ""


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: sum-tests.py TESTLOG.json")
    try:
        with open(sys.argv[1], encoding="utf-8", errors="replace") as log:
            tests = [json.loads(line) for line in log if line.strip()]
    except OSError as error:
        print(f"sum-tests: {error}", file=sys.stderr)
        tests = []

    passed_sum = failed_sum = 0
    print()
    for test in tests:
        if test["result"] == "SKIP":
            why = ((test.get("stdout") or "") + (test.get("stderr") or "")).strip().splitlines() or ["?"]
            print(f"left out {test['name'].split(' / ')[-1]}: {why[-1]}")
            continue
        passed, failed, trouble = counts(test)
        passed_sum += passed
        failed_sum += failed
        mark = "ok    " if failed == 0 else "FAILED"
        print(f"{mark} {test['name'].split(' / ')[-1]}: {passed} passed, {failed} failed" +
              (f" ({trouble})" if trouble else ""))
        for line in (test.get("stdout") or "").splitlines():
            if line.startswith("passed only on the second try"):
                print(line)
    if not tests:
        print("no test ran")
        failed_sum += 1
    print(f"\n{passed_sum} passed, {failed_sum} failed")
    sys.exit(1 if failed_sum else 0)


main()
