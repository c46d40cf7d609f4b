# layering_test.py ROOT: who may include whom.
import fnmatch
import pathlib
import re
import sys

CORE = r"lade/(detail/)?\w+\.hpp"
POSIX = r"(fcntl|unistd|poll|pthread|sched|signal|dirent|((sys|linux|netinet|arpa)/\w+))\.h"
FFMPEG = r"lib(av|sw)\w+/\w+\.h"
FORMATS = r"(jpeglib|jerror|turbojpeg|tiffio|webp/\w+|avif/avif|zlib)\.h"
BESIDE = r'"\w+\.hpp"'  # a private header, in the same directory

# The first pattern that matches a file's path says what it may include. <vector> always.
RULES = [
    ("include/lade/implementation.hpp", [r'"\.\./\.\./(lib|io)/\w+\.cpp"']),
    ("include/lade/media/implementation.hpp", [r'"\.\./\.\./\.\./media/\w+\.cpp"']),
    ("include/lade/lade.hpp", [CORE, r"lade/io/\w+\.hpp"]),
    ("include/lade/io/*", [CORE, r"lade/io/\w+\.hpp"]),
    ("include/lade/media/*", [CORE, r"lade/media/\w+\.hpp"]),
    ("include/lade/*", [CORE]),
    ("lib/dlpack.cpp", [CORE, r"dlpack/dlpack\.h"]),
    ("lib/*", [CORE, POSIX, BESIDE]),
    ("io/*", [CORE, r"lade/io/\w+\.hpp", POSIX, BESIDE, r"liburing\.h"]),
    ("media/*", [CORE, r"lade/media/\w+\.hpp", BESIDE, FFMPEG, FORMATS, r"immintrin\.h"]),
]

root = pathlib.Path(sys.argv[1])
wrong = False
for path in sorted(root.glob("[ilm]*/**/*.[ch]pp")):
    name = path.relative_to(root).as_posix()
    allowed = next(rule for pattern, rule in RULES if fnmatch.fnmatch(name, pattern))
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'\s*#\s*include\s*(?:<(.*?)>|(".*?"))', line)
        what = found and (found[1] or found[2])
        if what and not any(re.fullmatch(p, what) for p in [r"[a-z0-9_]+", *allowed]):
            print(f"{name}:{number}: may not include {what}")
            wrong = True
sys.exit(wrong)
