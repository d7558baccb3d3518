#!/bin/sh
# jq cannot make a number of one value.
jq '."4217"[] | .numeric | tonumber' "$1" 2>&1 >/dev/null | grep -q 'boolean (true) cannot be parsed as a number'
