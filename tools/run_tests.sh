#!/bin/sh
# run_tests.sh JOBS PROGRAM...: runs test programs, JOBS at a time (empty: as many as cores), each
# in a process of its own with a time limit. Prints one line for each as it ends, below the output
# of one that failed; then what was skipped, and how many passed. From the environment: EDDY_TEST_LIMIT,
# seconds for each; EMULATOR, the command that runs programs of another machine, for tests too.
set -u
limit=${EDDY_TEST_LIMIT:-600}

# One program, "path" or, of one that runs in parts, "path:i/n".
one() {
    part=${1#"${1%%:*}"}
    name=$(basename "${1%%:*}")${part:+ ${part#:}}
    log=$results/$(echo "$name" | tr ' /' '__').log
    start=$(date +%s)
    # qemu ignores the bounds of memory that a program sets itself, so it is bounded: 8 GiB.
    bound=
    case ${EMULATOR:+$name} in test_ops*) bound=$((8 << 20)) ;; esac
    # shellcheck disable=SC2086  # no emulator and no part are no words
    (${bound:+ulimit -v $bound}; exec timeout "$limit" ${EMULATOR:-} "${1%%:*}" ${part#:}) > "$log" 2>&1
    code=$?
    seconds=$(($(date +%s) - start))
    echo "$code ${name%% *}" >> "$results/codes"
    grep -v '^\[ *\(RUN\|OK\) *\]' "$log" > "$log.short"
    case $code in
    0) tail -n 1 "$log.short" ;;
    124) echo "longer than $limit s" ;;
    *) echo "exit code $code" ;;
    esac > "$log.last"
    { # in one piece, since others write too
        [ $code -eq 0 ] || tail -n 60 "$log.short"
        printf '  %-5s %-24s %4ss  %s\n' "$([ $code -eq 0 ] && echo ok || echo FAIL)" "$name" "$seconds" "$(cat "$log.last")"
    } > "$log.line"
    cat "$log.line"
}
if [ "$1" = --one ]; then # started below
    one "$2"
    exit 0
fi

jobs=${1:-$(nproc)}
shift
results=$(mktemp -d)
export results
trap 'rm -rf "$results"' EXIT
trap 'exit 1' HUP INT TERM

# Long ones first, that none be waited for at the end; the longest in parts.
parts=$((jobs < 16 ? jobs : 16))
[ -z "${EMULATOR:-}" ] || parts=48 # qemu's own memory grows with what a program has mapped
for program; do
    case $(basename "$program") in
    test_ops) for part in $(seq $parts); do echo "0 $program:$part/$parts"; done ;;
    test_misuse | test_kill | test_c | test_lua | test_gemm | test_factor | test_spectral | test_manager_faults | test_corpus) echo "1 $program" ;;
    *) echo "2 $program" ;;
    esac
done | sort -s -k 1,1n | cut -d ' ' -f 2 | xargs -P "$jobs" -n 1 "$0" --one

cat "$results"/*.log | sed -n 's/^skipped: //p' | sort | uniq -c | sort -rn |
    awk '{ n += $1; $1 = $1 " "; why = why (why ? ", " : "") substr($0, index($0, " ") + 2) " (" $1 + 0 ")" } END { if (n) print n " tests skipped: " why }'
awk '{ ran[$2]; if ($1 != 0) failed[$2] } END { n = length(ran); f = length(failed); print n - f " of " n " test programs passed"; exit n == 0 || f > 0 }' \
    "$results/codes"
