# tapescope-gdb.py: what gdb prints of ad_tensor, ad_real and ad_tape.
#
# Only memory is read: nothing is called in the program, so core files do as well. A handle is
# checked as the library checks it, slot, generation of the tape, generation of the value; whatever
# cannot be read, or is none, is said in words, and the fields are shown.
import struct

import gdb

SLOTS = 65536  # AD_SLOTS
SHOWN = 6  # elements of a tensor
RECORDS = 1 << 16  # so many are passed to find a number's line,
BYTES = 16 << 20  # and statements of so many bytes
SHAPE_BITS = 6  # TAPE_SHAPE_BITS
NEEDS_GRADIENT, LEAF = 1 << 0, 1 << 1  # enum tape_flag
ROW_CHUNK = None
DTYPES = (("f32", "f"), ("f64", "d"), ("i64", "q"))
ITEM = {"f": 4, "d": 8, "q": 8}


class Unknown(Exception):
    """Why nothing can be said, as the end of a sentence."""


def number(value):
    return int(value)


def memory(address, count):
    try:
        return bytes(gdb.selected_inferior().read_memory(address, count))
    except (gdb.MemoryError, OverflowError, ValueError):
        raise Unknown("its memory cannot be read")


def text_at(pointer, most=64):
    address = number(pointer)
    if not address:
        return "?"
    got = b""
    while len(got) < most:
        try:
            one = memory(address + len(got), 1)
        except Unknown:
            break
        if one == b"\0":
            break
        got += one
    return got.decode("utf-8", "replace")


def library(name):
    symbol = gdb.lookup_global_symbol(name)
    if symbol is None:
        raise Unknown("libtapescope has no debug information")
    return symbol.value()


def tape_of(slot, generation):
    """The struct tape behind a handle."""
    if slot == 0:
        raise Unknown("zero: none")
    if slot >= SLOTS:
        raise Unknown("no handle")
    entry = library("ad_slots")[slot]
    if number(entry["generation"]) != generation or not number(entry["tape"]):
        raise Unknown("of a tape that was destroyed")
    tape = entry["tape"].dereference()
    tape.fetch_lazy()
    return tape


def own_header(symtab):
    parts = symtab.filename.rsplit("/", 2)
    return len(parts) > 1 and parts[-2] == "tapescope" and parts[-1].startswith("ad")


def line_of(pc, line=0):
    """"mlp.c:41". A return address is behind its call, which stands in a function of the library's
    headers that was inlined: then the line is the one that the compiler gave with the call. What
    it called from is not in gdb's reach, so without that line only the function is said."""
    where = gdb.find_pc_line(pc - 1) if pc > 0 else None
    if where is None or where.symtab is None:
        return "line %d" % line if line else "?"
    base = where.symtab.filename.rsplit("/", 1)[-1]
    if not own_header(where.symtab):
        return "%s:%d" % (base, line or where.line)
    block = gdb.block_for_pc(pc - 1)
    while block and (not block.function or own_header(block.function.symtab)):
        block = block.superblock
    if block is None:
        return "line %d" % line if line else "?"
    base = block.function.symtab.filename.rsplit("/", 1)[-1]
    return "%s:%d" % (base, line) if line else "%s in %s" % (base, block.function.print_name)


def row_of(tape, at):
    chunks, per = tape["ledger"]["chunk"], row_chunk()
    if at >= number(tape["ledger"]["n_rows"]):
        raise Unknown("its line is not known")
    return (chunks[at // per] + at % per).dereference()


def row_chunk():
    global ROW_CHUNK
    if ROW_CHUNK is None:
        ROW_CHUNK = number(gdb.parse_and_eval("TAPE_ROW_CHUNK"))
    return ROW_CHUNK


def shown(x):
    return "%.8g" % x if isinstance(x, float) else "%d" % x


def shown_bytes(n):
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n < 10240 or unit == "GiB":
            return "%d %s" % (n, unit)
        n //= 1024


def elements(array, rank, shape):
    """The first elements in row-major order."""
    _, code = DTYPES[number(array["dtype"])]
    size, data = number(array["size"]), number(array["data"])
    if size == 0:
        return "[]"
    if not data:
        return "[not here]"
    strides = [number(array["strides"][d]) for d in range(rank)]
    got = []
    for i in range(min(size, SHOWN)):
        at, rest = 0, i
        for d in reversed(range(rank)):
            at += rest % shape[d] * strides[d]
            rest //= shape[d]
        got.append(shown(struct.unpack(code, memory(data + at * ITEM[code], ITEM[code]))[0]))
    text = ", ".join(got) + (", ..." if size > SHOWN else "")
    return text if rank == 0 else "[%s]" % text


def tensor_text(handle):
    tape = tape_of(number(handle["tape"]), number(handle["tape_generation"]))
    at = number(handle["value"])
    if at == 0:
        raise Unknown("the result of an op that failed")
    if at >= number(tape["n_values"]):
        raise Unknown("dropped by a reset or a rewind")
    value = (tape["entries"] + at).dereference()
    if number(value["generation"]) != number(handle["value_generation"]):
        raise Unknown("released, or dropped by a reset or a rewind")
    array, flags = value["array"], number(value["flags"])
    rank, dtype = number(array["rank"]), number(array["dtype"])
    if dtype >= len(DTYPES) or rank > 8:
        raise Unknown("not a tensor")
    shape = [number(array["shape"][d]) for d in range(rank)]
    row = row_of(tape, number(value["row"]))
    if flags & LEAF:
        adjoint = number(value["gradient_epoch"]) == number(tape["gradient_epoch"])
    else:
        adjoint = number(value["adjoint"]) != 0
    grad = "constant" if not flags & NEEDS_GRADIENT else (
        ("has a gradient" if adjoint else "no gradient yet") if flags & LEAF else
        ("has an adjoint" if adjoint else "no adjoint"))
    return "%s [%s] = %s, %s at %s, %s" % (
        DTYPES[dtype][0], ",".join(str(n) for n in shape), elements(array, rank, shape),
        text_at(row["op"]), line_of(number(row["pc"]), number(row["line"])), grad)


# ---- numbers ----


def statement_words(words, at):
    """How many words the statement at words[at] has (tape_statement_layout.h)."""
    shape = words[at] % (1 << SHAPE_BITS)
    if shape == 61:  # TAPE_SHAPE_MANY
        return words[at + 1] + 2
    if shape == 60:  # TAPE_SHAPE_FULL
        return 13
    general, units = shape % 12, shape // 12
    return general + (0, 1, 2, 1, 2)[units] + 1


def site_near(low, near):
    """The address with these lowest bits that is nearest to `near`."""
    step = 1 << (32 - SHAPE_BITS)
    at = near - near % step + low
    return min((at - step, at, at + step), key=lambda a: abs(a - near))


def run_line(run, index):
    """What made the number with this index, which lies in the run."""
    first, end = number(run["first"]), number(run["first"]) + number(run["n"])
    begin, low = number(run["word_begin"]), number(run["word_end"])
    loop, near = number(run["fused_loop"]), number(run["near"])
    loop_type = gdb.lookup_type("struct tape_fused_loop").pointer()
    while True:
        stop = loop or begin
        if loop:
            fused = gdb.Value(loop).cast(loop_type).dereference()
            statements_first = number(fused["first"]) + number(fused["m"])
        else:
            fused, statements_first = None, first
        if index >= statements_first:
            break
        if fused is None:
            raise Unknown("its line is not known")
        if index >= number(fused["first"]):
            mark = number(fused["mark"])
            kind = library("kernel_fused_loop_name")[mark >> 26 & 31]
            pc = near - near % (1 << 32) + number(fused["site"])
            pc = min((pc - (1 << 32), pc, pc + (1 << 32)), key=lambda a: abs(a - near))
            return "%s at %s" % (text_at(kind), line_of(pc, mark & ((1 << 21) - 1)))
        low, end = loop + 4 * number(fused["words"]), number(fused["first"])
        loop = begin - 4 * number(fused["previous"]) if number(fused["previous"]) else 0
    if stop < low or stop - low > BYTES:
        raise Unknown("its line is too far away")
    words = struct.unpack("%dI" % ((stop - low) // 4), memory(low, (stop - low) // 4 * 4))
    at, result = 0, end
    while at < len(words):
        result -= 1
        if result == index:
            return "statement at %s" % line_of(site_near(words[at] >> SHAPE_BITS, near))
        at += statement_words(words, at)
    raise Unknown("its line is not known")


def open_run(tape, run):
    """A run that is still being written ends where the cursor is."""
    cursor = tape["statements"]["cursor"]
    if not number(cursor):
        return run
    cursor = cursor.dereference()
    return {"first": run["first"], "near": run["near"], "word_begin": run["word_begin"],
            "word_end": cursor["word"], "fused_loop": run["fused_loop"],
            "n": (number(cursor["result"]) & 0xFFFFFFFF) - number(run["first"])}


def next_index(tape):
    statements = tape["statements"].dereference()
    if number(tape["open"]) != 0xFFFFFFFF and number(statements["cursor"]):
        return number(statements["cursor"]["result"]) & 0xFFFFFFFF
    return number(statements["rest"]["result"]) & 0xFFFFFFFF


def tag_holds(tape, index, tag):
    """tape_statement_holds()"""
    statements, end = tape["statements"].dereference(), next_index(tape)
    for k in reversed(range(number(statements["n_tags"]))):
        entry = statements["tags"][k]
        if number(entry["tag"]) == tag:
            return number(entry["first"]) <= index < end
        end = number(entry["first"])
    return False


def number_maker(tape, index):
    base = number(tape["arena"]["record_base"])
    record_type = gdb.lookup_type("struct tape_record")
    run_type = gdb.lookup_type("struct tape_run").pointer()
    some_type = gdb.lookup_type("struct tape_leaves").pointer()
    at = number(tape["last_record"])
    for _ in range(RECORDS):
        if at == 0xFFFFFFFF:
            break
        record = gdb.Value(base + 8 * at).cast(record_type.pointer()).dereference()
        op = text_at(record["op"]["name"])
        attr = gdb.Value(base + 8 * at + record_type.sizeof)
        if op == "statement":
            run = attr.cast(run_type).dereference()
            if at == number(tape["open"]):
                run = open_run(tape, run)
            first = number(run["first"])
            if first <= index < first + number(run["n"]):
                return run_line(run, index)
        elif op in ("leaves", "reals_of_tensor"):
            some = attr.cast(some_type).dereference()
            first = number(some["first"])
            if first <= index < first + number(some["n"]):
                row = row_of(tape, number(record["row"]))
                return "%s[%d] at %s" % (op, index - first,
                                         line_of(number(row["pc"]), number(row["line"])))
        at = number(record["previous"])
    raise Unknown("its line is not known")


def real_text(x):
    value, index, tag = float(x["value"]), number(x["index"]), number(x["tag"])
    if index == 0:
        return "%s, %s" % (shown(value), "constant" if tag == 0 else "poisoned")
    text = "%s, index %d" % (shown(value), index)
    if tag >> 16 == 0:
        return text + ", of no tape that is known"
    slot = library("ad_slots")[tag >> 16]
    if not number(slot["tape"]):
        return text + ", of a tape that was destroyed"
    tape = slot["tape"].dereference()
    if not tag_holds(tape, index, tag):
        return text + ", dropped by a reset or a rewind"
    try:
        return "%s, %s" % (text, number_maker(tape, index))
    except Unknown as why:
        return "%s, %s" % (text, why)


# ---- tapes ----


def statements_of(tape):
    n, at = number(tape["statements"]["n"]), number(tape["open"])
    if at != 0xFFFFFFFF:
        place = number(tape["arena"]["record_base"]) + 8 * at
        place += gdb.lookup_type("struct tape_record").sizeof
        run = gdb.Value(place).cast(gdb.lookup_type("struct tape_run").pointer())
        n += next_index(tape) - number(run["first"])
    return n


def tape_text(handle):
    tape = tape_of(number(handle["slot"]), number(handle["generation"]))
    arena, error = tape["arena"], tape["error"]
    text = "tape %d: %d values, %d records, %d statements, %s live, %s at its peak" % (
        number(handle["slot"]), number(tape["n_values"]) - 1, number(tape["n_records"]),
        statements_of(tape), shown_bytes(number(arena["live"])),
        shown_bytes(number(arena["peak"])))
    if number(error["code"]):
        text += ", error: " + text_at(error["message"].address, 512)
    return text


class Printer:
    """All of it as one line, or why not."""

    def __init__(self, value, text):
        self.value, self.text = value, text

    def to_string(self):
        try:
            return "{%s}" % self.text(self.value)
        except Unknown as why:
            told = str(why)
        except (gdb.error, ArithmeticError, IndexError, LookupError, TypeError, ValueError,
                RuntimeError, struct.error) as why:
            told = "not readable: %s" % why
        try:
            fields = ", ".join("%s = %s" % (f.name, self.value[f])
                               for f in self.value.type.strip_typedefs().fields())
        except (gdb.error, RuntimeError):
            fields = "..."
        return "{%s, %s}" % (told, fields)


TEXTS = {"ad_tensor": tensor_text, "ad_real": real_text, "ad_tape": tape_text}


def tapescope_printer(value):
    name = value.type.strip_typedefs().unqualified().tag
    return Printer(value, TEXTS[name]) if name in TEXTS else None


tapescope_printer.name = "tapescope"
# Several objects may have brought a copy: the last one counts.
gdb.pretty_printers[:] = [p for p in gdb.pretty_printers
                          if getattr(p, "name", None) != tapescope_printer.name]
gdb.pretty_printers.append(tapescope_printer)
