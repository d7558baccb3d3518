#!/bin/sh
# node refuses to parse it: a name is declared twice.
node --check "$1" 2>&1 | grep -q "SyntaxError: Identifier 'listItem' has already been declared"
