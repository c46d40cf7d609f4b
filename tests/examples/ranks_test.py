# ranks_test.py MPIRUN PROGRAM FAKE_NCCL: ranks share global batches. When some or all of them are killed,
# other numbers of ranks go on.
#
# Each rank logs into a pipe that holds some 40 lines. So a run is never more lines ahead of the test
# than that, and is killed while it trains.
import fcntl
import os
import pathlib
import random
import selectors
import signal
import subprocess
import sys
import tempfile
import unittest

MPIRUN, PROGRAM = sys.argv[1:3]
FAKE_NCCL = pathlib.Path(sys.argv[3]).resolve()
SAMPLES, GLOBAL_BATCH = 1921, 60
STEPS = -(-SAMPLES // GLOBAL_BATCH)  # of an epoch
KILLS = random.Random()

# Ranks on the processors of this machine, however few, that reach each other through its memory.
# Killed ones leave files behind. Open MPI does not free all of its memory.
FILES = tempfile.TemporaryDirectory()
MPI = {"TMPDIR": FILES.name, "OMPI_MCA_btl_vader_backing_directory": FILES.name,
       "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_plm": "isolated",
       "OMPI_MCA_btl": "self,vader", "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
       "OMPI_MCA_oob_tcp_if_include": "lo",
       "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
LAUNCHERS = ["RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"]

# Starts a program with the variables of another launcher: sh -c RENAMED RANK WORLD PROGRAM...
RENAMED = """export "$0=$OMPI_COMM_WORLD_RANK" "$1=$OMPI_COMM_WORLD_SIZE"; shift
             unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE; exec "$@" """


class Lines:
    """What one rank logs."""

    def __init__(self, path):
        os.mkfifo(path)
        self.fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        fcntl.fcntl(self.fd, fcntl.F_SETPIPE_SZ, 4096)
        self.text = b""

    def read(self):
        try:
            self.text += os.read(self.fd, 4096)
        except BlockingIOError:
            return False
        return True

    # By steps: the epoch, the loss, and the keys of the samples.
    def steps(self):
        parts = (line.split() for line in self.text.decode().splitlines())
        return {int(step): (int(epoch), float(loss), [int(key) for key in keys])
                for epoch, step, loss, *keys in parts}


class Run:
    """mpirun, and what its ranks log."""

    def __init__(self, directory, ranks, *, epochs=1, environment={}, before=()):
        logs = pathlib.Path(tempfile.mkdtemp(dir=directory))
        self.lines = [Lines(logs / f"rank-{rank}") for rank in range(ranks)]
        variables = {name: value for name, value in os.environ.items() if name not in LAUNCHERS}
        self.process = subprocess.Popen(
            [MPIRUN, "-n", str(ranks), *before, PROGRAM, directory / "checkpoint", logs, str(epochs)],
            env={**variables, **MPI, **environment}, stderr=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True)
        self.ended = os.pidfd_open(self.process.pid)
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.ended, selectors.EVENT_READ)
        for each in self.lines:
            self.selector.register(each.fd, selectors.EVENT_READ, each)

    # Reads until all ranks have logged so many steps. Returns False if the run has ended before.
    def read(self, steps=float("inf")):
        while any(len(each.steps()) < steps for each in self.lines):
            for key, _ in self.selector.select():
                if key.fd == self.ended:
                    return False
                key.data.read()
        return True

    def finish(self):
        self.read()
        output, errors = self.process.communicate()
        for each in self.lines:
            while each.read():
                pass
            os.close(each.fd)
        os.close(self.ended)
        self.selector.close()
        return self.process.returncode, output, errors

    def ranks(self):
        def parent(process):
            try:
                return int((process / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                return None
        return [int(process.name) for process in pathlib.Path("/proc").glob("[0-9]*")
                if parent(process) == self.process.pid]

    # By steps: the epoch, the losses that the ranks logged, and the keys of each rank.
    def steps(self):
        by_rank = [each.steps() for each in self.lines]
        return {step: list(zip(*(of_rank[step] for of_rank in by_rank if step in of_rank)))
                for step in sorted({step for of_rank in by_rank for step in of_rank})}


# Kills processes of a run, and returns when mpirun and all ranks have ended.
def kill(run, choose):
    ranks = run.ranks()
    watched = [os.pidfd_open(rank) for rank in ranks]
    for victim in choose([run.process.pid, *ranks]):
        os.kill(victim, signal.SIGKILL)
    result = run.finish()
    for each in watched:
        selector = selectors.DefaultSelector()
        selector.register(each, selectors.EVENT_READ)
        selector.select()
        selector.close()
        os.close(each)
    return result


def global_batch(step):
    _, _, keys = step
    return sorted(key for of_rank in keys for key in of_rank)


class Ranks(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def finished(self, ranks, *, epochs=1, by="", **options):
        run = Run(self.directory, ranks, epochs=epochs, **options)
        code, output, errors = run.finish()
        self.assertEqual(code, 0, errors)
        self.assertRegex(output, rf"^accuracy [89]\d\.\d %{by}\n$" if epochs == 1 else "accuracy 99")
        return run.steps()

    def refused(self, ranks, **options):
        run = Run(self.directory, ranks, **options)
        code, _, errors = run.finish()
        self.assertNotEqual(code, 0)
        return errors

    def without_checkpoint(self):
        (self.directory / "checkpoint").unlink(missing_ok=True)

    def assert_same_training(self, steps, expected):
        self.assertEqual(list(steps), list(expected))
        for number, step in steps.items():
            self.assertEqual(set(step[0]), set(expected[number][0]))
            self.assertEqual(global_batch(step), global_batch(expected[number]), number)
            for loss in step[1]:
                self.assertAlmostEqual(loss, expected[number][1][0], delta=1e-9)

    def test_ranks_have_disjoint_equal_parts_of_each_global_batch(self):
        steps = self.finished(4)
        keys = [key for step in steps.values() for key in global_batch(step)]
        self.assertEqual(sorted(keys), list(range(SAMPLES)))
        self.assertEqual(len(steps), STEPS)
        for _, losses, of_ranks in list(steps.values())[:-1]:
            self.assertEqual([len(of_rank) for of_rank in of_ranks], [GLOBAL_BATCH // 4] * 4)
            self.assertEqual(len(set(losses)), 1)
        self.assertEqual([len(of_rank) for of_rank in steps[STEPS][2]], [1, 0, 0, 0])

    def test_the_number_of_ranks_changes_no_global_batch(self):
        expected = self.finished(4)
        for ranks in [1, 3, 5]:
            self.without_checkpoint()
            self.assert_same_training(self.finished(ranks), expected)

    def test_killed_it_goes_on_with_three_and_with_five_ranks(self):
        whole = self.finished(4, epochs=5)
        self.without_checkpoint()
        runs = []
        choices = [lambda processes: processes, lambda processes: [KILLS.choice(processes[1:])]]
        for ranks, victims in zip([4, 3], choices):
            run = Run(self.directory, ranks, epochs=5)
            self.assertTrue(run.read(steps=KILLS.randint(6, 20)))
            code, _, errors = kill(run, victims)
            self.assertNotEqual(code, 0, errors)
            runs.append(run.steps())
        runs.append(self.finished(5, epochs=5))
        steps = {}
        for each in runs:  # without what came after the checkpoint from which the next one goes on
            steps = {number: step for number, step in steps.items() if number < min(each)} | each
        self.assertGreater(min(runs[1]), 5)
        self.assertGreater(min(runs[2]), min(runs[1]))
        self.assert_same_training(steps, whole)
        for epoch in range(5):
            keys = [key for step in steps.values() if step[0][0] == epoch
                    for key in global_batch(step)]
            self.assertEqual(sorted(keys), list(range(SAMPLES)))

    def test_a_finished_run_has_nothing_left_to_train(self):
        self.finished(4)
        self.finished(3)
        steps = self.finished(5)
        self.assertLess(len(steps), 5)

    # Of four ranks, of which one logs to another place. Returns what they say.
    def fail(self, checkpoint, place=None):
        logs = self.directory / "logs"
        logs.mkdir()
        if place:
            (logs / "rank-2").symlink_to(place)
        program = subprocess.run([MPIRUN, "-n", "4", PROGRAM, checkpoint, logs],
                                 env={**os.environ, **MPI}, capture_output=True, text=True)
        self.assertNotEqual(program.returncode, 0)
        return program.stderr

    def test_a_rank_that_cannot_begin_ends_all(self):
        self.assertIn(f"ranks: rank 2: open {self.directory}/logs/rank-2: ",
                      self.fail(self.directory / "checkpoint", self.directory))

    def test_a_rank_that_fails_while_others_wait_for_it_ends_all(self):
        self.assertIn("ranks: rank 2: write a line of the log: ",
                      self.fail(self.directory / "checkpoint", "/dev/full"))

    def test_a_checkpoint_that_cannot_be_written_ends_all(self):
        self.assertIn(f"ranks: rank 0: write {self.directory}/missing/checkpoint.new: ",
                      self.fail(self.directory / "missing" / "checkpoint"))

    # The environment of a machine with so many GPUs.
    def gpus(self, count):
        libraries = self.directory / "libraries"
        libraries.mkdir(exist_ok=True)
        for name in "libcuda.so.1", "libnccl.so.2":
            if not (libraries / name).exists():
                (libraries / name).symlink_to(FAKE_NCCL)
        return {"LD_LIBRARY_PATH": str(libraries), "FAKE_GPUS": str(count)}

    def test_gradients_are_added_up_on_gpus_where_each_rank_has_one(self):
        expected = self.finished(4)
        for count, by in (4, ", gradients by NCCL"), (3, ""):
            self.without_checkpoint()
            self.assert_same_training(self.finished(4, by=by, environment=self.gpus(count)), expected)

    def test_sums_that_fail_on_gpus_end_all_ranks(self):
        errors = self.refused(2, environment={**self.gpus(2), "FAKE_NCCL_FAILS": "1"})
        self.assertRegex(errors, "ranks: rank [01]: add up numbers by NCCL: internal error")

    def test_the_variables_of_each_launcher_are_understood(self):
        for names in [["RANK", "WORLD_SIZE"], ["SLURM_PROCID", "SLURM_STEP_NUM_TASKS"]]:
            self.without_checkpoint()
            steps = self.finished(2, before=["sh", "-c", RENAMED, names[0], names[1]])
            self.assertEqual(len(steps), STEPS)

    def test_variables_that_contradict_mpi_are_an_error(self):
        errors = self.refused(2, environment={"RANK": "0", "WORLD_SIZE": "1"})
        self.assertIn("ranks: rank 1: join the other ranks: the environment says rank 0 of 1, MPI "
                      "says rank 1 of 2", errors)

    def test_a_launcher_that_does_not_know_mpi_is_an_error(self):
        program = subprocess.run([PROGRAM, self.directory / "checkpoint", self.directory],
                                 env={**os.environ, **MPI, "RANK": "1", "WORLD_SIZE": "4"},
                                 capture_output=True, text=True)
        self.assertNotEqual(program.returncode, 0)
        self.assertIn("the environment says rank 1 of 4, MPI says rank 0 of 1", program.stderr)

    def test_a_number_of_ranks_that_does_not_divide_the_global_batch_is_an_error(self):
        self.assertIn("share global batches: 60 samples do not divide by 7 ranks", self.refused(7))

    def test_a_checkpoint_that_is_cut_off_is_an_error(self):
        (self.directory / "checkpoint").write_text("weights")
        self.assertIn(f"read {self.directory}/checkpoint: it is cut off", self.refused(2))

    def test_without_arguments_it_says_how_to_use_it(self):
        program = subprocess.run([PROGRAM], capture_output=True, text=True)
        self.assertEqual(program.returncode, 2)
        self.assertIn("usage: mpirun -n RANKS ranks", program.stderr)


if __name__ == "__main__":
    seed = random.randrange(2**32)
    print("seed", seed)
    KILLS.seed(seed)
    unittest.main(argv=sys.argv[:1])
