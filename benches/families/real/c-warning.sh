#!/bin/sh
# gcc compiles it with one warning, of an assignment used as a truth value.
messages=$(LC_ALL=C gcc -Wall -fsyntax-only "$1" 2>&1) || exit 1
[ "$(echo "$messages" | grep -c 'warning:')" = 1 ] && echo "$messages" | grep -q 'Wparentheses'
