#!/bin/sh
# sqlite3 does not know which of two columns is meant.
timeout 5 sqlite3 :memory: <"$1" 2>&1 >/dev/null | grep -q 'ambiguous column name: code'
