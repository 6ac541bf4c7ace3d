#!/bin/sh
# test_browser.sh: `tapescope html --open`: which browser is started, and with which page.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
record_program
expect 0 "$tapescope" html -o wanted.html

# A browser that says what it was asked to open, and whose child it is then.
cat >shows <<'END'
#!/bin/sh
tries=0
until parent=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$$/status) &&
    [ "$(cat /proc/"$parent"/comm 2>/dev/null)" != tapescope ] || [ $tries -ge 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
{ printf '%s\n' "$@"; cat /proc/"$parent"/comm; } >opened.new
mv opened.new opened
END
cp shows xdg-open
chmod +x shows xdg-open
mkdir temporary
# opens STATUS VARIABLE...: the page is asked for with these variables; what was opened is in `opened`.
opens()
{
    status=$1
    shift
    rm -rf opened temporary/*
    # shellcheck disable=SC2086 # the options are words
    expect "$status" env -u DISPLAY -u WAYLAND_DISPLAY -u BROWSER "$@" PATH="$PWD:$PATH" TMPDIR="$PWD/temporary" \
        "$tapescope" html --open $options
    tries=0
    until [ "$status" -ne 0 ] || [ -s opened ] || [ $tries -ge 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}

# In a folder of its own, which nobody else can read, by the first program that can be started; no
# shell reads BROWSER, and nobody waits for the browser.
options=
opens 0 'BROWSER=no-such-browser; touch hacked:shows --new %s'
[ ! -e hacked ] || fail "a shell reads BROWSER"
page=$(echo "$PWD"/temporary/tapescope-*/report.html)
[ "$(sed -n 1,2p opened)" = "--new
$page" ] || fail "the browser is asked for $(cat opened), not for $page"
[ "$(sed -n 3p opened)" != tapescope ] || fail "the browser's parent is tapescope"
cmp -s "$page" wanted.html || fail "another page than that of html"
[ "$(stat -c %a "${page%/*}")" = 700 ] || fail "others may read the page"
said "wrote $page"
opens 0 WAYLAND_DISPLAY=w BROWSER=no-such-browser
[ "$(sed -n 1p opened)" = "$(echo "$PWD"/temporary/tapescope-*/report.html)" ] || fail "xdg-open is not asked"

# In a place of the user's own.
options='-o here.html'
opens 0 DISPLAY=:9
[ "$(sed -n 1p opened)" = "$PWD/here.html" ] || fail "opens $(cat opened)"
[ -z "$(ls temporary)" ] || fail "a page in a temporary folder, too"

# Without a display, or without a browser, the page is there, and the status is that of a failure.
rm here.html
opens 1
grep -q "no display to open a browser on" err || fail "nothing is said of a display"
cmp -s here.html wanted.html || fail "no page without a display"
rm xdg-open
expect 1 env DISPLAY=:9 BROWSER=no-such-browser PATH="$PWD/temporary" "$tapescope" html --open -o here.html
grep -q "neither \$BROWSER nor xdg-open" err || fail "nothing is said of browsers"
[ ! -e opened ] || fail "a browser where there is none"

# What cannot be opened is said before a browser is.
options=
expect 1 env DISPLAY=:9 TMPDIR="$PWD/none" "$tapescope" html --open
said "cannot make $PWD/none/tapescope-"
expect 2 "$tapescope" html --open -o -
said "needs a file"

[ $failures -eq 0 ] || exit 1
echo "test_browser: ok"
