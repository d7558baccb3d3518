#!/bin/sh
# The program ends with this exception.
timeout 5 /usr/bin/python3 -I "$1" 2>&1 >/dev/null </dev/null | tail -n 1 | grep -q '^ValueError: No closing quotation'
