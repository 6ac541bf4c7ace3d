#!/bin/sh
# What a page shows of an output (support/excerpt.py): nothing is left out without a mark, no mark leaves
# out nothing, and times alone may differ.
set -eu
work=$(mktemp -d "$TEST_BINARY_DIR/excerpt XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
failed=0
cat >printed <<'END'
loss 0.5
tapescope: wrote a.prof: 3 lines, forward 10.8ms
share  total forward backward  b/f    tape line, op, function
80.1% 6.45ms  5.70ms    758µs 0.13 39.2MiB a.c:60 linear netwo…
10.6%  700µs       -    700µs    - 40.0MiB a.c:61 tanh network
 100% 7.15ms  5.70ms   1.46ms 0.26 79.2MiB (all)
AD is 40.4% of the run (15.3ms of 37.8ms): forward 28.6%, backward 11.7%, the
profiler 0.1%.
One line has much of the time. a.c:60 (linear in the network) takes 80.1% of
AD's time (7.15ms): backward is 0.13 times forward.
the end
END

# shown STATUS WORDS: the text on standard input, held to what was printed.
shown() {
    cat >shown
    status=0
    LC_ALL=C.UTF-8 python3 "$TEST_SOURCE_DIR/support/excerpt.py" shown printed >said || status=$?
    if [ "$status" -ne "$1" ] || { [ -n "$2" ] && ! grep -qF -- "$2" said; }; then
        echo "FAILED: status $status, not $1 with '$2':"
        cat shown said
        failed=1
    fi
}
without() { grep -v -- "$1" printed; }

shown 0 '' <printed
# Other times, other rows first, names cut elsewhere, a paragraph broken elsewhere.
shown 0 '' <<'END'
loss 0.5
tapescope: wrote a.prof: 3 lines, forward 9.3s
share   total forward backward   b/f    tape line, op, function
51.0% 12.45ms  5.70ms   7.58ms  1.13 40.0MiB a.c:61 tanh netw…
49.0%   712µs   102µs    612µs ~1.9! 39.2MiB a.c:60 linear network
 100%  7.15ms  5.70ms   1.46ms  0.26 79.2MiB (all)
AD is 5.4% of the run (15.3s of 3.8s): forward 2.6%, backward 1.7%, the profiler
0.1%.
One line has much of the time. a.c:60 (linear in the network) takes 8.1% of AD's
time (7.15ms): backward is 10.25 times forward.
the end
END
shown 0 '' <<'END'
⋮
share  total forward backward  b/f    tape line, op, function
⋮
 100% 7.15ms  5.70ms   1.46ms 0.26 79.2MiB (all)
⋮
END
shown 1 'left out without a ⋮: loss 0.5' <<END
$(without loss)
END
shown 1 'left out without a ⋮: share' <<END
$(without share)
END
shown 1 'left out without a ⋮:  100%' <<END
$(without '(all)')
END
shown 1 'left out without a ⋮: the end' <<END
$(without "the end")
END
shown 1 'leaves nothing out' <<END
$(sed 's/^share/⋮\n&/' printed)
END
shown 1 'leaves nothing out' <<END
$(cat printed)
⋮
END
shown 1 'not printed: 80.1%' <<END
$(sed 's/39.2MiB/39.3MiB/' printed)
END
shown 1 'not printed: 10.6%' <<END
$(sed 's/a.c:61/a.c:62/' printed)
END
shown 1 'not printed: share' <<END
$(sed 's/^share  total/share/' printed)
END
shown 1 'printed before' <<END
the end
$(without "the end")
END
shown 1 'not printed: One line' <<END
$(sed 's/times forward/times for/' printed)
END
: | shown 1 ''

[ "$failed" = 0 ] && echo "1 passed, 0 failed"
exit "$failed"
