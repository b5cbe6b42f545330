#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Runs page_test.mjs where there is a browser to run it in; exit code 77 says that there is none.
here=$(dirname "$0")
for tool in "$NODE" "$CHROMIUM"; do
  if [ ! -x "$tool" ]; then
    printf 'SKIPPED no node or no Chromium (packages nodejs, chromium)\n'
    exit 77
  fi
done
if [ ! -f "$ASSAY_NPM/node_modules/playwright-core/index.mjs" ]; then
  printf 'SKIPPED playwright-core was not fetched\n'
  exit 77
fi
exec "$NODE" "$here/page_test.mjs"
