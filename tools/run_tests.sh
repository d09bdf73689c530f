#!/bin/sh
# Runs test programs, each in a process of its own with a time limit; prints one line for each, and the output of those that fail.
set -u
limit=${EDDY_TEST_LIMIT:-600}
failed=0
count=0
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for program; do
    count=$((count + 1))
    start=$(date +%s)
    timeout "$limit" "$program" > "$log" 2>&1
    code=$?
    seconds=$(($(date +%s) - start))
    if [ $code -eq 0 ]; then
        printf '  ok    %-16s %4ss  %s\n' "$(basename "$program")" "$seconds" "$(grep -v '^\[ *\(RUN\|OK\) *\]' "$log" | tail -n 1)"
    else
        failed=$((failed + 1))
        grep -v '^\[ *\(RUN\|OK\) *\]' "$log" | tail -n 60
        printf '  FAIL  %-16s %4ss  %s\n' "$(basename "$program")" "$seconds" "$([ $code -eq 124 ] && echo "longer than $limit s" || echo "exit code $code")"
    fi
done
echo "$((count - failed)) of $count test programs passed"
[ $failed -eq 0 ]
