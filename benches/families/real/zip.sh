#!/bin/sh
# unzip finds a member whose content is not what its checksum says.
timeout 5 unzip -tqq "$1" 2>&1 </dev/null | grep -q 'bad CRC'
