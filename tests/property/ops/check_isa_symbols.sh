#!/usr/bin/env bash
# usage: check_isa_symbols.sh ARCHIVE...
# Objects compiled for one instruction set (named *_avx2*, *_avx512*, *_neon*) hold no weak
# or unique symbol: the linker might keep that copy for the whole program. Fails
# with the symbols, and when no such object is found.
set -euo pipefail
found=0
bad=0
for archive in "$@"; do
  while IFS= read -r line; do
    case "$line" in
      *avx*.o: | *neon*.o:) object=$line; found=$((found + 1)) ;;
      *.o:) object= ;;
      *" "[WVu]" "*)
        if [ -n "${object:-}" ]; then
          echo "$object $line"
          bad=1
        fi ;;
    esac
  done < <(nm --defined-only -C "$archive" 2>/dev/null)
done
[ "$found" -gt 0 ] || { echo "no object of an instruction set in: $*"; exit 1; }
echo "$found objects looked at"
exit "$bad"
