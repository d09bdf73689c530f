#!/bin/sh
# Runs every target of the fuzz program in the folder $1 for $2 seconds each, as many at a time as
# there are cores. What the targets learn stays in $1/found/, inputs that fail in $1/failed/.
# TARGETS="fuzz_npz ..." names those to run.
set -u
out=$(realpath "$1") # targets may run elsewhere
seconds=$2
jobs=$(nproc)

# What readers ask the system for is bounded by their input; so much for one block, so much in all.
limits='-malloc_limit_mb=256 -rss_limit_mb=2048 -max_len=32768 -timeout=10'

ASAN_OPTIONS=detect_leaks=0 "$out/seeds" "$out/given" ${EDDY_DATA:+"$EDDY_DATA/tf"} || exit 1
targets=${TARGETS:-$(ls "$out/given")}
mkdir -p "$out/failed"
one() {
    mkdir -p "$out/found/$1"
    ln -sf fuzz "$out/$1"
    corpus=
    [ -d "fuzz/corpus/$1" ] && corpus=fuzz/corpus/$1
    # Programs in Lua are short, and ask for the impossible: they get no memory.
    if [ "$1" = fuzz_lua ]; then
        limits="$limits -max_len=1024"
        export ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=200
    fi
    # shellcheck disable=SC2086  # words on purpose
    "$out/$1" $limits -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$out/failed/$1-" \
        "$out/found/$1" "$out/given/$1" $corpus > "$out/$1.log" 2>&1
    code=$?
    printf '  %-5s %-17s %s executions, %s new inputs\n' "$([ $code -eq 0 ] && echo ok || echo FAIL)" "$1" \
        "$(sed -n 's/stat::number_of_executed_units: *//p' "$out/$1.log")" "$(sed -n 's/stat::new_units_added: *//p' "$out/$1.log")"
    [ $code -eq 0 ] || grep -E '^(fuzz:|==|SUMMARY|Test unit)|runtime error' "$out/$1.log" | tail -n 5
    return $code
}

if [ $# -gt 2 ]; then # one target, started below
    one "$3"
    exit
fi
# shellcheck disable=SC2086
printf '%s\n' $targets | xargs -P "$jobs" -n 1 "$0" "$out" "$seconds"
