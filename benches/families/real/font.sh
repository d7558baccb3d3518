#!/bin/sh
# fontconfig reads this name of a family.
fc-scan -f '%{family}' "$1" 2>/dev/null | grep -q '^Standard Symbols PS'
