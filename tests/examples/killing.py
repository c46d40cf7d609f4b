# Programs that are killed again and again, and end as if they never had been.
import pathlib
import random
import subprocess
import tempfile
import time


def lines_of(log):
    return log.read_text().count("\n") if log.exists() else 0


# Lets the program write so many lines more before it is killed. Returns whether it still ran.
def kill_after(program, log, lines):
    before = None
    while program.poll() is None:
        if log.exists() and before is None:
            before = lines_of(log)
        if before is not None and lines_of(log) >= before + lines:
            break
        time.sleep(0.001)  # leaves the processor to the program
    ran = program.poll() is None
    program.kill()
    program.wait()
    return ran


# Calls start(directory), which begins a program that writes directory/log and goes on from what it
# finds there: once to its end, and as often as it takes with kills in between, `kills` at most.
# Returns both logs and how often it was killed.
def run_with_kills(start, kills, most_lines):
    with tempfile.TemporaryDirectory() as name:
        whole, killed = pathlib.Path(name) / "whole", pathlib.Path(name) / "killed"
        whole.mkdir()
        killed.mkdir()
        assert start(whole).wait() == 0
        seed = random.randrange(2**32)
        print("seed", seed)
        draw = random.Random(seed)
        count = 0
        while count < kills and kill_after(start(killed), killed / "log", draw.randrange(most_lines)):
            count += 1
        assert start(killed).wait() == 0
        return (whole / "log").read_text(), (killed / "log").read_text(), count
