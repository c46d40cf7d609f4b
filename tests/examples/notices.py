# Removes the reports of a blocked reactor from an error output. They depend on the load of the machine.
import re


def without_notices(errors):
    return re.sub(r"(?m)^lade: stage .+ has blocked a reactor for .*\n", "", errors)
