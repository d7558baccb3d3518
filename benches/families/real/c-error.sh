#!/bin/sh
# gcc finds no member of this name in the struct.
LC_ALL=C gcc -fsyntax-only "$1" 2>&1 | grep -q "has no member named 'rest'"
