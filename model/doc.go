// Package model says what is computed: networks, as Gorgonia graphs of our own operations, and
// their plans.
//
// A [Network] is a function of one flat parameter vector, laid out by its [Layout], and of a batch.
// Gorgonia describes and differentiates it; a device executes it. On the way it passes through
// three forms:
//
//   - A [Graph] is a gorgonia.ExprGraph whose nodes run the kernels of package device. One
//     operation type serves all kernels (op.go); what the graph must know of each stands in one
//     table (ops.go): the shapes it fits, and its derivative as new nodes. Gorgonia's symbolic
//     differentiation puts these together into the backward pass. A kernel with several outputs is
//     a node for the first and a projection for each other.
//   - The graph is lowered (lower.go) to a list of kernel calls on values: what no result needs is
//     dropped, projections vanish, and weight decay is fused into the gradient it is added to.
//   - A [Plan] (plan.go) gives each value a place (arena.go). Parameters are read in the parameter
//     vector, gradients are computed in the gradient vector, the rest shares an arena. Its
//     [device.Code] is what a device loads.
//
// Batch norm has two buffers per layer, running mean and variance. They lie in a flat vector of
// their own, with a [Layout] of its own ([Network.Buffers]), and take no part in the parameters.
// What a plan does with them is said by its [Kind]: Train and Score take the statistics of their
// batch and have no use for buffers, Step and Observe move them, in place, ScoreWith and Predict
// read them.
//
// [MLP] and [ResNet] make networks, [Open] makes one by its name. [Engine] puts one on a device. A
// [Tape] is a network of somebody else's: of Gorgonia's own operations, run by its own machine.
//
// Conventions. Matrices are row-major, a weight is outputs × inputs, a filter outputs × height ×
// width × inputs, an image height × width × channels, a number is a tensor of shape (1). The loss
// is the mean cross entropy of the batch plus, in training, WeightDecay/2·Σw² over the decayed
// tensors, so weight decay is part of the gradient. Networks and plans are immutable and free for
// concurrent use; a Graph belongs to one goroutine. Whatever does not fit is an error that names
// the layer, although Gorgonia panics: builder.go catches that.
//
// The same operations run on Gorgonia's own machine when a graph is made with a [Host], see
// [Graph.Evaluate]. It is slow, and it is the oracle: a plan must give the same bits, which the
// tests of this package demand of every network.
//
// To add a kernel: name it in device/kernel.go, with its operands and meaning; add its line to the
// table in ops.go and its derivative below the table; implement it in each device (package cpu, and
// the interpreter of device/devicetest). The tests run over the table: a kernel without a
// finite-difference case fails them. To add a network: write a function like [MLP], whose forward
// method applies the builder's layers (layers.go), and give it a name in open.go; look at mlp.go
// and resnet.go.
package model
