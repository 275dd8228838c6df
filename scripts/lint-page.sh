#!/bin/sh
# Lint the explorer's page with eslint, in the versions of package-lock.json. Where Node.js is missing this says so and
# passes; with CI=true it fails.
set -eu
cd "$(dirname "$0")/.."
if ! command -v node >/dev/null 2>&1 || ! command -v npm >/dev/null 2>&1; then
    echo "eslint was not run: node and npm are missing; install Node.js 18.18 or newer" >&2
    [ "${CI:-}" != true ]
    exit
fi
used=node_modules/.lock-used # the lock file that node_modules was made from
if ! cmp -s package-lock.json "$used"; then
    npm ci --no-audit --no-fund --loglevel=error
    cp package-lock.json "$used"
fi
node_modules/.bin/eslint --max-warnings 0
