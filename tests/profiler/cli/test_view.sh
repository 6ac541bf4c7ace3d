#!/bin/sh
# test_view.sh: what `tapescope view` serves, to whom, until when, and which browser it opens.
#
# Environment: as test_exports.sh.
# shellcheck source=tests/support/cli_support.inc
. "$TEST_SOURCE_DIR/support/cli_support.inc"
# shellcheck source=tests/support/consumers.inc
. "$TEST_SOURCE_DIR/support/consumers.inc"
need chromium-headless-shell chromium-headless-shell
need script bsdutils
npm_packages
record_program

mkdir wanted
expect 0 "$tapescope" html -o wanted/report.html
expect 0 "$tapescope" export -f perfetto -o wanted/trace.perfetto-trace
expect 0 "$tapescope" export -f chrome -o wanted/trace.json
expect 0 "$tapescope" export -f speedscope -o wanted/profile.speedscope.json
cp tapescope.prof wanted/profile.prof
expect 0 node "$TEST_SOURCE_DIR/npm/view.cjs" "$tapescope"
shown 'view: ok'

# What cannot be served is said before anything is.
expect 3 "$tapescope" view none.prof
said "none.prof: No such file"
[ ! -s out ] || fail "a link to nothing"
printf 'no profile' >bad.prof
expect 3 "$tapescope" view bad.prof
[ ! -s out ] || fail "a link to a bad profile"
expect 3 "$tapescope" view --base none.prof
expect 2 "$tapescope" view --port 65536
said 'a port is a number up to 65535'
expect 2 "$tapescope" view --perfetto --port 80
said '--perfetto needs port 9001'
TAPESCOPE_CLOCK=step:1000 expect 0 "$tapescope" record -o short.prof ./exports
expect 1 "$tapescope" view --perfetto short.prof
said 'short.prof: it has no timeline; record one by'
[ ! -s out ] || fail "a link to no timeline"
expect 1 env TMPDIR="$PWD/none" "$tapescope" view
said 'view: '"$PWD"'/none/tapescope-view-'

# Options of the page are html's; a profile without a timeline has no trace.
expect 0 "$tapescope" html -o wanted.html --theme dark --source none --base short.prof --sizes 1,2 short.prof tapescope.prof
"$tapescope" view --once --theme dark --source none --base short.prof --sizes 1,2 short.prof tapescope.prof >"link" 2>err &
visit()
{
    tries=0
    until [ -s link ] || [ $tries -ge 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    node -e 'fetch(process.argv[1]).then(async answer => {
        require("fs").writeFileSync("got", Buffer.from(await answer.arrayBuffer()))
        console.log(answer.status) })' "$(cat link)"
}
expect 0 visit
wait $! || fail "--once does not end well"
cmp -s got wanted.html || fail "another page than that of html with the same options"

# The browser is one of BROWSER's, without a shell, and nobody waits for it.
cat >shows <<'END'
#!/bin/sh
# Whose child it is, as soon as that is not the program any more.
tries=0
until parent=$(sed -n 's/^PPid:[^0-9]*//p' /proc/$$/status) &&
    [ "$(cat /proc/"$parent"/comm 2>/dev/null)" != tapescope ] || [ $tries -ge 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
{ printf '%s\n' "$@"; cat /proc/"$parent"/comm; } >opened
for address; do :; done
exec node -e 'fetch(process.argv[1]).then(answer => answer.text())' "$address"
END
cp shows xdg-open
chmod +x shows xdg-open
on_terminal()
{
    rm -f opened
    expect 0 env "$@" PATH="$PWD:$PATH" TAPESCOPE="$tapescope" \
        script -qec "\"\$TAPESCOPE\" view $view" /dev/null </dev/null
}
view=--once
on_terminal DISPLAY=:9 'BROWSER=no-such-browser; touch hacked:shows --new %s'
[ ! -e hacked ] || fail "a shell reads BROWSER"
link=$(tr -d '\r' <out | sed -n '/^http:/p;/^http:/q')
[ "$(sed -n 1,2p opened 2>&1)" = "--new
$link" ] || fail "the browser is asked for $(cat opened), not for $link"
[ "$(sed -n 3p opened)" != tapescope ] || fail "the browser's parent is tapescope"
on_terminal -u DISPLAY -u BROWSER WAYLAND_DISPLAY=w BROWSER=no-such-browser
[ -s opened ] || fail "xdg-open is not asked"
view="--timeout 1"
on_terminal -u DISPLAY -u WAYLAND_DISPLAY BROWSER='shows --new'
[ ! -e opened ] || fail "a browser without a display"
view="--timeout 1 --no-browser"
on_terminal DISPLAY=:9 BROWSER='shows --new'
[ ! -e opened ] || fail "a browser with --no-browser"
expect 0 env PATH="$PWD:$PATH" DISPLAY=:9 BROWSER='shows --new' "$tapescope" view --timeout 1
[ ! -e opened ] || fail "a browser without a terminal"

[ $failures -eq 0 ] || exit 1
echo "test_view: ok"
