#!/bin/sh
# Tests of `wordcount` with nothing but the command: the provider is slow, fails, and is offline.
#
#   promisefs try --content FOLDER -- sh Examples/WordCount/test_wordcount.sh       FOLDER: one.txt "a b c", below/two.txt "d e"
set -eu
here=$(dirname "$0")
promisefs=${PROMISEFS_EXECUTABLE:-promisefs}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count() { python3 "$here/wordcount.py" "$PROMISEFS_MOUNT" >"$work/words" 2>"$work/problems"; }
suffers() { : >"$PROMISEFS_FAULTS.new"; for line; do echo "$line" >>"$PROMISEFS_FAULTS.new"; done; mv "$PROMISEFS_FAULTS.new" "$PROMISEFS_FAULTS"; }
is() { [ "$1" = "$2" ] || { echo "'$1' is not '$2'" >&2; exit 1; }; }

# Slow: it waits, and has all words.
suffers delay=1s only=fetchContents
begun=$(date +%s)
count
[ $(($(date +%s) - begun)) -ge 1 ]
is "$(awk '{ sum += $1 } END { print sum }' "$work/words")" 5

# Offline: what is here is counted, and it says what is not.
suffers
"$promisefs" evict "$PROMISEFS_MOUNT/below/two.txt" >/dev/null
suffers offline=true
status=0
count || status=$?
is "$status" 1
is "$(cat "$work/words")" "      3 one.txt"
is "$(cat "$work/problems")" "below/two.txt: Network is down"

# Failing: what is written meanwhile arrives.
suffers fail=2
cp "$work/words" "$PROMISEFS_MOUNT/result"
suffers
"$promisefs" sync --wait "$PROMISEFS_MOUNT" >/dev/null
is "$(cat "$PROMISEFS_CLOUD/result")" "      3 one.txt"
echo "wordcount is right"
