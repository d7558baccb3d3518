#!/bin/sh
# perl refuses a variable that is not declared.
perl -c "$1" 2>&1 | grep -q '^Global symbol "$remainder" requires explicit package name'
