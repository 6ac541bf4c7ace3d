#!/bin/sh
# The program of docs/how-to/functional.md prints what the page says.
set -eu
# shellcheck source=tests/support/page.inc
. "$TEST_SOURCE_DIR/support/page.inc"
page_runs how-to/functional.md
