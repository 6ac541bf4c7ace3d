"""npz_files.py FILES.C FILES: for test_save_load_numpy.sh: what NumPy writes is what the program
FILES loads and saves, and what it saves NumPy reads."""
import itertools
import subprocess
import sys
import zipfile

import numpy as np

random = np.random.default_rng(1)
passed = 0


def run(*arguments):
    return subprocess.run([sys.argv[2], *arguments], capture_output=True, text=True, check=False)


def right(condition, *words):
    global passed
    if not condition:
        sys.exit("FAILED: " + " ".join(map(str, words)))
    passed += 1


def same(got, wanted, name):
    """The same dtype, shape and bits, row-major."""
    right(got.dtype == wanted.dtype and got.shape == wanted.shape and got.flags.c_contiguous,
          name, got.dtype, got.shape, wanted.dtype, wanted.shape)
    right(got.tobytes() == np.ascontiguousarray(wanted).tobytes(), name, got, wanted)


def check_zip(path):
    with zipfile.ZipFile(path) as z:
        right(z.testzip() is None, path)
        # Names of DOS would be translated by unzip.
        right(all(i.compress_type == zipfile.ZIP_STORED and i.create_system == 3
                  and i.external_attr >> 16 == 0o100644 for i in z.infolist()), "stored")
    return np.load(path, allow_pickle=False)


def becomes(a):
    """What ad_load makes of it: the float that holds it, or 64 bits with a sign."""
    if a.dtype.kind == "f":
        return a.astype("<f8" if a.dtype.itemsize == 8 else "<f4")
    return a.astype("<i8")


def bits(kind, shape):
    """Elements of any bits; NaNs, infinities and the least numbers among them."""
    dtype = np.dtype(kind)
    raw = random.integers(0, 256, size=int(np.prod(shape)) * dtype.itemsize, dtype=np.uint8)
    if dtype.kind == "b":
        raw &= 1
    return raw.view(dtype).reshape(shape)


shapes = [(), (1,), (7,), (0,), (3, 5), (2, 0, 3), (4, 3, 2), (1, 2, 1, 3, 1, 2, 1, 2), (65, 129)]
kinds = ["<f8", ">f8", "<f4", ">f4", "<f2", ">f2", "<i8", ">i8", "<i4", ">i4", "<i2", ">i2", "i1",
         "<u4", ">u4", "<u2", ">u2", "u1", "?"]
arrays = {}
for kind, shape in itertools.product(kinds, shapes):
    a = bits(kind, shape)
    if kind[1:] == "f2" or kind == "f2":
        # NumPy widens a NaN as the processor does; whose quiet bit is compared elsewhere.
        a = np.where(np.isnan(a), np.array(np.nan, a.dtype), a)
    name = f"{kind.strip('<>')}{'b' if kind[0] == '>' else ''}.{'x'.join(map(str, shape))}"
    arrays[name] = a
    if a.ndim > 1:
        arrays[name + ".fortran"] = np.asfortranarray(a)
arrays["halves"] = np.arange(65536, dtype=np.uint16).view("<f2")[:31744]
arrays["thin"] = np.zeros((300, 1000))  # long stretches of one byte, when it is compressed
arrays["\u03b2/weight"] = np.array([1.0, -0.0])

names = list(arrays)
for write in (np.savez, np.savez_compressed):
    write("in.npz", **arrays)
    for first in range(0, len(names), 60):
        some = names[first:first + 60]
        told = run("in.npz", "out.npz", *some)
        right(told.returncode == 0, told.stderr)
        read = check_zip("out.npz")
        right(sorted(read.files) == sorted(some), "names", read.files)
        for name in some:
            same(read[name], becomes(arrays[name]), name)

# Views that are no rows one behind the other.
np.savez("in.npz", a=bits("<f4", (5, 7)), b=bits("<i8", (2, 9)), c=np.float64(2))
right(run("-t", "in.npz", "out.npz", "a", "b", "c").returncode == 0, "transposed")
given, read = np.load("in.npz"), check_zip("out.npz")
for name in "ab":
    same(read[name], np.ascontiguousarray(given[name].T), name)
same(read["c"], given["c"], "c")

# The later versions of the header, and members that are not asked for.
with zipfile.ZipFile("in.npz", "w") as z:
    z.writestr("readme.txt", "no array")
    for version in ((1, 0), (2, 0), (3, 0)):
        with z.open(f"v{version[0]}.npy", "w") as f:
            np.lib.format.write_array(f, arrays["f8.3x5"], version=version)
right(run("in.npz", "out.npz", "v1", "v2", "v3").returncode == 0, "versions")
for name, a in check_zip("out.npz").items():
    same(a, arrays["f8.3x5"], name)

# What is refused, by name and dtype.
wrong = {
    "whole": (np.zeros(2, "<u8"), "dtype '<u8'"),
    "complex": (np.zeros(2, "<c16"), "dtype '<c16'"),
    "long": (np.zeros(2, np.longdouble), f"dtype '{np.dtype(np.longdouble).str}'"),
    "text": (np.array(["a", "bc"]), "dtype '<U2'"),
    "time": (np.zeros(2, "datetime64[s]"), "dtype '<M8[s]'"),
    "record": (np.zeros(2, [("x", "<f8"), ("y", "<i4")]), "dtype '[('x', '<f8'), ('y', '<i4')]'"),
    "object": (np.array([None, 1]), "dtype '|O'"),
    "axes": (np.zeros((1,) * 9), "has more than 8 axes"),
}
np.savez("in.npz", fine=np.ones(3), **{name: a for name, (a, _) in wrong.items()})
source = open(sys.argv[1], encoding="utf-8").read().split("\n")
line = next(i for i, text in enumerate(source, 1) if "@load" in text)
for name, (_, words) in wrong.items():
    told = run("in.npz", "none.npz", "fine", name)
    right(told.returncode == 1
          and told.stderr.startswith(f"AD_ERROR_FILE: load: in.npz: {name} has ")
          and words in told.stderr and f"at files.c:{line} in main" in told.stderr, told.stderr)
right(run("in.npz", "out.npz", "fine").returncode == 0, "fine")
same(check_zip("out.npz")["fine"], np.ones(3), "fine")

# A zip archive by another method, a name that is there twice, a member that is no array.
with zipfile.ZipFile("in.npz", "w") as z:
    z.writestr("bzip.npy", b"x" * 1000, zipfile.ZIP_BZIP2)
    z.writestr("text.npy", b"no array at all")
    z.writestr("short.npy", b"\x93NUM")
    z.writestr("twice.npy", b"1")
    import warnings
    warnings.simplefilter("ignore")
    z.writestr("twice.npy", b"2")
for name, words in (("bzip", "is compressed by method 12, not by deflate"),
                    ("text", "is no array"), ("short", "is no array"),
                    ("twice", "is there twice")):
    told = run("in.npz", "none.npz", name)
    right(told.returncode == 1 and f"{name} {words} at" in told.stderr, told.stderr)

# A compressed file with any byte changed or cut off is refused, or gives the same.
np.savez_compressed("in.npz", a=np.arange(40.0), b=np.ones((3, 4)))
wanted, whole = dict(np.load("in.npz")), open("in.npz", "rb").read()
refused = 0
for at in random.choice(len(whole), 25, replace=False):
    for broken in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1:]):
        open("broken.npz", "wb").write(broken)
        told = run("broken.npz", "out.npz", "a", "b")
        right(told.returncode in (0, 1), told)
        if told.returncode == 1:
            refused += 1
            right("AD_ERROR_FILE" in told.stderr, told.stderr)
        else:
            for name, a in check_zip("out.npz").items():
                same(a, wanted[name], name)
right(refused > 30, "refused", refused)
print(f"{passed} passed, 0 failed")
