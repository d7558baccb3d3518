#!/bin/sh
# pngcheck finds a wrong checksum in the time of the last change.
pngcheck "$1" 2>&1 | grep -q 'CRC error in chunk tIME'
