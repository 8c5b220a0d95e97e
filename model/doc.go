// Package model defines networks as Gorgonia graphs of kernels, and compiles them to plans.
//
// A [Network] is a function of one flat parameter vector, described by its [Layout], and of a
// batch. Gorgonia represents and differentiates it; a device executes it. It passes through three
// forms:
//
//   - A [Graph] is a gorgonia.ExprGraph whose nodes run the kernels of package device. All kernels
//     share one operation type (op.go). The table in ops.go defines for each kernel its shape rules
//     and its derivative as new nodes. Gorgonia's symbolic differentiation builds the backward pass
//     from these derivatives. A kernel with several outputs is a node for output 0 and a projection
//     for each other output.
//   - The graph is lowered (lower.go) to a list of kernel calls on values: values that no result
//     needs are dropped, projections become names of outputs, and weight decay is fused into the
//     gradient.
//   - A [Plan] (plan.go) assigns memory to each value (arena.go). Parameters are read from the
//     parameter vector, gradients are written to the gradient vector, all other values share an
//     arena. A device loads the plan's [device.Code].
//
// Batch norm has two buffers per layer, running mean and variance. They are stored in a separate
// flat vector with its own [Layout] ([Network.Buffers]) and are not parameters. The [Kind] of a
// plan determines their use: Train and Score use the statistics of the batch and no buffers, Step
// and Observe update the buffers in place, ScoreWith and Predict read them.
//
// [MLP] and [ResNet] create networks, [Open] creates one by its name. [Engine] runs a network on a
// device. A [Tape] is a network written in Gorgonia's own operations and run by Gorgonia's own
// machine.
//
// Conventions. Matrices are row-major, a weight is outputs × inputs, a filter outputs × height ×
// width × inputs, an image height × width × channels, a scalar is a tensor of shape (1). The loss
// is the mean cross entropy of the batch plus, in training, WeightDecay/2·Σw² over the decayed
// tensors, so weight decay is part of the gradient. Networks and plans are immutable and safe for
// concurrent use; a Graph belongs to one goroutine. Mismatched shapes are errors that name the
// layer: builder.go recovers Gorgonia's panics.
//
// A graph made with a [Host] has operations that Gorgonia's own machine computes. That is slow and
// serves as the reference: the tests require every plan to give the same bits.
//
// To add a kernel: declare it in device/kernel.go, with its operands and meaning; add a row to the
// table in ops.go and its derivative below the table; implement it in each device (package cpu, and
// the interpreter of device/devicetest). The tests run over the table and fail for a kernel without
// a finite-difference case. To add a network: write a function like [MLP], whose forward method
// applies the builder's layers (layers.go), and give it a name in open.go; see mlp.go and
// resnet.go.
package model
