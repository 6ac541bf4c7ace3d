# mutate.awk: lists the places of a C file where one operator, constant or condition can be changed,
# or changes one of them.
#   awk -f scripts/mutate.awk FILE                       one line a place: LINE COLUMN OLD NEW
#   awk -v calls=1 -f scripts/mutate.awk FILE            in place of these calls to leave out, where
#                                                        each is a statement
#   awk -v line=L -v column=C -v old=O -v new=N -f …     prints the file with this change
# Comments, strings, preprocessor lines and static assertions are left alone, as are shifts, arrows,
# increments and the braces of initialisers; so are the samples of the ops, which are input of the
# tests although they stand beside the ops. In elementwise.def the words of the language of the
# rules are changed.

BEGIN {
    n_rules = 0
    if (ARGV[1] ~ /\.def$/) {
        rule("MUL(", "DIV("); rule("DIV(", "MUL("); rule("ADD(", "SUB("); rule("SUB(", "ADD(")
        rule("NEG(", "("); rule("SQUARE(", "NEG("); rule("SCALE(2", "SCALE(3")
        rule("SCALE(0.5", "SCALE(1.5"); rule("OFFSET(1", "OFFSET(2"); rule("GATE(", "MUL(")
    } else {
        rule("<=", "<"); rule(">=", ">"); rule("==", "!="); rule("!=", "==")
        rule("&&", "||"); rule("||", "&&"); rule(" += ", " -= "); rule(" -= ", " += ")
        rule(" + ", " - "); rule(" - ", " + "); rule(" * ", " + "); rule(" / ", " * ")
        rule(" % ", " / "); rule(" < ", " <= "); rule(" > ", " >= "); rule("true", "false")
        rule("false", "true"); rule("!", ""); rule("0", "1"); rule("1", "2"); rule("2", "3")
        rule("continue;", "break;")
    }
}

function rule(from, to) { n_rules++; rule_old[n_rules] = from; rule_new[n_rules] = to }

# The line with comments and strings blanked out, so that columns stay.
function code_of(text,    out, i, c, two, quote) {
    out = ""
    quote = ""
    for (i = 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        two = substr(text, i, 2)
        if (in_comment) {
            if (two == "*/") { in_comment = 0; out = out " "; i++ }
            out = out " "
        } else if (quote != "") {
            if (c == "\\") { out = out " "; i++ }
            else if (c == quote) quote = ""
            out = out " "
        } else if (two == "/*") {
            in_comment = 1; out = out "  "; i++
        } else if (two == "//") {
            while (length(out) < length(text)) out = out " "
            return out
        } else {
            if (c == "\"" || c == "'") { quote = c; c = " " }
            out = out c
        }
    }
    return out
}

# Whether the text at column i is this rule's and not a part of something longer.
function fits(code, i, from,    before, after) {
    if (substr(code, i, length(from)) != from) return 0
    before = i > 1 ? substr(code, i - 1, 1) : " "
    after = substr(code, i + length(from), 1)
    if (from ~ /^[A-Za-z0-9_]/ && before ~ /[A-Za-z0-9_.]/) return 0
    if (from ~ /[A-Za-z0-9_]$/ && after ~ /[A-Za-z0-9_.]/) return 0
    if (from == "!" && after == "=") return 0
    if ((from == "<=" || from == ">=") && (before == "<" || before == ">")) return 0
    return 1
}

{
    code = code_of($0)
    if (code ~ /^static const struct (kernel_sample|pattern) / || code ~ /^static .*sample\(/)
        in_samples = 1
    skip = in_samples || continued || code ~ /^[ \t]*#/ || code ~ /_Static_assert/
    continued = skip && $0 ~ /\\$/
    if (code ~ /^}/) in_samples = 0
    if (line != "") {
        if (NR == line + 0)
            print substr($0, 1, column - 1) new substr($0, column + length(old))
        else
            print
        next
    }
    if (skip) next
    # awk takes what follows a backslash in -v for an escape.
    if (calls && code ~ /^ +[a-z_0-9]+\(.*\);$/ && $0 !~ /\\/) {
        match(code, /[a-z]/)
        printf "%d\t%d\t%s\t;\n", NR, RSTART, substr($0, RSTART)
    }
    if (calls) next
    for (i = 1; i <= length(code); i++)
        for (r = 1; r <= n_rules; r++)
            if (fits(code, i, rule_old[r]))
                printf "%d\t%d\t%s\t%s\n", NR, i, rule_old[r], rule_new[r]
}
