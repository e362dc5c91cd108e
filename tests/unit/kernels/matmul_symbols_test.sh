#!/usr/bin/env bash
# Object files compiled for one instruction set define no weak symbol: the
# linker could give its code to the whole program, which then fails on older
# processors. Provoked by any inline function or template with a name that such
# a file emits.
#   usage: matmul_symbols_test.sh NM OBJECT...
set -euo pipefail
nm=$1
shift
checked=0
failed=0
for object in "$@"; do
  case "$(basename "$object")" in
    *avx* | *neon*) ;;
    *) continue ;;
  esac
  checked=$((checked + 1))
  weak=$("$nm" -C "$object" | grep -E '^[0-9a-fA-F]+ [uVvWw] ' || true)
  if [ -n "$weak" ]; then
    echo "$object defines weak symbols:"
    echo "$weak"
    failed=1
  fi
done
if [ "$checked" -eq 0 ]; then
  echo "no object file of an instruction set was given"
  exit 1
fi
echo "$checked object files checked"
exit "$failed"
