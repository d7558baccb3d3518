#!/bin/sh
# xmllint does not find the document valid: an attribute is not declared.
xmllint --nonet --noout --valid "$1" 2>&1 | grep -q 'validity error : No declaration for attribute remark of element iso_639_5_entry'
