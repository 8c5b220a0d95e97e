"""An MLP with one hidden layer and sigmoid, in Python alone: the twin of the network mlp.

FAULT=KIND@N@FILE makes the process that answers the N-th gradient fail in a way, once: FILE is made then.
With FAULT=KIND@N it always fails.
"""

import math
import os
import signal
import sys
import time

import fspda


class MLP(fspda.Model):
    def __init__(self, hidden):
        self.hidden, self.count = hidden, 0

    def prepare(self, examples):
        n = 1
        for d in examples.shape:
            n *= d
        self.sizes = n, self.hidden, examples.classes
        self.name = "mlp %d-%d-%d sigmoid" % self.sizes
        self.parameters = [
            fspda.Tensor("fc1.weight", (self.hidden, n)),
            fspda.Tensor("fc1.bias", (self.hidden,)),
            fspda.Tensor("fc2.weight", (examples.classes, self.hidden)),
            fspda.Tensor("fc2.bias", (examples.classes,)),
        ]

    def init(self, x, buffers, seed):
        for i in range(len(x)):
            x[i] = math.sin((i + 1) * (seed + 1)) / 10

    def parts(self, v):
        n, h, c = self.sizes
        cut = [0, h * n, h * n + h, h * n + h + c * h, h * n + h + c * h + c]
        return [v[a:b] for a, b in zip(cut, cut[1:])]

    def forward(self, x, example):
        n, h, c = self.sizes
        w1, b1, w2, b2 = x
        hidden = []
        for j in range(h):
            row = w1[j * n : (j + 1) * n]
            hidden.append(1 / (1 + math.exp(-(b1[j] + sum(map(float.__mul__, row, example))))))
        return hidden, [b2[k] + sum(w2[k * h + j] * hidden[j] for j in range(h)) for k in range(c)]

    def examples(self, batch):
        for i in range(len(batch)):
            row = batch.x[i] if not isinstance(batch.x, memoryview) else None
            if row is None:
                n = self.sizes[0]
                flat = batch.x.cast("B").cast("f")
                yield flat[i * n : (i + 1) * n].tolist(), batch.y[i]
            else:
                yield [float(v) for v in row.reshape(-1)], int(batch.y[i])

    def loss(self, logits, label):
        top = max(logits)
        e = [math.exp(v - top) for v in logits]
        return top + math.log(sum(e)) - logits[label], [v / sum(e) for v in e]

    def grad(self, x, g, buffers, batch):
        self.count += 1
        bad = self.fault()
        n, h, c = self.sizes
        x = [p.tolist() for p in self.parts(x)]
        w2 = x[2]
        g1, gb1, g2, gb2 = [[0.0] * len(p) for p in x]
        total = 0.0
        for example, label in self.examples(batch):
            hidden, logits = self.forward(x, example)
            loss, p = self.loss(logits, label)
            total += loss
            p[label] -= 1
            for k in range(c):
                gb2[k] += p[k]
                for j in range(h):
                    g2[k * h + j] += p[k] * hidden[j]
            for j in range(h):
                d = sum(p[k] * w2[k * h + j] for k in range(c)) * hidden[j] * (1 - hidden[j])
                gb1[j] += d
                if d:
                    g1[j * n : (j + 1) * n] = [a + d * b for a, b in zip(g1[j * n : (j + 1) * n], example)]
        size = len(batch)
        at = 0
        for part in g1, gb1, g2, gb2:
            for v in part:
                g[at] = v / size
                at += 1
        return math.nan if bad == "nan" else total / size

    def fault(self):
        kind, _, rest = os.environ.get("FAULT", "").partition("@")
        at, _, once = rest.partition("@")
        if not kind or self.count != int(at) or once and os.path.exists(once):
            return ""
        if once:
            open(once, "w").close()
        print("a line from the model")
        if kind == "crash":
            os.kill(os.getpid(), signal.SIGKILL)
        elif kind == "exit":
            sys.exit("the model gave up")
        elif kind == "raise":
            raise ValueError("gradient of another shape")
        elif kind == "hang":
            time.sleep(3600)
        elif kind == "garbage":
            os.write(3, b"hello, world\n")
        return kind

    def score(self, x, buffers, batch):
        x = [p.tolist() for p in self.parts(x)]
        total = hits = hits5 = 0
        for example, label in self.examples(batch):
            logits = self.forward(x, example)[1]
            total += self.loss(logits, label)[0]
            before = sum(v > logits[label] or v == logits[label] and k < label for k, v in enumerate(logits))
            hits += before == 0
            hits5 += before < 5
        return total, hits, hits5

    def predict(self, x, out, buffers, batch):
        x = [p.tolist() for p in self.parts(x)]
        for i, (example, _) in enumerate(self.examples(batch)):
            for k, v in enumerate(self.forward(x, example)[1]):
                out[i, k] = v


fspda.serve(MLP(int(sys.argv[1])))
