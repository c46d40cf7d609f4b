# compile_fail_test.py PROGRAM COMPILER...: the compiler refuses PROGRAM with the message that its
# first line quotes.
import subprocess
import sys

program, *compiler = sys.argv[1:]
with open(program) as file:
    expected = file.readline().removeprefix("// error: ").strip()
result = subprocess.run([*compiler, program], capture_output=True, text=True)
if result.returncode == 0 or expected not in result.stderr:
    print(f"status {result.returncode}; expected: {expected}\n{result.stderr}")
    sys.exit(1)
