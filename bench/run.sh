#!/bin/sh
# Times Eddy's bench programs (in the folder $1) and whichever peers are installed in turn, a few
# rounds each, and prints one table with ratios. EDDY_PEERS lists the Python interpreters to look
# for peers in; EDDY_BENCH the prefixes of the workloads; EDDY_ROUNDS the rounds.
exec python3 "$(dirname "$0")/compare_programs.py" "$1"
