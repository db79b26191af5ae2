#!/usr/bin/env bash
# A stranger's first hour, by what README and docs say and nothing else: clone, the two commands, the tutorial of the agent, a scenario of
# one's own with many handovers, the plot of its stalls with and without an assist, a program of one's own.
#
#   tests/newcomer.sh                       everything as written, thirty repetitions
#   tests/newcomer.sh --repeat 3            fewer repetitions, for CI
#   tests/newcomer.sh --built DIR           with a careof that is built already, instead of a clone that is built: DIR holds the clone
#
# The commands are read out of the pages; what is typed here is only what a reader has to do by hand: to put a file where the page says.
set -euo pipefail

source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
repeat=30 built=
while (($#)); do
  case $1 in
    --repeat) repeat=$2; shift 2 ;;
    --built) built=$(cd "$2" && pwd); shift 2 ;;
    *) echo "error: $1 means nothing here" >&2; exit 2 ;;
  esac
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say() { printf '\n== %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }
# The Nth block of a language on a page.
block() { # page, language, number
  awk -v begin="\`\`\`$2" -v wanted="$3" '
    $0 == "```" && inside { inside = 0; next }
    inside { if (ours && count == wanted) print; next }
    /^```/ { inside = 1; ours = ($0 == begin); count += ours }' "$1" | grep . || fail "$1 has no block $3 of $2"
}

if [[ -z $built ]]; then
  say "Clone"
  git clone --quiet "$source" "$work/careof"
  built=$work/careof
fi
cd "$built"

say "The two commands of README"
mapfile -t commands < <(block README.md '' 2)
((${#commands[@]} == 2)) || fail "README has ${#commands[@]} commands where two were"
if [[ $built == "$work/careof" ]]; then
  ${commands[0]} | tee "$work/demo"
  [[ -s demo/report.html ]] || fail "make demo has left no report"
fi
cd "$work"
ln -s "$built/scenarios" scenarios
PATH=$built/.venv/bin:$PATH
eval "${commands[1]#.venv/bin/}" | tee said
tr -s '\n ' ' ' < said | grep -q 'and voice got nothing new for 562 ms at most' || fail "the run does not say what README promises"

hosts=yes
[[ -w /dev/net/tun ]] || hosts=
# For a tree that is built a test of its own carries the tutorial out.
if [[ -n $hosts && $built == "$work/careof" ]]; then
  say "The tutorial of the agent"
  "$built/examples/try-it.sh" > tutorial || fail "the tutorial failed: $(tail -5 tutorial)"
  tail -3 tutorial
fi

page=$built/docs/your-own.md
say "A scenario of one's own"
block "$page" toml 1 > phone.toml
block "$page" sh 1 > commands
sh -euc "$(cat commands)"
python3 - phone/summary.json <<'PYTHON'
import json, sys
summary = json.load(open(sys.argv[1]))
assert [flow["name"] for flow in summary["flows"]] == ["download-1", "download-2", "download-3"]
assert len(summary["handovers"]) == 29, len(summary["handovers"])
PYTHON

say "With and without an assist, $repeat times"
block "$page" sh 2 | sed "s/--repeat 30/--repeat $repeat/" > commands
sh -euc "$(cat commands)"
[[ -s stalls.svg ]] || fail "there is no plot"

if [[ -n $hosts ]]; then
  say "A program of one's own"
  block "$page" sh 3 > commands
  got=$(sh -euc "$(cat commands)")
  [[ $got == 3000000 ]] || fail "the program got $got bytes"
else
  say "No real hosts here: /dev/net/tun cannot be opened. The tutorial and the program of one's own are left out."
fi
say "Done"
