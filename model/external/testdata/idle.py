"""A model of 25 million parameters that computes nothing, to time a call."""

import numpy

import fspda


class Idle(fspda.Model):
    parameters = [fspda.Tensor("w", (5000, 5000))]

    def init(self, x, buffers, seed):
        x[:] = 1

    def grad(self, x, g, buffers, batch):
        g[0] = x[-1] + numpy.float32(len(batch))
        return 0.5

    def score(self, x, buffers, batch):
        return 0.0, 0, 0


fspda.serve(Idle)
