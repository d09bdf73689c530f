"""Checkpoints of trees of objects, both ways: TensorFlow's Checkpoint, Saver and CheckpointManager on one side, Eddy's on the other."""
import glob
import os
import shutil

import tensorflow as tf
from common import Specimen, check, eddy, part, path_of, refused, same, values, write_list


class Layer(tf.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.w = tf.Variable(tf.zeros([inputs, outputs]))
        self.b = tf.Variable(tf.zeros([outputs]))


class Net(tf.Module):
    """Attributes, lists in lists, dictionaries with names that keys of files escape, one layer under two names."""

    def __init__(self, empty):
        super().__init__()
        self.first = Layer(3, 4)
        self.blocks = [Layer(4, 4), [Layer(4, 2), Layer(2, 1)]]
        self.tied = self.first
        self.table = {"mean": tf.Variable(tf.zeros([4], tf.float64)), "a/b.c": tf.Variable(tf.zeros([], tf.int32)),
                      "größe ü": tf.Variable(tf.zeros([empty, 3])), "..": tf.Variable(tf.zeros([2], tf.bfloat16)),
                      "x": {"y": tf.Variable(tf.zeros([2, 2], tf.bool))}}


class Tree:
    """The same tree on both sides: objects for tf.train.Checkpoint, the list for Eddy."""

    def __init__(self, empty=0):
        self.net = Net(empty)
        self.objects = {"net": self.net, "rates": [tf.Variable(0.0), tf.Variable(0.0, dtype=tf.float16)], "again": self.net.first,
                        "count": tf.Variable(0, dtype=tf.int64), "bytes": tf.Variable(tf.zeros([5], tf.uint8))}
        net, layers = self.net, {("net", "first"): self.net.first, ("net", "blocks", "0"): self.net.blocks[0],
                                 ("net", "blocks", "1", "0"): self.net.blocks[1][0], ("net", "blocks", "1", "1"): self.net.blocks[1][1]}
        self.variables = {(*way, name): getattr(layer, name) for way, layer in layers.items() for name in "wb"}
        self.variables.update({("net", "table", name): net.table[name] for name in ("mean", "a/b.c", "größe ü", "..")})
        self.variables["net", "table", "x", "y"] = net.table["x"]["y"]
        self.variables.update({("rates", str(i)): rate for i, rate in enumerate(self.objects["rates"])})
        self.variables.update({(name,): self.objects[name] for name in ("count", "bytes")})
        self.joins = [(("net", "first"), ("net", "tied")), (("net", "first"), ("again",))]

    def specimens(self, first_seed=1000):
        return [Specimen(first_seed + 100 * i, v.dtype.name, tuple(v.shape), way) for i, (way, v) in enumerate(self.variables.items())]

    def write_list(self):
        return write_list(self.specimens(), self.joins)

    def fill(self, seed=1000):
        for s in self.specimens(seed):
            self.variables[s.names].assign(tf.constant(values(s)))

    def check(self, seed=1000):
        for s in self.specimens(seed):
            same(self.variables[s.names].numpy(), s)


def eddy_to_tensorflow():
    with check("checkpoint: Eddy saves, TensorFlow restores, assert_consumed"):
        tree = Tree()
        saved = eddy("save", tree.write_list(), path_of("eddy", "ckpt")).strip()
        checkpoint = tf.train.Checkpoint(**tree.objects)
        checkpoint.restore(saved).assert_consumed()
        tree.check()
        assert checkpoint.save_counter.numpy() == 1 and saved.endswith("ckpt-1")
    with check("checkpoint: Eddy writes, TensorFlow reads, assert_consumed"):
        tree = Tree()
        written = eddy("write-tree", tree.write_list(), path_of("eddy", "written")).strip()
        tf.train.Checkpoint(**tree.objects).read(written).assert_consumed()
        tree.check()
    with check("checkpoint: Eddy writes, TensorFlow's variables are made after the restore"):
        net = tf.Module()
        status = tf.train.Checkpoint(net=net).read(path_of("eddy", "written"))
        net.first = tf.Module()
        net.first.w = tf.Variable(tf.zeros([3, 4]))
        same(net.first.w.numpy(), Tree().specimens()[0])
        status.assert_existing_objects_matched()
    with check("checkpoint: TensorFlow sees one object under two names in what Eddy wrote"):
        both = tf.Module(), tf.Module()
        tf.train.Checkpoint(net=both[0], again=both[1]).read(path_of("eddy", "written"))
        both[1].w = tf.Variable(tf.zeros([3, 4]))
        same(both[1].w.numpy(), Tree().specimens()[0])
    with check("checkpoint: Eddy's keys are those that TensorFlow gives the same tree"):
        theirs = tf.train.Checkpoint(**Tree().objects).write(path_of("eddy", "theirs"))
        keys, expected = ({name for name, _ in tf.train.list_variables(path)} for path in (path_of("eddy", "written"), theirs))
        assert keys - expected <= {"_EDDY_XXH3_128"} and not expected - keys, keys ^ expected
    with check("checkpoint: TensorFlow 1's Saver restores from keys that Eddy wrote"):
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            w = tf.compat.v1.get_variable("w", [3, 4])
            tf.compat.v1.train.Saver({"again/w/.ATTRIBUTES/VARIABLE_VALUE": w}).restore(session, path_of("eddy", "written"))
            same(session.run(w), Tree().specimens()[0])


def tensorflow_to_eddy():
    tree = Tree()
    tree.fill()
    with check("checkpoint: TensorFlow saves, Eddy restores, assert_consumed"):
        eddy("restore", tree.write_list(), tf.train.Checkpoint(**tree.objects).save(path_of("tf", "ckpt")))
    with check("checkpoint: TensorFlow writes, Eddy reads, assert_consumed"):
        eddy("read-tree", tree.write_list(), tf.train.Checkpoint(**tree.objects).write(path_of("tf", "written")))
    with check("checkpoint: TensorFlow saves in the background, Eddy restores"):
        options = tf.train.CheckpointOptions(experimental_enable_async_checkpoint=True)
        checkpoint = tf.train.Checkpoint(**tree.objects)
        path = checkpoint.save(path_of("tf", "background"), options=options)
        checkpoint.sync()
        eddy("restore", tree.write_list(), path)
    full = Tree(empty=1)  # sharding by size leaves empty tensors out of the file; TensorFlow can't read those itself
    full.fill()
    for size in 50, 1 << 20:
        with check(f"checkpoint: TensorFlow writes shards of at most {size} bytes, tensors in slices, Eddy reads"):
            policy = tf.train.experimental.MaxShardSizePolicy(max_shard_size=size)
            options = tf.train.CheckpointOptions(experimental_sharding_callback=policy)
            path = tf.train.Checkpoint(**full.objects).write(path_of("tf", f"shards-{size}"), options=options)
            assert (len(glob.glob(path + ".data-*")) > 3) == (size == 50), "another number of shards"
            eddy("read-tree", full.write_list(), path)
    with check("checkpoint: what only one side has is refused"):
        more = write_list([*tree.specimens(), Specimen(1, "float32", (2,), ("net", "more"))], tree.joins)
        assert "net/more" in refused("read-tree", more, path_of("tf", "written"))
        fewer = write_list(tree.specimens()[:-1], tree.joins)
        assert "bytes" in refused("read-tree", fewer, path_of("tf", "written"))


def shards_of(path):
    return sorted(name.removeprefix(path) for name in glob.glob(path + ".data-*"))


def overwritten():
    """One name written several times. Eddy's bundles then have one data file and two in turn."""
    shards = {1: [".data-00000-of-00001"], 2: [".data-00000-of-00002", ".data-00001-of-00002"]}

    def read_by_tensorflow(path, seed):
        tree = Tree()
        tf.train.Checkpoint(**tree.objects).read(path).assert_consumed()
        tree.check(seed)
        tf.train.load_checkpoint(path).get_variable_to_shape_map()

    for times in 1, 2, 3, 4, 7:
        with check(f"overwritten: written {times} times by Eddy, TensorFlow reads, assert_consumed"):
            path = path_of("eddy", f"rewritten-{times}")
            eddy("rewrite", Tree().write_list(), path, times)
            assert shards_of(path) == shards[2 - times % 2], shards_of(path)
            read_by_tensorflow(path, 1000 + times)
    with check("overwritten: by Eddy and TensorFlow in turn, each reads what the other wrote last"):
        path, tree = path_of("eddy", "in-turn"), Tree()
        for round in 1, 2, 3:
            tree.fill(1000 + 10 * round)
            tf.train.Checkpoint(**tree.objects).write(path)
            eddy("read-tree", write_list(tree.specimens(1000 + 10 * round), tree.joins), path)
            eddy("rewrite", tree.write_list(), path, round)
            read_by_tensorflow(path, 1000 + round)
    with check("overwritten: data of the bundle before, left by a program that was killed, changes nothing"):
        path, left = path_of("eddy", "left"), path_of("eddy", "left.data-00000-of-00001")
        eddy("rewrite", Tree().write_list(), path, 1)
        shutil.copy(left, left + ".kept")
        eddy("rewrite", Tree().write_list(), path, 1)
        shutil.move(left + ".kept", left)
        assert shards_of(path) == shards[1] + shards[2], shards_of(path)
        read_by_tensorflow(path, 1001)


def savers():
    """By names: variables of TensorFlow 1, whose checkpoints have no object graph."""
    specimens = [Specimen(1, "float32", (3, 4), ("scope", "w")), Specimen(2, "float64", (4,), ("scope", "b")),
                 Specimen(3, "int64", (), ("global_step",))]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = [tf.compat.v1.get_variable("/".join(s.names), initializer=tf.constant(values(s)), use_resource=i == 0)
                     for i, s in enumerate(specimens)]
        session.run(tf.compat.v1.global_variables_initializer())
        plain = tf.compat.v1.train.Saver(variables).save(session, path_of("saver", "model.ckpt"), global_step=7)
        sharded = tf.compat.v1.train.Saver(variables, sharded=True).save(session, path_of("saver", "sharded"))
        old = tf.compat.v1.train.Saver(variables, write_version=1).save(session, path_of("saver", "v1"))
    with check("Saver: variables restored by Eddy by their names"):
        eddy("read-tree", write_list(specimens), plain)
    with check("Saver: restored under other names"):
        renamed = [s._replace(names=("net", s.names[-1])) for s in specimens]
        eddy("read-tree", write_list(renamed), plain, "net/w", "scope/w", "net/b", "scope/b", "net/global_step", "global_step")
    with check("Saver: a sharded save"):
        eddy("read-tree", write_list(specimens), sharded)
    with check("Saver: the format before bundles is refused with a sentence"):
        assert os.path.exists(old) and refused("read-tree", write_list(specimens), old)


def files_in(folder):
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


def expected_files(numbers):
    return sorted(["checkpoint", *(f"ckpt-{i}.{end}" for i in numbers for end in ("index", "data-00000-of-00001"))])


def managers():
    folder, tree = path_of("managed"), Tree()
    names = tree.write_list()
    step = tf.Variable(0, dtype=tf.int64)

    def kept(text):
        return [os.path.basename(line.split()[1]) for line in text.splitlines() if line.startswith("kept ")]

    def continue_in_tensorflow(last, keep):
        checkpoint = tf.train.Checkpoint(step=step, **tree.objects)
        manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=keep)
        assert manager.restore_or_initialize() == os.path.join(folder, f"ckpt-{last}"), manager.latest_checkpoint
        assert step.numpy() == last
        tree.check(1000 + last)
        step.assign_add(1)
        tree.fill(1000 + last + 1)
        manager.save()
        return [os.path.basename(path) for path in manager.checkpoints]

    with check("manager: Eddy's folder as TensorFlow's latest_checkpoint and get_checkpoint_state see it"):
        assert kept(eddy("manage", names, folder, 3, 4)) == ["ckpt-2", "ckpt-3", "ckpt-4"]
        assert files_in(folder) == expected_files([2, 3, 4]), files_in(folder)
        assert tf.train.latest_checkpoint(folder) == os.path.join(folder, "ckpt-4")
        state = tf.train.get_checkpoint_state(folder)
        assert [os.path.basename(p) for p in state.all_model_checkpoint_paths] == ["ckpt-2", "ckpt-3", "ckpt-4"]
        assert len(state.all_model_checkpoint_timestamps) == 3 and state.last_preserved_timestamp > 0
    with check("manager: TensorFlow's goes on in Eddy's folder"):
        assert continue_in_tensorflow(4, 3) == ["ckpt-3", "ckpt-4", "ckpt-5"]
        assert files_in(folder) == expected_files([3, 4, 5]), files_in(folder)
    with check("manager: Eddy's goes on in TensorFlow's folder"):
        said = eddy("manage", names, folder, 3, 2)
        assert f"restored {folder}/ckpt-5\n" in said and kept(said) == ["ckpt-5", "ckpt-6", "ckpt-7"], said
        assert files_in(folder) == expected_files([5, 6, 7]), files_in(folder)
    with check("manager: the folder moved, Eddy and TensorFlow go on where it is now"):
        shutil.move(folder, folder + "-moved")
        folder += "-moved"
        assert continue_in_tensorflow(7, 2) == ["ckpt-7", "ckpt-8"]
        shutil.move(folder, folder + "-again")
        folder += "-again"
        said = eddy("manage", names, folder, 2, 1)
        assert f"restored {folder}/ckpt-8\n" in said and kept(said) == ["ckpt-8", "ckpt-9"], said
    with check("manager: begun by TensorFlow, gone on with by Eddy, kept without an end by TensorFlow"):
        folder = path_of("begun")
        manager = tf.train.CheckpointManager(tf.train.Checkpoint(step=step, **tree.objects), folder, max_to_keep=None)
        for i in 1, 2:
            step.assign(i)
            tree.fill(1000 + i)
            manager.save()
        assert kept(eddy("manage", names, folder, 0, 2)) == ["ckpt-1", "ckpt-2", "ckpt-3", "ckpt-4"]
        assert continue_in_tensorflow(4, None) == ["ckpt-1", "ckpt-2", "ckpt-3", "ckpt-4", "ckpt-5"]


def run():
    with part("checkpoints from Eddy to TensorFlow"):
        eddy_to_tensorflow()
        overwritten()
    with part("checkpoints from TensorFlow to Eddy"):
        tensorflow_to_eddy()
        savers()
    with part("managers in one folder"):
        managers()
