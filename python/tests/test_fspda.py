"""Tests of the package fspda, with the standard library alone; those of PyTorch run where it is installed.

FSPDA_BINARY names the program. `go test ./cli -run TestPython` runs them.
"""

import contextlib
import json
import math
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

import fspda
from fspda import tracking
from fspda.client import Memory

try:
    import torch
except ImportError:
    torch = None


class Line(fspda.Model):
    """A linear model of two classes, whose examples it has itself."""

    name = "line"
    parameters = [fspda.Tensor("w", (2, 3)), fspda.Tensor("b", (2,))]
    points = [(math.sin(i), math.cos(2 * i), (i % 7) / 7) for i in range(90)]

    def __init__(self):
        self.fail_at, self.count = 0, 0

    def data(self):
        labels = [int(a + b > c) for a, b, c in self.points]
        return {"train": labels[:60], "test": labels[60:], "classes": 2, "class_names": ["below", "above"]}

    def init(self, x, buffers, seed):
        for i in range(len(x)):
            x[i] = math.cos(i + seed)

    def rows(self, batch):
        first = {"train": 0, "test": 60}[batch.split]
        return [(self.points[first + i], y) for i, y in zip(batch.rows, batch.y)]

    def logits(self, x, point):
        return [sum(float(x[3 * k + j]) * point[j] for j in range(3)) + float(x[6 + k]) for k in range(2)]

    def loss(self, z, y):
        return math.log(sum(math.exp(v) for v in z)) - z[y]

    def grad(self, x, g, buffers, batch):
        self.count += 1
        if self.count == self.fail_at:
            raise ArithmeticError("a gradient that fails")
        total, sums = 0.0, [0.0] * 8
        for point, y in self.rows(batch):
            z = self.logits(x, point)
            total += self.loss(z, y)
            for k in range(2):
                d = math.exp(z[k]) / sum(map(math.exp, z)) - (k == y)
                sums[6 + k] += d
                for j in range(3):
                    sums[3 * k + j] += d * point[j]
        for i, v in enumerate(sums):
            g[i] = v / len(batch)
        return total / len(batch)

    def predict(self, x, out, buffers, batch):
        for i, (point, _) in enumerate(self.rows(batch)):
            out[i, 0], out[i, 1] = self.logits(x, point)

    def score(self, x, buffers, batch):
        scores = [(self.logits(x, p), y) for p, y in self.rows(batch)]
        hits = sum(z[y] > z[1 - y] for z, y in scores)
        return sum(self.loss(z, y) for z, y in scores), hits, len(scores)


QUICK = dict(algo="fspda-sa", agents=3, iterations=40, batch=5, eval_points=4, density=0.5, alpha=0.5, quiet=True)


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.dir = pathlib.Path(folder.name)

    def vectors(self, run):
        newest = sorted((run.folder / "checkpoints").glob("iter-*"))[-1]
        return json.loads((newest / "manifest.json").read_text())["vectors_sha256"]


class TestTrain(Case):
    def test_own_data(self):
        run = fspda.train(Line(), data="external", out=self.dir / "run", **QUICK)
        rows = run.rows()
        self.assertEqual([row["iteration"] for row in rows], [0, 10, 20, 30, 40])
        self.assertGreater(rows[-1]["test_acc_avg"], 0.75)
        self.assertLess(rows[-1]["test_loss_avg"], rows[0]["test_loss_avg"])
        self.assertEqual(run.summary["status"], "finished")
        self.assertEqual(run.config["model"], "external")
        self.assertEqual(run.config["alpha"], 0.5)
        model = run.model
        self.assertEqual(sorted(model), ["b", "w"])
        self.assertTrue(all(math.isfinite(float(v)) for v in (model["b"].tolist())))

    def test_resume(self):
        whole = fspda.train(Line(), data="external", out=self.dir / "whole", **QUICK)
        fspda.train(Line(), data="external", out=self.dir / "part", **{**QUICK, "iterations": 20})
        part = fspda.train(Line(), out=self.dir / "part", resume=True, iterations=40, quiet=True)
        self.assertEqual(self.vectors(part), self.vectors(whole))

    def test_failed_call_is_repeated(self):
        whole = fspda.train(Line(), data="external", out=self.dir / "whole", **QUICK)
        model = Line()
        model.fail_at = 7
        run = fspda.train(model, data="external", out=self.dir / "failed", **QUICK)
        self.assertEqual(self.vectors(run), self.vectors(whole))

    def test_errors(self):
        with self.assertRaises(fspda.RunError) as caught:
            fspda.train(Line(), data="external", out=self.dir / "run", **{**QUICK, "algo": "none"})
        self.assertEqual(caught.exception.status, 2)
        with self.assertRaises(fspda.RunError):
            fspda.train(fspda.Model(), out=self.dir / "empty", **QUICK)
        with self.assertRaises(RuntimeError):
            fspda.serve(Line())

    def test_command(self):
        """The same file is the program of --command, and has the same bits."""
        text = (
            "import sys\nsys.path[:0] = [%r, %r]\nimport fspda, test_fspda\n"
            "fspda.train(test_fspda.Line(), data='external', out=%r, **test_fspda.QUICK)\n"
        ) % (str(pathlib.Path(fspda.__file__).parent.parent), str(pathlib.Path(__file__).parent), str(self.dir / "direct"))
        script = self.dir / "script.py"
        script.write_text(text)
        subprocess.run([sys.executable, script], check=True)
        flags = fspda.training.flags({k: v for k, v in QUICK.items() if k != "quiet"})
        subprocess.run(
            [fspda.training.binary(), "train", "--quiet", "--model", "external", "--data", "external", "--command"]
            + [f"{sys.executable} {script}", "--clients", "2", "--out", self.dir / "command", *flags],
            check=True,
        )
        self.assertEqual(self.vectors(fspda.Run(self.dir / "command")), self.vectors(fspda.Run(self.dir / "direct")))
        report = json.loads(
            subprocess.run(
                [fspda.training.binary(), "eval", self.dir / "command", "--json"], check=True, stdout=subprocess.PIPE
            ).stdout
        )
        accuracy = fspda.Run(self.dir / "direct").rows()[-1]["test_acc_avg"]
        self.assertEqual((report["examples"], report["class_names"]), (30, ["below", "above"]))
        self.assertAlmostEqual(report["models"][0]["accuracy"], accuracy)


class Slow(Line):
    """A model that takes some time."""

    def grad(self, x, g, buffers, batch):
        time.sleep(0.01)
        return super().grad(x, g, buffers, batch)


class TestInterrupt(Case):
    def end(self, signal_number):
        """Signal a process that trains. Return the run folder and the settings of the run.

        A run that ends before the signal comes, on a slow machine, is followed by a longer one.
        """
        here = pathlib.Path(__file__).parent
        for iterations in 40, 400, 4000:
            settings = {**QUICK, "iterations": iterations, "eval_points": iterations // 10}
            out = self.dir / str(iterations)
            code = (
                f"import sys; sys.path[:0] = [{str(pathlib.Path(fspda.__file__).parent.parent)!r}, {str(here)!r}]\n"
                "import fspda, test_fspda\n"
                f"fspda.train(test_fspda.Slow(), data='external', out={str(out)!r}, **{settings!r})"
            )
            process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL, start_new_session=True)
            self.addCleanup(process.wait)
            self.addCleanup(process.kill)
            while len(fspda.Run(out).rows()) < 2:
                self.assertIsNone(process.poll())
                time.sleep(0.01)
            process.send_signal(signal_number)
            if process.wait() != 0:
                return out, settings
        self.fail("every run ended before the signal")

    def check(self, out, settings):
        run = fspda.train(Line(), out=out, resume=True, quiet=True)
        whole = fspda.train(Line(), data="external", out=self.dir / "whole", **settings)
        self.assertEqual(self.vectors(run), self.vectors(whole))

    def test_interrupt_leaves_a_checkpoint(self):
        out, settings = self.end(signal.SIGINT)
        self.assertTrue(list((out / "checkpoints").glob("iter-*")))
        self.check(out, settings)

    def test_killed_python_ends_the_program(self):
        out, settings = self.end(signal.SIGKILL)
        for _ in range(3000):  # resuming is refused while the program is running
            try:
                return self.check(out, settings)
            except fspda.RunError:
                time.sleep(0.1)
        self.fail("the program did not end")


class TestRuns(Case):
    def test_runs(self):
        for seed in 1, 2:
            fspda.train(Line(), data="external", out=self.dir / "runs" / str(seed), seed=seed, **QUICK)
        table = fspda.runs(self.dir / "runs")
        records = table if isinstance(table, list) else table.to_dict("records")
        self.assertEqual([r["seed"] for r in records], [1, 2])
        self.assertEqual([r["status"] for r in records], ["finished"] * 2)
        self.assertEqual(len(fspda.Run(self.dir / "runs" / "1").metrics), 5)

    def test_log_to(self):
        logged, ended = [], []

        def opener(run, project):
            self.assertEqual((run.config["agents"], project), (3, "fspda"))
            return lambda metrics, step: logged.append((step, metrics)), lambda: ended.append(True)

        tracking.OPENERS["list"] = opener
        self.addCleanup(tracking.OPENERS.pop, "list")
        run = fspda.train(Line(), data="external", out=self.dir / "run", log_to="list", **QUICK)
        self.assertEqual([step for step, _ in logged], [0, 10, 20, 30, 40])
        self.assertEqual(logged[-1][1]["test_acc_avg"], run.rows()[-1]["test_acc_avg"])
        self.assertEqual(ended, [True])
        logged.clear()
        fspda.log_to("list", run.folder)
        self.assertEqual(len(logged), 5)
        with self.assertRaises(ValueError):
            fspda.log_to("nothing", run.folder)


class TestMemory(Case):
    def test_arrays(self):
        with tempfile.TemporaryFile() as f:
            f.truncate(4096)
            memory = Memory(f.fileno())
            first = memory.array({"at": 8, "type": "float32", "shape": [2, 3]})
            first[1, 2] = 5
            f.truncate(1 << 16)
            later = memory.array({"at": 1 << 15, "type": "int32", "shape": [4]})
            later[3] = 7
            again = memory.array({"at": 8, "type": "float32", "shape": [6]})
            self.assertEqual((float(again[5]), int(later[3]), float(first[1, 2])), (5, 7, 5))
            self.assertIsNone(memory.array(None))


@unittest.skipIf(torch is None, "PyTorch is not installed")
class TestTorch(Case):
    def net(self):
        nn = torch.nn
        return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 3))

    def sets(self):
        torch.manual_seed(1)
        x = torch.randn(200, 4)
        data = torch.utils.data.TensorDataset(x, (x @ torch.randn(4, 3)).argmax(1))
        return torch.utils.data.Subset(data, range(150)), torch.utils.data.Subset(data, range(150, 200))

    def test_every_kind_of_method_resumes(self):
        torch.manual_seed(0)
        net = self.net()
        for algo in "fspda-sa", "fspda-storm", "dsgd", "choco", "dsgt", "diloco":
            settings = {**QUICK, "algo": algo, "alpha": 0.05}
            if algo not in ("fspda-sa", "fspda-storm"):
                settings.pop("density")
            if algo == "diloco":
                settings["local_steps"] = 5
            whole = fspda.train(net, *self.sets(), out=self.dir / f"whole-{algo}", **settings)
            part = self.dir / f"part-{algo}"
            fspda.train(net, *self.sets(), out=part, **{**settings, "iterations": 20})
            run = fspda.train(net, *self.sets(), out=part, resume=True, iterations=40, quiet=True)
            self.assertEqual(self.vectors(run), self.vectors(whole), algo)
            self.assertLess(run.rows()[-1]["test_loss_avg"], run.rows()[0]["test_loss_avg"], algo)

    def test_tokens(self):
        """A language model on windows of text."""
        nn = torch.nn
        net = nn.Sequential(nn.Embedding(65, 8), nn.Linear(8, 65))
        settings = {**QUICK, "data": "synthetic-text", "partition": "contiguous", "block": 8, "data_train": 2000}
        run = fspda.train(net, tokens=True, out=self.dir / "run", data_test=500, **settings)
        rows = run.rows()
        self.assertLess(rows[-1]["test_loss_avg"], rows[0]["test_loss_avg"])
        self.assertAlmostEqual(math.exp(rows[-1]["test_loss_avg"]), rows[-1]["perplexity"], 3)

    def test_model_is_a_state_dict(self):
        settings = {**QUICK, "algo": "sgd", "agents": 1, "alpha": 0.05, "bn": "local"}
        settings.pop("density")
        run = fspda.train(self.net, *self.sets(), out=self.dir / "run", **settings)
        net = self.net()
        net.load_state_dict(run.model)
        net.eval()
        _, test = self.sets()
        x, y = torch.utils.data.default_collate(list(test))
        self.assertAlmostEqual((net(x).argmax(1) == y).float().mean().item(), run.rows()[-1]["test_acc_avg"], 5)
        self.assertAlmostEqual(torch.nn.functional.cross_entropy(net(x), y).item(), run.rows()[-1]["test_loss_avg"], 4)

    def test_gradients_are_those_of_pytorch(self):
        from fspda.pytorch import TorchModel

        torch.manual_seed(0)
        net = self.net()
        model = TorchModel(net)
        model.prepare(fspda.Examples((4,), 3))
        size = sum(t.size for t in model.parameters)
        self.assertEqual([t.name for t in model.buffers], ["1.running_mean", "1.running_var"])
        self.assertTrue(model.parameters[2].norm and not model.parameters[0].norm)
        x, g, again = (torch.zeros(size) for _ in range(3))
        buffers = torch.zeros(16)
        arrays = [v.numpy() for v in (x, g, buffers, again)]
        model.init(arrays[0], arrays[2], 3)
        batch = fspda.Batch(torch.randn(10, 4).numpy(), torch.randint(3, (10,), dtype=torch.int32).numpy(), None, "", 77)
        loss = model.grad(arrays[0], arrays[1], arrays[2], batch)
        net.train()
        torch.manual_seed(77)
        want = torch.nn.functional.cross_entropy(net(torch.from_numpy(batch.x)), torch.from_numpy(batch.y).long())
        want.backward()
        self.assertEqual(loss, want.item())
        self.assertTrue(torch.equal(g, torch.cat([p.grad.reshape(-1) for p in net.parameters()])))
        self.assertTrue(torch.equal(buffers, torch.cat([net[1].running_mean, net[1].running_var])))
        before = buffers.clone()
        self.assertEqual(model.grad(arrays[0], arrays[3], None, batch), loss)  # STORM's second gradient
        self.assertTrue(torch.equal(again, g) and torch.equal(before, buffers))

    def test_copies_of_cuda(self):
        """Gradients are equal by locked memory and a stream of its own, with a stand-in for CUDA."""
        import mmap

        from fspda import pytorch

        nn = torch.nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first, self.twice, self.unused = nn.Linear(4, 64), nn.Linear(64, 64), nn.Linear(2, 2)
                self.last = nn.Linear(64, 3)

            def forward(self, x):
                x = torch.relu(self.twice(torch.relu(self.first(x))))
                return self.last(torch.relu(self.twice(x)))

        for code in 0, 1:
            cuda, net = FakeCUDA(code), Net()
            plain, copying = pytorch.TorchModel(net), pytorch.TorchModel(net)
            for model in plain, copying:
                model.prepare(fspda.Examples((4,), 3))
            copying.copies = pytorch.CUDACopies(copying.values, torch.device("cpu"), cuda)
            copying.copies.flat = torch.empty(copying.size)
            maps = [memoryview(mmap.mmap(-1, 4 * plain.size)).cast("f") for _ in range(3)]
            x, g, want = maps
            plain.init(x, None, 1)
            for key in 5, 6:
                batch = fspda.Batch(
                    memoryview(torch.randn(40).numpy()).cast("B").cast("f", (10, 4)),
                    memoryview(torch.randint(3, (10,), dtype=torch.int32).numpy()),
                    None,
                    "",
                    key,
                )
                g[0] = g[plain.size - 1] = float("nan")
                self.assertEqual(copying.grad(x, g, None, batch), plain.grad(x, want, None, batch))
                self.assertEqual(bytes(g), bytes(want))
            pages = -(-4 * plain.size // mmap.PAGESIZE) * mmap.PAGESIZE
            self.assertEqual(cuda.locked, [pages] * (2 - code))  # x and g once each; none after a refusal
            self.assertEqual(cuda.streamed, 2 * 6)  # all tensors but the two that are not used
            self.assertEqual(cuda.waited, 2)


class FakeCUDA:
    """The calls of torch.cuda that copies make, on the CPU."""

    def __init__(self, code):
        self.code, self.locked, self.streamed, self.waited = code, [], 0, 0

    def Stream(self, device):
        return self

    def current_stream(self):
        return self

    def wait_stream(self, other):
        assert other is self

    def synchronize(self):
        self.waited += 1

    @contextlib.contextmanager
    def stream(self, stream):
        self.streamed += 1
        with unittest.mock.patch.object(torch.Tensor, "record_stream", lambda tensor, stream: None):
            yield

    def cudart(self):
        return self

    def cudaHostRegister(self, at, size, flags):
        assert at % 4096 == 0 and flags == 0
        self.locked.append(size)
        return self.code


try:
    import jax
except ImportError:
    jax = None


@unittest.skipIf(jax is None, "JAX is not installed")
class TestJAX(Case):
    def test_train(self):
        from fspda.jax import JaxModel

        def init(key):
            return {"w": 0.01 * jax.random.normal(key, (784, 10)), "b": jax.numpy.zeros(10)}

        def apply(p, x, key):
            x = x.reshape(len(x), -1)
            if key is not None:  # dropout
                x = x * jax.random.bernoulli(key, 0.9, x.shape) / 0.9
            return x @ p["w"] + p["b"]

        settings = {**QUICK, "alpha": 0.05, "data_train": 300, "data_test": 100, "metrics": "test"}
        whole = fspda.train(JaxModel(init, apply), out=self.dir / "whole", **settings)
        fspda.train(JaxModel(init, apply), out=self.dir / "part", **{**settings, "iterations": 20})
        run = fspda.train(JaxModel(init, apply), out=self.dir / "part", resume=True, iterations=40, quiet=True)
        self.assertEqual(self.vectors(run), self.vectors(whole))
        self.assertEqual(sorted(run.model), ["b", "w"])
        self.assertGreater(run.rows()[-1]["test_acc_avg"], 0.3)


ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


@unittest.skipIf(torch is None, "PyTorch is not installed")
class TestExamples(Case):
    """The examples of README and of the notebook run as they are."""

    def run_code(self, code):
        path = str(pathlib.Path(fspda.__file__).resolve().parent.parent)
        found = subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r})\n{code}"],
            cwd=self.dir,
            capture_output=True,
            text=True,
        )
        self.assertEqual(found.returncode, 0, found.stderr)
        return found.stdout

    def test_readme(self):
        code = (ROOT / "README.md").read_text().split("```python\n")[1].split("```")[0]
        self.assertIn("iteration", self.run_code(code).split("finished")[1])

    def test_notebook(self):
        cells = json.loads((ROOT / "examples" / "notebook" / "own-model.ipynb").read_text())["cells"]
        code = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "code")
        said = self.run_code(code)
        self.assertIn("fspda-sa 0.", said)
        self.assertIn("dsgd 0.", said)


if __name__ == "__main__":
    unittest.main()
