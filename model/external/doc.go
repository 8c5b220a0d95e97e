// Package external trains a network that another program computes: one in PyTorch, JAX or NumPy.
//
// The program, called the client here, has no state. It gets a request, for instance the gradient
// of a batch at x, and answers it: see docs/external-models.md for the messages. Vectors and
// batches lie in memory that both sides map ([Memory]), so that none is copied on the way.
//
//   - A [Program] starts clients and ends them, and repeats a call where one fails.
//   - An [Engine] is the network, with the methods that training needs of a model.
//   - [Program.Data] asks for the examples that a client loads itself.
//
// Where to look next: engine.go.
package external
