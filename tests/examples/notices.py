# Notices of the library in the error output of a program. They depend on the load of the machine.
import re


def without_notices(errors):
    return re.sub(r"(?m)^lade: stage \S+ has blocked a reactor for .*\n", "", errors)
