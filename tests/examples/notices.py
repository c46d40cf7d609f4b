# Removes the reports of a blocked reactor from an error output, in builds with a sanitizer: these are
# so slow that a busy machine makes short work look like a blocked reactor.
import os
import re


def without_notices(errors):
    if not {"LSAN_OPTIONS", "TSAN_OPTIONS"} & set(os.environ):
        return errors
    return re.sub(r"(?m)^lade: stage .+ has blocked a reactor for .*\n", "", errors)
