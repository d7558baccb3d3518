#!/bin/sh
# Shows a crash without ddfuzz: group 97aee35dc868, variant d37660244395, input e7278120af82b44f.
# Exits with the program's status; 128 + N means that signal N ended it.
# To stop at the crash in gdb: sh reproduce.sh gdb. More arguments are for gdb: sh reproduce.sh gdb -batch -ex bt

case $0 in
*/*) here=${0%/*} ;;
*) here=. ;;
esac
here=$(CDPATH= cd -- "$here" && pwd) || exit 70
input=$here/minimized
[ -f "$input" ] || input=$here/original
[ -f "$input" ] || {
    echo "$0: the input is not beside this script" >&2
    exit 70
}
program=$here/../../../../'bin/25f98e70168cc93e/nroff'
scratch=$(mktemp -d) || exit 70
trap 'cd / && rm -rf -- "$scratch"' EXIT
trap 'exit 130' HUP INT TERM
cp -- "$input" "$scratch/input" && mkdir -- "$scratch/cwd" || exit 70
ulimit -c 0
[ -n "${LC_ALL-}${LC_CTYPE-}${LANG-}" ] || {
    LANG=C.UTF-8
    export LANG
}
cd -- "$scratch/cwd" || exit 70
if [ "${1-}" = gdb ]; then
    shift
    stdin=$(printf %s "$scratch/input" | sed "s/'/'\\\\''/g")
    env -- SHELL=/bin/sh gdb -q -ex 'unset environment LINES' \
        -ex 'unset environment COLUMNS' -ex "set exec-wrapper <'$stdin' nice -n 0" -ex run \
        "$@" --args "$program"
    exit
fi
"$program" <"$scratch/input"
status=$?
echo "ended with status $status" >&2
exit "$status"
