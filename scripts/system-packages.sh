#!/bin/sh
# Find or install what the tests and linters need from the system: PostgreSQL, two browsers, Node.js, simulators. Never fails:
# a test that misses something says so (it is skipped, or fails where CI=true), and so does scripts/lint-page.sh.
set -u
have_postgres() {
    command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1
}
have_browser() {
    command -v chromium >/dev/null 2>&1 || command -v chromium-browser >/dev/null 2>&1 || command -v google-chrome >/dev/null 2>&1
}
have_firefox() {
    command -v firefox-esr >/dev/null 2>&1 || command -v firefox >/dev/null 2>&1
}
have_node() {
    command -v node >/dev/null 2>&1 && command -v npm >/dev/null 2>&1
}
missing=""
have_postgres || missing="$missing postgresql"
have_browser || missing="$missing chromium fonts-dejavu-core"
have_firefox || missing="$missing firefox-esr"
have_node || missing="$missing nodejs npm"
command -v ngspice >/dev/null 2>&1 || missing="$missing ngspice"
command -v ccx >/dev/null 2>&1 || missing="$missing calculix-ccx"
[ -z "$missing" ] && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing:$missing"
    apt-get update -qq >/dev/null 2>&1
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1 ||
        echo "could not install:$missing"
else
    echo "not found:$missing (what needs it will say so)"
fi
exit 0
