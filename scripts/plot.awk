# plot.awk: draws the rows of scripts/bench tensor as an SVG: for each workload the time of a step,
# forward and backward, as a share of libtorch's; a panel for each number of threads.
#   awk -f scripts/plot.awk ROWS >docs/bench_tensor.svg
# Every line must be a row as benchmarks/common_rounds.h writes it: otherwise the line is named on
# standard error and the exit status is 1. Rows that are not drawn (other metrics and peers) are
# checked all the same. Without rows to draw the status is 1 as well. Of two rows for the same bar
# the last one counts.

BEGIN {
    string = "\"[^\"\\\\]*\""
    number = "-?[0-9]+(\\.[0-9]+)?(e[-+][0-9]+)?"
    row = "^[{]\"suite\":" string ",\"case\":" string ",\"metric\":" string ",\"ours\":" number \
        ",\"peer_name\":" string ",\"peer\":" number ",\"ratio\":" number ",\"unit\":" string "[}]$"
    bar_height = 11; group_gap = 10; panel_width = 330; label_width = 84; top = 66
}

# The value of a member, without its quotes.
function member(name,    at, rest) {
    at = index($0, "\"" name "\":")
    rest = substr($0, at + length(name) + 3)
    if (substr(rest, 1, 1) == "\"")
        return substr(rest, 2, index(substr(rest, 2), "\"") - 1)
    sub(/[,}].*/, "", rest)
    return rest
}

$0 !~ row {
    print FILENAME ":" FNR ": not a row: " $0 >"/dev/stderr"
    wrong = 1
    next
}

member("suite") == "tensor" && member("metric") ~ /^f(32|64)_[0-9]+t_total$/ {
    split(member("metric"), part, "_")
    peer = member("peer_name"); name = member("case"); threads = part[2] + 0
    if (peer != "libtorch" && peer != "libtorch_tuned_malloc")
        next
    if (!(name in seen))
        workload[++n_workloads] = name
    seen[name] = 1
    if (!(threads in has))
        panel[++n_panels] = threads
    has[threads] = 1
    ratio[threads, name, part[1], peer] = member("ratio") + 0
    if (member("ratio") + 0 > most)
        most = member("ratio") + 0
}

function text(x, y, class, words) {
    printf "<text x=\"%.1f\" y=\"%.1f\" class=\"%s\">%s</text>\n", x, y, class, words
}

function line(x1, y1, x2, y2, class) {
    printf "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n",
        x1, y1, x2, y2, class
}

# Two digits that mean something: 0.014, 0.42, 1.3
function short(r) {
    return sprintf(r < 0.1 ? "%.3f" : "%.2f", r)
}

function word(threads) {
    return threads == 1 ? "one thread" : threads == 2 ? "two threads" : threads " threads"
}

# A bar from the axis, its figure behind it, and a mark for the peer whose malloc is tuned.
function bar(x0, y, threads, name, dtype,    r, tuned, end) {
    if (!((threads, name, dtype, "libtorch") in ratio))
        return
    r = ratio[threads, name, dtype, "libtorch"]
    end = r
    printf "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" class=\"%s\"/>\n", x0, y,
        r * scale, bar_height - 1, dtype
    if ((threads, name, dtype, "libtorch_tuned_malloc") in ratio) {
        tuned = ratio[threads, name, dtype, "libtorch_tuned_malloc"]
        line(x0 + tuned * scale, y - 0.5, x0 + tuned * scale, y + bar_height - 0.5, "tuned")
        if (tuned > end)
            end = tuned
    }
    text(x0 + end * scale + 5, y + bar_height - 2.5, "figure", short(r))
}

function describe(    p, w, out) {
    out = "Time of one step, ours divided by libtorch's; below 1 we are faster."
    for (p = 1; p <= n_panels; p++) {
        out = out " With " word(panel[p]) ", f64 and f32:"
        for (w = 1; w <= n_workloads; w++)
            out = out " " workload[w] " " figure(panel[p], workload[w], "f64") " and " \
                figure(panel[p], workload[w], "f32") (w < n_workloads ? "," : ".")
    }
    return out
}

function figure(threads, name, dtype) {
    return (threads, name, dtype, "libtorch") in ratio ? \
        short(ratio[threads, name, dtype, "libtorch"]) : "not measured"
}

END {
    if (!n_workloads) {
        print "plot.awk: there is no row to draw" >"/dev/stderr"
        wrong = 1
    }
    if (wrong)
        exit 1
    limit = most < 1 ? 1 : most
    scale = (panel_width - 50) / limit
    group = 2 * bar_height + group_gap
    bottom = top + n_workloads * group
    width = label_width + n_panels * panel_width + 8
    if (width < 700) # the key and the note
        width = 700
    height = bottom + 58
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" " \
        "width=\"%d\" height=\"%d\" role=\"img\" aria-labelledby=\"title desc\">\n",
        width, height, width, height
    print "<title id=\"title\">Tapescope against libtorch: forward and backward</title>"
    print "<desc id=\"desc\">" describe() "</desc>"
    print "<style>"
    print "text { font: 12px sans-serif; fill: #24292f; }"
    print ".head { font-weight: bold; } .name { text-anchor: end; } .tick { text-anchor: middle; }"
    print ".figure, .tick, .note { font-size: 10px; }"
    print ".f64 { fill: #2f6fb0; } .f32 { fill: #c98a2b; }"
    print ".grid { stroke: #8c959f; stroke-opacity: 0.35; }"
    print ".one { stroke: #c4302b; stroke-width: 1.5; }"
    print ".tuned { stroke: #24292f; stroke-width: 2; }"
    print "@media (prefers-color-scheme: dark) {"
    print "text { fill: #e6edf3; } .f64 { fill: #6cb0f0; } .f32 { fill: #e3b05f; }"
    print ".one { stroke: #ff7b72; } .tuned { stroke: #e6edf3; }"
    print "}"
    print "</style>"
    text(8, 20, "head", "Time of a step (forward and backward), ours / libtorch")
    printf "<rect x=\"8\" y=\"29\" width=\"10\" height=\"10\" class=\"f64\"/>\n"
    text(22, 38, "note", "f64")
    printf "<rect x=\"50\" y=\"29\" width=\"10\" height=\"10\" class=\"f32\"/>\n"
    text(64, 38, "note", "f32")
    line(96, 28, 96, 40, "tuned")
    text(102, 38, "note", "against libtorch with a malloc that keeps its memory")
    line(384, 28, 384, 40, "one")
    text(390, 38, "note", "as fast as libtorch; left of it we are faster")
    for (w = 1; w <= n_workloads; w++)
        text(label_width - 8, top + (w - 1) * group + bar_height + 4, "name", workload[w])
    for (p = 1; p <= n_panels; p++) {
        x0 = label_width + (p - 1) * panel_width
        text(x0, top - 8, "note", word(panel[p]))
        for (tick = 0; tick <= limit + 1e-9; tick += (limit > 2.5 ? 1 : 0.25)) {
            x = x0 + tick * scale
            line(x, top - 2, x, bottom, tick == 1 ? "one" : "grid")
            text(x, bottom + 13, "tick", tick)
        }
        for (w = 1; w <= n_workloads; w++) {
            y = top + (w - 1) * group
            bar(x0, y, panel[p], workload[w], "f64")
            bar(x0, y + bar_height, panel[p], workload[w], "f32")
        }
    }
    text(8, bottom + 34, "note", \
        "Medians of the rounds' ratios, both programs in turn in one run. " \
        "The workloads are specified in benchmarks/common_workloads.h.")
    print "</svg>"
}
