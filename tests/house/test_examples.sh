#!/bin/sh
# test_examples.sh: the examples that judge their own results (ode, logistic, lstm, heat, gp, hmc,
# bundle, characters, kinetics, and those that record in parallel) come to the right end, alone and under the profiler; their tables name the
# lines that compute; and a result that is not right fails.
#
# Environment: TAPESCOPE_PROGRAM, TAPESCOPE_SOURCE_DIR, TAPESCOPE_BINARY_DIR, TEST_BINARY_DIR.
set -u
LC_ALL=C.UTF-8
COLUMNS=80
export LC_ALL COLUMNS
unset TAPESCOPE_PROFILE TAPESCOPE_CLOCK

folder=$(mktemp -d "$TEST_BINARY_DIR/examples XXXXXX") || exit 1
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failures=0

# expect STATUS COMMAND...: runs it with its output in the files out and err.
expect()
{
    wanted=$1
    shift
    "$@" >out 2>err
    got=$?
    [ $got -eq "$wanted" ] && return
    echo "FAILED: status $got, not $wanted: $*"
    cat out err
    failures=$((failures + 1))
}

# shown FILE TEXT: the file holds TEXT.
shown()
{
    grep -qF -- "$2" "$1" && return
    echo "FAILED: no '$2' in"
    cat "$1"
    failures=$((failures + 1))
}

# line EXAMPLE TEXT: the number of the line of the example's source that holds TEXT.
line() { grep -nF -- "$2" "$TAPESCOPE_SOURCE_DIR/examples/$1/$1.c" | cut -d: -f1; }

tapescope=$TAPESCOPE_PROGRAM
bin=$TAPESCOPE_BINARY_DIR/bin

examples="ode logistic lstm checkpoint steps parallel_pthreads heat gp hmc bundle characters"
if [ -x "$bin/parallel_openmp" ]; then
    examples="$examples parallel_openmp"
else
    echo "skipped: parallel_openmp is not built (no OpenMP, or ThreadSanitizer)"
fi
if [ "$TAPESCOPE_ODE" = ON ]; then
    examples="$examples kinetics"
else
    echo "skipped: kinetics is not built (no SUNDIALS)"
fi
for example in $examples; do
    expect 0 "$bin/$example"
    cp out alone
    cp out "$example.out"
    [ -s err ] && { echo "FAILED: $example says:"; cat err; failures=$((failures + 1)); }
    expect 0 "$tapescope" record -o "$example.prof" -- "$bin/$example"
    # Not a digit depends on the profiler.
    cmp alone out || failures=$((failures + 1))
    expect 0 "$tapescope" top -n 0 "$example.prof" # all lines: which cost most is not promised
    widest=$(wc -L <out)
    [ "$widest" -le 80 ] || { echo "FAILED: $widest columns"; failures=$((failures + 1)); }
    # Where nothing is cut: how wide the times are differs from run to run.
    expect 0 env COLUMNS=160 "$tapescope" top -n 0 "$example.prof"
    cp out "$example.top"
done
shown ode.top "ode.c:$(line ode '.u = ad_sub(rates->alpha') exp,mul"
shown ode.top "ode.c:$(line ode '.v = ad_add(s.v') add,scale"
if [ "$TAPESCOPE_ODE" = ON ]; then
    shown kinetics.top "kinetics.c:$(line kinetics 'return ad_ode(') ode"
    # What docs/how-to/ode.md shows is what it prints.
    awk '/^```text/ { on = 1; next } /^```/ { on = 0 } on' "$TAPESCOPE_SOURCE_DIR/docs/how-to/ode.md" >page
    [ "$(wc -l <page)" -eq 4 ] || { echo "FAILED: nothing is shown"; failures=$((failures + 1)); }
    cmp page kinetics.out || failures=$((failures + 1))
    awk '$0 == "```" { on = 0 } on { print } $0 == "```c" { on = 1 }' "$TAPESCOPE_SOURCE_DIR/docs/how-to/ode.md" >page
    [ "$(wc -l <page)" -ge 4 ] || { echo "FAILED: nothing is shown"; failures=$((failures + 1)); }
    while IFS= read -r text; do shown "$TAPESCOPE_SOURCE_DIR/examples/kinetics/kinetics.c" "$text"; done <page
fi
shown heat.top "heat.c:$(line heat 'ad_real_checkpoint_loop(') real_checkpoint_loop cost"
shown gp.top "gp.c:$(line gp 'l = ad_cholesky(') cholesky likelihood_of"
shown hmc.top "hmc.c:$(line hmc 'ad_real_sub(residual,') statement residual_of"
shown bundle.top "bundle.c:$(line bundle 'ad_real_jacobian_sparse(') real_jacobian_sparse look"
shown characters.top "characters.c:$(line characters 'ad_tensor h = ad_tanh(') linear,tanh guess"
# A file is gone on from: the epochs count on. One that is damaged is refused, and stays as it is.
expect 0 "$bin/characters" model.npz
cp out first
expect 0 "$bin/characters" model.npz
shown out "epoch 8: "
head -c 5000 model.npz >cut.npz
cp cut.npz as_it_was
expect 1 "$bin/characters" cut.npz
shown err "visit_load: cut.npz: is no zip archive, or it is cut off at characters.c:"
cmp cut.npz as_it_was || failures=$((failures + 1))
# What docs/explanation/gallery.md shows is what they print, but for what is nearly 0 and how long a search is.
rounded() { sed 's/[0-9.]*e-[0-9]*/E/g; s/[0-9]* evaluations/N evaluations/'; }
for example in heat gp hmc bundle characters; do
    awk -v picture="/$example-source.png" '/^## / { text = "" } /^```$/ { on = 0 } on { text = text $0 "\n" }
        /^```text$/ { on = 1 } index($0, picture) { printf "%s", text }' \
        "$TAPESCOPE_SOURCE_DIR/docs/explanation/gallery.md" | rounded >page
    rounded <"$example.out" >out
    python3 "$TEST_SOURCE_DIR/support/excerpt.py" --exact page out || failures=$((failures + 1))
done
# What docs/how-to/scalars.md shows is the example's text.
awk '/^## / { on = /Recording in several threads/ } on && /^    / { sub(/^ */, ""); print }' \
    "$TAPESCOPE_SOURCE_DIR/docs/how-to/scalars.md" >shown.c
[ "$(wc -l <shown.c)" -ge 10 ] || { echo "FAILED: nothing is shown"; failures=$((failures + 1)); }
while IFS= read -r text; do
    shown "$TAPESCOPE_SOURCE_DIR/examples/parallel_openmp/parallel_openmp.c" "$text"
done <shown.c
# A line that threads recorded on forks has one row, with the calls of all: 20 steps and a check.
residual=$(grep -n 'ad_set(&residual' "$TAPESCOPE_SOURCE_DIR/examples/parallel_openmp/oscillations.c" |
    cut -d: -f1)
shown parallel_pthreads.top " 210k oscillations.c:$residual st"
[ "$(grep -c "oscillations.c:$residual " parallel_pthreads.top)" -eq 1 ] || {
    echo "FAILED: not one row of the residuals' line in"
    cat parallel_pthreads.top
    failures=$((failures + 1))
}
# Threads of a parallel loop are its one frame, below the line that begins it.
if [ -x "$bin/parallel_openmp" ]; then
    expect 0 env OMP_NUM_THREADS=3 "$tapescope" record -o loop.prof -- "$bin/parallel_openmp"
    expect 0 env COLUMNS=160 "$tapescope" tree loop.prof
    sed -n 's/.*[0-9k] \( *\)\(main\.[_a-z.]*[0-9]* [a-z_]*\.c:[0-9]*\).*/[\1]\2/p' out |
        grep '_omp_fn\|omp_outlined' | sort >loops
    if [ ! -s loops ] || [ -n "$(uniq -d loops)" ] || grep -q '^\[\]' loops; then
        echo "FAILED: a loop's threads are apart in"
        cat loops out
        failures=$((failures + 1))
    fi
fi
# Without checkpoints each of 256 steps is computed once, in segments twice; the report has a third
# phase then.
cp checkpoint.out out
shown out "everything kept "
shown out " 100.0%            256"
shown out "%            512"
shown out "the gradients are the same bit for bit"
shown checkpoint.top " recompute "
shown checkpoint.top "checkpoint.c:$(line checkpoint 'ad_lstm_cell(') lstm_cell"
expect 0 "$tapescope" info checkpoint.prof
shown out "recompute "
expect 0 "$tapescope" annotate checkpoint.c checkpoint.prof
shown out " recompute "
expect 0 "$tapescope" annotate ode.c ode.prof
grep -q recompute out && { echo "FAILED: recomputation without any"; failures=$((failures + 1)); }
# What docs/how-to/checkpoint.md shows of numbers is the example's text and its figures; what it shows
# below these is test_checkpoint_page.sh's.
cp steps.out out
awk '/^##/ { on = /^## (Numbers|Loops)/ } on && /^```/ { code = !code; next } on && code { print }' \
    "$TAPESCOPE_SOURCE_DIR/docs/how-to/checkpoint.md" >shown.c
[ "$(wc -l <shown.c)" -ge 20 ] || { echo "FAILED: nothing is shown"; failures=$((failures + 1)); }
while IFS= read -r text; do
    shown "$TAPESCOPE_SOURCE_DIR/examples/steps/steps.c" "$text"
done <shown.c
awk -F ' *[|] *' '/^## / { on = /Numbers/ } on && /%/ { sub(" %", "%", $4); print $2, $3, $4, $5 }' \
    "$TAPESCOPE_SOURCE_DIR/docs/how-to/checkpoint.md" >figures
[ "$(wc -l <figures)" -eq 4 ] || { echo "FAILED: no figures"; failures=$((failures + 1)); }
tr -s ' ' <out | sed 's/ 100.0%/ 100%/' >squeezed
while IFS= read -r text; do shown squeezed "$text"; done <figures
shown out "the gradients are the same bit for bit"
shown steps.top " recompute "
shown steps.top "steps.c:$(line steps 'ad_set(&sum[i]') statement"
# The LSTM learns what the digits are, by the gradient that differences have too.
expect 0 "$bin/lstm" --check
shown out "agrees with central differences at all 184 parameters"
cp lstm.out out
awk '/^epoch/ { loss = $NF; if (!first) first = loss } /^test accuracy/ { right = $3 }
    END { exit !(loss < first / 20 && right > 93) }' out || {
    echo "FAILED: lstm learns nothing:"
    cat out
    failures=$((failures + 1))
}
shown lstm.top "lstm.c:$(line lstm 'remembered = ad_matmul(h') matmul"
shown lstm.top "lstm.c:$(line lstm 'h = ad_lstm_cell(') "
# Without the values that no pullback reads half of the peak is left, and not a digit changes.
cp out alone
expect 0 "$tapescope" record -o lean.prof -- "$bin/lstm" --lean
cmp alone out || failures=$((failures + 1))
for profile in lstm lean; do
    "$tapescope" info --exact $profile.prof | awk '/^peak of one tape/ { print $NF }'
done | { read -r kept && read -r lean && [ "$lean" -lt $((kept * 51 / 100)) ]; } || {
    echo "FAILED: lstm --lean does not halve the peak"
    failures=$((failures + 1))
}
expect 0 "$tapescope" top --by scope lstm.prof
shown out "row t=7"
expect 1 "$bin/lstm" nowhere.csv
shown err "nowhere.csv: No such file"

shown logistic.top "logistic.c:$(line logistic 'ad_linear(p->images') linear"

# Images whose labels mean nothing have an optimum too, but it classifies no image held out.
gzip -dc "$TAPESCOPE_SOURCE_DIR/examples/data/digits.csv.gz" |
    awk -F, -v OFS=, '{ $NF = ($NF + int(NR / 5)) % 10; print }' >labels.csv
expect 1 "$bin/logistic" labels.csv
shown out ">= 0.95  FAILED"
shown err "logistic: the result is not what it must be"
[ "$(grep -c FAILED out)" -eq 1 ] || {
    echo "FAILED: not one condition, but"
    cat out
    failures=$((failures + 1))
}
expect 1 "$bin/logistic" nowhere.csv
shown err "nowhere.csv: No such file"

# Bytes, line by line, are the same on every processor.
for program in digits checkpoint; do
    for processor in "" "TAPESCOPE_ISA=avx2 OPENBLAS_CORETYPE=Haswell" \
        "TAPESCOPE_ISA=portable OPENBLAS_CORETYPE=Nehalem"; do
        # shellcheck disable=SC2086 # several words or none
        expect 0 env $processor "$tapescope" record -o bytes.prof -- "$bin/$program"
        "$tapescope" top --json -n 0 bytes.prof | jq -c '[.rows[] | [.file, .line, .calls,
            .tape_bytes, .record_bytes, .value_bytes, .adjoint_bytes, .kept_bytes, .live_bytes,
            .peak_bytes]] | sort | .[]' >"$program bytes $processor"
        if [ ! -s "$program bytes " ] || ! diff "$program bytes " "$program bytes $processor"; then
            echo "FAILED: other bytes of $program with ${processor:-this processor}"
            failures=$((failures + 1))
        fi
    done
done

[ $failures -eq 0 ] && echo "1 passed, 0 failed"
[ $failures -eq 0 ]
