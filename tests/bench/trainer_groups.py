"""What trainers are fed with: groups of run.py. None of them needs a GPU."""

from group import Group, Row, lower

EPOCH = "--epochs 1 --threads 1"


def trainer_group():
    about = "an epoch of examples/train_libtorch, and of its network fed by PyTorch's DataLoader"
    group = Group("trainer", about)
    # lade's run draws the images that both read.
    group.commands["lade"] = (
        "{python} {here}/trainer.py {build}/examples/train_libtorch/train_libtorch {build}/shapes"
        f" RUN --draw 300 {EPOCH}"
    )
    group.commands["DataLoader"] = (
        "{python} {here}/trainer.py {venvs}/torch/bin/python {peers}/train_dataloader.py"
        f" {{build}}/shapes --workers 1 {EPOCH}"
    )
    group.once = {"lade", "DataLoader"}
    group.rows = [
        lower("waiting for data, % of the epoch", "lade", [], "waited_percent", 2),
        lower("waiting for data", "lade", ["DataLoader"], "waited_percent"),
        Row("the epoch", "lade", ["DataLoader"], "images_per_s"),
    ]
    return group


def cuda_group():
    group = Group("cuda", "CPU time of to_device, over a driver that does nothing")
    group.commands["to_device"] = "{bin}/transfer_bench --without-driver"
    group.rows = [
        lower("a batch, us", "to_device", [], "cpu_us_of_to_device", 20),
        lower("a map that does nothing, us", "to_device", [], "cpu_us_of_map"),
    ]
    return group
